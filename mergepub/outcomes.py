"""What a command's work came to, as values: the loops return them, status.py renders them, scripts rely on them.

One class per row of the table of status blocks; no I/O, no rendering, no exit statuses (status.py knows those).
"""

from __future__ import annotations

from dataclasses import field

from mergepub.documents import Document  # noqa: TC001 - readers of the fields resolve their types at run time
from mergepub.values import dataclass


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What a merged version was made of, and how its conflicts were settled, if any were."""

    base_version: int
    their_version: int
    settled: int = 0
    favour: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A publish, append or delete that succeeded. ``body`` is the merged body where a merge was made, else None.

    ``incarnation`` is that of the version, where the store said it; ``open_branches`` counts the document's branches
    that nobody has decided about, None where the store was not heard about them. No key of an answer shows either.
    """

    version: int
    merge: MergeFacts | None = None
    unchanged: bool = False
    replayed: bool = False
    current_version: int | None = None
    body: bytes | None = None
    incarnation: str = field(default="", compare=False)
    open_branches: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document as the store answered it."""

    document: Document


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Plain version mismatch: nothing was tried beyond the compare-and-swap. ``deleting``: of a delete."""

    your_version: int
    current_version: int
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class Overlap:
    """The edits overlap: nothing was published; ``body`` is the marked body.

    ``unterminated``: the sides without a final newline inside a conflict ("ours", "theirs").
    """

    your_version: int
    current_version: int
    conflicts: int
    marker_size: int
    body: bytes
    unterminated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contention:
    """``retries`` merge attempts lost the race."""

    your_version: int
    current_version: int
    retries: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A conflict with a reason: base-unavailable, deleted, recreated, binary, events, no-base.

    ``current_version`` is the tombstone's when deleted.
    """

    your_version: int
    current_version: int
    reason: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A clean merge, for review: publish ``body`` with expected version ``publish_at``."""

    base_version: int
    their_version: int
    publish_at: int
    body: bytes
    settled: int = 0
    favour: str | None = None


@dataclass(frozen=True, slots=True)
class Branched:
    """Kept on a branch, whole: nothing was lost and nothing was decided.

    ``base_version`` is what the branch was made from, ``branch_revision`` its revision with this body. ``epoch`` is the
    writer's on the branch; no key shows it, and none the ``incarnation``.
    """

    branch: str
    base_version: int
    current_version: int
    branch_revision: int
    unchanged: bool = False
    replayed: bool = False
    epoch: int = field(default=1, compare=False)
    incarnation: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Queued:
    """Kept in the local queue, to be sent by ``sync``."""

    queue_id: str
    base_version: int


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision about a branch, or what it would come to (``dry_run``).

    ``version`` is the head's after it; ``decision`` its number, None of a dry run; ``branch`` is ``BRANCH@R``.
    ``body``: the resulting body, of a dry run.
    """

    version: int
    decision: int | None
    strategy: str
    branch: str
    replayed: bool = False
    current_version: int | None = None
    dry_run: bool = False
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class MergeAttempt:
    """Told to a listener while a merge loop runs: attempt number (from 1), what was merged, how many conflicts."""

    attempt: int
    base_version: int
    their_version: int
    conflicts: int


Outcome = Published | Fetched | Mismatch | Overlap | Contention | Refused | Candidate | Branched | Queued | Decided
