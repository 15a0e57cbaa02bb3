"""The loop that sends what waits in the local queue: in order per document, exactly once by content.

A killed ``sync`` may have sent an entry without taking it out; the store recognises it when it comes again. What a
sent entry has become is written into the next one of its document before it is taken out. Prints nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, cast

from mergepub import publishing
from mergepub.branching.sending import extend
from mergepub.calls import branching, insist
from mergepub.checkout import Base, queue
from mergepub.checkout.queue import Entry, Start
from mergepub.checkout.writers import End, Writer, save_end
from mergepub.documents import digest_of
from mergepub.errors import (
    BranchError,
    CheckoutError,
    ContentionError,
    MergepubError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
)
from mergepub.histories import DEFAULT, Place
from mergepub.outcomes import Branched, MergeFacts, Outcome, Published
from mergepub.publishing import HeldBase, MergeOptions, OnConflict

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Record
    from mergepub.publishing import Favour
    from mergepub.stores.contract import Store

_one_at_a_time = threading.Lock()  # a push has several files at hand at once, and the queue is one

Came = Literal["sent", "stopped", "waiting", "unreachable"]


@dataclass(frozen=True, slots=True)
class Synced:
    """What became of one entry.

    ``sent``: stored, as ``outcome`` says. ``stopped``: a conflict (``outcome``) or a refusal (``error``); it waits, and
    so do the later ones of its document (``waiting``). ``unreachable``: its store gave no answer.
    """

    entry: Entry
    came: Came
    outcome: Outcome | None = None
    error: MergepubError | None = None


def enqueue(checkout: Checkout, entry: Entry, body: bytes, base: bytes | None) -> Entry:
    """Keep a publish in the queue, behind a former one of the same document if there is one; its lock is held.

    Raises:
        BranchError: it goes to a branch of its own, and nobody knows yet what the former will be on.
    """
    queue.sweep(checkout)
    former = queue.last_of(checkout, entry.store, entry.path)
    if former is not None:
        own = entry.start.branch
        if own is not None and own != former.start.branch:
            raise BranchError(
                f"an earlier publish of {entry.path} waits in the queue, and does not go to the branch {own}",
                reason="queued",
                hint="send it first: mergepub sync",
            )
        base = queue.body_of(checkout, former, former.digest)
        start = replace(former.start, digest=former.digest, contained=False, former=former.id, revision=0)
        entry = replace(entry, start=start)
    return queue.add(checkout, entry, body, base)


def sync(checkout: Checkout, opened: Callable[[str], Store], *, policy: OnConflict | None = None) -> Iterator[Synced]:
    """Send what waits, the checkout's lock held; ``opened`` gives the store of a URL, ``policy`` overrides their own.

    A conflict or refusal stops that document's later entries and no other document's; a store that cannot be reached
    is not asked again.
    """
    queue.sweep(checkout)
    stopped: set[tuple[str, str]] = set()
    away: set[str] = set()
    broken = queue.damaged(checkout)
    for name, error in broken.items():
        yield Synced(_unknown(name), "stopped", error=error)
    for name in [entry.id for entry in queue.entries(checkout)]:
        entry = next(each for each in queue.entries(checkout) if each.id == name)  # its base may have become known
        if entry.store in away:
            yield Synced(entry, "unreachable")
        elif (entry.store, entry.path) in stopped or entry.start.former in broken:
            stopped.add((entry.store, entry.path))
            yield Synced(entry, "waiting")
        else:
            came = _send(checkout, opened, entry, policy)
            if came.came == "unreachable":
                away.add(entry.store)
            elif came.came != "sent":
                stopped.add((entry.store, entry.path))
            yield came


def _unknown(name: str) -> Entry:
    """What stands for an entry that cannot be read."""
    return Entry(name, "", "", "", Start(0))


def waiting(checkout: Checkout) -> list[Synced]:
    """What waits, without sending anything."""
    broken = queue.damaged(checkout)
    found = [Synced(_unknown(name), "stopped", error=error) for name, error in broken.items()]
    return found + [Synced(entry, "waiting") for entry in queue.entries(checkout)]


def send_former(checkout: Checkout, store: Store, path: str) -> bool:
    """Send what waits of one document, the checkout's lock held, before something newer of it is published.

    Gives whether anything was sent.

    Raises:
        BranchError: one of them is stopped; the newer one must not overtake it.
        UnavailableError: the store cannot be reached.
    """
    with _one_at_a_time:
        return _send_former(checkout, store, path)


def _send_former(checkout: Checkout, store: Store, path: str) -> bool:
    sent = False
    for entry in [each for each in queue.entries(checkout) if (each.store, each.path) == (store.url, path)]:
        now = next(each for each in queue.entries(checkout) if each.id == entry.id)
        came = _send(checkout, lambda _: store, now, None)
        if isinstance(came.error, UnavailableError):
            raise came.error
        if came.came != "sent":
            raise BranchError(
                f"an earlier publish of {path} waits in the queue and is stopped; a later one does not overtake it",
                reason="queued",
                hint=f"see why: mergepub sync; where this one holds all of it: mergepub sync --drop {now.id}",
            )
        sent = True
    return sent


def drop(checkout: Checkout, name: str) -> str:
    """Take an entry out of the queue; the name of the file in which its body is kept, or all of it where it is damaged.

    The next one of its document is made from what this one was made from.

    Raises:
        NotFoundError: there is no such entry.
    """
    try:
        entry = queue.load(checkout, name)
        if entry is None:
            raise NotFoundError(f"there is no {name} in the queue", hint="see what waits: mergepub sync --dry-run")
        return _drop(checkout, entry)
    except CheckoutError:
        return queue.discard(checkout, name)


def _drop(checkout: Checkout, entry: Entry) -> str:
    body, start = queue.body_of(checkout, entry, entry.digest), entry.start
    later = next((each for each in queue.entries(checkout) if each.start.former == entry.id), None)
    if later is not None:
        base = None if start.digest is None else queue.body_of(checkout, entry, start.digest)
        queue.start_from(checkout, later, start, base)
    kept = checkout.keep(entry.file or entry.path.rpartition("/")[2], body, "queued")
    queue.remove(checkout, entry)
    return kept


def is_away(error: UnavailableError) -> bool:
    """Whether the store cannot be reached, as against one that answers and asks to come again."""
    from mergepub.stores.http_wire import DamagedAnswerError, ForeignAnswerError  # noqa: PLC0415 - errors alone need it

    return not isinstance(error, ContentionError | ThrottledError | ForeignAnswerError | DamagedAnswerError)


def _send(checkout: Checkout, opened: Callable[[str], Store], entry: Entry, policy: OnConflict | None) -> Synced:
    try:
        outcome = _publish(checkout, opened(entry.store), entry, policy)
    except UnavailableError as error:
        return Synced(entry, "unreachable", error=error)
    except MergepubError as error:
        return Synced(entry, "stopped", error=error)
    if not isinstance(outcome, Published | Branched):
        return Synced(entry, "stopped", outcome)
    _settle(checkout, entry, outcome)
    return Synced(entry, "sent", outcome)


def _publish(checkout: Checkout, store: Store, entry: Entry, policy: OnConflict | None) -> Outcome:
    body, start = queue.body_of(checkout, entry, entry.digest), entry.start
    if start.branch is not None:
        return _extend(store, entry, start.branch, body)
    base = None
    if start.digest is not None:
        base = HeldBase(queue.body_of(checkout, entry, start.digest), start.incarnation, start.contained)
        arrived = _arrived(store, entry)
        if arrived is not None:
            return arrived
    return publishing.publish(
        store,
        entry.path,
        body,
        start.version,
        on_conflict=policy or cast("OnConflict", entry.policy),
        retries=entry.retries,
        merge_options=MergeOptions(adjacent=entry.adjacent, granularity=entry.granularity, engine=entry.engine),
        favour=cast("Favour | None", entry.favour),
        allow_markers=entry.allow_markers,
        base=base,
        kind=entry.kind,
        author=entry.author,
        message=entry.message,
    )


def _extend(store: Store, entry: Entry, branch: str, body: bytes) -> Outcome:
    """To the end of a branch; where somebody has made that very end the head meanwhile, the next version."""
    start = entry.start
    ends = {"epoch": start.epoch or None, "known": start.revision or None}
    try:
        return extend(store, entry.path, branch, body, author=entry.author, message=entry.message, **ends)
    except BranchError as refused:
        if refused.reason != DEFAULT:
            raise
        keeper = branching(store)
        head, _ = insist(lambda: keeper.branches(entry.path))
        if head.place != Place(branch, start.revision):
            raise
    return publishing.publish(
        store,
        entry.path,
        body,
        head.version,
        allow_markers=entry.allow_markers,
        author=entry.author,
        message=entry.message,
    )


def _arrived(store: Store, entry: Entry) -> Published | None:
    """The answer to an entry that was sent before, where the publish itself would not find that out.

    What was made from bytes that a version only contains is always merged, and merged once more with its own result.
    """
    start = entry.start
    if not start.contained:
        return None
    rows = list(takewhile(lambda row: row.version > start.version, store.versions(entry.path)))
    pair = (start.version, entry.digest)
    row = next(
        (row for row in rows if row.merged_from and (row.merged_from.base, row.merged_from.digest) == pair), None
    )
    if row is None or row.merged_from is None or row.incarnation != start.incarnation:
        return None
    return Published(
        row.version,
        MergeFacts(row.merged_from.base, row.merged_from.theirs),
        replayed=True,
        current_version=rows[0].version if rows[0].version != row.version else None,
        body=insist(lambda: store.fetch(entry.path, row.version)).body,
        incarnation=row.incarnation,
    )


def _settle(checkout: Checkout, entry: Entry, outcome: Published | Branched) -> None:
    """Tell the next entry and the tracked file what this one has become, and take it out last."""
    body = queue.body_of(checkout, entry, entry.digest)
    start = _becomes(entry, body, outcome)
    later = next((each for each in queue.entries(checkout) if each.start.former == entry.id), None)
    if later is not None:
        queue.start_from(checkout, later, start, body)
    if isinstance(outcome, Branched):
        writer = Writer(entry.store, entry.path, outcome.branch, entry.author)
        save_end(
            checkout, writer, End(outcome.incarnation, outcome.epoch, outcome.branch_revision, outcome.base_version)
        )
    record = checkout.load_file(entry.file) if entry.file else None
    if record is not None and _follows(checkout, record, entry) and start.branch is None:
        base = Base(start.version, start.incarnation, entry.digest, contained=start.contained)
        checkout.save(record.published(base), body)
    queue.remove(checkout, entry)


def _becomes(entry: Entry, body: bytes, outcome: Published | Branched) -> Start:
    if isinstance(outcome, Branched):
        place = (outcome.branch, outcome.branch_revision, outcome.epoch)
        return Start(entry.start.version, outcome.incarnation, entry.digest, False, None, *place)
    merged = outcome.body is not None and outcome.body != body
    return Start(outcome.version, outcome.incarnation or entry.start.incarnation, entry.digest, contained=merged)


def _follows(checkout: Checkout, record: Record, entry: Entry) -> bool:
    """Whether the tracked file still stands on what the entry was made from, and goes on from its body.

    One that holds its base again, without the edits, does not: as their base it would take them back.
    """
    same = (record.store, record.path) == (entry.store, entry.path)
    if not same or record.clash is not None or record.base.version > entry.start.version:
        return False
    body = checkout.local(record).read()
    return body is not None and digest_of(body) != record.base.digest
