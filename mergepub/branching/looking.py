"""What there is: branches against the head, one branch's changes by name, documents with something to decide."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.calls import branching, insist
from mergepub.documents import EVENTS
from mergepub.errors import BranchError
from mergepub.events import after, parse_events
from mergepub.stores.branchrules import best_of, reach

if TYPE_CHECKING:
    from mergepub.events import Event
    from mergepub.histories import Branch, HeadPlace, Place, Standing
    from mergepub.stores.contract import BranchStore, Store


@dataclass(frozen=True, slots=True)
class Against:
    """One branch against the head: common ancestors, and how many revisions each has that the other has not.

    A branch of an earlier incarnation has neither.
    """

    branch: Branch
    ancestors: tuple[Place, ...] = ()
    ahead: int | None = None
    behind: int | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The head of a document and all its branches."""

    path: str
    head: HeadPlace
    branches: tuple[Against, ...]


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change of a text branch since the common ancestor; ``line`` (from 1) is where it stands there."""

    id: str
    line: int
    removed: bytes
    added: bytes
    span: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a branch changed since the common ancestor: hunks of a text, events of a log."""

    standing: Standing
    base: bytes
    body: bytes
    hunks: tuple[Hunk, ...] = ()
    events: tuple[Event, ...] = ()


def overview(store: Store, path: str) -> Overview:
    """The head and every branch, each against the head.

    Raises:
        NotFoundError: the document never existed.
    """
    keeper = branching(store)
    head, branches = insist(lambda: keeper.branches(path))
    return Overview(path, head, tuple(_against(head, branches)))


def _against(head: HeadPlace, branches: list[Branch]) -> list[Against]:
    present = {branch.name: branch for branch in branches if branch.incarnation == head.incarnation}

    def origins(name: str) -> tuple[Place, ...]:
        return present[name].origins

    ours = reach([head.place], origins)
    known: dict[tuple[Place, ...], dict[str, int]] = {}  # siblings of one base share what lies below it
    rows = []
    for branch in branches:
        if branch.incarnation != head.incarnation:
            rows.append(Against(branch))
            continue
        if branch.origins not in known:
            known[branch.origins] = reach(branch.origins, origins)
        theirs = known[branch.origins] | {branch.name: branch.revision}
        common = {name: min(theirs[name], ours[name]) for name in theirs.keys() & ours.keys()}
        shared = sum(common.values())
        counts = (sum(theirs.values()) - shared, sum(ours.values()) - shared)
        rows.append(Against(branch, best_of(common, origins), *counts))
    return rows


def changes(store: Store, path: str, branch: str, revision: int | None = None) -> Changes:
    """What the branch changed since its common ancestor with the head.

    Raises:
        BranchError: a branch of an earlier incarnation, or several common ancestors: none is guessed.
        NotFoundError: no such document, branch or revision.
    """
    keeper = branching(store)
    standing = insist(lambda: keeper.standing(path, branch, revision=revision))
    body = insist(lambda: keeper.revision(path, branch, revision)).body
    check_together(path, standing)
    if standing.head.kind == EVENTS:
        bases = [parse_events(each) for each in ancestor_bodies(keeper, path, standing)]
        new = after(parse_events(body), [event for events in bases for event in events])
        return Changes(standing, b"", body, events=tuple(new))
    base = only_ancestor(keeper, path, standing)
    return Changes(standing, base, body, hunks=tuple(hunks_of(base, body)))


def check_together(path: str, standing: Standing) -> None:
    """Refuse to hold a branch of an earlier incarnation against the head.

    Raises:
        BranchError: it is one.
    """
    if standing.branch.incarnation != standing.head.incarnation:
        raise BranchError(
            f"{standing.branch.name} is a branch of an earlier life of {path}: it has nothing in common with the head",
            reason="recreated",
            hint=f"mergepub branch show {quote(path)} {standing.branch.end} --body-only",
        )


def ancestor_bodies(keeper: BranchStore, path: str, standing: Standing) -> list[bytes]:
    """The bodies of all common ancestors."""
    return [insist(lambda p=p: keeper.revision(path, p.branch, p.revision)).body for p in standing.ancestors]  # type: ignore[misc]  # a default binds the loop's value; mypy cannot infer it


def only_ancestor(keeper: BranchStore, path: str, standing: Standing) -> bytes:
    """The body of the one common ancestor; empty where there is none.

    Raises:
        BranchError: there are several, and none is guessed.
    """
    if len(standing.ancestors) > 1:
        names = ", ".join(map(str, standing.ancestors))
        raise BranchError(
            f"{standing.branch.name} and the head have several common ancestors ({names}); none is guessed",
            reason="several-ancestors",
            hint=f"decide with --continue FILE, after a look at them: "
            f"mergepub branch show {quote(path)} {standing.branch.end}",
        )
    bodies = ancestor_bodies(keeper, path, standing)
    return bodies[0] if bodies else b""


def hunks_of(base: bytes, body: bytes) -> list[Hunk]:
    """The changes that make ``body`` of ``base``, named ``h1`` ... in their order."""
    from mergepub.merge.myers import edit_script  # noqa: PLC0415 - listings need no engine

    return [
        Hunk(f"h{number}", base.count(b"\n", 0, a0) + 1, base[a0:a1], body[b0:b1], (a0, a1, b0, b1))
        for number, (a0, a1, b0, b1) in enumerate(edit_script(base, body), start=1)
    ]
