"""Processes publish, append, fetch and delete through two services on one store; their histories are linearisable."""

from __future__ import annotations

from pathlib import Path

from tests.proof import attempts as a
from tests.proof.rounds import Proof, UrlOnly


def proven(proof: Proof) -> None:
    proof.round(4, clients=4)
    proof.resolve()
    assert proof.faults() == []
    answers = proof.figures.answers
    assert answers[a.READ] > 20
    assert answers[a.MADE] > 20
    assert answers[a.CONFLICT] > 0
    assert answers[a.UNKNOWN] == 0, "nobody was killed"


def test_histories_through_two_services_on_one_sqlite_file_are_linearisable(tmp_path: Path) -> None:
    with Proof(UrlOnly(str(tmp_path / "store.sqlite")), seed=1) as proof:
        proven(proof)


def test_histories_through_two_services_on_one_postgresql_are_linearisable(postgres_url: str) -> None:
    with Proof(UrlOnly(postgres_url), seed=2) as proof:
        proven(proof)
