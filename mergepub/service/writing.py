"""Writes on their way to the store: those that come while one transaction is under way share the next.

All of it runs on the event loop, so without locks; a hand does each transaction as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from mergepub.errors import UnknownOutcomeError

if TYPE_CHECKING:
    from mergepub.service.hand import Answer, Call

MOST = 64
"""Writes in one transaction."""

WORTH = 3
"""So many have to wait, for each transaction under way, before another one begins: few and large ones cost least."""

Hands = Sequence[Callable[[Sequence["Call"]], Awaitable[Sequence["Answer"]]]]
_Waiting = tuple[str, "Call", "asyncio.Future[Answer]"]


class Writer:
    """The writes of one worker, made by as many ``hands`` as there may be transactions at a time."""

    def __init__(self, hands: Hands, lost: Callable[[Exception], object] = lambda _: None) -> None:
        """For these hands; ``lost`` is told why one of them gave no answer."""
        self._free = list(hands)
        self._lost = lost
        self._under_way: set[asyncio.Task[None]] = set()
        self._waiting: list[_Waiting] = []
        self._busy: set[str] = set()  # the paths in transactions under way
        self._called = False

    async def write(self, path: str, call: Call) -> Any:
        """Do what ``call`` says, about ``path``; its answer when it is durable.

        Raises:
            AloneError: it has to be written by itself; nothing of it was done.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((path, call, waiting))
        if not self._called:  # whoever else writes in this turn of the loop comes along
            self._called = True
            loop.call_soon(self._begin)
        result, error = await waiting
        if error is not None:
            raise error
        return result

    def _begin(self) -> None:
        self._called = False
        while self._free and len(self._waiting) >= max(1, WORTH * len(self._under_way)):
            batch = self._next()
            if not batch:
                return
            task = asyncio.get_running_loop().create_task(self._transact(batch, self._free.pop()))
            self._under_way.add(task)

    def _next(self) -> list[_Waiting]:
        """Those who have waited longest, but for documents that are written already."""
        batch = [each for each in self._waiting if each[0] not in self._busy][:MOST]
        taken = set(map(id, batch))
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        self._busy |= {path for path, _, _ in batch}
        return batch

    async def _transact(self, batch: Sequence[_Waiting], hand: Any) -> None:
        try:
            answers = await hand([call for _, call, _ in batch])
        except Exception as error:  # whatever it was, nobody knows what was written
            self._lost(error)
            said = "the service failed while it wrote; repeat the write as it is"
            answers = [(None, UnknownOutcomeError(said)) for _ in batch]
        self._free.append(hand)
        task = asyncio.current_task()
        assert task is not None
        self._under_way.discard(task)
        self._busy -= {path for path, _, _ in batch}
        self._begin()
        for answer, (_, _, waiting) in zip(answers, batch, strict=True):
            if not waiting.done():  # the request may have taken too long
                waiting.set_result(answer)
