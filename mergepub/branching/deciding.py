"""Deciding about a branch: what a decision comes to is worked out here, the store compares both heads and swaps.

Everything is worked out from the version and the revision that the resolver saw, which never change: a repeated
decision comes to the same bytes, and is recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.branching.looking import ancestor_bodies, check_together, hunks_of, only_ancestor
from mergepub.calls import branching, insist
from mergepub.documents import EVENTS
from mergepub.errors import BranchError, InputError, NotFoundError, UnresolvedMarkersError, VersionConflictError
from mergepub.events import TOOL_CALL, after, parse_events
from mergepub.histories import (
    CHOOSE,
    CONTINUE,
    OPEN,
    REBASE,
    REJECT,
    REJECTED,
    UNDO,
    Decision,
    DecisionReceipt,
    DecisionRequest,
    Place,
    Standing,
)
from mergepub.outcomes import Decided, Overlap
from mergepub.stores import branchrules

if TYPE_CHECKING:
    from mergepub.events import Event
    from mergepub.histories import Branch, HeadPlace
    from mergepub.merge import Merged
    from mergepub.stores.contract import BranchStore, Store


@dataclass(frozen=True, slots=True)
class How:
    """Who decides and why; ``effects``: conflicting effects of tool calls are known; ``dry_run`` changes nothing."""

    resolver: str = ""
    reason: str = ""
    effects: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Case:
    """One decision: what was seen, and the store to look at it in."""

    keeper: BranchStore
    path: str
    standing: Standing
    seen: Place

    @property
    def head(self) -> bytes:
        """The body of the version that was seen."""
        version = self.standing.head.version
        return insist(lambda: self.keeper.fetch(self.path, version)).body

    @property
    def body(self) -> bytes:
        """The body of the branch at the revision that was seen."""
        return insist(lambda: self.keeper.revision(self.path, self.seen.branch, self.seen.revision)).body

    @property
    def is_log(self) -> bool:
        """Whether it is about a log of events."""
        return self.standing.head.kind == EVENTS


def decide(
    store: Store,
    path: str,
    strategy: str,
    seen: Place,
    expected_head: int,
    *,
    file: bytes | None = None,
    approved: Sequence[str] = (),
    how: How | None = None,
) -> Decided | Overlap:
    """Decide about the branch at ``seen``, with version ``expected_head`` as the head.

    ``file`` is the body of a continuation; without it a text is merged, and an ``Overlap`` is the answer where that
    does not come out clean. ``approved`` names the events or hunks that a rebase replays.

    Raises:
        VersionConflictError: the head is another version.
        BranchError: the branch grew, is closed or of an earlier incarnation; tool calls stand in the way.
        NotFoundError: no such branch, revision, event or hunk.
        InputError: a body or a call that is none.
    """
    how, keeper = how or How(), branching(store)
    standing = insist(lambda: keeper.standing(path, seen.branch, version=expected_head, revision=seen.revision))
    check_together(path, standing)
    case = _Case(keeper, path, standing, seen)
    if case.is_log and strategy in (CHOOSE, CONTINUE) and not how.effects:
        _check_effects(case)
    body = _result(case, strategy, file, approved)
    if isinstance(body, Overlap):
        return body
    names = tuple(dict.fromkeys(approved))
    facts = (how.resolver, how.reason, body, names, how.effects)
    request = DecisionRequest(strategy, expected_head, seen, *facts)
    if how.dry_run:
        return _previewed(case, request)
    return _decided(insist(lambda: keeper.decide(path, request)))


def undo(store: Store, path: str, number: int, expected_head: int, *, how: How | None = None) -> Decided:
    """Take decision ``number`` back by a new decision, while its result is the head.

    Raises:
        VersionConflictError: the head is another version.
        BranchError: the decision's result is not the head any more.
        NotFoundError: no such document or decision.
    """
    how, keeper = how or How(), branching(store)
    request = DecisionRequest(UNDO, expected_head, None, how.resolver, how.reason, undoes=number)
    if not how.dry_run:
        return _decided(insist(lambda: keeper.decide(path, request)))
    row = _decision(keeper, path, number)
    head, branches = insist(lambda: keeper.branches(path))
    branchrules.check_seen(path, request, head.version)
    if head.digest is None:
        raise _deleted(path, head.version)
    if not _stands(keeper, path, row, head, branches):
        raise branchrules.not_undoable(path, number, head.version)
    former = row.head
    body = None
    if row.result_version is not None:
        body = insist(lambda: keeper.revision(path, former.branch, former.revision)).body
    version = head.version + (row.result_version is not None)
    return Decided(version, None, UNDO, str(row.branch), dry_run=True, body=body)


def _stands(keeper: BranchStore, path: str, row: Decision, head: HeadPlace, branches: list[Branch]) -> bool:
    """Whether the decision's result is the head still; of one that left the head alone, whether its state stands."""
    if row.incarnation != head.incarnation or row.result_version is not None:
        return row.result_version == head.version
    undone, source = False, row
    while source.undoes is not None:  # an undo of an undo of a rejection rejects again
        undone, source = not undone, _decision(keeper, path, source.undoes)
    states = {branch.name: branch.state for branch in branches if branch.incarnation == head.incarnation}
    return states.get(row.branch.branch) == (OPEN if undone else REJECTED)


def _deleted(path: str, version: int) -> VersionConflictError:
    return VersionConflictError(f"{path} is deleted; nothing can be decided", expected=version, current=version)


def _decision(keeper: BranchStore, path: str, number: int) -> Decision:
    rows = insist(lambda: keeper.decisions(path, before=number + 1, limit=1))
    if not rows or rows[0].number != number:
        raise branchrules.no_decision(path, number)
    return rows[0]


def _decided(receipt: DecisionReceipt) -> Decided:
    row = receipt.decision
    return Decided(
        receipt.head,
        row.number,
        row.strategy,
        str(row.branch),
        replayed=receipt.replayed,
        current_version=receipt.current,
    )


def _previewed(case: _Case, request: DecisionRequest) -> Decided:
    """The answer of a dry run: what the store would check is checked, nothing is changed."""
    now = insist(lambda: case.keeper.standing(case.path, case.seen.branch))
    branchrules.check_seen(case.path, request, now.head.version)
    branchrules.check_decidable(case.path, request, now.branch, now.head.place)
    if now.head.digest is None:
        raise _deleted(case.path, now.head.version)
    body = case.body if request.strategy == CHOOSE else request.body
    version = request.expected_head + (request.strategy != REJECT)
    return Decided(version, None, request.strategy, str(case.seen), dry_run=True, body=body)


# ── what a decision comes to ────────────────────────────────────────────────────────────────────────────────────────


def _result(case: _Case, strategy: str, file: bytes | None, approved: Sequence[str]) -> bytes | Overlap | None:
    if strategy == CONTINUE:
        return _continued(case, file)
    if strategy == REBASE:
        if not approved:
            raise InputError(
                "--rebase replays nothing by itself: approve what it may",
                hint=f"see what can be approved: mergepub branch show {quote(case.path)} {case.seen} --diff --json",
            )
        return _rebased_log(case, approved) if case.is_log else _rebased_text(case, approved)
    return None


def _continued(case: _Case, file: bytes | None) -> bytes | Overlap:
    if case.is_log:
        return _continued_log(case, file)
    if file is None:
        return _merged(case, case.body)
    _refuse_unresolved(case, file)
    return file


def _continued_log(case: _Case, file: bytes | None) -> bytes:
    if file is None:
        raise InputError(
            "a log of events is never merged by line: say how it goes on",
            hint=f"fetch the head, add to its end, and: mergepub decide {quote(case.path)} {case.seen} --continue FILE "
            f"--expected-head {case.standing.head.version}",
        )
    events, head = parse_events(file), case.head
    branchrules.check_extension(case.path, EVENTS, head, file)
    calls = [event.id for event in after(events, parse_events(head)) if event.type == TOOL_CALL]
    if calls:
        raise BranchError(
            f"a continuation may quote results and never calls a tool: {', '.join(calls)}",
            reason="barrier",
            hint="take the tool_call out; whoever goes on from the continuation may call",
        )
    return file


def _merged(case: _Case, ours: bytes, base: bytes | None = None) -> bytes | Overlap:
    """``ours`` and the head, merged from their common ancestor."""
    from mergepub.merge import diff3  # noqa: PLC0415 - most decisions merge nothing

    start = only_ancestor(case.keeper, case.path, case.standing) if base is None else base
    labels = (str(case.seen), "base", f"version {case.standing.head.version}")
    merged: Merged = diff3(start, ours, case.head, labels=labels)
    if not merged.conflicts:
        return merged.body
    versions = (case.standing.branch.base_version, case.standing.head.version)
    return Overlap(*versions, merged.conflicts, merged.marker_size, merged.body, tuple(merged.unterminated))


def _refuse_unresolved(case: _Case, file: bytes) -> None:
    from mergepub.merge.markers import conflict_blocks  # noqa: PLC0415 - most bodies hold no marker at all

    blocks = conflict_blocks(file) if b"<<<<<<<" in file else []
    known = (case.head, case.body) if blocks else ()
    for block in blocks:
        if not any(block.text in body for body in known):
            raise UnresolvedMarkersError(
                f"line {block.line} of the body starts a conflict block that is not resolved; nothing was decided",
                line=block.line,
                hint="mend the conflict",
            )


def _rebased_text(case: _Case, approved: Sequence[str]) -> bytes | Overlap:
    base, body = only_ancestor(case.keeper, case.path, case.standing), case.body
    hunks = hunks_of(base, body)
    _check_known(case, approved, [hunk.id for hunk in hunks])
    pieces, at = [], 0
    for hunk in hunks:
        start, end, _, _ = hunk.span
        pieces += [base[at:start], hunk.added if hunk.id in approved else hunk.removed]
        at = end
    return _merged(case, b"".join([*pieces, base[at:]]), base)


def _rebased_log(case: _Case, approved: Sequence[str]) -> bytes:
    new = _after_ancestors(case, case.body)
    _check_known(case, approved, [event.id for event in new])
    chosen = [event for event in new if event.id in approved]
    barriers = [event.id for event in chosen if event.is_barrier]
    if barriers:
        raise BranchError(
            f"tool calls and their results are never replayed, whatever is approved: {', '.join(barriers)}",
            reason="barrier",
            hint="approve messages alone, or choose the branch",
        )
    body = case.head + b"".join(event.line for event in chosen)
    parse_events(body)
    return body


def _check_known(case: _Case, approved: Sequence[str], known: Sequence[str]) -> None:
    for name in approved:
        if name not in known:
            raise NotFoundError(
                f"{case.seen} of {case.path} has no {name!r} after the common ancestor",
                hint=f"see what it has: mergepub branch show {quote(case.path)} {case.seen} --diff --json",
            )


# ── tool calls ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _after_ancestors(case: _Case, body: bytes) -> list[Event]:
    bases = [parse_events(base) for base in ancestor_bodies(case.keeper, case.path, case.standing)]
    return after(parse_events(body), [event for events in bases for event in events])


def _check_effects(case: _Case) -> None:
    """Refuse to go on where both sides called tools: both had effects, and somebody has to know.

    Raises:
        BranchError: they did.
    """
    ours = [event.id for event in _after_ancestors(case, case.body) if event.type == TOOL_CALL]
    theirs = [event.id for event in _after_ancestors(case, case.head) if event.type == TOOL_CALL]
    if ours and theirs:
        raise BranchError(
            f"both {case.seen} ({', '.join(ours)}) and the head ({', '.join(theirs)}) called tools since they parted; "
            "both had effects in the world",
            reason="effects",
            hint="look at both, and decide with --acknowledge-effects",
        )
