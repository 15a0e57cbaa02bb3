"""Random histories of publishes, appends, deletes, repetitions, lost answers and restarts, held against a simple model.

The model keeps every version in a list and says what each call must answer. The stores must agree with it, version by
version: so no acknowledged edit is ever missing, and none is there twice.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from mergepub.errors import NotFoundError, UnknownOutcomeError
from mergepub.merge import diff3
from mergepub.outcomes import Candidate, MergeFacts, Mismatch, Overlap, Published, Refused
from mergepub.publishing import append, delete, fetch, publish
from mergepub.stores import open_store

PATHS = ["/a", "/docs/b"]
SEED = b"".join(b"%d\n" % n for n in range(12))


@dataclass
class Entry:
    body: bytes | None  # None is a tombstone
    life: int
    merged_from: tuple[int, int, bytes] | None = None  # base, theirs, the caller's body


@dataclass
class Model:
    """What one document must be like. Versions count from 1: ``entries[0]`` is version 1."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def head(self):
        return len(self.entries)

    @property
    def deleted(self):
        return not self.entries or self.entries[-1].body is None

    @property
    def first(self):
        """The first version of the present life."""
        return next(n for n, entry in enumerate(self.entries, 1) if entry.life == self.entries[-1].life)

    def body(self, version):
        return self.entries[version - 1].body

    def replay(self, body, expected):
        follower = self.first if expected == 0 else expected + 1
        if self.first <= follower <= self.head and self.body(follower) == body:
            return self.moved_on(Published(follower, replayed=True))
        for version in range(self.first, self.head + 1):
            made = self.entries[version - 1].merged_from
            if made and (made[0], made[2]) == (expected, body):
                facts = MergeFacts(*made[:2])
                return self.moved_on(Published(version, facts, replayed=True, body=self.body(version)))
        return None

    def moved_on(self, outcome):
        return outcome if outcome.version == self.head else replace(outcome, current_version=self.head)

    def predict(self, body, expected, policy):  # noqa: PLR0911 - a return for each rule, in the order of the rules
        """The answer to a publish, and the entry that it makes, if any."""
        head = self.head
        if self.deleted:
            if expected == 0:
                return Published(head + 1), Entry(body, head)
            return (Refused(expected, head, "deleted") if head else NotFoundError), None
        if known := self.replay(body, expected):
            return known, None
        if body == self.body(head):
            return Published(head, unchanged=True), None
        if expected == head:
            return Published(head + 1), Entry(body, self.entries[-1].life)
        if 0 < expected < self.first:
            return Refused(expected, head, "recreated"), None
        if policy == "fail":
            return Mismatch(expected, head), None
        if expected > head:
            return Refused(expected, head, "base-unavailable"), None
        return self.predict_merge(body, expected, policy)

    def predict_merge(self, body, expected, policy):
        head = self.head
        merged = diff3(self.body(expected) if expected else b"", body, self.body(head))
        if merged.conflicts:
            marked = Overlap(expected, head, merged.conflicts, merged.marker_size, merged.body, merged.unterminated)
            return marked, None
        if policy == "candidate":
            return Candidate(expected, head, head, merged.body), None
        facts = MergeFacts(expected, head)
        if merged.body == self.body(head):
            return Published(head, facts, unchanged=True, body=merged.body), None
        entry = Entry(merged.body, self.entries[-1].life, (expected, head, body))
        return Published(head + 1, facts, body=merged.body), entry


class Lossy:
    """Loses the next request or the next answer of a write when told to."""

    def __init__(self, store):
        self.store = store
        self.loss = None

    def __getattr__(self, name):
        found = getattr(self.store, name)
        return self.losing(found) if name in ("publish", "append", "delete") else found

    def losing(self, call):
        def call_or_lose(*args, **kw):
            if self.loss == "request":
                self.loss = None
                raise UnknownOutcomeError("timed out")
            receipt = call(*args, **kw)  # a no is answered: only the answer of a write that happened gets lost
            if self.loss == "answer":
                self.loss = None
                raise UnknownOutcomeError("reset by peer")
            return receipt

        return call_or_lose


line = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
paths = st.sampled_from(PATHS)
losses = st.sampled_from([None, None, "request", "answer"])
versions = st.integers(0, 7)


class Histories(RuleBasedStateMachine):
    url = "memory:"

    @initialize()
    def open(self):
        self.folder = tempfile.mkdtemp()
        self.store = Lossy(open_store(self.url.format(self.folder)))
        self.models = {path: Model() for path in PATHS}
        self.sent = []
        self.serial = 0
        for path in PATHS:
            self.send(path, SEED, 0, "fail", None)

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    @rule(path=paths, back=st.integers(0, 3), at=st.integers(0, 12), what=st.sampled_from(["put", "replace", "drop"]),
          policy=st.sampled_from(["merge", "merge", "fail", "candidate"]), loss=losses)  # fmt: skip
    def edit(self, path, back, at, what, policy, loss):  # noqa: PLR0917 - hypothesis passes them by name
        """An edit of one of the last versions, by a line that stands nowhere else."""
        model = self.models[path]
        expected = max(0, model.head - back)
        lines = ((model.body(expected) if expected else None) or b"").split(b"\n")[:-1]
        self.serial += 1
        new = [] if what == "drop" else [b"line %d" % self.serial]
        at = min(at, len(lines))
        lines[at : at + (what != "put")] = new
        self.send(path, b"".join(text + b"\n" for text in lines), expected, policy, loss)

    @rule(path=paths, body=st.lists(line, max_size=4).map(b"\n".join), expected=versions,
          policy=st.sampled_from(["merge", "fail", "candidate"]), loss=losses)  # fmt: skip
    def anything(self, path, body, expected, policy, loss):
        """Any body at any version, also ones that never were."""
        self.send(path, body, expected, policy, loss)

    @precondition(lambda self: self.sent)
    @rule(which=st.integers(0), loss=losses)
    def again(self, which, loss):
        """Exactly what was sent before, once more."""
        self.send(*self.sent[which % len(self.sent)], loss)

    def send(self, path, body, expected, policy, loss):
        self.sent.append((path, body, expected, policy))
        model = self.models[path]
        outcome, entry = model.predict(body, expected, policy)
        if outcome is NotFoundError:
            with pytest.raises(NotFoundError):
                publish(self.store, path, body, expected, on_conflict=policy)
            return
        if entry:
            model.entries.append(entry)
            if loss == "answer":
                outcome = replace(outcome, replayed=True)
        self.store.loss = loss
        assert publish(self.store, path, body, expected, on_conflict=policy) == outcome
        self.store.loss = None

    @rule(path=paths, text=line, loss=losses)
    def add(self, path, text, loss):
        model = self.models[path]
        if model.deleted:
            with pytest.raises(NotFoundError):
                append(self.store, path, text)
            return
        old = model.body(model.head)
        model.entries.append(Entry(old + (b"\n" if old and old[-1:] != b"\n" else b"") + text, model.entries[-1].life))
        self.store.loss = loss
        assert append(self.store, path, text) == Published(model.head, replayed=loss == "answer")

    @rule(path=paths, back=st.sampled_from([1, 2, 0]), loss=losses)
    def remove(self, path, back, loss):
        model = self.models[path]
        expected, head = max(1, model.head - back), model.head
        if head == 0:
            with pytest.raises(NotFoundError):
                delete(self.store, path, expected)
            return
        if model.deleted:
            again = Published(head, replayed=True) if expected + 1 == head else Refused(expected, head, "deleted")
            assert delete(self.store, path, expected) == again
            return
        if expected != head:
            stale = expected < model.first
            wanted = Refused(expected, head, "recreated") if stale else Mismatch(expected, head, deleting=True)
            assert delete(self.store, path, expected) == wanted
            return
        model.entries.append(Entry(None, model.entries[-1].life))
        self.store.loss = loss
        assert delete(self.store, path, expected) == Published(head + 1, replayed=loss == "answer")

    @precondition(lambda self: self.url != "memory:")
    @rule()
    def restart(self):
        self.store.close()
        self.store = Lossy(open_store(self.url.format(self.folder)))

    @invariant()
    def every_version_is_there_as_it_was_acknowledged(self):
        for path, model in getattr(self, "models", {}).items():
            if not model.entries:
                continue
            rows = sorted(self.store.versions(path), key=lambda row: row.version)
            assert [row.version for row in rows] == list(range(1, model.head + 1))
            assert [row.deleted for row in rows] == [entry.body is None for entry in model.entries]
            for number, entry in enumerate(model.entries, 1):
                if entry.body is not None:
                    assert fetch(self.store, path, number).document.body == entry.body


class SqliteHistories(Histories):
    url = "sqlite:///{}/store.sqlite"


LIMITS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "stateful_step_count": 40}
TestMemory = Histories.TestCase
TestMemory.settings = settings(max_examples=200, **LIMITS)
TestSqlite = SqliteHistories.TestCase
TestSqlite.settings = settings(max_examples=40, **LIMITS)
