"""Writes that share a commit on SQLite: each has its answer, a yes is durable, a refusal leaves the others alone."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.documents import ABSENT, Receipt, Version
from mergepub.errors import ContentionError, MergepubError, NotFoundError, UnavailableError, VersionConflictError
from mergepub.stores.sqlite import SqliteStore
from tests.stores.together import together

if TYPE_CHECKING:
    from mergepub.stores.sql import Transaction

WRITERS = 24
Call = Callable[[], object]


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "store.sqlite", busy_timeout=10)
    store.publish("/first", b"", ABSENT)
    return store


@pytest.fixture
def commits(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each transaction that writes from now on."""
    counted: list[int] = []
    turn = store._turn

    def counting(connection: sqlite3.Connection) -> object:
        counted.append(1)
        return turn(connection)

    monkeypatch.setattr(store, "_turn", counting)
    return counted


def creations(store: SqliteStore, paths: list[str]) -> list[Call]:
    return [partial(store.publish, path, path.encode(), ABSENT) for path in paths]


def test_writes_that_come_at_once_share_one_commit_and_each_has_its_answer(
    store: SqliteStore, commits: list[int]
) -> None:
    paths = [f"/d/{number}" for number in range(WRITERS)]
    answers = together(store, creations(store, paths))
    assert len(commits) == 1
    assert all(isinstance(answer, Receipt) and answer.version.number == 1 for answer in answers)
    assert [store.fetch(path).body for path in paths] == [path.encode() for path in paths]
    assert list(store.verify()) == []


def test_new_documents_next_versions_merges_and_tombstones_share_it(store: SqliteStore, commits: list[int]) -> None:
    for path in ("/a", "/b", "/c"):
        store.publish(path, b"1\n", ABSENT)
    commits.clear()
    calls: list[Call] = [
        lambda: store.publish("/new", b"1", ABSENT, author="ana"),
        lambda: store.publish("/a", b"2", Version(1), message="why", source="commit"),
        lambda: store.append("/b", b"2", key="k"),
        lambda: store.delete("/c", Version(1)),
        lambda: store.publish("/first", b"2", Version(1)),
    ]
    answers = together(store, calls)
    assert all(isinstance(answer, Receipt) for answer in answers), answers
    assert len(commits) == 1
    assert store.fetch("/b").body == b"1\n2"
    assert next(store.versions("/a")).source == "commit"
    assert next(store.versions("/c")).deleted
    assert list(store.verify()) == []


def test_of_many_on_one_document_one_makes_the_version(store: SqliteStore, commits: list[int]) -> None:
    calls: list[Call] = [partial(store.publish, "/first", b"%d" % n, Version(1)) for n in range(WRITERS)]
    answers = together(store, calls)
    assert isinstance(answers[0], Receipt)
    assert all(isinstance(error, VersionConflictError) for error in answers[1:])
    assert all(
        (error.expected, error.current) == (1, 2) for error in answers[1:] if isinstance(error, VersionConflictError)
    )
    assert len(commits) == 1
    assert store.fetch("/first").version.number == 2
    assert list(store.verify()) == []


def test_appends_to_one_document_follow_one_another_in_one_commit(store: SqliteStore, commits: list[int]) -> None:
    calls: list[Call] = [partial(store.append, "/first", b"%d\n" % n, key=f"k{n}") for n in range(WRITERS)]
    calls.append(calls[3])  # repeated: recognised within the same transaction
    answers = together(store, calls)
    numbers = [answer.version.number for answer in answers if isinstance(answer, Receipt)]
    assert numbers == [*range(2, WRITERS + 2), 5]
    assert len(commits) == 1
    assert store.fetch("/first").body == b"".join(b"%d\n" % n for n in range(WRITERS))
    assert list(store.verify()) == []


def test_the_same_body_for_many_documents_is_kept_once(store: SqliteStore) -> None:
    calls: list[Call] = [partial(store.publish, f"/d/{n}", b"same", ABSENT) for n in range(8)]
    assert all(isinstance(answer, Receipt) for answer in together(store, calls))
    assert store._read(lambda tx: tx.row("SELECT count(*) FROM bodies WHERE body = ?", b"same")) == (1,)
    assert list(store.verify()) == []


def test_what_is_refused_leaves_nothing_and_the_others_everything(store: SqliteStore, commits: list[int]) -> None:
    def breaks_off(tx: Transaction) -> None:
        tx.put("INSERT INTO bodies (digest, size, body) VALUES (?, ?, ?)", "0" * 64, 1, b"x")
        raise NotFoundError("after its first change")

    calls: list[Call] = []
    for number in range(8):
        calls += creations(store, [f"/good/{number}"])
        calls.append(partial(store.append, f"/missing/{number}", b"x", key=f"k{number}"))
    calls.append(lambda: store._write("/x", breaks_off))
    answers = together(store, calls)
    assert all(isinstance(answer, Receipt) for answer in answers[:-1:2])
    assert all(isinstance(answer, NotFoundError) for answer in [*answers[1::2], answers[-1]])
    assert len(commits) == 1
    assert [row.path for row in store.list("/good")] == [f"/good/{n}" for n in range(8)]
    assert list(store.list("/missing")) == []
    assert store._read(lambda tx: tx.row("SELECT 1 FROM bodies WHERE digest = ?", "0" * 64)) is None


def test_one_operation_that_breaks_does_not_break_the_others(store: SqliteStore) -> None:
    def breaks(tx: Transaction) -> None:
        tx.put("INSERT INTO heads (path, version, branch, revision) VALUES (?, ?, ?, ?)", "/x", 9, "none", 9)

    calls = creations(store, [f"/d/{n}" for n in range(5)])
    calls[2:2] = [
        lambda: store._write("/x", lambda tx: tx.run("INSERT INTO nothing VALUES (1)")),
        lambda: store._write("/x", breaks),
        lambda: store._write("/x", lambda tx: tx.row("SELECT nothing FROM heads")),
    ]
    answers = together(store, calls)
    assert all(isinstance(answers.pop(2), MergepubError) for _ in range(3))
    assert all(isinstance(answer, Receipt) and not answer.replayed for answer in answers)
    assert len(list(store.list("/d"))) == 5
    assert list(store.verify()) == []


def test_a_swap_that_finds_another_head_undoes_the_transaction_and_each_goes_alone(store: SqliteStore) -> None:
    def blind(tx: Transaction) -> bool:
        known = (
            "INSERT INTO heads (path, version, branch, revision, digest) SELECT path, version, branch, revision, digest"
        )
        swapped = tx.swap(f"{known} FROM heads WHERE path = ? AND version = ?", "/first", 7)
        if not swapped:
            raise ContentionError("another head")
        return swapped

    answers = together(store, [*creations(store, ["/d/1"]), lambda: store._write("/first", blind)])
    assert isinstance(answers[0], Receipt)
    assert isinstance(answers[1], ContentionError)
    assert list(store.verify()) == []


def test_a_store_that_is_made_by_one_of_them_holds_all(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "new.sqlite")
    answers = together(store, creations(store, ["/a", "/b", "/c"]))
    assert all(isinstance(answer, Receipt) for answer in answers)
    assert [row.path for row in store.list()] == ["/a", "/b", "/c"]


def test_a_store_that_stays_locked_keeps_a_group_waiting_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite", busy_timeout=0.5)
    store.publish("/first", b"", ABSENT)
    other = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    answers = together(store, creations(store, [f"/d/{n}" for n in range(20)]))
    assert all(isinstance(answer, UnavailableError) for answer in answers)
    assert time.monotonic() - started < 5, "twenty time-outs one after the other would be ten seconds"
    other.execute("ROLLBACK")
    other.close()
    assert store.publish("/d/0", b"x", ABSENT).version.number == 1
