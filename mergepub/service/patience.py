"""Time limits of one length, of which there are many at a time: one timer of the event loop serves them all.

Every request has one, so has every body and every pause between two requests, and hardly any is ever reached. Timers of
their own would cost more than much of what a request is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import takewhile
from types import TracebackType


class Patience:
    """Limits of ``seconds``, all on one event loop."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._limits: dict[Limit, None] = {}  # in the order of their ends
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, then: Callable[[], object]) -> Limit:
        """Call ``then`` when the time is over, unless the limit is cancelled before."""
        loop = asyncio.get_running_loop()
        limit = Limit(self, loop.time() + self.seconds, then)
        self._limits[limit] = None
        if self._timer is None:
            self._timer = loop.call_at(limit.end, self._look)
        return limit

    def forget(self, limit: Limit) -> None:
        """It is not waited for any more."""
        self._limits.pop(limit, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        over = list(takewhile(lambda limit: limit.end <= now, self._limits))
        for limit in over:
            loop.call_soon(limit.reach)
        left = next((limit for limit in self._limits if limit.end > now), None)
        self._timer = loop.call_at(left.end, self._look) if left else None


class Limit:
    """One of them."""

    __slots__ = ("_patience", "_then", "end")

    def __init__(self, patience: Patience, end: float, then: Callable[[], object]) -> None:
        self.end = end
        self._patience: Patience | None = patience
        self._then = then

    def cancel(self) -> None:
        """The time does not matter any more; may be called again, and afterwards."""
        if self._patience is not None:
            self._patience.forget(self)
            self._patience = None

    def reach(self) -> None:
        """The time is over."""
        if self._patience is not None:
            self.cancel()
            self._then()


class Within:
    """``with Within(patience) as limit``: as ``asyncio.timeout``, a TimeoutError where it takes longer."""

    __slots__ = ("_cancelling", "_limit", "_patience", "_task", "expired")

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.expired = False
        """Whether the time is over."""

    def __enter__(self) -> Within:
        task = asyncio.current_task()
        assert task is not None, "time limits are for tasks"
        self._task, self._cancelling = task, task.cancelling()
        self._limit = self._patience.begin(self._expire)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._limit.cancel()
        # Somebody else may have asked the task to end as well: that is not ours to take back.
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()
