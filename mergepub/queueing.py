"""The loop that sends what waits in the local queue: in order per document, exactly once by content.

A killed ``sync`` may have sent an entry without taking it out; the store recognises it when it comes again. What a
sent entry has become is written into the next one of its document before it is taken out. Prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from mergepub import publishing
from mergepub.branching.sending import extend
from mergepub.checkout import Base, queue
from mergepub.checkout.queue import Entry, Start
from mergepub.checkout.writers import End, Writer, save_end
from mergepub.errors import (
    CheckoutError,
    ContentionError,
    MergepubError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
)
from mergepub.outcomes import Branched, Outcome, Published
from mergepub.publishing import HeldBase, OnConflict

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Record
    from mergepub.stores.contract import Store

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
    """Keep a publish in the queue, behind a former one of the same document if there is one; its lock is held."""
    queue.sweep(checkout)
    former = queue.last_of(checkout, entry.store, entry.path)
    if former is not None:
        base = queue.body_of(checkout, former, former.digest)
        start = Start(former.start.version, former.start.incarnation, former.digest, former=former.id)
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
    for name in [entry.id for entry in queue.entries(checkout)]:
        entry = next(each for each in queue.entries(checkout) if each.id == name)  # its base may have become known
        if entry.store in away:
            yield Synced(entry, "unreachable")
        elif (entry.store, entry.path) in stopped:
            yield Synced(entry, "waiting")
        else:
            came = _send(checkout, opened, entry, policy)
            if came.came == "unreachable":
                away.add(entry.store)
            elif came.came != "sent":
                stopped.add((entry.store, entry.path))
            yield came


def drop(checkout: Checkout, name: str) -> str:
    """Take an entry out of the queue; the name of the file in which its body is kept, or all of it where it is damaged.

    The next one of its document is made from what this one was made from.

    Raises:
        NotFoundError: there is no such entry.
    """
    try:
        entry = queue.load(checkout, name)
        if entry is None:
            raise NotFoundError(f"there is no {name} in the queue", hint="see what waits: mergepub sync --json")
        body, start = queue.body_of(checkout, entry, entry.digest), entry.start
    except CheckoutError:
        return queue.discard(checkout, name)
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
    labels = {"author": entry.author, "message": entry.message}
    if start.branch is not None:
        ends = {"epoch": start.epoch, "known": start.revision}
        return extend(store, entry.path, start.branch, body, **labels, **ends)  # type: ignore[arg-type]  # two kinds of keywords in two mappings
    base = None
    if start.digest is not None:
        base = HeldBase(queue.body_of(checkout, entry, start.digest), start.incarnation, start.contained)
    return publishing.publish(
        store,
        entry.path,
        body,
        start.version,
        on_conflict=policy or cast("OnConflict", entry.policy),
        retries=entry.retries,
        allow_markers=entry.allow_markers,
        base=base,
        kind=entry.kind,
        author=entry.author,
        message=entry.message,
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
        save_end(checkout, writer, End(outcome.incarnation, outcome.epoch, outcome.branch_revision))
    record = checkout.load_file(entry.file) if entry.file else None
    if record is not None and _follows(record, entry) and start.branch is None:
        base = Base(start.version, start.incarnation, entry.digest, contained=start.contained)
        checkout.save(record.published(base), body)
    queue.remove(checkout, entry)


def _becomes(entry: Entry, body: bytes, outcome: Published | Branched) -> Start:
    if isinstance(outcome, Branched):
        place = (outcome.branch, outcome.branch_revision, outcome.epoch)
        return Start(entry.start.version, outcome.incarnation, entry.digest, False, None, *place)
    merged = outcome.body is not None and outcome.body != body
    return Start(outcome.version, outcome.incarnation or entry.start.incarnation, entry.digest, contained=merged)


def _follows(record: Record, entry: Entry) -> bool:
    """Whether the tracked file still stands on what the entry was made from."""
    same = (record.store, record.path) == (entry.store, entry.path)
    return same and record.clash is None and record.base.version <= entry.start.version
