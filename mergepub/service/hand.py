"""The processes that make a worker's transactions, and how it speaks with them.

A transaction is many short calls of a database, and after each of them a thread has to get Python's lock back from the
event loop, which is busy with the next requests: a batch would take several times as long as it needs. So transactions
are made elsewhere. A ``Hand`` is a process with a store of its own that does one batch after the other. The end of its
socket tells it that it is not needed any more, also when the worker is killed; it finishes what it was doing.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mergepub.stores.sql import SqlStore

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A writing method of a store, by name, with its arguments."""

Answer = tuple[Any, Exception | None]
"""What such a call returned, or raised."""

_LENGTH = struct.Struct("!Q")
# Modules are found where this process finds them, and nowhere else: not in whatever folder it was started in.
_START = "import sys; sys.path[:] = sys.argv[2:]; from mergepub.service.hand import serve; serve(int(sys.argv[1]))"


class Hand:
    """One process; begun with the first batch, and again after it was lost."""

    def __init__(self, url: str, max_body: int) -> None:
        """For the store that ``open_store`` makes of these."""
        self._store = url, max_body
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def write(self, calls: Sequence[Call]) -> list[Answer]:
        """Do ``calls`` in one transaction, one batch at a time; the answers in their order.

        Raises:
            OSError, EOFError: the process was lost; nobody knows what was written.
        """
        if self._process is not None and self._process.poll() is not None:
            await self.close()  # it ended with nothing to do: nothing is unknown
        if self._process is None:
            await self._begin()
        try:
            self._writer.write(_packed(calls))
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            answers: list[Answer] = pickle.loads(await self._reader.readexactly(length))  # noqa: S301 - of our own process
        except BaseException:
            await self.close()
            raise
        return answers

    async def close(self) -> None:
        """End the process, once it has finished."""
        process, self._process = self._process, None
        if process is not None:
            self._writer.close()
            await asyncio.get_running_loop().run_in_executor(None, process.wait)

    async def _begin(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *sys.path]
            # A session of its own: Ctrl-C is for the service, which ends its hands when it is done with them.
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        self._writer.write(_packed(self._store))


def serve(descriptor: int) -> None:
    """What such a process does until its socket ends."""
    from mergepub.stores import open_store  # noqa: PLC0415 - the worker has it already

    for number in (signal.SIGTERM, signal.SIGINT):  # whoever stops the service as a whole
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as line, line.makefile("rb") as calls, suppress(EOFError, ConnectionError):
        url, max_body = _next(calls)
        store: Any = open_store(url, max_body=max_body)
        while True:
            line.sendall(_packed(answers(store, _next(calls))))


def answers(store: SqlStore, calls: Sequence[Call]) -> list[Answer]:
    """Do ``calls`` in one transaction; the answer of each."""
    asked = [_answer(store.order, method, *args, **kwargs) for method, args, kwargs in calls]
    jobs = iter(store.write_all([order for order, error in asked if error is None]))
    return [(None, error) if error else _answer(next(jobs).answer) for _, error in asked]


def _answer(function: Any, *args: Any, **kwargs: Any) -> Answer:
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def _packed(value: object) -> bytes:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


def _next(line: IO[bytes]) -> Any:
    head = line.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pickle.loads(line.read(_LENGTH.unpack(head)[0]))  # noqa: S301 - of the process that started this one
