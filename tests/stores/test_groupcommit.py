"""Writers that share a commit: every answer is its own, a yes is durable, a refusal leaves the others alone."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mergepub.documents import ABSENT, Receipt, Version
from mergepub.errors import MergepubError, UnavailableError, VersionConflictError
from mergepub.stores.groupcommit import MOST
from mergepub.stores.sqlite import SqliteStore

WRITERS = 24


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "store.sqlite", busy_timeout=10)
    store.publish("/first", b"", ABSENT)
    return store


def at_once(store: SqliteStore, calls: list[Callable[[], object]]) -> list[object]:
    """Run ``calls`` in threads that all find the store busy, so that they become one group; their answers or errors."""
    answers: list[object] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            answers[index] = calls[index]()
        except Exception as error:
            answers[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    with store._group._leading:
        for thread in threads:
            thread.start()
        give_up = time.monotonic() + 20
        while len(store._group._waiting) < len(calls) and time.monotonic() < give_up:
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    return answers


def commits(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the transactions from now on."""
    counted: list[int] = []
    begin = store._group._transaction

    def counting() -> object:
        counted.append(1)
        return begin()

    monkeypatch.setattr(store._group, "_transaction", counting)
    return counted


def test_writers_that_wait_share_one_commit_and_each_has_its_answer(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = commits(store, monkeypatch)
    paths = [f"/d/{number}" for number in range(WRITERS)]
    answers = at_once(store, [lambda path=path: store.publish(path, path.encode(), ABSENT) for path in paths])
    assert len(counted) == 1
    assert all(isinstance(answer, Receipt) and answer.version.number == 1 for answer in answers)
    assert [store.fetch(path).body for path in paths] == [path.encode() for path in paths]
    assert list(store.verify()) == []


def test_a_group_has_a_limit_and_nobody_is_left_out(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = commits(store, monkeypatch)
    calls = [lambda n=n: store.publish(f"/d/{n}", b"x", ABSENT) for n in range(MOST + 10)]
    answers = at_once(store, calls)
    assert all(isinstance(answer, Receipt) for answer in answers)
    assert len(counted) == 2


def test_of_a_group_on_one_document_one_makes_the_version(store: SqliteStore) -> None:
    calls = [lambda n=n: store.publish("/first", b"%d" % n, Version(1)) for n in range(WRITERS)]
    answers = at_once(store, calls)
    made = [answer for answer in answers if isinstance(answer, Receipt)]
    lost = [answer for answer in answers if isinstance(answer, VersionConflictError)]
    assert (len(made), len(lost)) == (1, WRITERS - 1)
    assert all((error.expected, error.current) == (1, 2) for error in lost)
    assert store.fetch("/first").version.number == 2
    assert list(store.verify()) == []


def test_what_is_refused_leaves_nothing_and_the_others_everything(store: SqliteStore) -> None:
    calls: list[Callable[[], object]] = []
    for number in range(8):
        calls.append(lambda n=number: store.publish(f"/good/{n}", b"%d" % n, ABSENT))
        calls.append(lambda n=number: store.append(f"/missing/{n}", b"x", key=f"k{n}"))
    answers = at_once(store, calls)
    assert all(isinstance(answer, Receipt) for answer in answers[::2])
    assert all(isinstance(answer, MergepubError) for answer in answers[1::2])
    assert [row.path for row in store.list("/good")] == [f"/good/{n}" for n in range(8)]
    assert list(store.list("/missing")) == []


def test_one_operation_that_breaks_does_not_break_the_others(store: SqliteStore) -> None:
    def breaks() -> object:
        return store._write("/x", lambda tx: tx.run("INSERT INTO nothing VALUES (1)"))

    calls: list[Callable[[], object]] = [lambda n=n: store.publish(f"/d/{n}", b"x", ABSENT) for n in range(5)]
    answers = at_once(store, [*calls[:2], breaks, *calls[2:]])
    assert isinstance(answers.pop(2), MergepubError)
    assert all(isinstance(answer, Receipt) for answer in answers)
    assert len(list(store.list("/d"))) == 5


def test_an_interrupt_of_the_leader_leaves_nobody_waiting(store: SqliteStore) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    def kept(call: Callable[[], object]) -> object:
        try:
            return call()
        except KeyboardInterrupt as interrupt:
            return interrupt

    calls: list[Callable[[], object]] = [lambda n=n: store.publish(f"/d/{n}", b"x", ABSENT) for n in range(5)]
    calls.append(lambda: store._write("/x", interrupted))
    answers = at_once(store, [lambda call=call: kept(call) for call in calls])
    assert sorted(type(answer).__name__ for answer in answers) == ["KeyboardInterrupt", *["UnknownOutcomeError"] * 5]
    assert list(store.list("/d")) == []
    assert [store.publish(f"/d/{n}", b"x", ABSENT).version.number for n in range(5)] == [1] * 5


def test_a_store_that_stays_locked_keeps_a_group_waiting_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite", busy_timeout=0.5)
    store.publish("/first", b"", ABSENT)
    other = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    answers = at_once(store, [lambda n=n: store.publish(f"/d/{n}", b"x", ABSENT) for n in range(20)])
    assert all(isinstance(answer, UnavailableError) for answer in answers)
    assert time.monotonic() - started < 5, "twenty time-outs one after the other would be ten seconds"
    other.execute("ROLLBACK")
    other.close()
    assert store.publish("/d/0", b"x", ABSENT).version.number == 1
