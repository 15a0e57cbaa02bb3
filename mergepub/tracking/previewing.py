"""Looking without touching: what a push would do, and how tracked files stand. Writes nothing, prints nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from mergepub import publishing
from mergepub.checkout import queue
from mergepub.checkout.records import NO_DOCUMENT
from mergepub.checkout.replacing import pending
from mergepub.documents import digest_of
from mergepub.errors import NotFoundError
from mergepub.outcomes import Mismatch, Overlap, Refused
from mergepub.publishing import DEFAULT_MERGE, HeldBase
from mergepub.tracking.pulling import merge_with
from mergepub.tracking.pushing import Pushed, base_for, newest
from mergepub.tracking.stale import judge, refusal, warning
from mergepub.tracking.work import Work, block_line, head_of, is_exactly, number_of, refuse_conflict
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.checkout import Base, Checkout, Local, Record
    from mergepub.documents import Document
    from mergepub.stores.contract import BranchStore, Store
    from mergepub.tracking.sending import How

State = Literal["unchanged", "edited", "newer", "both", "conflict", "missing", "gone"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How one tracked file stands.

    ``state``: "unchanged"; "edited" here; "newer" there; "both", and then ``mergeable`` says whether it would merge;
    "conflict"; "missing" here; "gone" there (deleted, created anew, or no longer what it was: ``reason``). ``version``
    is that of the base, ``current`` the head's. ``line``: where FILE's first conflict block starts. ``unanswered``:
    something was sent and no answer came; ``interrupted``: a change of FILE was begun and neither finished nor undone.
    ``queued``: a publish waits in the local queue; ``unresolved``: branches of the document that nobody decided about.
    ``moved_to``: what a file that is missing looks to be called now.
    """

    file: str
    path: str
    store: str
    state: State
    version: int
    current: int | None = None
    mergeable: bool | None = None
    contained: bool = False
    reason: str | None = None
    line: int | None = None
    unanswered: bool = False
    interrupted: bool = False
    queued: bool = False
    unresolved: int = 0
    moved_to: str | None = None


def standing(store: Store | None, checkout: Checkout, record: Record) -> Standing:
    """How one tracked file stands; without a store, as far as that is known here.

    Raises:
        UnavailableError: the store gave no clear answer.
    """
    local = checkout.local(record)
    ours = local.read()
    found = _seen_here(record, local, ours)
    if any(intent.file == record.file for intent in pending(checkout)):
        found = replace(found, interrupted=True)
    waiting = queue.last_of(checkout, record.store, record.path) is not None
    found = replace(found, queued=waiting)
    if store is None:
        return found
    found = _seen_there(Work(store, checkout, local, record), found, ours)
    return found if found.current is None else replace(found, unresolved=_unresolved(store, record.path))


def _unresolved(store: Store, path: str) -> int:
    if not store.capabilities.branches:
        return 0
    found = cast("BranchStore", store).unresolved(path, limit=1)
    return next((each.count for each in found if each.path == path), 0)


def _seen_here(record: Record, local: Local, ours: bytes | None) -> Standing:
    base = record.base
    found = Standing(
        local.name,
        record.path,
        record.store,
        "unchanged",
        base.version,
        contained=base.contained,
        unanswered=bool(record.sent),
    )
    if record.clash:
        line = block_line(ours or b"", record.clash.marker_size)
        return replace(found, state="conflict", current=record.clash.theirs.version, line=line)
    if ours is None:
        return replace(found, state="missing")
    edited = base == NO_DOCUMENT or digest_of(ours) != base.digest
    return replace(found, state="edited" if edited else "unchanged")


def _seen_there(work: Work, found: Standing, ours: bytes | None) -> Standing:
    base = work.record.base
    current = newest(work.store, work.record.path)
    found = replace(found, current=current)
    if found.state in ("conflict", "missing") or ours is None:
        return found
    if current is None:
        return replace(found, state="gone", reason="not found") if base.version else found
    if is_exactly(base, current):
        return found
    head = head_of(work.store, work.record)
    if isinstance(head, Refused):
        return replace(found, state="gone", reason=head.reason)
    if found.state == "unchanged":
        return replace(found, state="newer" if head.body != ours else "unchanged")
    merged = merge_with(work, base, ours, head, DEFAULT_MERGE)
    return replace(found, state="both", mergeable=not isinstance(merged, Refused) and not merged.conflicts)


def preview_push(store: Store, checkout: Checkout, local: Local, path: str, how: How) -> Pushed:
    """What ``push_file`` would come to.

    Raises:
        MergepubError: what it would raise.
    """
    ours = local.read()
    record = checkout.load(local)
    if record is None and ours is not None:
        start = base_for(store, checkout, local, path, ours)
        if isinstance(start, Refused):
            return Pushed(local.name, path, "conflicted", start, version=start.current_version)
        record = start[0]
        work = _Borrowed(store, checkout, local, record, start[1])
    elif record is not None:
        work = _Borrowed(store, checkout, local, record)
    else:
        raise NotFoundError(f"there is no file {local.name}")
    body = work.read()
    refuse_conflict(local, record, body)
    if record.base != NO_DOCUMENT and digest_of(body) == record.base.digest:
        return Pushed(local.name, path, "unchanged", version=record.base.version, newer=_newer(work))
    return _preview(work, body, how)


class _Borrowed(Work):
    """A file at hand whose record is on disk nowhere yet: its base is at hand instead."""

    def __init__(
        self, store: Store, checkout: Checkout, local: Local, record: Record, base: bytes | None = None
    ) -> None:
        super().__init__(store, checkout, local, record)
        self._base = base

    def body(self, digest: str) -> bytes:
        """The bytes that the record names by ``digest``."""
        return super().body(digest) if self._base is None else self._base


def _newer(work: Work) -> int | None:
    head, base = newest(work.store, work.record.path), work.record.base
    return head if head and (head > base.version or base.contained) else None


def _preview(work: Work, ours: bytes, how: How) -> Pushed:
    name, path = work.local.name, work.record.path
    base, warnings = _judged(work, ours, how)
    notices = (*_waiting(work), *warnings)
    held = HeldBase(work.body(base.digest), base.incarnation, base.contained)
    publishing.check_body(work.store, path, ours, base.version, allow_markers=how.allow_markers, base=held)
    if base == NO_DOCUMENT and newest(work.store, path) is None:
        return Pushed(name, path, "published", version=1, notices=notices)
    head = head_of(work.store, work.record)
    if isinstance(head, Refused):
        return Pushed(name, path, "conflicted", head, version=head.current_version, notices=notices)
    if is_exactly(base, number_of(head)):
        return Pushed(name, path, "published", version=number_of(head) + 1, notices=notices)
    return replace(_preview_merge(work, base, ours, head, how), notices=notices)


def _waiting(work: Work) -> tuple[str, ...]:
    if queue.last_of(work.checkout, work.record.store, work.record.path) is None:
        return ()
    return (f"what waits of {work.record.path} in the queue would be sent first, so more may come of it than is said",)


def _judged(work: Work, ours: bytes, how: How) -> tuple[Base, tuple[str, ...]]:
    """What FILE would be merged from, and the warnings about it."""
    base = work.record.base
    if how.allow_revert:
        return base, ()
    verdict = judge(work.record, ours, work.body)
    if verdict.base and not how.stale:
        raise refusal(work.local, work.record)
    return verdict.base or base, (warning(work.local, verdict.lines),) if verdict.lines else ()


def _preview_merge(work: Work, base: Base, ours: bytes, head: Document, how: How) -> Pushed:
    name, path, number = work.local.name, work.record.path, number_of(head)
    if ours == head.body and not base.contained and number == base.version + 1:
        return Pushed(name, path, "published", version=number)  # the store takes it for a repeated publish
    if how.on_conflict == "fail" and not (base.contained and base.version == number):
        return Pushed(name, path, "conflicted", Mismatch(base.version, number), version=number)
    merged = merge_with(work, base, ours, head, how.merge_options, favour=how.favour)
    if isinstance(merged, Refused):
        return Pushed(name, path, "conflicted", merged, version=number)
    if merged.conflicts:
        unterminated = tuple(merged.unterminated)
        overlap = Overlap(base.version, number, merged.conflicts, merged.marker_size, merged.body, unterminated)
        return Pushed(name, path, "conflicted", overlap, version=number, newer=number)
    if merged.body == head.body:
        return Pushed(name, path, "unchanged", version=number, updated=how.update and ours != head.body)
    return Pushed(name, path, "merged", version=number + 1, updated=how.update)
