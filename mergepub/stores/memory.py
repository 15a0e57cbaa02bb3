"""The reference store: the contract in the simplest code that keeps it, in memory, safe for threads.

It shares no logic with the SQL backends on purpose: the conformance suite holds the two against each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from mergepub.documents import TEXT, Document, Listed, MergedFrom, Receipt, Revision, Version, digest_of
from mergepub.histories import DEFAULT, MAIN
from mergepub.stores import refusals
from mergepub.stores.branchrules import check_extension
from mergepub.stores.contract import MAX_BODY, Capabilities, incarnation_id, integer_version, now
from mergepub.stores.memory_branches import Entry, History, Line, MemoryBranches

_named: dict[str, MemoryStore] = {}


def open_url(url: str, *, max_body: int | None = None) -> MemoryStore:
    """``memory:`` is a store of its own, ``memory:NAME`` one per name and process."""
    if url == "memory:":
        return MemoryStore(url, max_body=max_body)
    return _named.setdefault(url, MemoryStore(url, max_body=max_body))


class MemoryStore(MemoryBranches):
    """A store that lives as long as its process."""

    def __init__(self, url: str = "memory:", *, max_body: int | None = None, clock: Callable[[], str] = now) -> None:
        self._url = url
        self._capabilities = Capabilities(
            branches=True, processes=False, max_bytes=MAX_BODY if max_body is None else max_body
        )
        self._clock = clock
        self._lock = threading.Lock()
        self._documents: dict[str, History] = {}

    @property
    def url(self) -> str:
        """``memory:`` or ``memory:NAME``."""
        return self._url

    @property
    def capabilities(self) -> Capabilities:
        """Everything an embedded store has, within one process."""
        return self._capabilities

    def fetch(self, path: str, version: int | None = None) -> Document:
        """See ``Store.fetch``."""
        with self._lock:
            history = self._history(path)
            entry = history.head if version is None else _entry(path, history, version)
        if entry.body is None:
            raise refusals.is_tombstone(path, entry.number)
        return Document(
            path,
            entry.body,
            integer_version(entry.number),
            entry.digest,
            entry.incarnation,
            entry.author,
            entry.message,
            entry.modified,
            entry.kind,
            history.head.number,
        )

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
        """See ``Store.publish``."""
        number = refusals.number_of(expected)
        refusals.check_kind(kind)
        self._check(body, author, message, source)
        extend = partial(
            self._extend, path, body, author=author, message=message, merged_from=merged_from, source=source
        )
        with self._lock:
            history = self._documents.get(path)
            if history is None and number:
                raise refusals.never_existed(path)
            if history is None or history.head.body is None:
                if history and number:
                    raise refusals.deleted(path, number, history.head.number)
                return extend(incarnation=incarnation_id(), kind=kind)
            known = _replayed(history, number, digest_of(body)) or _unchanged(history, body)
            if known:
                return known
            _swap(path, history, number)
            return extend()

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
        """See ``Store.append``."""
        refusals.check_append(body, key)
        with self._lock:
            history = self._history(path)
            if key in history.keys:
                return _same_append(history, key, digest_of(body))
            head = history.head
            if head.body is None:
                raise refusals.is_tombstone(path, head.number)
            if expected is not None:
                _swap(path, history, refusals.number_of(expected))
            glue = b"\n" if head.body and not head.body.endswith(b"\n") else b""
            longer = head.body + glue + body
            self._check(longer, author, message)
            receipt = self._extend(path, longer, author=author, message=message)
            history.keys[key] = (digest_of(body), history.head.number)
            return receipt

    def delete(self, path: str, expected: Version, *, author: str = "", message: str = "") -> Receipt:
        """See ``Store.delete``."""
        number = refusals.number_of(expected)
        self._check(b"", author, message)
        with self._lock:
            history = self._history(path)
            head = history.head
            if head.body is None:
                if number + 1 == head.number:
                    return Receipt(integer_version(head.number), head.incarnation, replayed=True)
                raise refusals.deleted(path, number, head.number)
            _swap(path, history, number)
            return self._extend(path, None, author=author, message=message)

    def versions(self, path: str, *, before: int | None = None, limit: int | None = None) -> Iterator[Revision]:
        """See ``Store.versions``."""
        with self._lock:
            entries = self._history(path).entries[::-1]
        return islice((_revision(e) for e in entries if before is None or e.number < before), limit)

    def list(
        self, prefix: str = "/", *, after: str | None = None, limit: int | None = None, deleted: bool = False
    ) -> Iterator[Listed]:
        """See ``Store.list``."""
        below = prefix if prefix.endswith("/") else prefix + "/"
        with self._lock:
            heads = sorted((path, history.head) for path, history in self._documents.items())
        return islice(
            (
                Listed(path, head.number, head.digest, head.modified, head.kind, head.body is None)
                for path, head in heads
                if (path == prefix or path.startswith(below))
                and (after is None or path > after)
                and (deleted or head.body is not None)
            ),
            limit,
        )

    def verify(self, path: str | None = None) -> Iterator[str]:
        """See ``Store.verify``."""
        with self._lock:
            histories = {path: self._history(path)} if path else dict(self._documents)
        for name, history in histories.items():
            for index, entry in enumerate(list(history.entries), start=1):
                if entry.number != index:
                    yield f"{name}: version {index} is missing"
                if entry.body is not None and digest_of(entry.body) != entry.digest:
                    yield f"{name}: version {index} does not have its digest"

    def close(self) -> None:
        """Nothing to release."""

    def _history(self, path: str) -> History:
        if path not in self._documents:
            raise refusals.never_existed(path)
        return self._documents[path]

    def _check(self, body: bytes, author: str, message: str, source: str | None = None) -> None:
        refusals.check_write(body, self._capabilities.max_bytes, author=author, message=message, source=source)

    def _extend(
        self,
        path: str,
        body: bytes | None,
        *,
        author: str,
        message: str,
        incarnation: str | None = None,
        kind: str = TEXT,
        merged_from: MergedFrom | None = None,
        source: str | None = None,
    ) -> Receipt:
        history = self._documents.get(path) or History()
        head = history.head if history.entries else None
        number = head.number + 1 if head else 1
        if incarnation is not None:
            line = Line(MAIN, incarnation, DEFAULT)
        else:
            assert head is not None, "a document without a head is only ever created"
            incarnation, kind = head.incarnation, head.kind
            line = history.line(incarnation, head.branch)
        if body is not None:
            check_extension(path, kind, (line.revisions[-1].body if line.revisions else b"") or b"", body)
        labels = (author, message, max(self._clock(), head.modified if head else ""))
        digest = "" if body is None else digest_of(body)
        place = (line.name, line.revision + 1)
        parents = (line.end,) if line.revisions else ()
        entry = Entry(number, body, digest, incarnation, kind, *labels, merged_from, source, *place, parents)
        line.revisions.append(entry)
        history.lines[incarnation, line.name] = line
        history.entries.append(entry)
        self._documents[path] = history
        return Receipt(integer_version(number), incarnation, open_branches=history.open_branches())


def _entry(path: str, history: History, version: int) -> Entry:
    if not 1 <= version <= len(history.entries):
        raise refusals.no_such_version(path, version, history.head.number)
    return history.entries[version - 1]


def _replayed(history: History, expected: int, digest: str) -> Receipt | None:
    """The answer to an exact retry: the version is there already, as itself or as what was merged from this body."""
    present = history.present()
    follower = present[0].number if expected == 0 else expected + 1
    for entry in present:
        if entry.number == follower and entry.digest == digest:
            return _replay_of(history, entry.number)
    for entry in present:
        made_from = entry.merged_from
        if made_from and (made_from.base, made_from.digest) == (expected, digest):
            return _replay_of(history, entry.number, made_from)
    return None


def _replay_of(history: History, number: int, merged_from: MergedFrom | None = None) -> Receipt:
    head = history.head
    incarnation = history.entries[number - 1].incarnation
    current = None if number == head.number else head.number
    return Receipt(
        integer_version(number),
        incarnation,
        replayed=True,
        current=current,
        merged_from=merged_from,
        open_branches=history.open_branches(),
    )


def _unchanged(history: History, body: bytes) -> Receipt | None:
    head = history.head
    if head.body != body:
        return None
    open_branches = history.open_branches()
    return Receipt(integer_version(head.number), head.incarnation, unchanged=True, open_branches=open_branches)


def _swap(path: str, history: History, expected: int) -> None:
    """The comparison of compare-and-swap."""
    head = history.head.number
    if expected != head:
        raise refusals.mismatch(path, expected, head, history.present()[0].number)


def _same_append(history: History, key: str, digest: str) -> Receipt:
    known, number = history.keys[key]
    if known != digest:
        raise refusals.other_append(key)
    return _replay_of(history, number)


def _revision(entry: Entry) -> Revision:
    return Revision(
        entry.number,
        entry.digest,
        len(entry.body or b""),
        entry.author,
        entry.message,
        entry.modified,
        entry.incarnation,
        entry.body is None,
        entry.merged_from,
        entry.source,
    )
