"""The endpoints of documents: GET, HEAD, PUT, POST, DELETE on their own paths.

Never merging. A body is parsed in one case alone: events that somebody appends to a log without naming a version.
"""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from email.utils import formatdate
from functools import lru_cache
from json import JSONEncoder
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from mergepub.documents import ABSENT, EVENTS, TEXT, Document, MergedFrom, Receipt, Version
from mergepub.errors import (
    DocumentDeletedError,
    InputError,
    NotFoundError,
    RecreatedError,
    VersionConflictError,
)
from mergepub.paths import check_path, split_version
from mergepub.service import conditions, labels
from mergepub.service.conditions import Expected, etag
from mergepub.service.problems import ProblemError, bad_request, mismatch, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from mergepub.service.exchange import Exchange, Service
    from mergepub.stores.contract import Store

_KEY = re.compile(r"[!#-~]{1,200}\Z")
_JSON = JSONEncoder(separators=(",", ":"))  # made once: that takes longer than its work here
_checked = lru_cache(1024)(check_path)  # whoever writes a document writes it again
_YEAR = 365 * 24 * 3600
_DOCUMENT_HEADERS = {
    # Whatever a body looks like, a browser shows or runs none of it on the service's origin.
    "Content-Type": "application/octet-stream",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


async def get_document(exchange: Exchange) -> Response:
    """The head, or an immutable version; 304 where the caller has it already."""
    path, number = split_version(exchange.path)
    exchange.caller.demand_read(path, exchange.path)
    document: Document = await exchange.service.call(exchange.service.store.fetch, path, number)
    headers = _headers_of(document, exchange, immutable=number is not None)
    if_match = exchange.joined("If-Match")
    if if_match is not None and not conditions.matches("If-Match", if_match, headers["ETag"], weak=False):
        detail = f"{path} is at version {document.version.number}, which If-Match does not name"
        raise ProblemError(mismatch(detail, None, document.current))
    if conditions.matches("If-None-Match", exchange.joined("If-None-Match"), headers["ETag"], weak=True):
        return Response(status_code=304, headers={k: v for k, v in headers.items() if k not in _DOCUMENT_HEADERS})
    return Response(document.body, headers=headers | _DOCUMENT_HEADERS)


def _headers_of(document: Document, exchange: Exchange, *, immutable: bool) -> dict[str, str]:
    number = document.version.number or 0
    scope = "private" if exchange.caller.token else "public"
    modified = datetime.fromisoformat(document.modified)
    headers = {
        "ETag": etag(document.incarnation, number),
        "Repr-Digest": f"sha-256=:{b64encode(bytes.fromhex(document.digest)).decode()}:",
        "Last-Modified": formatdate(modified.timestamp(), usegmt=True),
        "Cache-Control": f"{scope}, max-age={_YEAR}, immutable" if immutable else f"{scope}, no-cache",
        "Vary": "Authorization",
        "Mergepub-Version": str(number),
        "Mergepub-Incarnation": document.incarnation,
        "Mergepub-Current-Version": str(document.current or number),
        "Mergepub-Modified": document.modified,
        "Mergepub-Author": labels.encode_label(document.author),
        "Mergepub-Message": labels.encode_label(document.message),
        "Mergepub-Kind": document.kind,
    }
    return {name: value for name, value in headers.items() if value}


async def put_document(exchange: Exchange) -> Response:
    """Publish by compare-and-swap."""
    path = _writable(exchange, "publish")
    expected = _expected(exchange)
    options = _labels(exchange) | _provenance(exchange)
    body = await exchange.body()
    receipt = await _swapped(exchange, exchange.service.store.publish, path, body, expected=expected, options=options)
    return _receipt_response(receipt, receipt.merged_from or options["merged_from"])


async def post_document(exchange: Exchange) -> Response:
    """Append to whatever the head is, once per key; where a precondition names a version, to that one alone."""
    path = _writable(exchange, "publish")
    key = _append_key(exchange)
    options: dict[str, Any] = _labels(exchange)
    expected = _expected_if_any(exchange)
    body = await exchange.body()
    service, receipt = exchange.service, None
    if expected is not None:
        options["expected"] = await _named(service, path, expected)
    elif body.startswith(b"{"):
        receipt = await service.call(_logged, service.store, path, body, key=key, **options)
    if receipt is None:
        receipt = await service.write(service.store.append, path, body, key=key, **options)
    return _receipt_response(receipt, None)


def _logged(store: Store, path: str, body: bytes, *, key: str, author: str, message: str) -> Receipt | None:
    """Append the events in ``body``, none of whose ids stands in the log; None, and nothing done, where it is no log.

    Who names no version has not seen what stands there, so what a client's loop looks at is looked at here. Runs in the
    pool.
    """
    from mergepub.branching.appending import append_to_log  # noqa: PLC0415 - only what could be events needs it

    labels = {"author": author, "message": message}
    try:
        return append_to_log(store, path, body, key=key, again=False, **labels)
    except InputError:
        # The same request may have brought these ids: its key is known then. At no version nothing new is written.
        with suppress(VersionConflictError):
            return store.append(path, body, key=key, expected=ABSENT, **labels)
        raise


async def delete_document(exchange: Exchange) -> Response:
    """Put a tombstone by compare-and-swap; history stays."""
    path = _writable(exchange, "publish")
    expected = _expected(exchange)
    options = _labels(exchange)
    receipt = await _swapped(exchange, exchange.service.store.delete, path, expected=expected, options=options)
    return Response(status_code=204, headers=_receipt_headers(receipt))


def _writable(exchange: Exchange, operation: str) -> str:
    path = _checked(exchange.path)
    exchange.caller.demand(operation, path)
    return path


def _expected(exchange: Exchange) -> Expected:
    number = exchange.text("Mergepub-Expected-Version")
    return conditions.expected_version(exchange.joined("If-Match"), exchange.joined("If-None-Match"), number)


def _expected_if_any(exchange: Exchange) -> Expected | None:
    """As ``_expected``; None where no version is named: an append goes on whatever the head is."""
    others = exchange.values("If-None-Match") or exchange.values("Mergepub-Expected-Version")
    return _expected(exchange) if others or exchange.joined("If-Match") not in (None, "*") else None


def _labels(exchange: Exchange) -> dict[str, str]:
    """Author and message; with a token the author is the token's name."""
    author = exchange.caller.name or _label(exchange, "Mergepub-Author")
    return {"author": author, "message": _label(exchange, "Mergepub-Message")}


def _label(exchange: Exchange, name: str) -> str:
    value = exchange.single(name)
    return "" if value is None else labels.decode_label(name, value)


def _provenance(exchange: Exchange) -> dict[str, Any]:
    merged_from = exchange.text("Mergepub-Merged-From")
    kind = exchange.text("Mergepub-Kind") or TEXT
    if kind not in (TEXT, EVENTS):
        raise bad_request(f"Mergepub-Kind is {TEXT} or {EVENTS}")
    return {
        "merged_from": None if merged_from is None else labels.parse_merged_from(merged_from),
        "source": _label(exchange, "Mergepub-Source") or None,
        "kind": kind,
    }


def _append_key(exchange: Exchange) -> str:
    """The key, with or without the quotes of a structured field."""
    key = exchange.text("Idempotency-Key") or ""
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not key:
        raise refuse(428, "precondition-required", "an append needs an Idempotency-Key, made once per append")
    if not _KEY.match(key):
        raise bad_request("Idempotency-Key has 1 to 200 visible ASCII characters, none of them a quote")
    return key


async def _swapped(
    exchange: Exchange,
    method: Callable[..., Receipt],
    path: str,
    *body: bytes,
    expected: Expected,
    options: dict[str, Any],
) -> Receipt:
    """What ``method``, a compare-and-swap, answers. That there is no document is a precondition that does not hold."""
    service = exchange.service
    try:
        version = await _named(service, path, expected)
        receipt: Receipt = await service.write(method, path, *body, version, **options)
        return receipt
    except NotFoundError:
        raise _nothing_to_match(path, expected) from None


async def _named(service: Service, path: str, expected: Expected) -> Version:
    if expected.incarnation is None and not expected.foreign:
        return Version(expected.number)
    version: Version = await service.call(_version, service.store, path, expected)
    return version


def _nothing_to_match(path: str, expected: Expected) -> VersionConflictError:
    return VersionConflictError(
        f"there is no {path} in this store, so no version of it to build on", expected=expected.number, current=0
    )


def _version(store: Store, path: str, expected: Expected) -> Version:
    """The version that a tag names; refused here unless it is of the head's incarnation. Runs in the pool.

    Looking before writing is enough: numbers never repeat, so when the document is deleted and created again in
    between, the compare-and-swap on the number fails.
    """
    head = next(store.versions(path, limit=1))
    if head.incarnation == expected.incarnation:
        return Version(expected.number)
    if head.deleted:
        detail = f"{path} was deleted at version {head.version}"
        raise DocumentDeletedError(detail, expected=expected.number, current=head.version)
    if expected.foreign:
        detail = f"{path} is at version {head.version}, which If-Match does not name"
        raise VersionConflictError(detail, expected=None, current=head.version)
    detail = f"{path} was deleted and created again since; it is at version {head.version} now"
    raise RecreatedError(detail, expected=expected.number, current=head.version)


# Answers


def _receipt_headers(receipt: Receipt) -> dict[str, str]:
    headers = {
        "Mergepub-Version": str(receipt.version.number),
        "Mergepub-Incarnation": receipt.incarnation,
        "Cache-Control": "no-store",
    }
    if receipt.replayed:
        headers["Mergepub-Replayed"] = "true"
    if receipt.open_branches:
        headers["Mergepub-Open-Branches"] = str(receipt.open_branches)
    return headers


def _receipt_response(receipt: Receipt, merged_from: MergedFrom | None) -> Response:
    number = receipt.version.number or 0
    facts: dict[str, Any] = {"version": number}
    if receipt.unchanged:
        facts["unchanged"] = True
    if receipt.replayed:
        facts["replayed"] = True
    if receipt.current is not None:
        facts["current-version"] = receipt.current
    if merged_from and not receipt.unchanged:
        facts["merged"] = asdict(merged_from)
    status = 200 if receipt.unchanged or receipt.replayed else 201
    headers = _receipt_headers(receipt) | {"ETag": etag(receipt.incarnation, number)}
    return Response(_JSON.encode(facts), status, headers, "application/json")
