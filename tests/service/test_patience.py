"""Time limits of one length: who is called, who is not, and what a task that takes too long sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from mergepub.service.patience import Limit, Patience, Within

LONG = 3600.0
SHORT = 0.001


def in_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(30):
            return await work()

    return asyncio.run(run())


def test_limits_are_reached_in_their_order_and_those_that_were_cancelled_never() -> None:
    async def work() -> list[str]:
        patience, reached, last = Patience(SHORT), list[str](), asyncio.Event()
        patience.begin(lambda: reached.append("a"))
        patience.begin(lambda: reached.append("cancelled")).cancel()
        patience.begin(lambda: reached.append("b"))
        patience.begin(last.set)
        await last.wait()
        return reached

    assert in_loop(work) == ["a", "b"]


def test_a_limit_that_begins_when_all_others_are_over_is_reached_too() -> None:
    async def work() -> None:
        patience = Patience(SHORT)
        for _ in range(3):
            reached = asyncio.Event()
            patience.begin(reached.set)
            await reached.wait()

    in_loop(work)


def test_one_that_is_cancelled_by_another_of_the_same_moment_is_not_reached() -> None:
    async def work() -> list[str]:
        patience, reached, last = Patience(0), list[str](), asyncio.Event()
        limits = list[Limit]()
        patience.begin(lambda: limits.pop().cancel())
        limits.append(patience.begin(lambda: reached.append("second")))
        patience.begin(last.set)
        await last.wait()
        return reached

    assert in_loop(work) == []


def test_one_that_fails_does_not_keep_the_others_from_their_turn() -> None:
    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        patience, last = Patience(SHORT), asyncio.Event()
        patience.begin(lambda: 1 / 0)
        patience.begin(last.set)
        await last.wait()

    in_loop(work)


def test_a_task_that_takes_too_long_sees_a_time_out_and_goes_on() -> None:
    async def work() -> tuple[bool, int]:
        with pytest.raises(TimeoutError), Within(Patience(SHORT)) as limit:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return limit.expired, task.cancelling()

    assert in_loop(work) == (True, 0)


def test_a_task_in_time_sees_nothing_and_its_own_errors_stay_what_they_are() -> None:
    async def work() -> bool:
        with Within(Patience(LONG)) as limit:
            await asyncio.sleep(0)
        with pytest.raises(ValueError, match="mine"), Within(Patience(LONG)):
            raise ValueError("mine")
        return limit.expired

    assert in_loop(work) is False


def test_a_task_that_somebody_cancels_is_cancelled_and_not_late() -> None:
    async def waits(inside: asyncio.Event) -> None:
        with Within(Patience(LONG)):
            inside.set()
            await asyncio.Event().wait()

    async def work() -> bool:
        inside = asyncio.Event()
        task = asyncio.ensure_future(waits(inside))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert in_loop(work)


def test_the_inner_of_two_limits_ends_what_is_within_it_alone() -> None:
    async def work() -> tuple[bool, bool]:
        with Within(Patience(LONG)) as outer, pytest.raises(TimeoutError), Within(Patience(SHORT)) as inner:
            await asyncio.Event().wait()
        return outer.expired, inner.expired

    assert in_loop(work) == (False, True)
