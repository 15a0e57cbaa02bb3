"""Conversations without a daemon: who leaves is noticed, whatever is still to be answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from mergepub.coord import bounds
from mergepub.coord.connections import Answer, Limits, Listener
from mergepub.coord.surfaces import bind

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def listening(place: Path, answer: Answer) -> AsyncIterator[Callable[[], Awaitable[Streams]]]:
    listener = Listener(answer, Limits())
    await listener.start(bind(place, 0o600))
    try:
        yield lambda: asyncio.open_unix_connection(str(place))
    finally:
        await listener.close()


def test_who_leaves_is_noticed_behind_many_lines_that_wait(tmp_path: Path) -> None:
    answered: list[bytes] = []

    async def answer(line: bytes, gone: asyncio.Event) -> bytes:
        await gone.wait()
        answered.append(line)
        return line

    async def scene() -> None:
        async with listening(tmp_path / "s", answer) as connect:
            _, writer = await connect()
            writer.write(b"".join(b"%d\n" % number for number in range(100)))
            await writer.drain()
            writer.close()
            while not answered:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert answered[0] == b"0"


def test_many_large_lines_are_all_answered_in_their_order(tmp_path: Path) -> None:
    lines = [json.dumps([number, "x" * size]).encode() for number, size in enumerate([10, 60_000, 0] * 20)]

    async def answer(line: bytes, _: asyncio.Event) -> bytes:
        await asyncio.sleep(0)
        return line[:5] + b"\n"

    async def scene() -> list[bytes]:
        async with listening(tmp_path / "s", answer) as connect:
            reader, writer = await connect()
            writer.write(b"\n".join(lines) + b"\n")
            found = [await reader.readline() for _ in lines]
            writer.close()
            await writer.wait_closed()
            return found

    assert bounds.LINE_BYTES > 60_000
    assert asyncio.run(asyncio.wait_for(scene(), 60)) == [line[:5] + b"\n" for line in lines]
