"""The values of branches and decisions that travel between stores, loops and renderings: frozen, without behaviour.

A ``Place`` names one revision, ``BRANCH@R`` in text; everything else refers to revisions by it. Times, digests and
incarnations are as in ``documents``.
"""

from __future__ import annotations

import re

from mergepub.errors import InputError
from mergepub.values import dataclass

OPEN, DEFAULT, SUPERSEDED = "open", "default", "superseded"
MERGED, REJECTED, ABANDONED = "merged", "rejected", "abandoned"

CHOOSE, CONTINUE, REBASE, REJECT, UNDO = "choose", "continue", "rebase", "reject", "undo"

MAIN = "main"
"""The name of a document's first branch."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One revision of one branch; revision 0 is the emptiness before a branch's first."""

    branch: str
    revision: int

    def __str__(self) -> str:
        return f"{self.branch}@{self.revision}"


def parse_place(text: str) -> tuple[str, int | None]:
    """Split ``BRANCH@R`` into name and revision; a bare ``BRANCH`` has None.

    Raises:
        InputError: that is no branch.
    """
    name, at, revision = text.partition("@")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise InputError(f"{text!r} names no branch", hint="mergepub branches PATH lists them")
    if not at:
        return name, None
    if not re.fullmatch(r"[1-9][0-9]{0,15}", revision):
        raise InputError(f"{text!r} names no revision: they count from 1", hint=f"write {name}@1")
    return name, int(revision)


@dataclass(frozen=True, slots=True)
class Owner:
    """A writer of a branch: the epoch it holds, and the revision that it last knew as the branch's end."""

    name: str
    epoch: int
    revision: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of one incarnation of a document.

    ``parent``, ``base_revision``, ``base_digest``: what it started from (None, 0, None for a first branch);
    ``base_version``: the newest version number of that revision, 0 where it is none. ``revision`` and ``digest``: its
    end. ``origins``: the parents of its first revision, two for a continuation.
    """

    name: str
    incarnation: str
    state: str
    parent: str | None
    base_revision: int
    base_digest: str | None
    base_version: int
    revision: int
    digest: str | None
    origins: tuple[Place, ...] = ()
    owners: tuple[Owner, ...] = ()

    @property
    def end(self) -> Place:
        """Its newest revision."""
        return Place(self.name, self.revision)

    @property
    def epoch(self) -> int:
        """The highest epoch that anybody holds on it, 0 where it has no owner."""
        return max((owner.epoch for owner in self.owners), default=0)


@dataclass(frozen=True, slots=True)
class HeadPlace:
    """The head of a document and the revision it refers to; ``digest`` is None when it is a tombstone."""

    version: int
    incarnation: str
    kind: str
    place: Place
    digest: str | None


@dataclass(frozen=True, slots=True)
class BranchRevision:
    """One revision with its body. ``parents``: one, or two for a continuation."""

    incarnation: str
    place: Place
    body: bytes
    digest: str
    parents: tuple[Place, ...]
    author: str
    message: str
    modified: str
    kind: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What a resolver has to see of one branch, from one consistent state: head, branch, all common ancestors."""

    head: HeadPlace
    branch: Branch
    ancestors: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class BranchReceipt:
    """A store's yes to a sibling or to a revision of one's own branch.

    ``epoch`` is the writer's own. ``unchanged``: the body equalled what it was made from, nothing was stored.
    ``replayed``: it had happened before.
    """

    branch: str
    revision: int
    epoch: int
    base_version: int
    current: int
    incarnation: str
    unchanged: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What a resolver decides, and what it saw: head version and ``BRANCH@R``.

    ``strategy``: choose, continue, rebase, reject or undo. ``body``: of a continuation or a rebase. ``approved``: the
    events or hunks of a rebase. ``effects``: conflicting effects of tool calls were acknowledged. ``undoes``: the
    number of the decision that an undo takes back; its ``seen`` is None.
    """

    strategy: str
    expected_head: int
    seen: Place | None
    resolver: str = ""
    reason: str = ""
    body: bytes | None = None
    approved: tuple[str, ...] = ()
    effects: bool = False
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One row of the audit history. ``result_version`` is None where the head stayed as it was (reject)."""

    number: int
    incarnation: str
    strategy: str
    head_version: int
    head: Place
    branch: Place
    result_version: int | None
    result: Place | None
    resolver: str
    reason: str
    modified: str
    approved: tuple[str, ...] = ()
    effects: bool = False
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class DecisionReceipt:
    """A store's yes to a decision: ``head`` is the head's version after it, ``current`` the present one on a replay."""

    decision: Decision
    head: int
    replayed: bool = False
    current: int | None = None


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A document with open branches: how many (counted up to a hundred), and the name of one."""

    path: str
    count: int
    branch: str
