"""Publishing a tracked FILE: from the remembered base, remembered while it is on its way, written back if asked.

What the base becomes is decided here: never anything that FILE does not contain. Prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

from mergepub import publishing
from mergepub.calm import when_calm
from mergepub.checkout import Base, FileChangedError, Sent
from mergepub.checkout.queue import may_wait
from mergepub.checkout.replacing import replace_file
from mergepub.documents import digest_of
from mergepub.errors import InputError, OutputError, RejectedError, UnresolvedMarkersError
from mergepub.outcomes import Outcome, Published
from mergepub.publishing import DEFAULT_MERGE, Favour, HeldBase, Listener, MergeOptions, OnConflict
from mergepub.tracking.arrivals import as_answer, settle
from mergepub.tracking.stale import judge, refusal, warning
from mergepub.tracking.work import number_of, refuse_conflict
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.documents import Document
    from mergepub.stores.contract import Store
    from mergepub.tracking.work import Work


@dataclass(frozen=True, slots=True)
class How:
    """How to publish; the first lines have the same meaning as in ``publishing.publish``.

    ``stale``: FILE comes from an editor that was opened before the last pull, merge it from the text before that.
    ``allow_revert``: publish FILE though it undoes what was pulled. ``update``: write a merged body back to FILE.
    ``rebase_on``: FILE was built on this version, whatever is remembered. ``source``, told the bytes, names the commit
    that holds them, or nothing.
    """

    on_conflict: OnConflict = "merge"
    retries: int = 3
    author: str = ""
    message: str = ""
    merge_options: MergeOptions = DEFAULT_MERGE
    favour: Favour | None = None
    allow_markers: bool = False
    source: Callable[[bytes], str | None] | None = None
    on_event: Listener | None = field(default=None, compare=False)
    stale: bool = False
    allow_revert: bool = False
    update: bool = True
    rebase_on: int | None = None


def send(store: Store, path: str, body: bytes, expected: int, how: How, **more: Any) -> Outcome:
    """``publishing.publish`` as ``how`` says; ``more`` is what that does not say.

    Raises:
        MergepubError: as there.
    """
    return publishing.publish(
        store,
        path,
        body,
        expected,
        on_conflict=how.on_conflict,
        retries=how.retries,
        author=how.author,
        message=how.message,
        merge_options=how.merge_options,
        favour=how.favour,
        allow_markers=how.allow_markers,
        source=how.source(body) if how.source else None,
        on_event=how.on_event,
        **more,
    )


def publish_file(work: Work, how: How) -> Outcome:
    """Publish FILE, an edit of the remembered base.

    Whatever the outcome, the remembered base is afterwards one that FILE contains, and nothing that was sent is
    forgotten before it is answered.

    Raises:
        CheckoutError: FILE is in conflict, or undoes what was last pulled into it.
        BranchError: an earlier text of it waits in the queue, and is stopped.
        InputError: FILE is gone, or as ``publishing.publish``.
        UnavailableError: as there; the next command finds out whether it arrived.
    """
    ours = when_calm(work.local.target, work.read)
    refuse_conflict(work.local, work.record, ours)
    if may_wait(work.checkout):
        send_waiting(work)
    arrival = settle(work)
    if arrival and arrival[0].ours == digest_of(ours):
        outcome: Outcome = as_answer(work, arrival)
    else:
        base = choose_base(work, ours, how)
        work.last = (ours, base)
        outcome = _send(work, ours, base, how)
    if how.update and isinstance(outcome, Published):
        write_back(work, ours, outcome)
    return outcome


def send_waiting(work: Work) -> None:
    """Send what waits of the document in the local queue: FILE was edited after that, and does not overtake it.

    Raises:
        BranchError: it is stopped.
        UnavailableError: the store cannot be reached.
    """
    from mergepub.queueing import send_former  # noqa: PLC0415 - most checkouts have no queue

    if send_former(work.checkout, work.store, work.record.path):
        work.record = work.checkout.load(work.local) or work.record


def choose_base(work: Work, ours: bytes, how: How) -> Base:
    """What FILE is to be merged from: the remembered base, unless the caller or an old editor says otherwise.

    Raises:
        CheckoutError: FILE undoes all that was last brought in, and nobody said what that means.
    """
    if how.rebase_on is not None:
        return _rebased(work, how.rebase_on)
    return unless_stale(work, ours, stale=how.stale, allow_revert=how.allow_revert)


def unless_stale(work: Work, ours: bytes, *, stale: bool, allow_revert: bool) -> Base:
    """The remembered base; for a FILE that undoes what was last brought in, what the flags say.

    Raises:
        CheckoutError: it does, and neither is set.
    """
    if allow_revert:
        return work.record.base
    verdict = judge(work.record, ours, work.body)
    if verdict.lines:
        work.notices.append(warning(work.local, verdict.lines))
    if verdict.base is None:
        return work.record.base
    if not stale:
        raise refusal(work.local, work.record)
    return verdict.base


def _rebased(work: Work, version: int) -> Base:
    if version == 0:
        return Base(0, "", digest_of(b""))
    document = publishing.fetch(work.store, work.record.path, version).document
    work.checkout.store(work.record.file, document.body)
    return Base(version, document.incarnation, document.digest)


def _send(work: Work, ours: bytes, base: Base, how: How) -> Outcome:
    sending = _Sending(work, ours, base)
    try:
        held = HeldBase(work.body(base.digest), base.incarnation, base.contained, sending.ancestor)
        outcome = send(work.store, work.record.path, ours, base.version, how, base=held)
    except (RejectedError, UnresolvedMarkersError) as error:
        if isinstance(error, UnresolvedMarkersError) or error.limit is not None:
            sending.refused()
        raise
    sending.answered(outcome)
    return outcome


class _Sending:
    """One publish on its way: its bytes are on disk before the first request, and named until they are answered."""

    def __init__(self, work: Work, ours: bytes, base: Base) -> None:
        self.work = work
        self.ours = ours
        self.base = base
        self.sent = Sent(digest_of(ours), base, base.version, work.record.serial)
        self.again = self.sent in work.record.sent
        earlier = tuple(sent for sent in work.record.sent if sent != self.sent)
        work.save(replace(work.record, sent=(*earlier, self.sent)), ours)

    def ancestor(self, head: Document) -> bytes:
        """The common ancestor of FILE and ``head``, found out before each merge; what is sent next is sent at ``head``.

        Something sent earlier may arrive as late as now; then it is the nearer ancestor.
        """
        before = self.work.record.base
        if settle(self.work, but=self.sent) and self.base == before:
            self.base = self.work.record.base
        self._now_at(number_of(head))
        return self.work.body(self.base.digest)

    def _now_at(self, version: int) -> None:
        if version != self.sent.expected:
            before, self.sent = self.sent, replace(self.sent, expected=version)
            record = self.work.record
            self.again = self.sent in record.sent
            self.work.save(replace(record, sent=tuple(self.sent if s == before else s for s in record.sent)))

    def answered(self, outcome: Outcome) -> None:
        """Take the answer in: what was published is the base, marked as contained where it was merged."""
        record = self.work.record
        if isinstance(outcome, Published):
            merged = outcome.body is not None and outcome.body != self.ours
            incarnation = outcome.incarnation or self.base.incarnation
            base = Base(outcome.version, incarnation, self.sent.ours, contained=merged)
            # Where no version was made, what was sent earlier may still arrive.
            still = tuple(sent for sent in self._earlier() if sent.expected >= outcome.version)
            self.work.save(replace(record.published(base), sent=still), self.ours)
        else:
            self.work.save(replace(record, sent=self._earlier()))

    def refused(self) -> None:
        """Forget what was refused for its size or its markers: it was not written. What was sent alike before stays."""
        if not self.again:
            self.work.save(replace(self.work.record, sent=self._earlier()))

    def _earlier(self) -> tuple[Sent, ...]:
        return tuple(sent for sent in self.work.record.sent if sent != self.sent)


def write_back(work: Work, ours: bytes, outcome: Published) -> bool:
    """Write the merged body to FILE, which held ``ours`` when it was published; then that version is the base.

    False where FILE was saved meanwhile: it and the base stay as they are.
    """
    merged = outcome.body
    if merged is None or not work.record.base.contained:
        return True
    record = work.record
    base = Base(record.base.version, record.base.incarnation, digest_of(merged))
    after = replace(record, base=base, brought=record.bringing(ours, merged))
    try:
        replace_file(work.checkout, work.local, ours, merged, after)
    except FileChangedError:
        work.notices.append(f"{work.local.name} was saved meanwhile, so the merged text was not written to it")
        return False
    except OutputError as error:  # what was published, was
        work.notices.append(f"{error.message}; the merged text was not written back, mergepub pull does it")
        return False
    work.record = after
    return True


def check_version(work: Work, expected: int | None) -> None:
    """Hold an expected version that was typed against what is remembered.

    Raises:
        CheckoutError: FILE is in conflict.
        InputError: it is another version than FILE was made from.
    """
    refuse_conflict(work.local, work.record, work.local.read())
    known = work.record.base
    if expected in (None, known.version):
        return
    raise InputError(
        f"{work.local.name} was made from version {known.version} of {work.record.path}, not from version {expected}",
        hint=f"--rebase-on says that it was built on version {expected}; mergepub resolve "
        f"ends a conflict; to merge the head into it: mergepub pull {quote(work.local.name)}",
    )
