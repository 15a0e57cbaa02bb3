"""Many writes in one transaction: what the SQL backends share of it.

A write costs a lock, a transaction, a commit that reaches the disk, and a step or a message for every statement. Writes
that come at once need pay for them once. Whoever has several of them at hand gives them to ``SqlStore.write_all``:

- The heads of all documents are read at once; then every operation says what it changes; then the changes of all are
  made, one statement for each kind. Nobody is answered before the commit, so a yes is as durable as alone.
- What an operation changes is kept until all have spoken; so one that is refused leaves nothing, without a savepoint.
- Several writes of one document are done one after the other in the same transaction, each on the head before it.
- An operation that needs more than this gets no answer but ``AloneError``; nothing of it was done, and it is to be run
  by itself (``SqlStore.write``). So are all, when the transaction is undone.

Statements, locks and the meaning of errors are the backend's; who collects the writes is no matter here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mergepub.errors import ContentionError, MergepubError
from mergepub.stores.sql import HEAD, Order, Transaction
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.stores.sql import Cursor

Row = tuple[Any, ...]

_CHANGE = re.compile(r"\s*(?:INSERT INTO|UPDATE)\s+(\w+)")


class AloneError(Exception):
    """The operation needs a transaction of its own; nothing of it was done."""


class Job:
    """One write among others, and what became of it: as long as nothing is known, an ``AloneError``."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.path = order.path
        self._result: Any = None
        self._error: Exception | None = AloneError()

    def attempt(self, kept: Kept) -> list[Change]:
        """Run the operation; the changes it asks for, none when it is refused."""
        try:
            self._result, self._error = self.order.operation(kept), None
        except (AloneError, ContentionError):
            self.end(None)
        except MergepubError as error:
            self.end(error)
        return [] if self._error else kept.changes

    def end(self, error: Exception | None) -> None:
        """Answer with ``error``; with none, that it is still to be written."""
        self._error = error or AloneError()

    def answer(self) -> Any:
        """What the operation returned; raises what it raised, or ``AloneError``."""
        if self._error is not None:
            raise self._error
        return self._result


@dataclass(frozen=True, slots=True)
class Change:
    """A statement with its values. ``swap``: it must change one row."""

    statement: str
    values: Sequence[object]
    table: str
    swap: bool = False


class Kept(Transaction):
    """An operation's share of the transaction: the head is known already, and what it changes waits."""

    def __init__(self, execute: Callable[[str, Sequence[object]], Cursor], path: str, head: Row | None) -> None:
        self._ask = execute
        self._path = path
        self._head = head
        self.changes: list[Change] = []

    def row(self, statement: str, *values: object) -> Row | None:
        """See ``Transaction.row``."""
        if statement is HEAD and values == (self._path,) and not self.changes:
            return self._head
        return super().row(statement, *values)

    def put(self, statement: str, *values: object) -> None:
        """See ``Transaction.put``."""
        self._keep(statement, values, swap=False)

    def swap(self, statement: str, *values: object) -> bool:
        """See ``Transaction.swap``: whether it holds is seen when all is made."""
        self._keep(statement, values, swap=True)
        return True

    def run(self, statement: str, *values: object) -> int:  # noqa: ARG002 - as in the class above
        """Nobody knows yet how many rows it would change."""
        raise AloneError

    def _keep(self, statement: str, values: Sequence[object], *, swap: bool) -> None:
        match = _CHANGE.match(statement)
        if match is None:
            raise AloneError
        self.changes.append(Change(statement, values, match[1], swap))

    def _execute(self, statement: str, values: Sequence[object]) -> Cursor:
        if self.changes:
            raise AloneError  # it would not see what it has changed itself
        return self._ask(statement, values)


class Batch(ABC):
    """A transaction for many. A backend begins and ends it, and says how to ask and how to change."""

    kept: type[Kept] = Kept

    @abstractmethod
    def execute(self, statement: str, values: Sequence[object]) -> Cursor:
        """Run one statement."""

    @abstractmethod
    def heads(self, paths: list[str]) -> dict[str, Row]:
        """The heads of those ``paths`` that have one, as ``HEAD`` has them."""

    @abstractmethod
    def change(self, changes: dict[str, list[Change]]) -> None:
        """Make the changes, by statement; no two statements are about the same rows.

        Raises:
            ContentionError: a swap changed nothing.
        """

    def run(self, jobs: list[Job], heads: dict[str, Row | None]) -> None:
        """Run ``jobs`` on ``heads``; those whose document is not in there are left as they are."""
        for wave in _waves(jobs):
            ours = [job for job in wave if job.path in heads]
            changes = [job.attempt(self.kept(self.execute, job.path, heads[job.path])) for job in ours]
            moved = [job.path for job, made in zip(ours, changes, strict=True) if made]
            for together in _rounds(changes):
                self.change(together)
            if moved and len(jobs) > len(wave):
                heads |= self.heads(moved)


def _waves(jobs: Iterable[Job]) -> list[list[Job]]:
    """The jobs in their order, so that no wave has a path twice."""
    waves: list[list[Job]] = []
    count: dict[str, int] = {}
    for job in jobs:
        turn = count[job.path] = count.get(job.path, -1) + 1
        if turn == len(waves):
            waves.append([])
        waves[turn].append(job)
    return waves


def _rounds(changes: Iterable[list[Change]]) -> Iterator[dict[str, list[Change]]]:
    """What can be done at once, by statement: of one operation no two changes of one table."""
    rest = [each for each in changes if each]
    while rest:
        split = [_before_repetition(each) for each in rest]
        together: dict[str, list[Change]] = {}
        for now, _ in split:
            for change in now:
                together.setdefault(change.statement, []).append(change)
        yield together
        rest = [later for _, later in split if later]


def _before_repetition(changes: list[Change]) -> tuple[list[Change], list[Change]]:
    tables: set[str] = set()
    for index, change in enumerate(changes):
        if change.table in tables:
            return changes[:index], changes[index:]
        tables.add(change.table)
    return changes, []
