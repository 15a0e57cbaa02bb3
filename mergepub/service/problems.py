"""Refusals as problem details (RFC 9457): which error is which status, and with which fields. Pure.

Nothing here sends anything. ``ProblemError`` is how an endpoint says no by itself; errors of the store are translated
by ``problem_of``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from mergepub.errors import (
    BranchError,
    DamagedError,
    DeniedError,
    InputError,
    InvalidStoreError,
    KeyReusedError,
    MergepubError,
    NotFoundError,
    RejectedError,
    ThrottledError,
    UnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 2
"""Seconds that a client is asked to wait when the store names no time."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal: status, a word for the kind, a sentence, more fields and headers."""

    status: int
    kind: str
    detail: str
    fields: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """The problem details as JSON."""
        return json.dumps(
            {
                "type": f"urn:mergepub:problem:{self.kind}",
                "title": HTTPStatus(self.status).phrase,
                "status": self.status,
                "detail": self.detail,
                **self.fields,
            },
            ensure_ascii=False,
        ).encode("utf-8", "backslashreplace")

    def all_headers(self) -> dict[str, str]:
        """The headers of the answer; a refusal is never kept by a cache."""
        return {"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store", **self.headers}


class ProblemError(Exception):
    """An endpoint refuses the request."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def refuse(status: int, kind: str, detail: str, **headers: str) -> ProblemError:
    """A refusal without further fields; ``headers`` are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProblemError(Problem(status, kind, detail, headers=named))


def bad_request(detail: str) -> ProblemError:
    """The request itself is malformed."""
    return refuse(400, "bad-request", detail)


def no_document(path: str) -> Problem:
    """There is nothing at ``path``, or nothing that the caller may know of: the same bytes for both."""
    return Problem(404, "not-found", f"there is no {path} in this store")


def missing(path: str, error: NotFoundError) -> Problem:
    """There is nothing at ``path``, or a tombstone. The store's own words may name its file or server: left out."""
    if error.tombstone is None:
        return no_document(path)
    return Problem(
        410,
        "deleted",
        f"{path} was deleted (version {error.tombstone})",
        fields={"current-version": error.tombstone},
        headers={"Mergepub-Version": str(error.tombstone)},
    )


def too_large(limit: int) -> Problem:
    """The body is over ``limit`` bytes."""
    detail = f"the body is too large: this service takes {limit} bytes at most"
    return Problem(413, "too-large", detail, fields={"limit": limit})


def mismatch(detail: str, yours: int | None, current: int | None, reason: str | None = None) -> Problem:
    """A precondition does not hold."""
    named = {"your-version": yours, "current-version": current, "reason": reason}
    fields = {name: value for name, value in named.items() if value is not None}
    return Problem(412, "version-conflict", detail, fields=fields)


def problem_of(error: MergepubError) -> Problem:
    """What an error of the store means on HTTP. A write whose outcome is unknown is a 504, ``reason: unknown``."""
    for kind, translate in _TRANSLATIONS:
        if isinstance(error, kind):
            return translate(error)
    return Problem(500, "internal", "the service failed; its log says where")


def _conflict(error: VersionConflictError) -> Problem:
    return mismatch(error.message, error.expected, error.current, error.reason)


def _reused(error: KeyReusedError) -> Problem:
    return Problem(422, "key-reused", error.message)


def _state(error: BranchError) -> Problem:
    return Problem(409, "refused", error.message, fields={"reason": error.reason})


def _input(error: InputError) -> Problem:
    if isinstance(error, RejectedError) and error.limit is not None:
        return too_large(error.limit)
    return Problem(400, "bad-request", error.message)


def _denied(error: DeniedError) -> Problem:
    return Problem(403, "denied", error.message)


def _invalid_store(_: InvalidStoreError) -> Problem:
    return Problem(503, "store-unavailable", "the store cannot be used; the log says why", headers=_retry(None))


def _damaged(_: DamagedError) -> Problem:
    detail = (
        "what the store holds of this is damaged: it is not handed out, and nothing was written; mergepub verify says"
        " what is lost"
    )
    return Problem(500, "damaged", detail)


def _unavailable(error: UnavailableError) -> Problem:
    if isinstance(error, UnknownOutcomeError):
        return unknown_outcome()
    if isinstance(error, ThrottledError):
        return Problem(429, "throttled", error.message, headers=_retry(error.after))
    # What the driver said may name hosts and users of the database; it is in the log.
    return Problem(503, "store-unavailable", "the store does not answer now; try again", headers=_retry(error.after))


def unknown_outcome() -> Problem:
    """Nobody knows whether the write happened. Repeating it as it is is safe."""
    detail = "the store did not answer in time: it may or may not have been written; repeat it as it is"
    return Problem(504, "unknown-outcome", detail, fields={"reason": "unknown"}, headers=_retry(None))


def _retry(after: float | None) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(RETRY_AFTER if after is None else after)))}


_TRANSLATIONS: tuple[tuple[type[MergepubError], Callable[[Any], Problem]], ...] = (
    (VersionConflictError, _conflict),
    (UnavailableError, _unavailable),
    (KeyReusedError, _reused),
    (InputError, _input),
    (BranchError, _state),
    (DeniedError, _denied),
    (DamagedError, _damaged),
    (InvalidStoreError, _invalid_store),
)
