"""Resolvers and writers in processes of their own: one decision wins, the others are told, nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mergepub.documents import ABSENT, EVENTS, Version
from mergepub.events import parse_events
from mergepub.publishing import publish
from mergepub.stores import open_store
from tests.stores.http_service import HttpService

DOC = "/docs/guide.md"
RESOLVER = Path(__file__).with_name("resolver.py")
APPENDER = Path(__file__).with_name("appender.py")


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


def started(script: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The script as a process that waits to be told to begin."""
    return subprocess.Popen([sys.executable, script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def finished(running: list[subprocess.Popen[bytes]]) -> list[str]:
    """What each said, once all have begun together."""
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0].decode().strip() for process in running]


def test_of_resolvers_in_processes_one_wins_and_the_stale_ones_are_told(url: str) -> None:
    store = open_store(url)
    store.publish(DOC, b"one\n", ABSENT)
    store.publish(DOC, b"two\n", Version(1))
    names = [store.branch(DOC, b"%d\n" % i, Version(1), author=f"w{i}").branch for i in range(4)]
    running = [started(RESOLVER, url, DOC, "2", f"{name}@1") for name in names]
    said = sorted(finished(running))
    assert said == ["told VersionConflictError 3"] * 3 + ["won 3"]
    assert len(store.decisions(DOC)) == 1
    head, branches = store.branches(DOC)
    assert (head.version, sum(branch.state == "open" for branch in branches)) == (3, 3)
    assert list(store.verify(DOC)) == []
    store.close()


def test_of_writers_in_processes_that_append_the_same_event_one_brings_it(url: str) -> None:
    """Whoever comes second is told so: no id stands in a log twice."""
    store, count = open_store(url), 12
    publish(store, "/log", b'{"id": "e0", "type": "message"}\n', 0, kind=EVENTS)
    running = [started(APPENDER, url, "/log", str(count)) for _ in range(4)]
    said = [int(line) for line in finished(running)]
    events = parse_events(store.fetch("/log").body)  # it refuses what stands there twice
    assert sorted(event.id for event in events) == sorted(f"e{i}" for i in range(count + 1))
    assert sum(said) == count
    assert store.fetch("/log").version.number == count + 1
    assert list(store.verify("/log")) == []
    store.close()
