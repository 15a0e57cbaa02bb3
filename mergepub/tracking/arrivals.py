"""Lost answers: finding out whether what was sent and never answered has arrived. Prints nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from mergepub import publishing
from mergepub.checkout import Base, Record, Sent
from mergepub.errors import NotFoundError
from mergepub.outcomes import MergeFacts, Published

if TYPE_CHECKING:
    from mergepub.documents import Revision
    from mergepub.stores.contract import Store
    from mergepub.tracking.work import Work

Arrival = tuple[Sent, "Revision"]


def settle(work: Work, *, but: Sent | None = None) -> Arrival | None:
    """Look whether what was sent has arrived; then it is the base. What can still arrive stays remembered.

    ``but`` is being sent right now: it stays, whatever the history says.
    """
    waiting = [sent for sent in work.record.sent if sent != but]
    if not waiting:
        return None
    rows = history_above(work.store, work.record.path, min(sent.expected for sent in waiting))
    arrival = find_arrival(waiting, rows)
    still = tuple(sent for sent in work.record.sent if sent == but or _can_arrive(sent, rows))
    record, bodies = work.record, list[bytes]()
    if arrival:
        record, bodies = _arrived(work, arrival)
    if record != work.record or still != record.sent:
        work.save(replace(record, sent=still), *bodies)
    return arrival


def _can_arrive(sent: Sent, rows: list[Revision]) -> bool:
    """Whether the store would still take it: its head is what it was sent at; for a first version, there is none."""
    if not rows:
        return True
    return sent.expected >= rows[0].version if sent.expected else rows[0].deleted


def history_above(store: Store, path: str, version: int) -> list[Revision]:
    """The versions above ``version``, newest first; for version 0, those of the present incarnation."""
    try:
        rows = store.versions(path)
        if version:
            return list(takewhile(lambda row: row.version > version, rows))
        found = list(rows)
    except NotFoundError:
        return []
    return [row for row in found if row.incarnation == found[0].incarnation]


def find_arrival(waiting: Iterable[Sent], rows: list[Revision]) -> Arrival | None:
    """The newest version that one of those is in, as itself or merged."""
    first = rows[-1].version if rows else 0
    for row in rows:
        for sent in waiting:
            if _is(sent, row, first):
                return sent, row
    return None


def _is(sent: Sent, row: Revision, first: int) -> bool:
    if row.deleted or (sent.base.version and row.incarnation != sent.base.incarnation):
        return False
    if row.digest == sent.ours and row.version == (sent.expected + 1 if sent.expected else first):
        return True
    made = row.merged_from
    return made is not None and (made.base, made.digest) == (sent.base.version, sent.ours)


def _arrived(work: Work, arrival: Arrival) -> tuple[Record, list[bytes]]:
    """The record after that, and the bodies that it newly names."""
    sent, row = arrival
    made, now = row.merged_from, work.record.base
    pulled = made is not None and made.theirs == now.version and not now.contained
    if pulled and row.digest != sent.ours:
        # FILE has pulled meanwhile what this was merged with, so it contains the whole version.
        body = publishing.fetch(work.store, work.record.path, row.version).document.body
        base = Base(row.version, row.incarnation, row.digest)
        return _beyond(work.record.published(base, sent), base), [body]
    base = Base(row.version, row.incarnation, sent.ours, contained=row.digest != sent.ours)
    return work.record.published(base, sent), []


def _beyond(record: Record, base: Base) -> Record:
    """A conflict with a version that was itself merged with what was sent is one with the result."""
    return replace(record, clash=replace(record.clash, theirs=base)) if record.clash else record


def as_answer(work: Work, arrival: Arrival) -> Published:
    """What the answer that was lost would have said."""
    sent, row = arrival
    made = row.merged_from if row.digest != sent.ours else None
    head = next(iter(work.store.versions(work.record.path, limit=1)))
    fetched = publishing.fetch(work.store, work.record.path, row.version).document if made else None
    return Published(
        row.version,
        MergeFacts(made.base, made.theirs) if made else None,
        replayed=True,
        current_version=None if head.version == row.version else head.version,
        body=fetched.body if fetched else None,
        incarnation=row.incarnation,
    )
