"""Random histories: whatever happens to a store, no acknowledged edit is ever missing.

The model is a dictionary of what was acknowledged. Every step runs on the memory store and on SQLite, which share no
logic, and must come out alike; SQLite crashes now and then, between writes and inside them.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from mergepub.documents import MergedFrom, Receipt, Version, digest_of
from mergepub.errors import MergepubError, NotFoundError
from mergepub.stores.contract import Store
from mergepub.stores.memory import MemoryStore
from mergepub.stores.sql import Cursor, Transaction
from mergepub.stores.sqlite import SqliteStore

PATHS = st.sampled_from(["/a", "/a/b"])
BODIES = st.sampled_from([b"", b"1", b"2\n", b"3\r\n", b"\0\xff", b"x" * 5000])
STEPS_BACK = st.integers(-1, 4)  # from the head: 0 is right, -1 is above it
Write = Callable[[Store], Receipt]


class Crash(BaseException):
    """The process is gone; only files are left."""


class Histories(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="histories-"))
        self.generation = 0
        self.memory = MemoryStore()
        self.sqlite = SqliteStore(self.file())
        self.acknowledged: dict[tuple[str, int], bytes | None] = {}
        self.writes: list[Write] = []
        self.keys = 0

    def file(self) -> Path:
        return self.place / str(self.generation) / "store.sqlite"

    def teardown(self) -> None:
        self.sqlite.close()
        shutil.rmtree(self.place)

    # Writes

    @rule(path=PATHS, body=BODIES, back=STEPS_BACK)
    def publish(self, path: str, body: bytes, back: int) -> None:
        expected = Version(max(0, self.head(path) - back))
        self.write(path, lambda s: s.publish(path, body, expected), body)

    @rule(path=PATHS, body=BODIES)
    def create(self, path: str, body: bytes) -> None:
        self.write(path, lambda s: s.publish(path, body, Version(0)), body)

    @rule(path=PATHS, ours=BODIES, merged=BODIES, back=st.integers(1, 3))
    def publish_merged(self, path: str, ours: bytes, merged: bytes, back: int) -> None:
        theirs = self.head(path)
        made_from = MergedFrom(max(0, theirs - back), theirs, digest_of(ours))
        self.write(path, lambda s: s.publish(path, merged, Version(theirs), merged_from=made_from), merged)
        self.writes.append(lambda s: s.publish(path, ours, Version(made_from.base)))

    @rule(path=PATHS, body=BODIES)
    def append(self, path: str, body: bytes) -> None:
        self.keys += 1
        key = str(self.keys)
        try:
            head = self.memory.fetch(path).body
        except NotFoundError:
            head = b""
        whole = head + (b"\n" if head and not head.endswith(b"\n") else b"") + body
        self.write(path, lambda s: s.append(path, body, key=key), whole)

    @rule(path=PATHS, back=STEPS_BACK)
    def delete(self, path: str, back: int) -> None:
        expected = Version(max(0, self.head(path) - back))
        self.write(path, lambda s: s.delete(path, expected), None)

    @rule(which=st.integers(0, 10**6))
    def repeat_an_earlier_write(self, which: int) -> None:
        """The answer was lost, at once or long ago: nothing may happen twice."""
        if self.writes:
            write = self.writes[which % len(self.writes)]
            before = {path: self.head(path) for path in ("/a", "/a/b")}
            answer = self.run(write)
            if isinstance(answer[0], Receipt) and (answer[0].replayed or answer[0].unchanged):
                assert before == {path: self.head(path) for path in before}
            elif isinstance(answer[0], Receipt):  # refused or undone before, and right now
                self.note_all()

    # Crashes

    @rule()
    def crash_between_writes(self) -> None:
        self.crash(self.copied())

    @rule(path=PATHS, body=BODIES, statement=st.integers(1, 9), crash=st.booleans())
    def crash_or_fail_inside_a_write(self, path: str, body: bytes, statement: int, crash: bool) -> None:
        """Before the given statement of a write the process is gone, or the disk fails: the write never happened."""
        left = statement
        execute = Transaction._execute

        def counted(tx: Transaction, text: str, values: Sequence[object]) -> Cursor:
            nonlocal left
            left -= text.startswith(("INSERT", "UPDATE"))
            if left == 0 and not crash:
                raise sqlite3.OperationalError("disk I/O error")
            if left == 0:
                raise Crash(self.copied())
            return execute(tx, text, values)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Transaction, "_execute", counted)
            try:
                self.sqlite.publish(path, body, Version(self.head(path)))
            except Crash as killed:
                self.crash(killed.args[0])
            except MergepubError:
                pass
            else:
                patch.undo()
                self.run_on(self.memory, lambda s: s.publish(path, body, Version(self.head(path))))
                self.note_all()

    # What must hold

    @invariant()
    def no_acknowledged_edit_is_missing(self) -> None:
        for (path, number), body in self.acknowledged.items():
            for store in (self.memory, self.sqlite):
                if body is None:
                    with pytest.raises(NotFoundError):
                        store.fetch(path, number)
                else:
                    assert store.fetch(path, number).body == body

    @invariant()
    def numbers_have_no_holes_and_both_stores_agree(self) -> None:
        for path in ("/a", "/a/b"):
            histories = [self.history(store, path) for store in (self.memory, self.sqlite)]
            assert histories[0] == histories[1]
            assert [row[0] for row in histories[0]] == [*range(len(histories[0]), 0, -1)]

    @invariant()
    def the_store_verifies(self) -> None:
        if self.file().exists():
            assert list(self.sqlite.verify()) == []

    # How

    def write(self, path: str, write: Write, body: bytes | None) -> None:
        answer = self.run(write)[0]
        self.writes.append(write)
        if isinstance(answer, Receipt) and not answer.replayed:
            assert self.acknowledged.setdefault((path, answer.version.number or 0), body) == body

    def run(self, write: Write) -> tuple[Any, Any]:
        answers = self.run_on(self.memory, write), self.run_on(self.sqlite, write)
        assert comparable(answers[0]) == comparable(answers[1])
        return answers

    @staticmethod
    def run_on(store: Store, write: Write) -> Receipt | MergepubError:
        try:
            return write(store)
        except MergepubError as error:
            return error

    def head(self, path: str) -> int:
        return max((version for known, version in self.acknowledged if known == path), default=0)

    def note_all(self) -> None:
        for path in ("/a", "/a/b"):
            for number, deleted, *_ in self.history(self.memory, path):
                body = None if deleted else self.memory.fetch(path, number).body
                assert self.acknowledged.setdefault((path, number), body) == body

    @staticmethod
    def history(store: Store, path: str) -> list[tuple[Any, ...]]:
        try:
            return [(r.version, r.deleted, r.digest, r.size, r.merged_from) for r in store.versions(path)]
        except NotFoundError:
            return []

    def copied(self) -> Path:
        """What a process killed now leaves on disk, in a new place."""
        old = self.file()
        self.generation += 1
        self.file().parent.mkdir()
        for side in ("", "-wal"):  # shared memory does not survive
            source = old.with_name(old.name + side)
            if source.exists():
                shutil.copyfile(source, self.file().with_name(old.name + side))
        return self.file()

    def crash(self, left: Path) -> None:
        self.sqlite.close()
        self.sqlite = SqliteStore(left)


def comparable(answer: Receipt | MergepubError) -> tuple[object, ...]:
    """What both stores must agree on: everything but random ids."""
    if isinstance(answer, Receipt):
        return (answer.version, answer.unchanged, answer.replayed, answer.current, answer.merged_from)
    data = [getattr(answer, name, None) for name in ("expected", "current", "tombstone")]
    said = "" if isinstance(answer, NotFoundError) else str(answer)  # a missing file is said in other words
    return (type(answer), *data, said)


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
