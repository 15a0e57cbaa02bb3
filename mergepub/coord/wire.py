"""Wire v3, pure: JSON-RPC 2.0, one request a line; what is a request, which methods there are, how a refusal looks.

Nothing here knows sockets, runs or budgets. ``parse`` reads a line, ``check`` looks at a method's parameters,
``result`` and ``refusal`` make the lines that answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from mergepub.coord import bounds
from mergepub.errors import MergepubError

VERSION = "v3"

PARSE, INVALID, NO_METHOD, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NOT_FOUND, DENIED, BAD_STATE, CONFLICT, UNAVAILABLE = -32000, -32001, -32002, -32003, -32004

EXITS: Mapping[int, int] = {
    PARSE: 2,
    INVALID: 2,
    NO_METHOD: 2,
    BAD_PARAMS: 2,
    INTERNAL: 1,
    NOT_FOUND: 4,
    DENIED: 3,
    BAD_STATE: 3,
    CONFLICT: 3,
    UNAVAILABLE: 4,
}
"""The process exit status of the command line for each code."""

REASONS: Mapping[int, frozenset[str]] = {
    DENIED: frozenset({"not-a-peer", "not-yours", "other-workspace", "stale-generation"}),
    CONFLICT: frozenset({"key-reused", "rate-limited", "peer-cap", "inbox-full", "not-ready"}),
    UNAVAILABLE: frozenset({"off", "finished", "no-socket"}),
}
"""The words that ``error.data.reason`` may hold for a code; the other codes have none."""

CAPABILITIES = ("coord.status", "coord.send", "coord.inbox", "coord.ask", "coord.reply", "coord.report")
OUTCOMES = ("success", "failure", "blocked")
LIFE = ("working", "waiting")

Id = str | int | float | None


class CoordError(MergepubError):
    """No, with a code of the wire; ``data`` is ``error.data``, ``id`` that of the request where it is known here."""

    def __init__(self, code: int, text: str, reason: str | None = None, *, id: Id = None, **data: Any) -> None:
        super().__init__(text)
        self.code = code
        self.reason = reason
        self.id = id
        self.data: dict[str, Any] = ({"reason": reason} if reason else {}) | data
        self.exit_status = EXITS.get(code, 1)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the right form, its method and parameters not looked at yet."""

    id: Id
    method: str
    params: dict[str, Any]


# ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def parse(line: bytes) -> Request:
    """The request in ``line``.

    Raises:
        CoordError: it is none; ``id`` is the request's where it has one.
    """
    found = _loaded(line)
    if not isinstance(found, dict):
        what = "batches are refused; send one request a line" if isinstance(found, list) else "a request is an object"
        raise CoordError(INVALID, f"request: {what}")
    name = _id_of(found)
    if found.get("jsonrpc") != "2.0":
        raise CoordError(INVALID, 'request: "jsonrpc" must be "2.0"', id=name)
    method = found.get("method")
    if not isinstance(method, str):
        raise CoordError(INVALID, 'request: "method" must be a string', id=name)
    params = found.get("params", {})
    if not isinstance(params, dict):
        raise CoordError(BAD_PARAMS, f"{shown(method)}: params must be an object", id=name)
    return Request(name, method, params)


def _loaded(line: bytes) -> Any:
    try:
        return json.loads(line.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise CoordError(PARSE, "request: this line is not JSON in UTF-8") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _id_of(found: dict[str, Any]) -> Id:
    if "id" not in found:
        raise CoordError(INVALID, 'request: "id" is missing; there are no notifications here')
    name = found["id"]
    if isinstance(name, bool) or not isinstance(name, str | int | float):
        raise CoordError(INVALID, 'request: "id" must be a string or a number')
    if isinstance(name, float) and not math.isfinite(name):
        raise CoordError(INVALID, 'request: "id" must be a finite number')
    return name


def result(id: Id, value: Mapping[str, Any]) -> bytes:
    """The line that answers the request ``id`` with ``value``."""
    return _line({"jsonrpc": "2.0", "id": id, "result": value})


def refusal(id: Id, error: CoordError) -> bytes:
    """The line that answers the request ``id`` with ``error``."""
    return _line({"jsonrpc": "2.0", "id": id, "error": error_of(error)})


def error_of(error: CoordError) -> dict[str, Any]:
    """``error`` as the wire and the command line show it; ``data`` only where there is any."""
    return {"code": error.code, "message": error.message} | ({"data": error.data} if error.data else {})


def request(id: Id, method: str, params: Mapping[str, Any]) -> bytes:
    """The line that asks for ``method``."""
    return _line({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def shown(method: str) -> str:
    """A method's name, fit for a message on one line."""
    return "".join(c if c.isprintable() else "?" for c in bounds.cut(method, 64))


# ── parameters ──────────────────────────────────────────────────────────────────────────────────────────────────────

Check = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """How one parameter is looked at: ``check`` returns its value or raises ``ValueError`` with what must be."""

    check: Check
    optional: bool = False


def text(limit: int | None = None, *, least: int = 0, one_line: bool = False) -> Check:
    """A string of at least ``least`` and at most ``limit`` bytes that can be stored: no NUL, no lone surrogate."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")
        if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
            raise ValueError("must not hold NUL or a lone surrogate")
        if one_line and ("\n" in value or "\r" in value):
            raise ValueError("must stand on one line")
        if bounds.size(value) < least:
            raise ValueError("must not be empty")
        if limit is not None and bounds.size(value) > limit:
            raise ValueError(f"must be at most {limit} bytes")
        return value

    return check


def word(*words: str) -> Check:
    """One of ``words``."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value

    return check


def number(least: float, most: float, *, whole: bool = False) -> Check:
    """A number between ``least`` and ``most``."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise ValueError("must be a whole number" if whole else "must be a number")
        if not least <= value <= most:
            raise ValueError(f"must be between {least} and {most}")
        return value

    return check


def _summary(value: Any) -> str:
    checked: str = text(bounds.BODY_BYTES, least=1)(value)
    if not checked.strip():
        raise ValueError("must not be empty")
    return checked


def _refs(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ValueError("must be a list of strings")
    if len(value) > bounds.EVIDENCE_REFS:
        raise ValueError(f"must be at most {bounds.EVIDENCE_REFS}")
    each = text(bounds.TEXT_BYTES, least=1, one_line=True)
    return [each(ref) for ref in value]


_BODY = Parameter(text(bounds.BODY_BYTES))
_KEY = Parameter(text(bounds.KEY_BYTES, least=1, one_line=True))
_NAME = Parameter(text(bounds.TEXT_BYTES, least=1))

RUN_METHODS: Mapping[str, Mapping[str, Parameter]] = {
    "coord.status": {},
    "coord.send": {"to_run_id": _NAME, "body": _BODY, "idempotency_key": _KEY},
    "coord.inbox": {
        "ack_token": Parameter(text(bounds.TEXT_BYTES), optional=True),
        "wait_seconds": Parameter(number(0, bounds.WAIT_SECONDS), optional=True),
    },
    "coord.ask": {"to_run_id": _NAME, "body": _BODY, "idempotency_key": _KEY},
    "coord.reply": {"question_id": _NAME, "body": _BODY, "idempotency_key": _KEY},
    "coord.report": {
        "outcome": Parameter(word(*OUTCOMES)),
        "summary": Parameter(_summary),
        "evidence_refs": Parameter(_refs, optional=True),
        "idempotency_key": _KEY,
    },
    "run.report": {
        "state": Parameter(word(*LIFE)),
        "reason": Parameter(text(bounds.BODY_BYTES), optional=True),
    },
}
"""The closed set of a run's socket: the six methods, and the transient lifecycle hook."""


def check(methods: Mapping[str, Mapping[str, Parameter]], request: Request) -> dict[str, Any]:
    """The parameters of ``request``, each looked at.

    Raises:
        CoordError: there is no such method, or a parameter is missing, unknown or wrong.
    """
    known = methods.get(request.method)
    name = shown(request.method)
    if known is None:
        raise CoordError(NO_METHOD, f"{name}: there is no such method")
    for extra in request.params:
        if extra not in known:
            raise CoordError(BAD_PARAMS, f"{name}: there is no parameter {shown(extra)!r}")
    return {
        field: _checked(name, field, parameter, request.params)
        for field, parameter in known.items()
        if _is_given(name, field, parameter, request.params)
    }


def _is_given(method: str, field: str, parameter: Parameter, params: dict[str, Any]) -> bool:
    if field in params:
        return True
    if parameter.optional:
        return False
    raise CoordError(BAD_PARAMS, f"{method}: the parameter {field} is missing")


def _checked(method: str, field: str, parameter: Parameter, params: dict[str, Any]) -> Any:
    try:
        return parameter.check(params[field])
    except ValueError as error:
        raise CoordError(BAD_PARAMS, f"{method}: {field} {error}") from None
