"""Push: publish what changed in files; what one of them comes to stops no other. Prints nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Literal

from mergepub import publishing
from mergepub.checkout import Checkout, Local, Record
from mergepub.checkout.records import NO_DOCUMENT
from mergepub.documents import digest_of
from mergepub.errors import InputError, MergepubError, NotFoundError
from mergepub.outcomes import Outcome, Published, Refused
from mergepub.tracking.clones import Commits, base_from_git
from mergepub.tracking.sending import How, publish_file
from mergepub.tracking.work import Work, at_hand, exactly, number_of
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

Came = Literal["published", "merged", "unchanged", "conflicted", "failed"]


@dataclass(frozen=True, slots=True)
class Pushed:
    """What pushing one file came to.

    ``outcome`` is what the publish answered, None where nothing was sent; ``error`` what went wrong. ``version`` is
    the newest version that FILE is in, or would be merged with; ``newer`` the head where that is not pulled yet.
    ``updated``: the merged text was written to FILE. ``notices`` are sentences for the person.
    """

    file: str
    path: str
    came: Came
    outcome: Outcome | None = None
    error: MergepubError | None = None
    version: int | None = None
    newer: int | None = None
    updated: bool = False
    notices: tuple[str, ...] = field(default=(), compare=False)


def push_files(
    store: Store, checkout: Checkout, pairs: Iterable[tuple[Local, str]], how: How, *, dry_run: bool = False
) -> Iterator[Pushed]:
    """Publish every (file, path) pair whose file changed here; all files belong to ``checkout``, whose lock is held.

    A file that nothing is remembered of creates its document. A conflict or an error of one of them is its own alone.
    ``dry_run`` says what would happen, writes nothing anywhere and needs no lock.
    """
    from mergepub.tracking.previewing import preview_push  # noqa: PLC0415 - it needs this module's values

    commits = Commits()
    for local, path in pairs:
        one = replace(how, source=how.source or partial(commits.source_of, local))
        try:
            if dry_run:
                yield preview_push(store, checkout, local, path, one)
            else:
                yield push_file(store, checkout, local, path, one)
        except MergepubError as error:
            came: Came = "conflicted" if error.exit_status == 3 else "failed"
            yield Pushed(local.name, path, came, error=error)


def push_file(store: Store, checkout: Checkout, local: Local, path: str, how: How) -> Pushed:
    """Publish one file if it changed here.

    Raises:
        MergepubError: as ``publish_file``; FILE and what is remembered are then as they were.
    """
    if checkout.load(local) is None:
        refused = adopt(store, checkout, local, path)
        if refused:
            return Pushed(local.name, path, "conflicted", refused, version=refused.current_version)
    work = at_hand(store, checkout, local)
    if work.record.path != path:
        raise InputError(
            f"{local.name} is tracked as {work.record.path}, not as {path}",
            hint=f"track the other document in it: mergepub fetch {quote(path)} -o {quote(local.name)} --force",
        )
    if is_unchanged(work):
        return _left_alone(work)
    return _came_to(work, publish_file(work, how))


def is_unchanged(work: Work) -> bool:
    """Whether FILE has nothing that is not published, as far as is known here."""
    record = work.record
    waiting = record.sent or record.clash or record.base == NO_DOCUMENT
    return not waiting and digest_of(work.read()) == record.base.digest


def _left_alone(work: Work) -> Pushed:
    head = newest(work.store, work.record.path)
    base = work.record.base
    newer = head if head and (head > base.version or base.contained) else None
    return Pushed(
        work.local.name, work.record.path, "unchanged", version=base.version, newer=newer, notices=tuple(work.notices)
    )


def newest(store: Store, path: str) -> int | None:
    """The number of the head, a tombstone's too; None where there never was a document."""
    try:
        return next((row.version for row in store.versions(path, limit=1)), None)
    except NotFoundError:
        return None


def _came_to(work: Work, outcome: Outcome) -> Pushed:
    name, path, base = work.local.name, work.record.path, work.record.base
    notices = tuple(work.notices)
    if not isinstance(outcome, Published):
        current = getattr(outcome, "current_version", None)
        return Pushed(name, path, "conflicted", outcome, version=current, notices=notices)
    came: Came = "merged" if outcome.merge else "published"
    if outcome.unchanged:
        came = "unchanged"
    newer = outcome.current_version
    updated = outcome.body is not None and not base.contained
    return Pushed(name, path, came, outcome, version=outcome.version, newer=newer, updated=updated, notices=notices)


# ── files that nothing is remembered of ─────────────────────────────────────────────────────────────────────────────


def adopt(store: Store, checkout: Checkout, local: Local, path: str) -> Refused | None:
    """Start to track FILE in the document ``path``: from nothing, from the same text, or from git's history.

    Returns why that cannot be: there is such a document, and nothing tells what FILE was made from.

    Raises:
        InputError: FILE cannot be read.
    """
    body = local.read()
    if body is None:
        raise InputError(f"there is no file {local.name}", hint="give the name of a file")
    record = base_for(store, checkout, local, path, body)
    if isinstance(record, Refused):
        return record
    checkout.save(*record)
    return None


def base_for(store: Store, checkout: Checkout, local: Local, path: str, body: bytes) -> tuple[Record, bytes] | Refused:
    """The record to start with, and the bytes of its base; else why there is none. Writes nothing."""
    record = Record(checkout.relative(local), store.url, path, NO_DOCUMENT)
    try:
        head = publishing.fetch(store, path).document
    except NotFoundError as missing:
        return (record, b"") if missing.tombstone is None else Refused(0, missing.tombstone, "deleted")
    if head.body == body:
        return replace(record, base=exactly(head)), body
    found = base_from_git(store, local, path)
    return (replace(record, base=found[0]), found[1]) if found else Refused(0, number_of(head), "no-base")
