"""The backend ``http(s)://``: a store behind the HTTP service, one request an operation.

What was not answered is asked again here, request by request, so that a history of many pages is read lazily and a
fault on the last page does not begin again at the first; no ``Retrying`` belongs around this store, or the waits would
multiply. Repeating is safe for all three writes: the service recognises a publish by its content, an append by its key
and a delete by its tombstone. A write that may have happened and was never answered clearly ends as
``UnknownOutcomeError``, whatever the last attempt says.

The wire's forms live in http_wire.py, secrets in http_secrets.py, sockets in http_session.py, which is imported at the
first request.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, groupby, islice
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlencode

from mergepub.documents import TEXT, Document, Listed, MergedFrom, Receipt, Revision, Version, digest_of
from mergepub.errors import (
    DeniedError,
    DocumentDeletedError,
    InputError,
    NotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)
from mergepub.stores import http_secrets as secrets
from mergepub.stores import http_wire as wire
from mergepub.stores import refusals
from mergepub.stores.contract import Capabilities, Store
from mergepub.stores.http_branches import HttpBranches
from mergepub.stores.http_wire import Answer, Call, Timeouts
from mergepub.stores.wrappers import RetryPolicy

if TYPE_CHECKING:
    from mergepub.stores.http_session import HttpSession

PAGE = 200
MAX_REDIRECTS = 5
PATIENCE = 45.0
"""Seconds after which nothing is asked again: a store that hangs costs two read time-outs, not four."""


class _Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


_Row = TypeVar("_Row")
_T = TypeVar("_T")


def open_url(url: str, *, max_body: int | None = None) -> Store:
    """The store behind ``url``. ``max_body`` is what the service is known to take; it is the service that enforces it.

    Raises:
        InputError: as ``HttpStore``.
    """
    return HttpStore(url, max_body=max_body)


class HttpStore(HttpBranches):
    """A store behind ``mergepub serve``. Safe to share between threads; a forked process connects anew.

    ``vouched`` is set to False before the first request where nobody who holds a secret named this store: then no
    secret of the environment is sent to it.

    ``verify`` reads every version once and compares digest, size and numbering with the history; the hash chains, the
    branches and the decisions are checked on the service's side, and what is found there is told as well.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        timeouts: Timeouts | None = None,
        policy: RetryPolicy | None = None,
        max_body: int | None = None,
    ) -> None:
        """Nothing is sent and no secret looked for before the first request.

        Raises:
            InputError: ``url`` cannot name an HTTP store, or holds a user name or password.
        """
        self._parts = secrets.check_url(url)
        self._url = url.rstrip("/")
        self._timeouts = timeouts or Timeouts()
        self._policy = policy or RetryPolicy()
        self._capabilities = Capabilities(branches=True, max_bytes=max_body)
        self._given_token, self._token_file = token, token_file
        self.vouched = True
        self._proven = False
        self._lock = threading.Lock()
        self._session: HttpSession | None = None
        self._owner = 0

    @property
    def url(self) -> str:
        """The URL that opens this store again; it never holds a secret."""
        return self._url

    @property
    def capabilities(self) -> Capabilities:
        """As the service: atomic, with full history. Its limit is not asked for: a refusal names it."""
        return self._capabilities

    # -- the contract --------------------------------------------------------------------------------------------------

    def fetch(self, path: str, version: int | None = None) -> Document:
        """One GET; the body is compared with the digest that came with it."""
        if version is not None and version < 1:
            raise NotFoundError(
                f"{path} has no version {version}: they count from 1", hint=f"mergepub versions {quote(path)}"
            )
        suffix = "" if version is None else f"/v{version}"
        call = Call("GET", path, self._url + wire.quote_path(path) + suffix, version=version)
        return self._ask(call, {200}, wire.document)

    def publish(
        self,
        path: str,
        body: bytes,
        expected: Version,
        *,
        author: str = "",
        message: str = "",
        merged_from: MergedFrom | None = None,
        source: str | None = None,
        kind: str = TEXT,
    ) -> Receipt:
        """One PUT. A yes that names no version is looked up: the caller's body at expected + 1 is the answer."""
        refusals.check_kind(kind)
        self._check(body, author, message, source)
        call = self._write("PUT", path, expected.number)
        headers = {
            **wire.precondition(expected),
            **wire.labels(author, message),
            **wire.provenance(merged_from, source, kind),
        }
        digest = digest_of(body)
        in_doubt = partial(self._refuse_revival, call, digest) if call.expected == 0 else None
        return self._ask(call, {200, 201}, partial(self._published, digest), headers, body, in_doubt=in_doubt)

    def append(
        self,
        path: str,
        body: bytes,
        *,
        key: str,
        author: str = "",
        message: str = "",
        expected: Version | None = None,
    ) -> Receipt:
        """One POST, recognised by ``key`` when it is repeated."""
        refusals.check_append(body, key)
        self._check(body, author, message)
        call = self._write("POST", path, None if expected is None else expected.number)
        headers = {"Idempotency-Key": wire.quote_key(key), **wire.labels(author, message)}
        if expected is not None:
            headers |= wire.precondition(Version(expected.number))
        return self._ask(call, {200, 201}, wire.receipt, headers, body)

    def delete(self, path: str, expected: Version, *, author: str = "", message: str = "") -> Receipt:
        """One DELETE. A yes that names no version is looked up: a tombstone at expected + 1 is the answer."""
        self._check(b"", author, message)
        call = self._write("DELETE", path, expected.number)
        # By number: a tag names the head, and the head of a delete that is repeated is its own tombstone.
        by_number = expected if expected.number is None else Version(expected.number)
        headers = {**wire.precondition(by_number), **wire.labels(author, message)}
        return self._ask(call, {200, 204}, self._deleted, headers)

    def versions(self, path: str, *, before: int | None = None, limit: int | None = None) -> Iterator[Revision]:
        """History, page by page as it is read. What stands below a page never changes, so the pages fit together."""
        call = self._page_call("/-/versions", path, limit, after=before)
        rows = self._rows(call, "versions", wire.revision, lambda row: -row.version)
        return islice(rows, limit)

    def list(
        self, prefix: str = "/", *, after: str | None = None, limit: int | None = None, deleted: bool = False
    ) -> Iterator[Listed]:
        """Documents below ``prefix``, page by page as it is read; each page is one state of the store."""
        call = self._page_call("/-/list", prefix, limit, after=after, deleted=1 if deleted else None)
        rows = self._rows(call, "documents", wire.listed, lambda row: row.path)
        return islice(rows, limit)

    def verify(self, path: str | None = None) -> Iterator[str]:
        """Read every version of one document or all, compare it with its row in the history, and ask the service."""
        paths = [path] if path is not None else (row.path for row in self.list(deleted=True))
        for each in paths:
            yield from self._verify_document(each)

    def close(self) -> None:
        """Close the pooled connections. A later call opens them again."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    # -- one request ---------------------------------------------------------------------------------------------------

    def _check(self, body: bytes, author: str, message: str, source: str | None = None) -> None:
        refusals.check_write(body, self._capabilities.max_bytes, author=author, message=message, source=source)

    def _write(self, method: str, path: str, expected: int | None) -> Call:
        return Call(method, path, self._url + wire.quote_path(path), expected)

    def _ask(
        self,
        call: Call,
        yes: set[int],
        read: Callable[[Call, Answer], _T],
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        in_doubt: Callable[[], None] | None = None,
    ) -> _T:
        """What ``read`` makes of the answer to one request, repeated as the policy says.

        Everything but the statuses ``yes`` raises. ``in_doubt`` looks, before a repetition of what may have happened,
        whether it can be repeated.
        """
        return _persistently(self._policy, lambda: read(call, self._ask_once(call, yes, headers or {}, body)), in_doubt)

    def _ask_once(self, call: Call, yes: set[int], headers: Mapping[str, str], body: bytes | None) -> Answer:
        url = call.url
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._exchange(call, url, headers, body)
            if answer.status in yes:
                return answer
            if not 300 <= answer.status < 400:
                raise wire.refusal(call, answer)
            url = self._redirected(call, answer, url)
        raise wire.ForeignAnswerError(f"{call.url} redirects in circles; check the URL of the store")

    def _redirected(self, call: Call, answer: Answer, url: str) -> str:
        location = answer.headers.get("Location", "")
        target = wire.on_same_origin(url, location)
        if location and target and not call.writes:
            return target
        raise wire.ForeignAnswerError(
            f"{call.method} {call.url} is redirected to {answer.shown(location) or 'nowhere'}, which is not followed"
            f" (it answered {answer.quoted()}); check the URL of the store"
        )

    def _exchange(self, call: Call, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        session = self._connected()
        if self._parts.path.strip("/") and not self._proven:
            self._prove_prefix(session)
        if body is not None:
            headers = {"Content-Type": "application/octet-stream", **headers}
        return session.exchange(call, url, headers, body)

    def _prove_prefix(self, session: HttpSession) -> None:
        """Find out that a service stands below the path of the URL, before its documents get names that nobody meant.

        Raises:
            InputError: the path is no prefix that a proxy takes away, but part of what the service itself is asked for.
        """
        url = f"{self._url}/-/health"
        answer = session.exchange(Call("GET", "/-/health", url), url, {}, None)
        if answer.status in (400, 404):
            above = f"{self._parts.scheme}://{self._parts.netloc}"
            raise InputError(
                f"there is no service at {self._url}: the URL of a store names a host, and no document or folder",
                hint=f"is the store {above}? the folder is part of the document's path: {self._parts.path}/...",
            )
        self._proven = answer.status < 500

    def _connected(self) -> HttpSession:
        with self._lock:
            if self._session is None or self._owner != os.getpid():
                from mergepub.stores.http_session import HttpSession  # noqa: PLC0415 - requests costs start-up time

                token = secrets.find_token(self._parts, self._given_token, self._token_file, vouched=self.vouched)
                direct = secrets.is_loopback(self._parts.hostname or "")
                self._session, self._owner = HttpSession(token, self._timeouts, direct=direct), os.getpid()
            return self._session

    # -- answers that need a second look -------------------------------------------------------------------------------

    def _published(self, digest: str, call: Call, answer: Answer) -> Receipt:
        try:
            return wire.receipt(call, answer)
        except UnknownOutcomeError:
            found = self._find_published(call, digest)
            if found is None:
                raise
            return found

    def _deleted(self, call: Call, answer: Answer) -> Receipt:
        try:
            return wire.deletion(call, answer)
        except UnknownOutcomeError:
            if not self._is_deleted_at(call):
                raise
            return Receipt(Version((call.expected or 0) + 1), "", replayed=True)

    def _find_published(self, call: Call, digest: str) -> Receipt | None:
        """The caller's own body at expected + 1 of the head's incarnation; a create may also be the head itself."""
        if call.expected is None:
            return None
        try:
            head = self.fetch(call.path)
            candidates = [head] if call.expected in (0, _before(head)) else []
            if call.expected < _before(head):
                candidates.append(self.fetch(call.path, call.expected + 1))
        except (NotFoundError, UnavailableError):
            return None  # the first answer's error says more
        for found in candidates:
            if (found.digest, found.incarnation) == (digest, head.incarnation):
                current = None if found.version.number == head.version.number else head.version.number
                return Receipt(found.version, found.incarnation, replayed=True, current=current)
        return None

    def _refuse_revival(self, call: Call, digest: str) -> None:
        """Refuse to repeat a create whose document was created from this body and deleted since.

        The service recognises a repetition in the present life of a document only; this one would bring it back.
        """
        try:
            life = self._last_life(call.path)
        except NotFoundError:
            return
        if life and life[0].deleted and life[-1].digest == digest:
            raise DocumentDeletedError(
                f"{call.path} was created with this body, at version {life[-1].version}, and deleted at version"
                f" {life[0].version} while the answer was lost",
                expected=0,
                current=life[0].version,
                hint=f"if it shall exist all the same, publish it again at 0; "
                f"else see mergepub versions {quote(call.path)}",
            )

    def _last_life(self, path: str) -> Sequence[Revision]:
        """The versions of the newest incarnation, newest first."""
        _, life = next(groupby(self.versions(path), lambda row: row.incarnation), ("", ()))
        return [*life]

    def _is_deleted_at(self, call: Call) -> bool:
        try:
            self.fetch(call.path)
        except NotFoundError as error:
            return call.expected is not None and error.tombstone == call.expected + 1
        except UnavailableError:
            return False  # the first answer's error says more
        return False

    # -- pages ---------------------------------------------------------------------------------------------------------

    def _page_call(self, room: str, path: str, limit: int | None, **query: object) -> Call:
        asked = {"limit": PAGE if limit is None else max(1, min(limit, PAGE)), **query}
        wanted = urlencode({name: value for name, value in asked.items() if value is not None})
        return Call("GET", path, f"{self._url}{room}{wire.quote_path(path)}?{wanted}")

    def _rows(
        self, call: Call, key: str, parse: Callable[[dict[str, Any]], _Row], order: Callable[[_Row], _Ordered]
    ) -> Iterator[_Row]:
        """The rows of all pages: the first is asked for at once, so that a refusal is one of this call."""
        read = partial(wire.page, key, parse)
        return self._following_rows(call, self._ask(call, {200}, read), read, order)

    def _following_rows(
        self,
        call: Call,
        page: wire.Page[_Row],
        read: Callable[[Call, Answer], wire.Page[_Row]],
        order: Callable[[_Row], _Ordered],
    ) -> Iterator[_Row]:
        last: _Ordered | None = None
        while True:
            for row in page.rows:
                if last is not None and not last < order(row):  # or a broken server would be read for ever
                    raise wire.ForeignAnswerError(
                        f"the rows of {call.url} are out of order; check the URL of the store"
                    )
                last = order(row)
                yield row
            if page.following is None:
                return
            call = Call("GET", call.path, page.following)
            page = self._ask(call, {200}, read)

    # -- verify --------------------------------------------------------------------------------------------------------

    def _verify_document(self, path: str) -> Iterator[str]:
        newer: int | None = None
        for row in self.versions(path):
            if newer is not None and row.version != newer - 1:
                yield f"{path}: the history has no version between {row.version} and {newer}"
            newer = row.version
            if not row.deleted:
                yield from self._verify_version(path, row)
        if newer != 1:
            yield f"{path}: the history begins at version {newer}, not at 1"
        yield from self._ask(Call("GET", path, f"{self._url}/-/verify{wire.quote_path(path)}"), {200}, wire.faults)

    def _verify_version(self, path: str, row: Revision) -> Iterator[str]:
        try:
            found = self.fetch(path, row.version)
        except (NotFoundError, wire.DamagedAnswerError) as error:
            yield f"{path}/v{row.version}: {error}"
            return
        except UnavailableError as error:
            next(self.versions(path, limit=1), None)  # raises where the whole store is away, not this version
            yield f"{path}/v{row.version}: {error}"
            return
        if (found.digest, len(found.body)) != (row.digest, row.size):
            yield (
                f"{path}/v{row.version}: {len(found.body)} bytes with digest {found.digest}, but the history says"
                f" {row.size} bytes with digest {row.digest}"
            )


def _persistently(policy: RetryPolicy, ask: Callable[[], _T], in_doubt: Callable[[], None] | None) -> _T:
    """``ask`` until it is answered, as often as ``policy`` says; no attempt begins after ``PATIENCE`` seconds.

    Once an attempt may have reached the store, ``in_doubt`` is called before each further one.

    Raises:
        UnknownOutcomeError: an attempt may have reached the store and none was answered clearly. A later no of a proxy,
            a revoked token or a dead host says nothing about the first.
    """
    begun = time.monotonic()
    unknown: UnknownOutcomeError | None = None
    for attempt in count(1):
        try:
            if unknown is not None and in_doubt is not None:
                in_doubt()
            return ask()
        except (UnavailableError, DeniedError) as error:
            if isinstance(error, UnknownOutcomeError):
                unknown = error
            late = attempt >= policy.attempts or time.monotonic() - begun > PATIENCE
            if late or isinstance(error, DeniedError | wire.ForeignAnswerError):
                raise (unknown or error) from None
            policy.sleep(_wait(policy, error, attempt))
    raise AssertionError("the loop ends by an answer or an error")


def _wait(policy: RetryPolicy, error: UnavailableError, attempt: int) -> float:
    if error.after is None:
        return policy.wait_for(error, attempt)
    return min(error.after, policy.longest_wait)


def _before(document: Document) -> int:
    """The number that a publish of ``document`` as a new version was made on."""
    return (document.version.number or 0) - 1
