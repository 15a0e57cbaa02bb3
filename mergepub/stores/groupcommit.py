"""Writers of one process share a commit: whoever comes while a transaction is being made durable joins the next one.

A write to SQLite costs a lock, a transaction and an fsync, one writer at a time. Threads that write at once need pay
for them once: the first leads, runs what all who wait have to do in one transaction, and commits; the others take their
answers. An answer is given after the commit, so a yes is as durable as alone. An operation that is refused leaves
nothing of itself and everything of the others.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from mergepub.errors import MergepubError, UnknownOutcomeError

if TYPE_CHECKING:
    from mergepub.stores.sql import Transaction

T = TypeVar("T")

MOST = 64
"""Operations in one transaction."""


class _Job:
    """One operation and what became of it."""

    def __init__(self, operation: Callable[[Transaction], Any]) -> None:
        self.operation = operation
        self.done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def attempt(self, tx: Transaction) -> None:
        """Run it among others: a refusal is kept as its answer and takes back what it wrote."""
        tx.run("SAVEPOINT one")
        try:
            self._result, self._error = self.operation(tx), None
        except MergepubError as error:
            self._error = error
            tx.run("ROLLBACK TO one")
        tx.run("RELEASE one")

    def fail(self, error: Exception) -> None:
        """Answer with ``error``."""
        self._error, self.done = error, True

    def alone(self, transaction: Callable[[], AbstractContextManager[Transaction]]) -> None:
        """Run it in a transaction of its own."""
        try:
            with transaction() as tx:
                self._result, self._error = self.operation(tx), None
        except BaseException as error:  # it is raised where the answer is taken
            self._error = error
        self.done = True

    def answer(self) -> Any:
        """What the operation returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result


class GroupCommit:
    """``transaction`` begins a writing transaction and commits at its end; it waits for other processes by itself."""

    def __init__(self, transaction: Callable[[], AbstractContextManager[Transaction]]) -> None:
        self._transaction = transaction
        self._leading = threading.Lock()
        self._waiting: deque[_Job] = deque()

    def run(self, operation: Callable[[Transaction], T]) -> T:
        """The result of ``operation``, durable."""
        job = _Job(operation)
        self._waiting.append(job)
        while not job.done:
            with self._leading:
                if not job.done:
                    self._lead()
        result: T = job.answer()
        return result

    def _lead(self) -> None:
        jobs = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))]
        if len(jobs) > 1 and self._together(jobs):
            return
        for job in jobs:
            job.alone(self._transaction)

    def _together(self, jobs: list[_Job]) -> bool:
        """Run ``jobs`` in one transaction; False, and nothing done, when one of them comes in the way of the others."""
        begun = False
        try:
            with self._transaction() as tx:
                begun = True
                for job in jobs:
                    job.attempt(tx)
        except Exception as error:
            if begun:
                return False
            for job in jobs:
                job.fail(error)  # there was no transaction to be had: nobody has to wait for that again, one by one
            return True
        except BaseException:  # the leader alone is interrupted; without an answer the others would wait for ever
            for job in jobs:
                job.fail(
                    UnknownOutcomeError("a writer of the same process was interrupted meanwhile; repeat the write")
                )
            raise
        for job in jobs:
            job.done = True
        return True
