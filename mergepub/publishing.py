"""The publishing loop and the other verbs: publish, fetch, append, delete as plain functions over a store.

They decide and return values (``outcomes``); they print nothing, know no backend and no keys. All merging happens
here, on the caller's side of the store: a store only swaps.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING, Literal

from mergepub.calls import insist
from mergepub.documents import ABSENT, EVENTS, TEXT, Document, MergedFrom, Receipt, Version, digest_of
from mergepub.errors import (
    BinaryBodyError,
    BranchError,
    InputError,
    InvalidStoreError,
    NotFoundError,
    RejectedError,
    UnresolvedMarkersError,
    VersionConflictError,
)
from mergepub.outcomes import (
    Candidate,
    Contention,
    Fetched,
    MergeAttempt,
    MergeFacts,
    Mismatch,
    Outcome,
    Overlap,
    Published,
    Refused,
)
from mergepub.paths import MAX_VERSION, check_path, split_version
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.merge import Merged
    from mergepub.stores.contract import Store

OnConflict = Literal["fail", "merge", "candidate", "branch"]
Favour = Literal["ours", "theirs", "union"]
Listener = Callable[[MergeAttempt], None]


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How bodies are merged and conflicts shown. Arguments have the same meaning as in ``diff3``."""

    style: str = "merge"
    labels: tuple[str | bytes, str | bytes, str | bytes] = ("ours", "base", "theirs")
    marker_size: int = 7
    adjacent: str = "clean"
    granularity: str = "line"
    engine: str = "mergepub"


DEFAULT_MERGE = MergeOptions()


@dataclass(frozen=True, slots=True)
class HeldBase:
    """What the caller's edit was made from, where the caller holds its bytes: then no store is asked for them.

    ``incarnation`` is that of the document it came from, "" where there was none. ``contained``: the bytes are not the
    expected version itself, that version only contains them, merged with other edits; so the caller's body is never
    sent as it is. ``ancestor``, told the head before each merge with it, may know a nearer common ancestor than
    ``body``.
    """

    body: bytes
    incarnation: str
    contained: bool = False
    ancestor: Callable[[Document], bytes] | None = None

    def below(self, head: Document) -> bytes:
        """The common ancestor of the caller's body and ``head``."""
        return self.body if self.ancestor is None else self.ancestor(head)


def publish(
    store: Store,
    path: str,
    body: bytes,
    expected: int,
    *,
    on_conflict: OnConflict = "fail",
    retries: int = 3,
    author: str = "",
    message: str = "",
    merge_options: MergeOptions = DEFAULT_MERGE,
    favour: Favour | None = None,
    allow_markers: bool = False,
    source: str | None = None,
    on_event: Listener | None = None,
    base: HeldBase | None = None,
    kind: str | None = None,
) -> Outcome:
    """Publish ``body``, an edit of version ``expected`` (0: the document must not exist now).

    When the head is another version, ``on_conflict`` decides: ``fail`` reports it, ``merge`` merges with the head and
    publishes until ``retries`` (1 or more) merges have lost the race, ``candidate`` merges once and returns the result
    for review. Repeating the same call after a lost answer is safe: it is recognised, also once merged.

    ``favour`` settles conflicts by one side, or by both (``union``: theirs first, it is published already);
    ``allow_markers`` permits a body that holds a complete conflict block of its own; ``source`` names a commit or other
    origin and is kept with the version; ``on_event`` is told about every merge attempt. ``base`` is what the body was
    made from where the caller kept it; one that version ``expected`` only contains is merged even under ``fail``, as
    long as that version is the head: nobody else has published since. ``branch`` as a policy keeps the body as an
    immutable sibling of the base (``Branched``). ``kind`` (text or events) is fixed when a document is created; a log
    of events is never merged.

    Raises:
        InputError: bad path, expected version, retries or policy; a body over the limit; unresolved conflict blocks;
            a body that breaks a rule of events.
        BranchError: a log of events that does not extend its base.
        NotFoundError: ``expected`` is not 0 and the document never existed.
        UnavailableError: the store gave no clear answer (``UnknownOutcomeError``: it may have happened all the same).
    """
    check_path(path)
    _check_expected(expected)
    _check_policy(on_conflict, retries)
    task = _Task(store, path, body, expected, author, message, source, merge_options, favour, on_event, base, kind)
    _check_task(task, allow_markers=allow_markers)
    try:
        return _by_policy(task, on_conflict, retries)
    except _Refusal as refusal:
        return Refused(expected, refusal.current, refusal.reason)
    except BranchError as refused:
        from mergepub.branching.sending import explained  # noqa: PLC0415 - a log of events refused a body

        raise explained(refused, body) from refused


def check_body(
    store: Store, path: str, body: bytes, expected: int, *, allow_markers: bool = False, base: HeldBase | None = None
) -> None:
    """Refuse what ``publish`` refuses of a body before it writes anything.

    Raises:
        InputError: a body over the limit; unresolved conflict blocks.
    """
    task = _Task(store, path, body, expected, "", "", None, DEFAULT_MERGE, None, None, base)
    _check_task(task, allow_markers=allow_markers)


def _check_task(task: _Task, *, allow_markers: bool) -> None:
    _check_size(task.store, task.body, "body")
    if task.favour or task.options != DEFAULT_MERGE:
        _merge_bodies(task, b"", b"")  # a bad option is refused now, whether or not it comes to a merge
    if not allow_markers:
        _refuse_unresolved(task)


def _by_policy(task: _Task, on_conflict: OnConflict, retries: int) -> Outcome:
    log = _is_events(task, on_conflict)
    if on_conflict == "branch":
        return _publish_or_branch(task, log)
    if task.held is not None and task.held.contained:
        return _publish_contained(task, task.held, on_conflict, retries)
    try:
        receipt = task.send(task.body, _version(task.expected))
    except VersionConflictError as conflict:
        return _on_mismatch(task, conflict, on_conflict, retries)
    return _published(task, receipt)


def fetch(store: Store, path: str, version: int | None = None) -> Fetched:
    """The head of the document, or version ``version`` of it (``/docs/guide.md/v5`` names one too).

    Raises:
        BadPathError: the path breaks a rule.
        NotFoundError: no such document or version; ``tombstone`` is set where it was deleted.
        UnavailableError: the store gave no clear answer.
    """
    if version is None:
        path, version = split_version(path)
    check_path(path)
    if version is not None and not 1 <= version <= MAX_VERSION:
        raise InputError(
            f"{version} is no version: they count from 1 to {MAX_VERSION}", hint=f"mergepub fetch {quote(path)}"
        )
    return Fetched(insist(lambda: store.fetch(path, version)))


def append(
    store: Store, path: str, body: bytes, *, key: str | None = None, author: str = "", message: str = ""
) -> Published:
    """Add ``body`` to the end of whatever the head is.

    ``key`` makes repeating safe: the same key and body are added once. A random one is made when it is None; every
    repetition inside this call uses it.

    Raises:
        InputError: bad path, empty body, a body over the limit.
        NotFoundError: the document is missing or deleted.
        UnavailableError: the store gave no clear answer.
    """
    check_path(path)
    if not body:
        raise InputError("nothing to append: the body is empty", hint="check the command that should have written it")
    _check_size(store, body, "body")
    once = os.urandom(16).hex() if key is None else key
    if body.startswith(b"{"):
        from mergepub.branching.appending import append_to_log  # noqa: PLC0415 - only what could be events needs it

        logged = append_to_log(store, path, body, key=once, again=key is not None, author=author, message=message)
        if logged is not None:
            return _appended(logged)
    receipt = insist(lambda: store.append(path, body, key=once, author=author, message=message))
    return _appended(receipt)


def _appended(receipt: Receipt) -> Published:
    return Published(
        _number(receipt.version),
        replayed=receipt.replayed,
        current_version=_moved_on(receipt),
        open_branches=receipt.open_branches,
    )


def delete(
    store: Store, path: str, expected: int, *, author: str = "", message: str = ""
) -> Published | Mismatch | Refused:
    """Delete the document if its head is version ``expected``; its history stays readable.

    Raises:
        InputError: bad path, or ``expected`` names no version.
        NotFoundError: the document never existed.
        UnavailableError: the store gave no clear answer.
    """
    check_path(path)
    _check_expected(expected)
    if expected == 0:
        raise InputError("0 names no version, so there is nothing to delete", hint=f"mergepub fetch {quote(path)}")
    try:
        receipt = insist(lambda: store.delete(path, _version(expected), author=author, message=message))
    except VersionConflictError as conflict:
        current = _current(store, path, conflict)
        if conflict.reason:
            return Refused(expected, current, conflict.reason)
        return Mismatch(expected, current, deleting=True)
    return Published(_number(receipt.version), replayed=receipt.replayed, current_version=_moved_on(receipt))


# ── one publish ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Task:
    """Everything about one publish that does not change while it runs."""

    store: Store
    path: str
    body: bytes
    expected: int
    author: str
    message: str
    source: str | None
    options: MergeOptions
    favour: Favour | None
    listener: Listener | None
    held: HeldBase | None
    kind: str | None = None

    def send(self, body: bytes, expected: Version, made_from: MergedFrom | None = None) -> Receipt:
        """One compare-and-swap."""
        return insist(
            lambda: self.store.publish(
                self.path,
                body,
                expected,
                author=self.author,
                message=self.message,
                merged_from=made_from,
                source=self.source,
                kind=self.kind or TEXT,
            )
        )

    def read(self, version: int | None = None) -> Document:
        """The head, or one version."""
        return insist(lambda: self.store.fetch(self.path, version))


def _is_events(task: _Task, on_conflict: OnConflict) -> bool:
    """Whether the body goes into a log of events; its rules are checked, and its merging refused."""
    if task.body and not task.body.startswith(b"{") and task.kind is None:
        return False  # what could be no log the store refuses by itself, if that is what the document is
    from mergepub.branching.kinds import MERGING, is_events  # noqa: PLC0415 - most bodies could be no log

    log = is_events(task.store, task.path, task.body, task.kind)
    if log and on_conflict in MERGING:
        raise _Refusal(task.expected if log is True else log.version, "events")
    return bool(log)


def _publish_or_branch(task: _Task, log: bool) -> Outcome:
    from mergepub.branching.sending import publish_or_branch  # noqa: PLC0415 - most publishes never branch

    body, held = task.body, task.held
    if held is not None and held.contained:
        # What the caller holds is the ancestor of its body and of that version: bring the body up to it first.
        base = task.read(task.expected)
        merged = _merge(task, held, base, attempt=1)
        if merged.conflicts:
            return _overlap(task, base, merged)
        body, held = merged.body, HeldBase(base.body, base.incarnation)
    return publish_or_branch(
        task.store,
        task.path,
        body,
        task.expected,
        author=task.author,
        message=task.message,
        source=task.source,
        incarnation=held.incarnation if held else None,
        digest=digest_of(held.body) if held else None,
        kind=EVENTS if log else task.kind or TEXT,
    )


class _Refusal(Exception):  # noqa: N818 - not an error: it carries the reason out of the loop to one place
    """A conflict that no merge can resolve; ``publish`` turns it into a ``Refused``."""

    def __init__(self, current: int, reason: str) -> None:
        super().__init__(reason)
        self.current = current
        self.reason = reason


def _on_mismatch(task: _Task, conflict: VersionConflictError, on_conflict: OnConflict, retries: int) -> Outcome:
    current = _current(task.store, task.path, conflict)
    if conflict.reason:
        raise _Refusal(current, conflict.reason)
    if on_conflict == "fail":
        return Mismatch(task.expected, current)
    base = task.held or _fetch_base(task, current)
    if on_conflict == "candidate":
        return _candidate(task, base)
    return _merge_loop(task, base, retries)


def _publish_contained(task: _Task, base: HeldBase, on_conflict: OnConflict, retries: int) -> Outcome:
    if on_conflict == "candidate":
        return _candidate(task, base)
    return _merge_loop(task, base, retries, only_expected=on_conflict == "fail")


def _merge_loop(task: _Task, base: HeldBase, retries: int, *, only_expected: bool = False) -> Outcome:
    """Merge with the head and publish at it, again from the caller's own base whenever the head moved meanwhile.

    ``only_expected``: a head other than the expected version is a mismatch, not merged with.
    """
    current = task.expected
    for attempt in range(1, retries + 1):
        theirs = _fetch_head(task)
        if only_expected and theirs.version.number != task.expected:
            return Mismatch(task.expected, _number(theirs.version))
        merged = _merge(task, base, theirs, attempt)
        if merged.conflicts:
            return _overlap(task, theirs, merged)
        if merged.body == theirs.body:
            return _already_there(task, theirs, merged)
        try:
            receipt = _send_merged(task, theirs, merged.body)
        except VersionConflictError as conflict:
            current = _lost_race(task, conflict)
        else:
            return _merged(task, theirs, merged, receipt)
    return Contention(task.expected, current, retries)


def _candidate(task: _Task, base: HeldBase) -> Outcome:
    theirs = _fetch_head(task)
    merged = _merge(task, base, theirs, attempt=1)
    if merged.conflicts:
        return _overlap(task, theirs, merged)
    head = _number(theirs.version)
    favour = task.favour if merged.settled else None
    return Candidate(task.expected, head, head, merged.body, merged.settled, favour)


def _fetch_base(task: _Task, current: int) -> HeldBase:
    """The version that the caller's edit was made from; empty for expected 0."""
    if task.expected == 0:
        return HeldBase(b"", "")
    try:
        base = task.read(task.expected)
    except NotFoundError as missing:
        # A tombstone as base means that the present document was created after it.
        reason = "base-unavailable" if missing.tombstone is None else "recreated"
        raise _Refusal(current, reason) from missing
    return HeldBase(base.body, base.incarnation)


def _fetch_head(task: _Task) -> Document:
    try:
        return task.read()
    except NotFoundError as missing:
        if missing.tombstone is None:
            raise
        raise _Refusal(missing.tombstone, "deleted") from missing


def _merge(task: _Task, base: HeldBase, theirs: Document, attempt: int) -> Merged:
    head = _number(theirs.version)
    if base.incarnation not in ("", theirs.incarnation):
        raise _Refusal(head, "recreated")
    if head < task.expected:
        raise _Refusal(head, "base-unavailable")  # a store that was set back: its head is no edit of the base
    if theirs.kind == EVENTS:
        raise _Refusal(head, "events")  # a log's order is meaning: lines of two writers are not woven together
    try:
        merged = _merge_bodies(task, base.below(theirs), theirs.body)
    except BinaryBodyError as binary:
        raise _Refusal(head, "binary") from binary
    if task.listener:
        task.listener(MergeAttempt(attempt, task.expected, head, merged.conflicts))
    return merged


def _merge_bodies(task: _Task, base: bytes, theirs: bytes) -> Merged:
    from mergepub.merge import diff3  # noqa: PLC0415 - a publish without a mismatch needs no engine

    options = task.options
    return diff3(
        base,
        task.body,
        theirs,
        adjacent=options.adjacent,
        granularity=options.granularity,
        style=options.style,
        favour=task.favour,
        union_first="theirs",
        labels=options.labels,
        marker_size=options.marker_size,
        engine=options.engine,
    )


def _send_merged(task: _Task, theirs: Document, body: bytes) -> Receipt:
    _check_size(task.store, body, "merged body")
    made_from = MergedFrom(task.expected, _number(theirs.version), digest_of(task.body))
    return task.send(body, theirs.version, made_from)


def _lost_race(task: _Task, conflict: VersionConflictError) -> int:
    current = _current(task.store, task.path, conflict)
    if conflict.reason:
        raise _Refusal(current, conflict.reason)
    return current


# ── receipts and merges as outcomes ─────────────────────────────────────────────────────────────────────────────────


def _published(task: _Task, receipt: Receipt) -> Published:
    merge, body = None, None
    if receipt.merged_from:  # a lost answer of a merged publish: answer it as it would have been answered
        merge = MergeFacts(receipt.merged_from.base, receipt.merged_from.theirs)
        body = task.read(_number(receipt.version)).body
    return Published(
        _number(receipt.version),
        merge,
        unchanged=receipt.unchanged,
        replayed=receipt.replayed,
        current_version=_moved_on(receipt),
        body=body,
        incarnation=receipt.incarnation,
        open_branches=receipt.open_branches,
    )


def _merged(task: _Task, theirs: Document, merged: Merged, receipt: Receipt) -> Published:
    return Published(
        _number(receipt.version),
        _facts(task, theirs, merged),
        unchanged=receipt.unchanged,
        replayed=receipt.replayed,
        current_version=_moved_on(receipt),
        body=merged.body,
        incarnation=receipt.incarnation,
        open_branches=receipt.open_branches,
    )


def _already_there(task: _Task, theirs: Document, merged: Merged) -> Published:
    """Theirs holds the caller's edits already: nothing needs publishing."""
    facts = _facts(task, theirs, merged)
    return Published(_number(theirs.version), facts, unchanged=True, body=theirs.body, incarnation=theirs.incarnation)


def _facts(task: _Task, theirs: Document, merged: Merged) -> MergeFacts:
    favour = task.favour if merged.settled else None
    return MergeFacts(task.expected, _number(theirs.version), merged.settled, favour)


def _overlap(task: _Task, theirs: Document, merged: Merged) -> Overlap:
    return Overlap(
        task.expected,
        _number(theirs.version),
        merged.conflicts,
        merged.marker_size,
        merged.body,
        tuple(merged.unterminated),
    )


def _moved_on(receipt: Receipt) -> int | None:
    return receipt.current if receipt.replayed and receipt.current != receipt.version.number else None


# ── checks before anything is sent ──────────────────────────────────────────────────────────────────────────────────


def _check_expected(expected: int) -> None:
    if not 0 <= expected <= MAX_VERSION:
        raise InputError(
            f"{expected} is no version: versions count from 1 to {MAX_VERSION}, 0 means that there is no document",
            hint="take the number from the version line of mergepub fetch",
        )


def _check_policy(on_conflict: str, retries: int) -> None:
    if on_conflict not in ("fail", "merge", "candidate", "branch"):
        raise InputError(f"{on_conflict!r} is no policy for conflicts", hint="use fail, merge, candidate or branch")
    if retries < 1:
        raise InputError(f"{retries} retries leave no attempt to merge", hint="use 1 or more, 3 by default")


def _check_size(store: Store, body: bytes, what: str) -> None:
    limit = store.capabilities.max_bytes
    if limit is not None and len(body) > limit:
        raise RejectedError(
            f"the {what} has {len(body)} bytes, this store takes {limit} at most",
            limit=limit,
            hint="split the document, or raise the limit of the store",
        )


def _refuse_unresolved(task: _Task) -> None:
    """Refuse a body with a conflict block that neither the base nor theirs had: somebody forgot to resolve it."""
    if b"<<<<<<<" not in task.body:
        return
    from mergepub.merge.markers import conflict_blocks  # noqa: PLC0415 - most bodies hold no marker at all

    blocks = conflict_blocks(task.body)
    known = [_as_lines(other) for other in _known_bodies(task)] if blocks else []
    # Looking for each block as a run of lines is enough; the set only saves the search where there are thousands.
    there = {_as_lines(block.text) for other in known for block in conflict_blocks(other)}
    for block in blocks:
        text = _as_lines(block.text)
        if text not in there and not any(text in other for other in known):
            raise UnresolvedMarkersError(
                f"line {block.line} of the body starts a conflict block that is not resolved; nothing was published",
                line=block.line,
                hint="mend the conflict, or pass --allow-markers if the document is meant to hold it",
            )


def _known_bodies(task: _Task) -> list[bytes]:
    """Base and head, as far as there are any; whatever else is wrong with them, the publish itself will say."""
    bodies = [task.held.body] if task.held else []
    for version in (task.expected, None) if task.expected else (None,):
        try:
            bodies.append(task.read(version).body)
        except NotFoundError:
            continue
    return bodies


def _as_lines(body: bytes) -> bytes:
    """``body`` so that ``in`` finds whole lines only, up to a converted ending or a missing last one."""
    text = b"\n" + body.replace(b"\r\n", b"\n")
    return text if text.endswith(b"\n") else text + b"\n"


# ── talking to stores ───────────────────────────────────────────────────────────────────────────────────────────────


def _version(number: int) -> Version:
    return ABSENT if number == 0 else Version(number)


def _number(version: Version) -> int:
    if version.number is None:
        raise InvalidStoreError(
            "this store does not number its versions, so it cannot be published to by number",
            hint="use a store that counts versions",
        )
    return version.number


def _current(store: Store, path: str, conflict: VersionConflictError) -> int:
    """The head's number that a conflict speaks of, looked up where the store did not say it."""
    if conflict.current is not None:
        return conflict.current
    try:
        return _number(insist(lambda: store.fetch(path)).version)
    except NotFoundError as missing:
        if missing.tombstone is None:
            raise
        return missing.tombstone
