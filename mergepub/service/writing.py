"""Writes on their way to the store: those that come while one transaction is under way share the next.

All of it runs on the event loop, so without locks; a thread of the pool does each transaction as a whole. Stores that
cannot write many at once take them one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

from mergepub.errors import UnknownOutcomeError
from mergepub.stores.groupcommit import Job

if TYPE_CHECKING:
    from mergepub.stores.sql import Order, SqlStore

MOST = 64
"""Writes in one transaction."""

WORTH = 3
"""So many have to wait, for each transaction under way, before another one begins: few and large ones cost least."""

_Waiting = tuple["Order", "asyncio.Future[Job]"]


class Writer:
    """The writes of one worker."""

    def __init__(self, store: SqlStore, pool: Executor) -> None:
        self.store = store
        self._pool = pool
        self._waiting: list[_Waiting] = []
        self._busy: set[str] = set()  # the paths in transactions under way
        self._lanes = 0  # how many are
        self._called = False

    async def write(self, order: Order) -> Any:
        """Do what ``order`` says; its answer when it is durable.

        Raises:
            AloneError: it has to be written by itself; nothing of it was done.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Job] = loop.create_future()
        self._waiting.append((order, answer))
        if not self._called:  # whoever else writes in this turn of the loop comes along
            self._called = True
            loop.call_soon(self._begin)
        return (await answer).answer()

    def _begin(self) -> None:
        self._called = False
        while self._lanes < self.store.lanes and len(self._waiting) >= max(1, WORTH * self._lanes):
            batch = self._next()
            if not batch:
                return
            orders = [order for order, _ in batch]
            self._lanes += 1
            done = asyncio.get_running_loop().run_in_executor(self._pool, self.store.write_all, orders)
            done.add_done_callback(partial(self._end, batch))

    def _next(self) -> list[_Waiting]:
        """Those who have waited longest, but for documents that are written already."""
        batch = [each for each in self._waiting if each[0].path not in self._busy][:MOST]
        taken = set(map(id, batch))
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        self._busy |= {order.path for order, _ in batch}
        return batch

    def _end(self, batch: Sequence[_Waiting], done: asyncio.Future[Sequence[Job]]) -> None:
        self._lanes -= 1
        self._busy -= {order.path for order, _ in batch}
        self._begin()
        for job, (_, answer) in zip(_jobs(batch, done), batch, strict=True):
            if not answer.done():  # the request may have taken too long
                answer.set_result(job)


def _jobs(batch: Sequence[_Waiting], done: asyncio.Future[Sequence[Job]]) -> Sequence[Job]:
    try:
        return done.result()
    except Exception:  # whatever it was, nobody knows what was written
        jobs = [Job(order) for order, _ in batch]
        for job in jobs:
            job.end(UnknownOutcomeError("the service failed while it wrote; repeat the write as it is"))
        return jobs
