"""Load on a store that leaves a record: clients that publish, append, fetch and delete at random.

A client is one thread of calls on a few documents through several stores (handles on the same documents). It records
every attempt before and after the call, so that what a killed client had asked for is known. As a program:

    python -m tests.proof.driver RECORD SECONDS SEED URL [URL...]

writes the record, one line an attempt, to the file RECORD for SECONDS.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mergepub.documents import ABSENT, Document, Receipt, Version
from mergepub.errors import (
    DocumentDeletedError,
    DocumentExistsError,
    MergepubError,
    NotFoundError,
    RecreatedError,
    UnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)
from tests.proof import attempts as a
from tests.proof.attempts import Attempt, Made

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

PATHS = ("/proof/one.md", "/proof/two.md")

# What a client does next, and how often of 100.
_HABITS = {"fetch": 25, "publish": 32, "append": 22, "stale": 6, "old": 5, "again": 5, "delete": 5}


@dataclass
class Client:
    """One writer. ``record`` gets every attempt twice: begun, then ended.

    ``patient`` are handles that repeat by themselves what was not answered; only what may be repeated goes there.
    """

    name: str
    stores: Sequence[Store]
    seed: int
    record: Callable[[Attempt], None]
    paths: Sequence[str] = PATHS
    pause: float = 0.05
    insist: int = 40
    patient: Sequence[Store] = ()
    heads: dict[str, int] = field(default_factory=dict)  # as last seen; 0 is absent
    alive: dict[str, list[int]] = field(default_factory=dict)  # versions that were read or made, and can be read again
    asked: list[Attempt] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def run(self, *, until: float | None = None, operations: int | None = None) -> None:
        """Work until the monotonic time ``until``, or for so many operations."""
        count = 0
        while (until is None or time.monotonic() < until) and (operations is None or count < operations):
            self.step()
            count += 1

    def step(self) -> None:
        path = self._random.choice(self.paths)
        habit = self._random.choices(list(_HABITS), list(_HABITS.values()))[0]
        self._insist(self._planned(habit, path))

    def _planned(self, habit: str, path: str) -> Attempt:
        head = self.heads.get(path)
        if habit == "again" and self.asked:
            return self._random.choice(self.asked)
        if habit == "old" and self.alive.get(path):
            return self._new(a.FETCH, path, self._random.choice(self.alive[path]))
        if head is None or habit in ("fetch", "again", "old"):
            return self._new(a.FETCH, path)
        return self._planned_write(habit, path, head)

    def _planned_write(self, habit: str, path: str, head: int) -> Attempt:
        if head and habit == "append":
            return self._new(a.APPEND, path)
        if head and habit == "delete":
            return self._new(a.DELETE, path, head)
        expected = max(0, head - self._random.randint(1, 3)) if habit == "stale" else head
        return self._new(a.PUBLISH, path, expected)

    def _new(self, kind: str, path: str, expected: int | None = None) -> Attempt:
        self.made += 1
        size = self._random.choice((0, 40, 400, 4000)) if kind in (a.PUBLISH, a.APPEND) else 0
        return Attempt(f"{self.name}-{self.made}", path, kind, 0, expected, size)

    def _insist(self, plan: Attempt) -> None:
        """Make the call; repeat it while nobody knows whether it happened."""
        for _ in range(self.insist):
            patient = bool(self.patient) and is_repeatable(plan) and self._random.random() < 0.5
            store = self._random.choice(self.patient if patient else self.stores)
            answered = attempt_once(store, replace(plan, patient=patient), self.record)
            self._learn(answered)
            if answered.result not in (a.UNKNOWN, a.NOT_DONE):
                break
            time.sleep(self.pause)
            if not is_repeatable(plan):
                return
        if plan.kind != a.FETCH and is_repeatable(plan):
            self.asked = [*self.asked[-20:], plan]

    def _learn(self, attempt: Attempt) -> None:
        if attempt.result in (a.UNKNOWN, a.NOT_DONE):
            return
        gone = attempt.result in (a.MISSING, a.DELETED) or (attempt.kind == a.DELETE and attempt.result in _DONE)
        self.heads[attempt.path] = 0 if gone else attempt.current or attempt.version or 0
        if attempt.version and attempt.kind != a.DELETE and attempt.result in _DONE:
            self.alive.setdefault(attempt.path, []).append(attempt.version)


_DONE = (a.MADE, a.REPLAYED, a.UNCHANGED, a.READ)


def is_repeatable(attempt: Attempt) -> bool:
    """Whether repeating is recognised whatever happened in between.

    A create is not, when its document may have been deleted since: then there is rightly room for it once more.
    """
    return not (attempt.kind == a.PUBLISH and attempt.expected == 0)


def attempt_once(store: Store, plan: Attempt, record: Callable[[Attempt], None]) -> Attempt:
    """Make the call that ``plan`` describes, once; its record."""
    begun = replace(plan, begun=time.monotonic_ns(), ended=None, result=a.UNKNOWN)
    record(begun)
    answer = _outcome(lambda: _call(store, plan))
    ended = replace(begun, ended=time.monotonic_ns(), **answer)
    record(ended)
    return ended


def _call(store: Store, plan: Attempt) -> Receipt | Document:
    if plan.kind == a.FETCH:
        return store.fetch(plan.path, plan.expected)
    if plan.kind == a.APPEND:
        return store.append(plan.path, plan.body, key=plan.operation, message=plan.operation)
    expected = Version(plan.expected) if plan.expected else ABSENT
    if plan.kind == a.DELETE:
        return store.delete(plan.path, expected, message=plan.operation)
    return store.publish(plan.path, plan.body, expected, message=plan.operation)


def _outcome(call: Callable[[], Receipt | Document]) -> dict[str, object]:
    try:
        answer = call()
    except UnknownOutcomeError:
        return {"result": a.UNKNOWN}
    except UnavailableError:
        return {"result": a.NOT_DONE}
    except NotFoundError as error:
        return {"result": a.MISSING, "version": error.tombstone}
    except VersionConflictError as error:
        return {"result": _conflict(error), "current": error.current}
    return _answered(answer)


def _conflict(error: MergepubError) -> str:
    names = {RecreatedError: a.RECREATED, DocumentDeletedError: a.DELETED, DocumentExistsError: a.EXISTS}
    return names.get(type(error), a.CONFLICT)  # type: ignore[call-overload]  # a class that is not a key is a conflict


def _answered(answer: Receipt | Document) -> dict[str, object]:
    told = {"version": answer.version.number, "current": answer.current, "incarnation": answer.incarnation}
    if isinstance(answer, Document):
        return {**told, "result": a.READ, "digest": answer.digest}
    return {**told, "result": a.REPLAYED if answer.replayed else a.UNCHANGED if answer.unchanged else a.MADE}


# -- records and histories ---------------------------------------------------------------------------------------------


class RecordFile:
    """A record on disk: what is written to it survives the death of its process."""

    def __init__(self, name: str) -> None:
        self._descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, attempt: Attempt) -> None:
        os.write(self._descriptor, attempt.to_line())


def settled(lines: Iterable[Attempt]) -> list[Attempt]:
    """The attempts of a record, each once: as it ended, or as it began where it never did."""
    last: dict[tuple[str, int], Attempt] = {}
    for attempt in lines:
        last[attempt.operation, attempt.begun] = attempt
    return list(last.values())


def read_record(name: str) -> list[Attempt]:
    """The attempts in a record on disk."""
    with Path(name).open("rb") as file:
        return settled(Attempt.from_line(line) for line in file if line.endswith(b"\n"))


def history_of(store: Store, path: str) -> list[Made]:
    """The whole history of a document with its bodies, oldest first; empty where there is none."""
    try:
        rows = list(store.versions(path))
    except NotFoundError:
        return []
    return [
        Made(
            row.version,
            row.message,
            None if row.deleted else store.fetch(path, row.version).body,
            row.digest,
            row.incarnation,
        )
        for row in reversed(rows)
    ]


def main(record: str, seconds: str, seed: str, *urls: str) -> None:
    from mergepub.stores import open_store
    from mergepub.stores.http import HttpStore
    from mergepub.stores.wrappers import RetryPolicy

    once = [HttpStore(url, policy=RetryPolicy(attempts=1)) for url in urls]
    patient = [open_store(url) for url in urls]
    client = Client(f"c{seed}", once, int(seed), RecordFile(record), patient=patient)
    client.run(until=time.monotonic() + float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
