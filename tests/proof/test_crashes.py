"""Clients, services and the database are killed with ``kill -9`` at random moments under load, and restarted.

Every acknowledged version is there and whole, versions have no holes, the store verifies, what was refused did not
happen, and every unknown outcome is resolved to exactly once by repeating the call. scripts/soak runs more rounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.proof.rounds import PostgresDatabase, Proof, UrlOnly

if TYPE_CHECKING:
    from tests.stores.postgres_server import PostgresServer


def test_nothing_is_lost_when_clients_and_services_on_sqlite_are_killed(tmp_path: Path) -> None:
    with Proof(UrlOnly(str(tmp_path / "store.sqlite")), seed=3) as proof:
        proof.rounds(most=3, versions=120, kills=("client", "service", "service"))
        proof.resolve()
        assert proof.faults() == []
        assert proof.figures.kills["service"] > 0


def test_nothing_is_lost_when_clients_services_and_postgresql_are_killed(own_postgres: PostgresServer) -> None:
    with Proof(PostgresDatabase(own_postgres), seed=4) as proof:
        proof.rounds(most=3, versions=120, kills=("client", "service", "database"))
        proof.resolve()
        assert proof.faults() == []
        assert proof.figures.kills.total() > 0
