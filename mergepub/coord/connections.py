"""Conversations on a Unix socket: lines in, answers out in their order; everything about them is bounded.

Nothing here knows what a line means: ``Answer`` gives the line that answers one, or None to close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mergepub.coord import bounds

if TYPE_CHECKING:
    import socket

Answer = Callable[[bytes, asyncio.Event], Awaitable[bytes | None]]
"""Of a line, and of an event that is set when the one who asked is gone or has no more to ask."""

_AHEAD = bounds.LINE_BYTES  # of lines that wait for their turn, in bytes; who leaves is noticed up to there


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds: without a request; for taking an answer."""

    connections: int = bounds.CONNECTIONS
    idle: float = bounds.IDLE_SECONDS
    write: float = bounds.WRITE_SECONDS


class Lines:
    """Cuts a stream into lines; ``too_long`` once one was over the limit, and then nothing more comes."""

    def __init__(self, limit: int = bounds.LINE_BYTES) -> None:
        self._limit = limit
        self._rest = bytearray()
        self.too_long = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes, those with nothing in them left out."""
        self._rest += data
        found: list[bytes] = []
        while not self.too_long and (end := self._rest.find(b"\n")) >= 0:
            if end + 1 > self._limit:
                break
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            if line.strip():
                found.append(line)
        self.too_long = len(self._rest) >= self._limit
        return found


class _Conversation:
    """One connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, limits: Limits
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._limits = limits
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting = 0
        self._taken = asyncio.Event()
        self._gone = asyncio.Event()
        self._last = False
        self._answering = False
        writer.transport.set_write_buffer_limits(high=0)  # so that draining means: all of it was taken

    async def run(self) -> None:
        """Answer until the other side ends it, is idle for too long, or breaks a bound."""
        feeding = asyncio.create_task(self._feed())
        try:
            while not self._last:
                line = await asyncio.wait_for(self._lines.get(), self._limits.idle)
                if line is None:
                    break
                self._waiting -= len(line)
                self._taken.set()
                if not await self._answered(line):
                    break
        except (TimeoutError, OSError):
            self._writer.transport.abort()
        finally:
            feeding.cancel()
            self._writer.close()

    async def _answered(self, line: bytes) -> bool:
        """Answer one line; False when the answer is to close."""
        self._answering = True
        answer = await self._answer(line, self._gone)
        if answer is not None:
            self._writer.write(answer)
            await asyncio.wait_for(self._writer.drain(), self._limits.write)
        self._answering = False
        return answer is not None

    def end(self) -> bool:
        """Let the line that is being answered be the last one; False when none is."""
        self._last = True
        return self._answering

    async def _feed(self) -> None:
        lines = Lines()
        with suppress(OSError):
            while not lines.too_long and (data := await self._reader.read(bounds.LINE_BYTES)):
                for line in lines.feed(data):
                    self._waiting += len(line)
                    self._lines.put_nowait(line)
                while self._waiting > _AHEAD:
                    self._taken.clear()
                    await self._taken.wait()
        self._gone.set()
        self._lines.put_nowait(None)


class Listener:
    """Accepts connections on one socket, up to a number, and converses on each."""

    def __init__(self, answer: Answer, limits: Limits) -> None:
        self._answer = answer
        self._limits = limits
        self._tasks: dict[asyncio.Task[None], _Conversation] = {}
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Accept from now on."""
        self._server = await asyncio.start_unix_server(self._accept, sock=listening)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= self._limits.connections:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None, "streams make a task for each connection"
        conversation = self._tasks[task] = _Conversation(reader, writer, self._answer, self._limits)
        try:
            with suppress(asyncio.CancelledError):  # cut off by close; older asyncio takes the word for a fault
                await conversation.run()
        finally:
            del self._tasks[task]

    async def close(self, patience: float = 0.0) -> None:
        """Accept no more; what is being answered may take ``patience`` seconds to end."""
        if self._server is not None:
            self._server.close()
        ending = [task for task, conversation in self._tasks.items() if conversation.end()]
        if ending and patience:
            await asyncio.wait(ending, timeout=patience)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
