"""Appending to a log of events: no id stands in a log twice, however many writers append at once.

A store parses nothing, so it cannot know ids. Here they are checked against the head, and the append is a
compare-and-swap on just that head: where somebody was faster, it is checked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mergepub.branching.kinds import head_of
from mergepub.calls import insist
from mergepub.documents import EVENTS, Receipt, Version
from mergepub.errors import ContentionError, NotFoundError, VersionConflictError
from mergepub.events import parse_events

if TYPE_CHECKING:
    from mergepub.documents import Document
    from mergepub.stores.contract import Store


def append_to_log(
    store: Store, path: str, body: bytes, *, key: str, again: bool, author: str, message: str
) -> Receipt | None:
    """Append the events in ``body``; None, and nothing done, where ``path`` is no log.

    ``again``: the caller has a key of its own, so this may be an append whose answer was lost. The same lines stand in
    a log once, so finding them is finding that append.

    Raises:
        InputError: naming the line and the rule.
        NotFoundError: the document was deleted meanwhile.
    """
    how = {"key": key, "author": author, "message": message}
    row = head_of(store, path)
    if row is None or row.kind != EVENTS:
        return None
    tried = 0
    while True:
        head = insist(lambda: store.fetch(path))
        number = head.version.number or 0
        if head.kind != EVENTS:
            return None  # deleted and created again meanwhile
        if again and _holds(head.body, body):
            return _before(store, head, body)
        parse_events(head.body + body)
        if number <= tried:
            raise ContentionError(f"the store says that {number} is the head of {path}, and took no append at it")
        tried = number
        try:
            return insist(lambda n=number: store.append(path, body, expected=Version(n), **how))  # type: ignore[misc]  # a default binds the loop's value; mypy cannot infer it
        except VersionConflictError:
            continue  # somebody was faster


def _before(store: Store, head: Document, lines: bytes) -> Receipt:
    """The answer to an append that happened before."""
    parse_events(lines)
    first = _first_with(store, head.path, head.version.number or 0, lines)
    current = None if first == head.version.number else head.version.number
    return Receipt(Version(first), head.incarnation, replayed=True, current=current)


def _holds(log: bytes, lines: bytes) -> bool:
    return b"\n" + lines in b"\n" + log


def _first_with(store: Store, path: str, version: int, lines: bytes) -> int:
    """The first version of the run up to ``version`` that holds ``lines``."""
    while version > 1:
        try:
            body = insist(lambda n=version - 1: store.fetch(path, n)).body  # type: ignore[misc]  # a default binds the loop's value; mypy cannot infer it
        except NotFoundError:
            break  # a tombstone: an earlier life
        if not _holds(body, lines):
            break
        version -= 1
    return version
