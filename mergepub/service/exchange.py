"""One request while it is served: what was asked, what the gateway found out, what is noted for the log.

Endpoints read requests through this and answer with Starlette responses; reading the body, within its limits, is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mergepub.service import logs
from mergepub.service.access import ANYBODY, Access, Caller
from mergepub.service.hand import Hand
from mergepub.service.metrics import Metrics
from mergepub.service.patience import Patience, Within
from mergepub.service.problems import ProblemError, bad_request, refuse, too_large
from mergepub.service.writing import Writer
from mergepub.stores.groupcommit import AloneError
from mergepub.stores.sql import SqlStore
from mergepub.stores.tokens import token_store

if TYPE_CHECKING:
    from starlette.types import Receive

    from mergepub.service.settings import Settings
    from mergepub.stores.contract import Store

P = ParamSpec("P")
T = TypeVar("T")

SCOPE_KEY = "mergepub"

SMALL = 64 * 1024
"""Bytes of a body that goes with others; a larger one would hold them up, and is written by a thread alone."""


@lru_cache(256)
def _key(name: str) -> bytes:
    """The key of a header in a request's."""
    return name.lower().encode("ascii")


class Service:
    """What all requests of one worker share."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.metrics = Metrics(alone=settings.workers == 1)
        self.verifying = asyncio.Lock()
        self.pool: Executor = ThreadPoolExecutor(settings.limits.threads, thread_name_prefix="store")
        self.request_time = Patience(settings.limits.request_time)
        self.body_time = Patience(settings.limits.body_time)
        lanes = store.lanes if isinstance(store, SqlStore) else 0
        self._hands = [Hand(settings.store_url, settings.limits.body) for _ in range(lanes)]
        self._writer = Writer([hand.write for hand in self._hands], self._lost)
        tokens = token_store(store)
        self.access = Access(partial(self.call, tokens.load) if tokens else None, settings.token_poll)

    def _lost(self, error: Exception) -> None:
        said = f"a process that makes transactions was lost, the next write starts another: {logs.where(error)}"
        logs.write(self.settings.log_format, "error", said=said)

    async def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a blocking call of the store in the pool, whose size bounds how many there are at a time."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, partial(function, *args, **kwargs))

    async def write(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """As ``call``, of a writing ``method`` of the store, whose first argument is the path.

        Together with others where the store can do that.
        """
        if self._hands and not any(isinstance(each, bytes) and len(each) > SMALL for each in args):
            with suppress(AloneError):
                return await self._writer.write(args[0], (method.__name__, args, kwargs))
        return await self.call(method, *args, **kwargs)

    async def close(self) -> None:
        """Finish what is under way, and let go of everything."""
        for hand in self._hands:
            await hand.close()
        self.pool.shutdown(wait=True)
        self.store.close()

    @property
    def body_limit(self) -> int:
        """The largest body in bytes: the service's limit or the store's, whichever is lower."""
        own, most = self.settings.limits.body, self.store.capabilities.max_bytes
        return own if most is None else min(own, most)


@dataclass(slots=True)
class Exchange:
    """One request. ``path`` is decoded and not yet checked."""

    service: Service
    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, list[bytes]]
    receive: Receive
    room: str = "document"
    caller: Caller = field(default=ANYBODY)
    received: int = 0
    body_done: bool = False

    def values(self, name: str) -> list[bytes]:
        """All values of a header."""
        return self.headers.get(_key(name), [])

    def joined(self, name: str) -> str | None:
        """A header that is a list: its values joined, None where it is not sent."""
        values = self.values(name)
        return b", ".join(values).decode("latin-1") if values else None

    def single(self, name: str) -> bytes | None:
        """A header that may stand once.

        Raises:
            ProblemError: 400, when it stands twice.
        """
        values = self.values(name)
        if len(values) > 1:
            raise bad_request(f"{name} stands twice")
        return values[0] if values else None

    def text(self, name: str) -> str | None:
        """A header that may stand once, as ASCII.

        Raises:
            ProblemError: 400, when it stands twice or is not ASCII.
        """
        value = self.single(name)
        try:
            return None if value is None else value.decode("ascii").strip()
        except UnicodeDecodeError:
            raise bad_request(f"{name} is not ASCII") from None

    @property
    def announces_body(self) -> bool:
        """Whether the request has, or may have, a body."""
        length = self.headers.get(b"content-length")
        return b"transfer-encoding" in self.headers or (length is not None and length != [b"0"])

    async def body(self) -> bytes:
        """The whole body.

        Raises:
            ProblemError: 413 as soon as it is over the limit, 408 when it makes no progress, 400 when it is cut short
                or a part of a body, 415 when it is encoded.
        """
        self._check_whole()
        limit = self.service.body_limit
        length = self.headers.get(b"content-length")
        if length and int(length[0]) > limit:
            raise ProblemError(too_large(limit))
        chunks: list[bytes] = []
        while not self.body_done:
            chunks.append(await self._chunk())
            if self.received > limit:
                raise ProblemError(too_large(limit))
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _check_whole(self) -> None:
        """Stored as they came, a part would replace the whole, and encoded bytes be handed out as if they were none."""
        if b"content-range" in self.headers:
            raise bad_request("Content-Range: a document is written as a whole, never in parts")
        codings = self.joined("Content-Encoding") or "identity"
        if codings.strip().lower() != "identity":
            raise refuse(415, "encoded", "Content-Encoding: a body is stored as it is sent; send it without a coding")

    async def _chunk(self) -> bytes:
        patience = self.service.body_time
        try:
            with Within(patience):
                message = await self.receive()
        except TimeoutError:
            raise refuse(408, "timeout", f"no byte of the body came for {patience.seconds:g} seconds") from None
        if message["type"] != "http.request":
            raise bad_request("the connection ended before the body did")
        self.body_done = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        self.received += len(chunk)
        return chunk
