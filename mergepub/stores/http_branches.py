"""Branches and decisions of a store behind the HTTP service: one request an operation, as in http.py.

A yes that is not exactly what was promised is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from mergepub.documents import Receipt, Version, digest_of
from mergepub.errors import BranchError, NotFoundError, VersionConflictError
from mergepub.histories import (
    Branch,
    BranchReceipt,
    BranchRevision,
    Decision,
    DecisionReceipt,
    DecisionRequest,
    HeadPlace,
    Owner,
    Place,
    Standing,
    Unresolved,
)
from mergepub.stores import branchrules, refusals
from mergepub.stores import http_wire as wire
from mergepub.stores.http_wire import Answer, Call

if TYPE_CHECKING:
    from mergepub.stores.http import HttpStore

_T = TypeVar("_T")

BRANCHES, DECISIONS = "/-/branches", "/-/decisions"

_LONG = 1000
"""Characters of a list of approved names; a longer one does not travel in a header."""


class HttpBranches:
    """The operations of ``BranchStore`` over HTTP; part of ``HttpStore``."""

    def branch(
        self,
        path: str,
        body: bytes,
        expected: Version,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,
        incarnation: str | None = None,
        digest: str | None = None,
        kind: str = "text",
    ) -> Receipt | BranchReceipt:
        """See ``BranchStore.branch``."""
        number = refusals.number_of(expected)
        headers = {
            "Mergepub-Expected-Version": str(number),
            "Mergepub-Base-Incarnation": incarnation or "",
            "Mergepub-Base-Digest": digest or "",
            **wire.labels(author, message),
            **wire.provenance(None, source, kind),
        }
        call = self._to("PUT", BRANCHES, path, number)
        again = None if number else partial(self._http._refuse_revival, call, digest_of(body))
        return self._branch_write(call, _either, headers, body, in_doubt=again)

    def extend(
        self,
        path: str,
        branch: str,
        body: bytes,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,  # noqa: ARG002 - the wire has no place for it on a branch
        epoch: int | None = None,
        known: int | None = None,
    ) -> BranchReceipt:
        """See ``BranchStore.extend``."""
        named = branch if known is None else f"{branch}@{known}"
        headers = {"Mergepub-Branch": named, **_epoch(epoch), **wire.labels(author, message)}
        return self._branch_write(self._to("POST", BRANCHES, path), _branch_receipt, headers, body, branch=branch)

    def branches(self, path: str) -> tuple[HeadPlace, list[Branch]]:
        """See ``BranchStore.branches``."""
        return self._read(BRANCHES, path, {}, _reading(_listed))

    def revision(self, path: str, branch: str, revision: int | None = None) -> BranchRevision:
        """See ``BranchStore.revision``."""
        named = branch if revision is None else f"{branch}@{revision}"
        return self._read(BRANCHES, path, {"revision": named}, _revision, branch)

    def standing(self, path: str, branch: str, *, version: int | None = None, revision: int | None = None) -> Standing:
        """See ``BranchStore.standing``."""
        query = {"standing": branch if revision is None else f"{branch}@{revision}"}
        query |= {} if version is None else {"version": str(version)}
        return self._read(BRANCHES, path, query, _reading(_standing), branch)

    def unresolved(self, prefix: str = "/", *, limit: int = 1000) -> list[Unresolved]:
        """See ``BranchStore.unresolved``."""
        query = {"unresolved": "1", "limit": str(limit)}
        return self._read(BRANCHES, prefix, query, _reading(_unresolved))

    def take(self, path: str, branch: str, *, author: str) -> Branch:
        """See ``BranchStore.take``."""
        headers = {"Mergepub-Branch": branch, "Mergepub-Action": "take", **wire.labels(author, "")}
        return self._branch_write(self._to("POST", BRANCHES, path), _branch, headers, b"", branch=branch)

    def abandon(self, path: str, branch: str, *, author: str, epoch: int | None = None) -> Branch:
        """See ``BranchStore.abandon``."""
        headers = {"Mergepub-Branch": branch, "Mergepub-Action": "abandon", **_epoch(epoch), **wire.labels(author, "")}
        return self._branch_write(self._to("POST", BRANCHES, path), _branch, headers, b"", branch=branch)

    def decide(self, path: str, request: DecisionRequest) -> DecisionReceipt:
        """See ``BranchStore.decide``."""
        branchrules.check_request(request)
        headers = {
            "Mergepub-Decision": request.strategy,
            "Mergepub-Expected-Version": str(request.expected_head),
            "Mergepub-Branch": str(request.seen or ""),
            "Mergepub-Reason": wire.encode_label(request.reason) if request.reason else "",
            "Mergepub-Acknowledge-Effects": "true" if request.effects else "",
            "Mergepub-Undoes": str(request.undoes or ""),
            **wire.labels(request.resolver, ""),
        }
        body = request.body or b""
        names = json.dumps(request.approved)
        if len(names) > _LONG:
            headers["Mergepub-Approved-Size"] = str(len(names))
            body = names.encode("ascii") + body
        elif request.approved:
            headers["Mergepub-Approved"] = wire.encode_label(names)
        call = self._to("POST", DECISIONS, path, request.expected_head)
        seen = request.seen.branch if request.seen else ""
        return self._branch_write(call, _receipt, headers, body, branch=seen)

    def decisions(self, path: str, *, before: int | None = None, limit: int | None = None) -> list[Decision]:
        """See ``BranchStore.decisions``."""
        rows: list[Decision] = []
        while limit is None or len(rows) < limit:
            query = {} if before is None else {"after": str(before)}
            page, before = self._read(DECISIONS, path, query, _reading(_page))
            rows += page
            if before is None:
                break
        return rows[:limit]

    # One request

    @property
    def _http(self) -> HttpStore:
        return self  # type: ignore[return-value]  # it is part of that class

    def _read(
        self, room: str, path: str, query: Mapping[str, str], read: Callable[[Call, Answer], _T], branch: str = ""
    ) -> _T:
        asked = f"?{urlencode(query)}" if query else ""
        call = Call("GET", path, f"{self._http.url}{room}{wire.quote_path(path)}{asked}")
        with _advised(path, branch):
            return self._http._ask(call, {200}, read)

    def _to(self, method: str, room: str, path: str, expected: int | None = None) -> Call:
        return Call(method, path, f"{self._http.url}{room}{wire.quote_path(path)}", expected)

    def _branch_write(
        self,
        call: Call,
        parse: Callable[[dict[str, Any]], _T],
        headers: Mapping[str, str],
        body: bytes,
        *,
        branch: str = "",
        in_doubt: Callable[[], None] | None = None,
    ) -> _T:
        sent = {name: value for name, value in headers.items() if value}
        with _advised(call.path, branch):
            return self._http._ask(call, {200, 201}, _reading(parse), sent, body, in_doubt=in_doubt)


@contextmanager
def _advised(path: str, branch: str) -> Iterator[None]:
    """Refusals about ``branch`` leave with what to type next: on the wire there is no place for it."""
    try:
        yield
    except BranchError as error:
        error.hint = branchrules.advice(path, error.reason or "", branch)
        raise
    except VersionConflictError as error:
        error.hint = branchrules.advice(path, "", branch)
        raise
    except NotFoundError as error:
        if error.tombstone is None and not error.message.startswith(f"there is no {path} in this store"):
            error.hint = branchrules.advice(path, "", branch)  # the document is there: it need not be created
        raise


def _reading(parse: Callable[[dict[str, Any]], _T]) -> Callable[[Call, Answer], _T]:
    return lambda call, answer: _parsed(call, answer, parse)


def _epoch(epoch: int | None) -> dict[str, str]:
    return {} if epoch is None else {"Mergepub-Epoch": str(epoch)}


# Answers


def _parsed(call: Call, answer: Answer, parse: Callable[[dict[str, Any]], _T]) -> _T:
    row = wire.json_object(call, answer)
    try:
        return parse(row)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise wire.unclear(call, answer, "it does not say what was promised") from None


def _place(text: str) -> Place:
    name, _, number = text.partition("@")
    return Place(name, int(number))


def _places(texts: list[str]) -> tuple[Place, ...]:
    return tuple(_place(text) for text in texts)


def _head(row: dict[str, Any]) -> HeadPlace:
    place = Place(str(row["branch"]), int(row["revision"]))
    return HeadPlace(int(row["version"]), str(row["incarnation"]), str(row["kind"]), place, row["digest"])


def _branch(row: dict[str, Any]) -> Branch:
    owners = tuple(Owner(str(o["name"]), int(o["epoch"]), int(o["revision"])) for o in row["owners"])
    return Branch(
        str(row["branch"]),
        str(row["incarnation"]),
        str(row["state"]),
        row["parent"],
        int(row["base-revision"]),
        row["base-digest"],
        int(row["base-version"]),
        int(row["revision"]),
        row["digest"],
        _places(row["origins"]),
        owners,
    )


def _listed(row: dict[str, Any]) -> tuple[HeadPlace, list[Branch]]:
    return _head(row["head"]), [_branch(each) for each in row["branches"]]


def _unresolved(row: dict[str, Any]) -> list[Unresolved]:
    return [Unresolved(str(each["path"]), int(each["count"]), str(each["branch"])) for each in row["unresolved"]]


def _page(row: dict[str, Any]) -> tuple[list[Decision], int | None]:
    return [_decision(each) for each in row["decisions"]], row.get("after")


def _standing(row: dict[str, Any]) -> Standing:
    return Standing(_head(row["head"]), _branch(row["branch"]), _places(row["ancestors"]))


def _either(row: dict[str, Any]) -> Receipt | BranchReceipt:
    if "version" not in row:
        return _branch_receipt(row)
    number = int(row["version"])
    flags = (bool(row.get("unchanged")), bool(row.get("replayed")), row.get("current-version"))
    return Receipt(Version(number, str(number), str(number)), str(row["incarnation"]), *flags)


def _branch_receipt(row: dict[str, Any]) -> BranchReceipt:
    counts = (int(row["branch-revision"]), int(row["epoch"]), int(row["base-version"]), int(row["current-version"]))
    flags = (bool(row.get("unchanged")), bool(row.get("replayed")))
    return BranchReceipt(str(row["branch"]), *counts, str(row["incarnation"]), *flags)


def _receipt(row: dict[str, Any]) -> DecisionReceipt:
    flags = (bool(row.get("replayed")), row.get("current-version"))
    return DecisionReceipt(_decision(row["decision"]), int(row["version"]), *flags)


def _decision(row: dict[str, Any]) -> Decision:
    return Decision(
        int(row["decision"]),
        str(row["incarnation"]),
        str(row["strategy"]),
        int(row["head-version"]),
        _place(row["head"]),
        _place(row["branch"]),
        row.get("version"),
        _place(row["result"]) if "result" in row else None,
        str(row["resolver"]),
        str(row["reason"]),
        str(row["modified"]),
        tuple(row.get("approved", ())),
        bool(row.get("acknowledged-effects")),
        row.get("undoes"),
    )


def _revision(call: Call, answer: Answer) -> BranchRevision:
    digest = wire.checked_digest(call, answer)
    headers = answer.headers
    try:
        return BranchRevision(
            headers["Mergepub-Incarnation"],
            _place(headers["Mergepub-Branch"]),
            answer.body,
            digest,
            _places([text for text in headers.get("Mergepub-Parents", "").split(", ") if text]),
            wire.decode_label(headers.get("Mergepub-Author", "")),
            wire.decode_label(headers.get("Mergepub-Message", "")),
            headers["Mergepub-Modified"],
            headers["Mergepub-Kind"],
        )
    except (KeyError, ValueError):
        raise wire.unclear(call, answer, "it does not say which revision it is") from None
