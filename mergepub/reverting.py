"""Undoing one publish: the three-way merge that takes a version's change out of the head, published at the head.

A loop over ``publishing``: it decides and returns values, and prints nothing.
"""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

from mergepub import publishing
from mergepub.documents import EVENTS, Document
from mergepub.errors import BinaryBodyError, InputError, NotFoundError
from mergepub.outcomes import Contention, MergeFacts, Mismatch, Outcome, Overlap, Published, Refused

if TYPE_CHECKING:
    from mergepub.merge import Merged
    from mergepub.publishing import MergeOptions
    from mergepub.stores.contract import Store


def revert(
    store: Store,
    path: str,
    number: int,
    *,
    retries: int = 3,
    author: str = "",
    message: str | None = None,
    merge_options: MergeOptions = publishing.DEFAULT_MERGE,
) -> Outcome:
    """Take what version ``number`` changed out of the head, and publish that.

    The merge has version ``number`` as base, the head as ours and the version before as theirs. Where the change and
    later ones overlap, nothing is published and the marked body comes back. A head that moves meanwhile is merged with
    anew, until ``retries`` (1 or more) attempts have lost the race. Reverting what is reverted already changes nothing.

    Raises:
        InputError: version 1 or the first of a new life, which have nothing before them; bad path or retries.
        NotFoundError: no such document or version.
        UnavailableError: the store gave no clear answer.
    """
    if retries < 1:
        raise InputError(f"{retries} retries leave no attempt to merge", hint="use 1 or more, 3 by default")
    undone = _undone(store, path, number)
    before = _before(store, path, undone)
    current = number
    for _ in range(retries):
        head = _head(store, path, number)
        if isinstance(head, Refused):
            return head
        merged = _merged(undone, head, before, merge_options)
        if isinstance(merged, Refused):
            return merged
        if merged.conflicts:
            return _overlap(number, head, merged)
        outcome = _publish(store, head, merged, author, f"Revert version {number}" if message is None else message)
        if isinstance(outcome, Mismatch):
            current = outcome.current_version
            continue
        return _facts(outcome, number, head, merged)
    return Contention(number, current, retries)


def _undone(store: Store, path: str, number: int) -> Document:
    if number < 1:
        raise InputError(f"{number} is no version: they count from 1", hint=f"see them: mergepub log {quote(path)}")
    try:
        return publishing.fetch(store, path, number).document
    except NotFoundError as missing:
        if missing.tombstone != number:
            raise
        raise InputError(
            f"version {number} of {path} is its deletion, which is not reverted",
            hint=f"mergepub fetch {quote(f'{path}/v{number - 1}')} --body-only | "
            f"mergepub publish {quote(path)} --expected-version 0",
        ) from None


def _before(store: Store, path: str, undone: Document) -> Document:
    """The version before, of the same life of the document."""
    number = _number(undone)
    if number > 1:
        try:
            return publishing.fetch(store, path, number - 1).document
        except NotFoundError as missing:
            if missing.tombstone is None:
                raise
    raise InputError(
        f"version {number} created {path}, so there is nothing before it to go back to",
        hint=f"delete the document: mergepub delete {quote(path)} --expected-version {undone.current or number}",
    )


def _head(store: Store, path: str, number: int) -> Document | Refused:
    try:
        return publishing.fetch(store, path).document
    except NotFoundError as missing:
        if missing.tombstone is None:
            raise
        return Refused(number, missing.tombstone, "deleted")


def _merged(undone: Document, head: Document, before: Document, options: MergeOptions) -> Merged | Refused:
    from mergepub.merge import diff3  # noqa: PLC0415 - nothing is merged before everything is at hand

    if head.incarnation != undone.incarnation:
        return _refused(undone, head, "recreated")
    if head.kind == EVENTS:
        return _refused(undone, head, "events")
    try:
        return diff3(
            undone.body,
            head.body,
            before.body,
            adjacent=options.adjacent,
            granularity=options.granularity,
            style=options.style,
            labels=(f"v{_number(head)}", f"v{_number(undone)}", f"v{_number(before)}"),
            marker_size=options.marker_size,
            engine=options.engine,
        )
    except BinaryBodyError:
        return _refused(undone, head, "binary")


def _refused(undone: Document, head: Document, reason: str) -> Refused:
    return Refused(_number(undone), _number(head), reason)


def _overlap(number: int, head: Document, merged: Merged) -> Overlap:
    unterminated = tuple(merged.unterminated)
    return Overlap(number, _number(head), merged.conflicts, merged.marker_size, merged.body, unterminated)


def _publish(store: Store, head: Document, merged: Merged, author: str, message: str) -> Outcome:
    at = _number(head)
    return publishing.publish(store, head.path, merged.body, at, author=author, message=message, allow_markers=True)


def _facts(outcome: Outcome, number: int, head: Document, merged: Merged) -> Outcome:
    """Say what was merged, where the head was another version than the one that was undone."""
    if isinstance(outcome, Published) and _number(head) != number:
        return replace(outcome, merge=MergeFacts(number, number - 1), body=merged.body)
    return outcome


def _number(document: Document) -> int:
    number = document.version.number
    if number is None:
        raise InputError("this store does not number its versions, so there is none to revert by number")
    return number
