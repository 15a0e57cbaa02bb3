"""Who asks, and what they may: the tokens as this worker last read them.

Tokens are read again when they are older than ``poll`` seconds, before the request is answered; when they cannot be
read the request is refused (503), never let through. A store without a single token is open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from mergepub.service.problems import Problem, ProblemError, no_document, refuse
from mergepub.service.tokens import allows, find_token
from mergepub.stores.tokens import Token

Load = Callable[[], Awaitable[list[Token]]]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; without a token anybody, who may do anything in an open service."""

    token: Token | None = None

    @property
    def name(self) -> str | None:
        """The token's name."""
        return self.token.name if self.token else None

    def may(self, operation: str, path: str) -> bool:
        """Whether the caller may do ``operation`` on ``path``."""
        return self.token is None or allows(self.token, operation, path)

    def demand_read(self, path: str, shown: str | None = None) -> None:
        """Refuse a read that is not allowed as if there were nothing (404); ``shown`` is the path as asked for."""
        if not self.may("read", path):
            raise ProblemError(no_document(shown or path))

    def demand(self, operation: str, path: str) -> None:
        """Refuse what is not allowed (403)."""
        if not self.may(operation, path):
            detail = f"the token {self.name} does not allow {operation} on {path}"
            raise ProblemError(Problem(403, "denied", detail))


ANYBODY = Caller()


class Access:
    """The tokens of the store, read at most every ``poll`` seconds by ``load``; None where the store keeps none."""

    def __init__(self, load: Load | None, poll: float) -> None:
        self._load = load
        self._poll = poll
        self._loading: asyncio.Task[None] | None = None
        self._read_at: float | None = None
        self._tokens: dict[str, Token] = {}

    async def caller(self, authorization: list[bytes]) -> Caller:
        """Who sends these ``Authorization`` headers.

        Raises:
            ProblemError: 401, when the service is closed and no living token is named.
            UnavailableError: the tokens cannot be read.
        """
        tokens = await self._current()
        if not tokens:
            return ANYBODY
        if not authorization:
            raise _unauthorized("this service asks for a token: Authorization: Bearer SECRET")
        token = find_token(_secret(authorization), tokens, datetime.now(UTC))
        if token is None:
            raise _unauthorized("the token is not known, or it has ended", error="invalid_token")
        return Caller(token)

    async def _current(self) -> dict[str, Token]:
        if self._load is None or self._is_fresh():
            return self._tokens
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._reload(self._load))
        # Everybody waits for the same reading, and for its failure: a store that is down is asked by one at a time.
        await asyncio.shield(self._loading)
        return self._tokens

    async def _reload(self, load: Load) -> None:
        asked = time.monotonic()
        self._tokens = {token.key: token for token in await load()}
        self._read_at = asked

    def _is_fresh(self) -> bool:
        return self._read_at is not None and time.monotonic() - self._read_at < self._poll


def _secret(authorization: list[bytes]) -> str:
    scheme, _, secret = authorization[0].decode("latin-1").strip().partition(" ")
    return secret.strip() if len(authorization) == 1 and scheme.lower() == "bearer" else ""


def _unauthorized(detail: str, error: str | None = None) -> ProblemError:
    challenge = 'Bearer realm="mergepub"' + (f', error="{error}"' if error else "")
    return refuse(401, "unauthorized", detail, WWW_Authenticate=challenge)
