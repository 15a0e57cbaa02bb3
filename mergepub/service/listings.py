"""The endpoints of history, listings and checks: JSON, the long ones paged by ``?after=`` with ``Link: rel="next"``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.responses import JSONResponse, Response

from mergepub.errors import NotFoundError
from mergepub.paths import check_path, check_prefix
from mergepub.service.labels import parse_number
from mergepub.service.problems import ProblemError, bad_request, no_document
from mergepub.service.targets import parse_query

if TYPE_CHECKING:
    from mergepub.documents import Listed, Revision
    from mergepub.service.access import Caller
    from mergepub.service.exchange import Exchange
    from mergepub.stores.contract import Store

MOST = 1000
BY_DEFAULT = 100

_FILTERED_PAGE = 500  # rows read at a time where the caller may not see all of them

VERSIONS = "/-/versions"
LIST = "/-/list"
VERIFY = "/-/verify"


async def get_versions(exchange: Exchange) -> Response:
    """History of one document, newest first."""
    path = check_path(exchange.path.removeprefix(VERSIONS))
    exchange.caller.demand_read(path)
    query = parse_query(exchange.query)
    limit = _limit(query)
    before = parse_number("after", query["after"]) if "after" in query else None
    try:
        rows = await exchange.service.call(_versions, exchange.service.store, path, before, limit + 1)
    except NotFoundError:
        raise ProblemError(no_document(path)) from None
    following = str(rows[limit - 1].version) if len(rows) > limit else None
    return _page("versions", [_revision(row) for row in rows[:limit]], exchange, query, following)


async def get_list(exchange: Exchange) -> Response:
    """Documents whose path is the prefix or lies below it, as far as the caller may read them."""
    prefix = check_prefix(exchange.path.removeprefix(LIST) or "/")
    query = parse_query(exchange.query)
    limit = _limit(query)
    deleted = _flag(query, "deleted")
    after = query.get("after")
    if after is not None and "\0" in after:
        raise bad_request("after is a path")
    rows = await exchange.service.call(
        _listed, exchange.service.store, exchange.caller, prefix, after, limit + 1, deleted=deleted
    )
    following = rows[limit - 1].path if len(rows) > limit else None
    return _page("documents", [_listed_row(row) for row in rows[:limit]], exchange, query, following)


async def get_verify(exchange: Exchange) -> Response:
    """What the store's own check finds wrong with one document: bodies, chains, numbering, branches, decisions.

    One at a time: it reads everything that there is of a document, and many at once would leave no thread for others.
    """
    path = check_path(exchange.path.removeprefix(VERIFY))
    exchange.caller.demand_read(path)
    service = exchange.service
    try:
        async with service.verifying:
            faults = await service.call(_faults, service.store, path)
    except NotFoundError:
        raise ProblemError(no_document(path)) from None
    return JSONResponse({"faults": faults}, headers={"Cache-Control": "no-store"})


def _limit(query: dict[str, str]) -> int:
    text = query.get("limit", str(BY_DEFAULT))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST):
        raise bad_request(f"limit is a number from 1 to {MOST}")
    return int(text)


def _flag(query: dict[str, str], name: str) -> bool:
    value = query.get(name, "0")
    if value not in ("0", "1"):
        raise bad_request(f"{name} is 0 or 1")
    return value == "1"


# These run in the pool.


def _faults(store: Store, path: str) -> list[str]:
    return list(store.verify(path))


def _versions(store: Store, path: str, before: int | None, limit: int) -> list[Revision]:
    return list(store.versions(path, before=before, limit=limit))


def _listed(
    store: Store, caller: Caller, prefix: str, after: str | None, wanted: int, *, deleted: bool
) -> list[Listed]:
    """Page by page through the store, until ``wanted`` rows that the caller may read are there."""
    found: list[Listed] = []
    size = max(wanted, _FILTERED_PAGE) if caller.token else wanted
    while True:
        page = list(_store_page(store, prefix, after, size, deleted))
        found += [row for row in page if caller.may("read", row.path)]
        if len(found) >= wanted or len(page) < size:
            return found[:wanted]
        after = page[-1].path


def _store_page(store: Store, prefix: str, after: str | None, limit: int, deleted: bool) -> Iterator[Listed]:
    try:
        return store.list(prefix, after=after, limit=limit, deleted=deleted)
    except NotFoundError:  # the store has not been made yet: nothing is in it
        return iter(())


# Answers


def _page(
    name: str, rows: list[dict[str, Any]], exchange: Exchange, query: dict[str, str], following: str | None
) -> Response:
    headers = {"Cache-Control": "no-cache"}
    if following is not None:
        known = {key: query[key] for key in ("limit", "deleted") if key in query}
        target = f"{quote(exchange.path, safe='/')}?{urlencode(known | {'after': following})}"
        headers["Link"] = f'<{target}>; rel="next"'
    return JSONResponse({name: rows}, headers=headers)


def _revision(row: Revision) -> dict[str, Any]:
    merged = asdict(row.merged_from) if row.merged_from else None
    optional: dict[str, Any] = {"deleted": row.deleted, "merged-from": merged, "source": row.source}
    return {
        "version": row.version,
        "digest": row.digest,
        "size": row.size,
        "author": row.author,
        "message": row.message,
        "modified": row.modified,
        "incarnation": row.incarnation,
        **{name: value for name, value in optional.items() if value},
    }


def _listed_row(row: Listed) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "path": row.path,
        "version": row.version,
        "digest": row.digest,
        "modified": row.modified,
        "kind": row.kind,
    }
    if row.deleted:
        facts["deleted"] = True
    return facts
