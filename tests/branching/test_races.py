"""Resolvers and writers in processes of their own: one decision wins, the others are told, nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mergepub.documents import ABSENT, Version
from mergepub.stores import open_store
from tests.stores.http_service import HttpService

DOC = "/docs/guide.md"
RESOLVER = Path(__file__).with_name("resolver.py")


@pytest.fixture(params=["sqlite", "postgres", "http"])
def url(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_url")
        return
    file = f"sqlite:///{tmp_path / 'store.sqlite'}"
    if request.param == "sqlite":
        yield file
        return
    service = HttpService(file).start()
    yield service.url
    service.remove()


def test_of_resolvers_in_processes_one_wins_and_the_stale_ones_are_told(url: str) -> None:
    store = open_store(url)
    store.publish(DOC, b"one\n", ABSENT)
    store.publish(DOC, b"two\n", Version(1))
    names = [store.branch(DOC, b"%d\n" % i, Version(1), author=f"w{i}").branch for i in range(4)]
    running = [
        subprocess.Popen(
            [sys.executable, RESOLVER, url, DOC, "2", f"{name}@1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for name in names
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    said = sorted(process.communicate(timeout=60)[0].decode().strip() for process in running)
    assert said == ["told VersionConflictError 3"] * 3 + ["won 3"]
    assert len(store.decisions(DOC)) == 1
    head, branches = store.branches(DOC)
    assert (head.version, sum(branch.state == "open" for branch in branches)) == (3, 3)
    assert list(store.verify(DOC)) == []
    store.close()
