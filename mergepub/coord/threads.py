"""Threads for what may block for long: they keep no process from ending, and what waits for one may stop waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Run ``call`` in a daemon thread of its own; what it returns or raises, where the future is awaited."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            done = call()
        except Exception as error:  # it is raised where the future is awaited
            _tell(loop, future, lambda error=error: future.set_exception(error))  # type: ignore[misc]  # a default binds it
        else:
            _tell(loop, future, lambda: future.set_result(done))

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], settle: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(lambda: None if future.done() else settle())
