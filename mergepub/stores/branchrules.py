"""The rules of branches and decisions, pure: what every backend checks, says and computes about them alike.

Nothing here reads or writes a store. Refusals are ``BranchError`` (look, then decide again) or the version conflicts of
``refusals``; states are the words of ``histories``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from shlex import quote

from mergepub.documents import EVENTS
from mergepub.errors import BranchError, InputError, NotFoundError, RejectedError, VersionConflictError
from mergepub.histories import (
    CHOOSE,
    CONTINUE,
    DEFAULT,
    MERGED,
    OPEN,
    REBASE,
    REJECT,
    REJECTED,
    SUPERSEDED,
    UNDO,
    Branch,
    DecisionRequest,
    Owner,
    Place,
)

Origins = Callable[[str], tuple[Place, ...]]
"""The parents of a branch's first revision, by the branch's name."""

STRATEGIES = (CHOOSE, CONTINUE, REBASE, REJECT, UNDO)


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def sibling_name(base_version: int, base: Place, digest: str) -> str:
    """The name of the sibling with this first body on this base: made from the content, so a retry finds it."""
    named = sha256(f"{base}\n{digest}".encode()).hexdigest()
    return f"v{base_version}-{named[:12]}"


def continuation_name(version: int, strategy: str) -> str:
    """The name of the branch that a decision starts with version ``version``; no number is ever given twice."""
    return f"{'merge' if strategy == CONTINUE else 'undo'}-{version}"


def request_key(request: DecisionRequest, incarnation: str, digest: str | None) -> str:
    """What makes two decisions the same one: everything that was asked for, in hex."""
    facts = (
        incarnation,
        request.strategy,
        str(request.expected_head),
        str(request.seen or ""),
        request.resolver,
        request.reason,
        digest or "",
        "\n".join(request.approved),
        str(request.effects),
        str(request.undoes or ""),
    )
    return sha256("".join(f"{len(fact)}:{fact}," for fact in facts).encode()).hexdigest()


# ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_extension(path: str, kind: str, parent: bytes, body: bytes) -> None:
    """Refuse a body of an events document that does not extend its parent's bytes by whole lines of objects.

    Nothing is parsed: the parent's bytes must be a prefix that ends a line, and what follows must look like lines that
    begin with a brace.

    Raises:
        BranchError: ``reason: not-an-extension``.
        RejectedError: what was added cannot be events.
    """
    if kind != EVENTS:
        return
    if not body.startswith(parent) or (parent and not parent.endswith(b"\n")):
        raise BranchError(
            f"{path} is a log of events and grows at its end alone: the body does not begin with what it is made from",
            reason="not-an-extension",
            hint=advice(path, "not-an-extension", ""),
        )
    added = body[len(parent) :]
    if added and not (added.startswith(b"{") and added.endswith(b"\n")):
        raise RejectedError(
            f"{path} is a log of events: what is added must be one JSON object a line, each line ended",
            hint='such as {"id": "e1", "type": "message"} and a line end',
        )


# ── writers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class NoBranchError(NotFoundError):
    """The document is there, and has no such branch, revision or decision; its message names no store."""


def no_branch(path: str, name: str) -> NotFoundError:
    """``path`` has no such branch."""
    return NoBranchError(f"{path} has no branch {name}", hint=f"mergepub branches {quote(path)}")


def no_revision(path: str, name: str, revision: int, end: int) -> NotFoundError:
    """The branch has no such revision."""
    return NoBranchError(
        f"{path} has no revision {name}@{revision}; the branch ends at {name}@{end}",
        hint=f"mergepub branches {quote(path)}",
    )


def no_decision(path: str, number: int) -> NotFoundError:
    """``path`` has no such decision."""
    return NoBranchError(f"{path} has no decision {number}", hint=f"mergepub decisions {quote(path)}")


def check_present(path: str, branch: Branch, incarnation: str) -> None:
    """Refuse to change a branch of an earlier incarnation.

    Raises:
        BranchError: ``reason: recreated``.
    """
    if branch.incarnation != incarnation:
        raise BranchError(
            f"{branch.name} is a branch of an earlier life of {path}: it can be read, not changed or decided",
            reason="recreated",
            hint=advice(path, "recreated", branch.name),
        )


def check_open(path: str, branch: Branch, what: str) -> None:
    """Refuse to change a branch that does not grow any more.

    Raises:
        BranchError: ``reason`` is the state it is in.
    """
    if branch.state != OPEN:
        raise BranchError(
            f"the branch {branch.name} of {path} is {branch.state}, it cannot be {what}",
            reason=branch.state,
            hint=advice(path, branch.state, branch.name),
        )


def check_owner(path: str, branch: Branch, author: str, epoch: int | None) -> Owner:
    """The writer's row of the branch, at the epoch it holds.

    Raises:
        BranchError: ``reason: fenced``: somebody took the branch over, or the writer never owned it.
    """
    owner = next((owner for owner in branch.owners if owner.name == author), None)
    if owner is None:
        raise BranchError(
            f"the branch {branch.name} of {path} is not {author}'s",
            reason="fenced",
            hint=advice(path, "fenced", branch.name),
        )
    held = owner.epoch if epoch is None else epoch
    if held < branch.epoch:
        raise BranchError(
            f"the branch {branch.name} of {path} was taken over since: your epoch is {held}, it is at {branch.epoch}",
            reason="fenced",
            hint=advice(path, "fenced", branch.name),
        )
    return owner


def grown(path: str, branch: Branch, known: int) -> BranchError:
    """The branch has another end than the one the writer or resolver knew."""
    return BranchError(
        f"the branch {branch.name} of {path} ends at {branch.end}, not at {branch.name}@{known}",
        reason="stale",
        hint=advice(path, "stale", branch.name),
    )


def advice(path: str, reason: str, branch: str) -> str:
    """What to type after a refusal with this reason, about ``branch`` of ``path`` ("" where it is about none)."""
    name = quote(path)
    match reason:
        case "fenced":
            return f"take it over: mergepub branch take {name} {branch}"
        case "not-an-extension":
            return f"add your events to the end of what is there: mergepub fetch {name} --body-only"
        case "recreated" | "abandoned" if branch:
            return f"read what it holds: mergepub branch show {name} {branch} --body-only"
        case "merged" | "rejected" | "superseded":
            return f"see why, --undo takes a decision back: mergepub decisions {name}"
    return f"see what there is: mergepub branches {name}"


# ── decisions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def check_request(request: DecisionRequest) -> None:
    """Refuse a request that is none.

    Raises:
        InputError: naming what is missing.
    """
    if request.strategy not in STRATEGIES:
        raise InputError(f"{request.strategy!r} is no way to decide", hint=f"use one of {', '.join(STRATEGIES)}")
    if request.strategy == UNDO:
        missing = "the decision" if request.undoes is None else ""
    else:
        missing = "" if request.seen else "the branch and its revision"
        if request.strategy in (CONTINUE, REBASE) and request.body is None:
            missing = "the body"
    if missing:
        raise InputError(f"a decision by {request.strategy} needs {missing}")


def check_seen(path: str, request: DecisionRequest, head: int) -> None:
    """Refuse a resolver who saw another head.

    Raises:
        VersionConflictError: as of a stale publish.
    """
    if request.expected_head != head:
        raise other_head(path, request.expected_head, head)


def other_head(path: str, expected: int, head: int) -> VersionConflictError:
    """The head is another version than the resolver saw."""
    return VersionConflictError(
        f"{path} is at version {head}, the decision builds on version {expected}; nothing was decided",
        expected=expected,
        current=head,
        hint=f"mergepub branches {quote(path)}",
    )


def check_decidable(path: str, request: DecisionRequest, branch: Branch, head: Place) -> None:
    """Refuse a decision about a branch that is closed, is the head's own, or grew unread.

    Raises:
        BranchError: ``reason`` is the branch's state, or ``stale``.
    """
    assert request.seen is not None, "check_request saw to it"
    if branch.name == head.branch:
        raise BranchError(
            f"{branch.name} is the branch of the head of {path}: there is nothing to decide",
            reason=DEFAULT,
            hint=advice(path, DEFAULT, branch.name),
        )
    decidable = (OPEN,) if request.strategy == REJECT else (OPEN, SUPERSEDED)
    if branch.state not in decidable:
        raise BranchError(
            f"the branch {branch.name} of {path} is {branch.state}: there is nothing to decide",
            reason=branch.state,
            hint=advice(path, branch.state, branch.name),
        )
    if branch.revision != request.seen.revision:
        raise grown(path, branch, request.seen.revision)


def not_undoable(path: str, number: int, head: int) -> BranchError:
    """The decision's result is not the head any more."""
    return BranchError(
        f"decision {number} of {path} cannot be undone: its result is not the head any more, version {head} is",
        reason="stale",
        hint=advice(path, "stale", ""),
    )


def states_after(strategy: str, branch: str, head: str) -> dict[str, str]:
    """The new states of the two branches that a decision is about, by name."""
    match strategy:
        case "choose":
            return {branch: DEFAULT, head: SUPERSEDED}
        case "continue":
            return {branch: MERGED, head: SUPERSEDED}
        case "rebase":
            return {branch: MERGED}
    return {branch: REJECTED}


# ── ancestors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def reach(start: Iterable[Place], origins: Origins) -> dict[str, int]:
    """Every revision from which ``start`` is made, itself included, as the highest revision of each branch.

    A branch is a line: all below a revision of it is among its ancestors. So a history of any length costs a step for
    each branch in it.
    """
    found: dict[str, int] = {}
    waiting = list(start)
    while waiting:
        place = waiting.pop()
        if place.revision > found.get(place.branch, 0):
            if place.branch not in found:
                waiting.extend(origins(place.branch))
            found[place.branch] = place.revision
    return found


def common_ancestors(one: Place, other: Place, origins: Origins) -> tuple[Place, ...]:
    """All best common ancestors: those from which no other common ancestor is made. Several after a criss-cross."""
    left, right = reach([one], origins), reach([other], origins)
    return best_of({name: min(left[name], right[name]) for name in left.keys() & right.keys()}, origins)


def best_of(common: dict[str, int], origins: Origins) -> tuple[Place, ...]:
    """The revisions of ``common`` (the highest of each branch) from which no other one is made."""
    below = reach([place for name in common for place in origins(name)], origins)
    return tuple(Place(name, top) for name, top in sorted(common.items()) if below.get(name, 0) < top)
