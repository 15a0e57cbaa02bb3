"""The way from the store to FILE: pull, and fetch into a file. Decides what may be replaced; prints nothing."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.checkout import Base, Checkout, Clash, FileChangedError, Local, Record
from mergepub.checkout.replacing import replace_file
from mergepub.documents import EVENTS, digest_of
from mergepub.errors import BinaryBodyError, CheckoutError
from mergepub.outcomes import Overlap, Refused
from mergepub.publishing import DEFAULT_MERGE, Favour, MergeOptions
from mergepub.tracking.arrivals import settle
from mergepub.tracking.sending import unless_stale
from mergepub.tracking.work import Work, block_line, exactly, head_of, is_exactly, number_of, refuse_conflict, ways_out
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.documents import Document
    from mergepub.merge import Merged
    from mergepub.stores.contract import Store

ATTEMPTS = 3  # how often a FILE that is saved in the very moment of its exchange is merged anew


@dataclass(frozen=True, slots=True)
class Pulled:
    """A pull that needs nobody: FILE contains version ``version`` now.

    ``changed``: FILE got other bytes; ``edited``: it holds edits that are not published.
    """

    version: int
    changed: bool
    edited: bool


def pull_file(
    work: Work, *, options: MergeOptions = DEFAULT_MERGE, stale: bool = False, allow_revert: bool = False
) -> Pulled | Overlap | Refused:
    """Merge the head into FILE; markers, and FILE in conflict, where the edits overlap.

    Raises:
        CheckoutError: FILE is in conflict already, undoes what was last pulled, or is being saved all the time.
        NotFoundError: the document never existed.
        UnavailableError: the store gave no clear answer; FILE is as it was.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _pull(work, options, stale=stale, allow_revert=allow_revert)
        except FileChangedError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _pull(work: Work, options: MergeOptions, *, stale: bool, allow_revert: bool) -> Pulled | Overlap | Refused:
    ours = work.read()
    refuse_conflict(work.local, work.record, ours)
    settle(work)
    head = head_of(work.store, work.record)
    if isinstance(head, Refused):
        return head
    base = unless_stale(work, ours, stale=stale, allow_revert=allow_revert)
    number = number_of(head)
    if is_exactly(base, number):
        if ours == head.body and work.record.brought:
            work.save(work.record.all_published(base))
        return Pulled(number, changed=False, edited=ours != head.body)
    merged = merge_with(work, base, ours, head, options)
    if isinstance(merged, Refused):
        return merged
    if merged.conflicts:
        return mark(work, ours, replace(work.record, base=base), head, merged)
    before = replace(work.record, base=base)
    after = replace(before, base=exactly(head), brought=before.bringing(ours, merged.body))
    if merged.body == head.body:
        after = after.all_published(after.base)
    work.checkout.store(after.file, head.body)
    replace_file(work.checkout, work.local, ours, merged.body, after)
    work.record = after
    return Pulled(number, changed=merged.body != ours, edited=merged.body != head.body)


def merge_with(
    work: Work, base: Base, ours: bytes, head: Document, options: MergeOptions, *, favour: Favour | None = None
) -> Merged | Refused:
    """The three-way merge of FILE and the head."""
    from mergepub.merge import diff3  # noqa: PLC0415 - most pulls have nothing to merge

    before = work.body(base.digest)
    if head.kind == EVENTS and ours != before:
        return Refused(base.version, number_of(head), "events")
    try:
        return diff3(
            before,
            ours,
            head.body,
            adjacent=options.adjacent,
            granularity=options.granularity,
            style=options.style,
            favour=favour,
            union_first="theirs",
            labels=options.labels,
            marker_size=options.marker_size,
            engine=options.engine,
        )
    except BinaryBodyError:
        return Refused(base.version, number_of(head), "binary")


def mark(work: Work, ours: bytes, record: Record, head: Document, merged: Merged) -> Overlap:
    """Write the marked body to FILE, which is in conflict from now on: base, both sides and theirs' version stay."""
    overlap = Overlap(
        record.base.version,
        number_of(head),
        merged.conflicts,
        merged.marker_size,
        merged.body,
        tuple(merged.unterminated),
    )
    enter_conflict(work, ours, record, head, overlap, here=ours)
    return overlap


def enter_conflict(
    work: Work, ours: bytes, record: Record, head: Document, overlap: Overlap, *, here: bytes | None
) -> None:
    """Replace FILE, which holds ``here``, by the marked body of ``overlap``, made of ``ours`` and ``head``."""
    marked = overlap.body
    line = block_line(marked, overlap.marker_size) or 1
    clash = Clash(digest_of(ours), exactly(head), digest_of(marked), overlap.marker_size, line)
    after = replace(record, clash=clash)
    work.checkout.store(after.file, ours, head.body)
    replace_file(work.checkout, work.local, here, marked, after)
    work.record = after


# ── fetch into a file ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Taken:
    """A document that was fetched into FILE; ``kept`` names what was taken out of it and is kept for good."""

    kept: tuple[str, ...] = ()


def check_replaceable(store: Store, checkout: Checkout, local: Local, document: Document) -> None:
    """Refuse to replace a FILE that holds anything that is nowhere else, or is another document.

    Raises:
        CheckoutError: FILE differs from its base, is in conflict, is tracked as another document, or is not tracked and
            holds other bytes.
    """
    here, record = local.read(), checkout.load(local)
    if here is not None and record and (record.store, record.path) != (store.url, document.path):
        raise _refused(local, document, f"is tracked as {record.path} in {record.store}", merges=False)
    if here is None or (here == document.body and not (record and record.clash)):
        return
    if record is None:
        raise _refused(local, document, "is not tracked, and holds other bytes", tracked=False)
    if record.clash:
        raise _refused(local, document, f"is in conflict with version {record.clash.theirs.version}")
    if digest_of(here) != record.base.digest:
        raise _refused(local, document, f"was edited since version {record.base.version}")


def _refused(local: Local, document: Document, why: str, *, tracked: bool = True, merges: bool = True) -> CheckoutError:
    name = quote(local.name)
    replacing = f"mergepub fetch {quote(document.path)} -o {name} --force"
    merging = f"merge: mergepub pull {name}" if tracked else ways_out(document.path, local.name)
    if not merges:
        merging = "name another file"
    return CheckoutError(
        f"{local.name} {why}; it was left as it is",
        reason="edited",
        hint=f"to replace it, what it holds being kept in .mergepub/: {replacing}; {merging}",
    )


def fetch_into(store: Store, checkout: Checkout, local: Local, document: Document, *, force: bool = False) -> Taken:
    """Make ``document`` the content of FILE, tracked from now on. The lock is held.

    Raises:
        CheckoutError: FILE holds something that is nowhere else, and ``force`` is False.
        OutputError: the disk refused.
    """
    checkout.check_place(local)
    if not force:
        check_replaceable(store, checkout, local, document)
    here, before = local.read(), _readable(checkout, local, force=force)
    if before is not None and (before.store, before.path) == (store.url, document.path):
        before = _settled(store, checkout, local, before)
    kept = _keep(checkout, local, before, here, document) if force else ()
    same = before is not None and (before.store, before.path, before.base.incarnation) == (
        store.url,
        document.path,
        document.incarnation,
    )
    record = Record(checkout.relative(local), store.url, document.path, exactly(document))
    if same and before is not None and here is not None:
        record = replace(record, brought=before.bringing(here, document.body))
        if here in (document.body, checkout.body(before, before.base.digest)):
            record = record.all_published(record.base)
        if not force:  # what was sent may still arrive, and FILE is what became of it since
            record = replace(record, sent=before.sent)
    checkout.store(record.file, document.body)
    replace_file(checkout, local, here, document.body, record)
    return Taken(kept)


def _settled(store: Store, checkout: Checkout, local: Local, record: Record) -> Record:
    """The record once it is known whether what was sent has arrived; after this nobody asks any more."""
    work = Work(store, checkout, local, record)
    settle(work)
    return work.record


def _readable(checkout: Checkout, local: Local, *, force: bool) -> Record | None:
    try:
        return checkout.load(local)
    except CheckoutError:
        if not force:
            raise
        return None  # a damaged record: this is the way out of it


def _keep(
    checkout: Checkout, local: Local, record: Record | None, here: bytes | None, document: Document
) -> tuple[str, ...]:
    """Keep what is taken out of FILE, and both sides of a conflict."""
    file = checkout.relative(local)
    kept = []
    if here is not None and here != document.body and (record is None or digest_of(here) != record.base.digest):
        kept.append(checkout.keep(file, here))
    if record and record.clash:
        kept.append(checkout.keep(file, checkout.body(record, record.clash.ours), "ours"))
        kept.append(checkout.keep(file, checkout.body(record, record.clash.theirs.digest), "theirs"))
    return tuple(kept)
