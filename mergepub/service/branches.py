"""The endpoints of branches and decisions, below ``/-/branches/`` and ``/-/decisions/``.

What is not a document's bytes is JSON; a body travels as it is, with what it belongs to in headers. Reading needs the
right to read, writing to branches the right to publish, deciding a right of its own.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from mergepub import status_branches
from mergepub.calls import branching
from mergepub.documents import EVENTS, TEXT, Receipt, Version
from mergepub.errors import InputError, NotFoundError
from mergepub.histories import (
    CONTINUE,
    REBASE,
    UNDO,
    BranchReceipt,
    BranchRevision,
    DecisionRequest,
    Place,
    parse_place,
)
from mergepub.paths import check_path, check_prefix
from mergepub.service import labels
from mergepub.service.labels import parse_number
from mergepub.service.problems import ProblemError, bad_request, missing, refuse
from mergepub.service.targets import parse_query
from mergepub.stores.branchrules import NoBranchError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mergepub.histories import Branch, Decision, DecisionReceipt, Unresolved
    from mergepub.service.exchange import Exchange
    from mergepub.stores.contract import BranchStore

BRANCHES = "/-/branches"
DECISIONS = "/-/decisions"

MOST = 1000
_FRESH = {"Cache-Control": "no-cache"}
_BODY = {
    "Content-Type": "application/octet-stream",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def get_branches(exchange: Exchange) -> Response:
    """All branches of a document; ``?revision=BRANCH@R`` one body, ``?standing=BRANCH`` one against the head.

    ``?unresolved=1``: the documents at or below the path that have open branches.
    """
    query = _checked(parse_query(exchange.query))
    if query.get("unresolved") == "1":
        return await _get_unresolved(exchange, query)
    path = check_path(exchange.path.removeprefix(BRANCHES))
    exchange.caller.demand_read(path)
    if "revision" in query:
        name, number = _place(query["revision"])
        found = await _asked(exchange, path, _keeper(exchange).revision, path, name, number)
        return Response(found.body, headers=_revision_headers(found) | _BODY | _FRESH)
    if "standing" in query:
        return await _get_standing(exchange, path, query)
    head, branches = await _asked(exchange, path, _keeper(exchange).branches, path)
    rows = [status_branches.branch_json(branch) for branch in branches]
    return JSONResponse({"head": status_branches.head_json(head), "branches": rows}, headers=_FRESH)


def _checked(query: dict[str, str]) -> dict[str, str]:
    """``query``, each parameter of its form, whether or not it is used."""
    limit = query.get("limit", "100")
    if not (limit.isascii() and limit.isdigit() and len(limit) <= 4 and 1 <= int(limit) <= MOST):
        raise bad_request(f"limit is a number from 1 to {MOST}")
    if query.get("unresolved", "0") not in ("0", "1"):
        raise bad_request("unresolved is 0 or 1")
    if "version" in query:
        parse_number("version", query["version"])
    for name in ("revision", "standing"):
        if name in query:
            _place(query[name])
    return query


async def _get_standing(exchange: Exchange, path: str, query: dict[str, str]) -> Response:
    name, number = _place(query["standing"])
    version = parse_number("version", query["version"]) if "version" in query else None
    keeper = _keeper(exchange)
    found = await _asked(exchange, path, keeper.standing, path, name, version=version, revision=number)
    keys: dict[str, Any] = {"head": status_branches.head_json(found.head)}
    keys["branch"] = status_branches.branch_json(found.branch)
    return JSONResponse(keys | {"ancestors": [str(place) for place in found.ancestors]}, headers=_FRESH)


async def _get_unresolved(exchange: Exchange, query: dict[str, str]) -> Response:
    prefix = check_prefix(exchange.path.removeprefix(BRANCHES) or "/")
    limit = query.get("limit", "100")
    found: list[Unresolved] = await exchange.service.call(_keeper(exchange).unresolved, prefix, limit=MOST)
    rows = [
        {"path": each.path, "count": each.count, "branch": each.branch}
        for each in found
        if exchange.caller.may("read", each.path)
    ]
    return JSONResponse({"unresolved": rows[: int(limit)]}, headers=_FRESH)


async def get_decisions(exchange: Exchange) -> Response:
    """The audit history of a document, newest first."""
    path = check_path(exchange.path.removeprefix(DECISIONS))
    exchange.caller.demand_read(path)
    query = parse_query(exchange.query)
    before = parse_number("after", query["after"]) if "after" in query else None
    rows: list[Decision] = await _asked(
        exchange, path, _keeper(exchange).decisions, path, before=before, limit=MOST + 1
    )
    keys = [status_branches.decision_json(row) for row in rows[:MOST]]
    answer: dict[str, Any] = {"decisions": keys}
    if len(rows) > MOST:
        answer["after"] = rows[MOST - 1].number
    return JSONResponse(answer, headers=_FRESH)


def _revision_headers(found: BranchRevision) -> dict[str, str]:
    headers = {
        "Mergepub-Branch": str(found.place),
        "Mergepub-Incarnation": found.incarnation,
        "Mergepub-Kind": found.kind,
        "Mergepub-Parents": ", ".join(map(str, found.parents)),
        "Mergepub-Modified": found.modified,
        "Mergepub-Author": labels.encode_label(found.author),
        "Mergepub-Message": labels.encode_label(found.message),
        "Repr-Digest": f"sha-256=:{b64encode(bytes.fromhex(found.digest)).decode()}:",
    }
    return {name: value for name, value in headers.items() if value}


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def put_branches(exchange: Exchange) -> Response:
    """Publish where the head is the expected version, else keep the body as a sibling of that version."""
    path = _writable(exchange, BRANCHES, "publish")
    number = exchange.text("Mergepub-Expected-Version")
    if number is None:
        raise refuse(428, "precondition-required", "name the version it was made from: Mergepub-Expected-Version")
    kind = exchange.text("Mergepub-Kind") or TEXT
    if kind not in (TEXT, EVENTS):
        raise bad_request(f"Mergepub-Kind is {TEXT} or {EVENTS}")
    expected = Version(parse_number("Mergepub-Expected-Version", number))
    how = _labels(exchange) | {
        "source": _label(exchange, "Mergepub-Source") or None,
        "incarnation": exchange.text("Mergepub-Base-Incarnation"),
        "digest": _digest(exchange),
        "kind": kind,
    }
    body = await exchange.body()
    receipt = await _written(exchange, _keeper(exchange).branch, path, body, expected, **how)
    return _receipt(receipt)


async def post_branches(exchange: Exchange) -> Response:
    """Extend one's own branch, take one over, or abandon one: ``Mergepub-Action``."""
    path = _writable(exchange, BRANCHES, "publish")
    name, number = _place(_required(exchange, "Mergepub-Branch", "name the branch: Mergepub-Branch"))
    action = exchange.text("Mergepub-Action") or "extend"
    keeper, who = _keeper(exchange), _labels(exchange)
    epoch = _number(exchange, "Mergepub-Epoch")
    if action == "take":
        return _branch(await _written(exchange, keeper.take, path, name, author=who["author"]))
    if action == "abandon":
        return _branch(await _written(exchange, keeper.abandon, path, name, author=who["author"], epoch=epoch))
    if action != "extend":
        raise bad_request("Mergepub-Action is extend, take or abandon")
    body = await exchange.body()
    receipt = await _written(exchange, keeper.extend, path, name, body, **who, epoch=epoch, known=number)
    return _receipt(receipt)


async def post_decisions(exchange: Exchange) -> Response:
    """Decide: ``Mergepub-Decision`` says how, both heads that were seen are named."""
    path = _writable(exchange, DECISIONS, "decide")
    strategy = _required(exchange, "Mergepub-Decision", "say how to decide: Mergepub-Decision")
    expected = _required(exchange, "Mergepub-Expected-Version", "name the head: Mergepub-Expected-Version")
    seen = exchange.text("Mergepub-Branch")
    if strategy != UNDO and seen is None:
        raise refuse(428, "precondition-required", "name the branch that was seen: Mergepub-Branch: BRANCH@R")
    if strategy == UNDO and exchange.text("Mergepub-Undoes") is None:
        raise refuse(428, "precondition-required", "name the decision to undo: Mergepub-Undoes")
    approved, body = _approved(exchange, await exchange.body())
    request = DecisionRequest(
        strategy,
        parse_number("Mergepub-Expected-Version", expected),
        None if seen is None else _seen(seen),
        exchange.caller.name or _label(exchange, "Mergepub-Author"),
        _label(exchange, "Mergepub-Reason"),
        body if strategy in (CONTINUE, REBASE) else None,
        approved,
        exchange.text("Mergepub-Acknowledge-Effects") == "true",
        _number(exchange, "Mergepub-Undoes"),
    )
    receipt: DecisionReceipt = await _asked(exchange, path, _keeper(exchange).decide, path, request)
    keys: dict[str, Any] = {"version": receipt.head, "decision": status_branches.decision_json(receipt.decision)}
    if receipt.replayed:
        keys["replayed"] = True
    if receipt.current is not None:
        keys["current-version"] = receipt.current
    return JSONResponse(keys, 200 if receipt.replayed else 201, headers={"Cache-Control": "no-store"})


# ── one call of the store ───────────────────────────────────────────────────────────────────────────────────────────


async def _asked(exchange: Exchange, path: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return await _answered(path, exchange.service.call(function, *args, **kwargs))


async def _written(exchange: Exchange, method: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    return await _answered(path, exchange.service.write(method, path, *args, **kwargs))


async def _answered(path: str, answer: Awaitable[Any]) -> Any:
    """``answer``; what is not there is named as the document, not as the address below which it is asked for.

    A document that is not there and one that the caller may not read are told in the same bytes.
    """
    try:
        return await answer
    except NoBranchError as error:
        raise refuse(404, "no-branch", error.message) from None
    except NotFoundError as error:
        raise ProblemError(missing(path, error)) from None


# ── headers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _keeper(exchange: Exchange) -> BranchStore:
    return branching(exchange.service.store)


def _writable(exchange: Exchange, room: str, operation: str) -> str:
    path = check_path(exchange.path.removeprefix(room))
    exchange.caller.demand(operation, path)
    return path


def _required(exchange: Exchange, name: str, text: str) -> str:
    value = exchange.text(name)
    if not value:
        raise refuse(428, "precondition-required", text)
    return value


def _labels(exchange: Exchange) -> dict[str, str]:
    author = exchange.caller.name or _label(exchange, "Mergepub-Author")
    return {"author": author, "message": _label(exchange, "Mergepub-Message")}


def _label(exchange: Exchange, name: str) -> str:
    value = exchange.single(name)
    return "" if value is None else labels.decode_label(name, value)


def _digest(exchange: Exchange) -> str | None:
    value = exchange.text("Mergepub-Base-Digest") or None
    if value is not None and not re.fullmatch("[0-9a-f]{64}", value):
        raise bad_request("Mergepub-Base-Digest is a SHA-256: 64 hexadecimal digits")
    return value


def _number(exchange: Exchange, name: str) -> int | None:
    value = exchange.text(name)
    return None if value is None else parse_number(name, value)


def _place(text: str) -> tuple[str, int | None]:
    try:
        return parse_place(text)
    except InputError as error:
        raise bad_request(error.message) from None


def _seen(text: str) -> Place:
    name, number = _place(text)
    if number is None:
        raise bad_request("Mergepub-Branch names the revision that was seen: BRANCH@R")
    return Place(name, number)


def _approved(exchange: Exchange, body: bytes) -> tuple[tuple[str, ...], bytes]:
    """The approved names, and the body without them: a long list is not sent in a header but before the body."""
    size = _number(exchange, "Mergepub-Approved-Size")
    if size is None:
        names = _names(_label(exchange, "Mergepub-Approved") or "[]")
        if names is None:
            raise bad_request('Mergepub-Approved is a JSON list of names such as ["h1"]')
        return names, body
    names = _names(body[:size]) if size <= len(body) and exchange.text("Mergepub-Approved") is None else None
    if names is None:
        detail = "Mergepub-Approved-Size says how many bytes of the body are the JSON list, which is there once"
        raise refuse(422, "no-list", detail)
    return names, body[size:]


def _names(text: str | bytes) -> tuple[str, ...] | None:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tuple(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _receipt(receipt: Receipt | BranchReceipt) -> Response:
    if isinstance(receipt, Receipt):
        keys: dict[str, Any] = {"version": receipt.version.number, "current-version": receipt.current}
    else:
        keys = {"branch": receipt.branch, "branch-revision": receipt.revision, "epoch": receipt.epoch}
        keys |= {"base-version": receipt.base_version, "current-version": receipt.current}
    keys = {key: value for key, value in keys.items() if value is not None}
    keys["incarnation"] = receipt.incarnation
    flags = {"unchanged": receipt.unchanged, "replayed": receipt.replayed}
    keys |= {key: True for key, value in flags.items() if value}
    status = 200 if receipt.unchanged or receipt.replayed else 201
    return JSONResponse(keys, status, headers={"Cache-Control": "no-store"})


def _branch(branch: Branch) -> Response:
    return JSONResponse(status_branches.branch_json(branch), headers={"Cache-Control": "no-store"})
