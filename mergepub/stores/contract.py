"""The store contract: the few operations every backend has, with their promises written at each.

A backend does all I/O of documents and decides nothing: no merging, no retrying, no parsing of bodies. What one system
can do and another cannot is data in ``Capabilities``; the conformance suite (tests/stores/conformance.py) reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, Protocol

from mergepub.documents import TEXT, Document, Listed, MergedFrom, Receipt, Revision, Version
from mergepub.values import dataclass

TYPE_CHECKING = False  # what typing calls by this name: values of branches are imported by those who use them
if TYPE_CHECKING:
    from mergepub.histories import (
        Branch,
        BranchReceipt,
        BranchRevision,
        Decision,
        DecisionReceipt,
        DecisionRequest,
        HeadPlace,
        Standing,
        Unresolved,
    )

MAX_BODY = 16 * 1024 * 1024

MOST_COUNTED = 100
"""Open branches of one document are counted up to this: a mention costs the same whatever there is."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do.

    ``max_bytes`` is the largest body in bytes it takes, None where it knows no limit; ``processes``: other processes
    can open the same store by its URL.
    """

    cas: Literal["atomic", "lock", "best-effort", "none"] = "atomic"
    history: Literal["full", "retained", "none"] = "full"
    detects_delete: bool = True
    server_merges: bool = False
    normalises: bool = False
    branches: bool = False
    batch_atomic: bool = False
    processes: bool = True
    max_bytes: int | None = MAX_BODY


def now() -> str:
    """The time as versions carry it: RFC 3339 in UTC with microseconds, so that text order is time order."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def incarnation_id() -> str:
    """A new random id for a document's life."""
    return os.urandom(16).hex()


def integer_version(number: int) -> Version:
    """The three faces of a version in a system that counts: all of them the number."""
    return Version(number, str(number), str(number))


class Store(Protocol):
    """One store of documents.

    Every method may raise ``UnavailableError`` (and its subclasses), ``DeniedError``, ``InvalidStoreError``. Paths are
    valid document paths (``paths.check_path``); the caller has checked them. Every answer comes from one consistent
    state of the store.
    """

    @property
    def url(self) -> str:
        """The URL that opens this store again, without secrets."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do."""
        ...

    def fetch(self, path: str, version: int | None = None) -> Document:
        """The head, or an immutable version, byte for byte as it was stored.

        ``current`` is the head's number in the same consistent state.

        Raises:
            NotFoundError: no such document or version; ``tombstone`` is set when the document is deleted (head asked
                for) or the asked version is a tombstone.
        """
        ...

    def publish(
        self,
        path: str,
        body: bytes,
        expected: Version,
        *,
        author: str = "",
        message: str = "",
        merged_from: MergedFrom | None = None,
        source: str | None = None,
        kind: str = TEXT,
    ) -> Receipt:
        """Make ``body`` the next version if the head is ``expected`` (or ABSENT and there is no document now).

        One atomic step, checked in this order: exact retry (in the present incarnation of a document that is not
        deleted, version expected + 1 has this digest - for ABSENT the incarnation's first version -, or a merge record
        has this pair of expected number and digest of the caller's body): ``replayed``; the body equals the head's:
        ``unchanged``; compare-and-swap. A yes is durable: it survives ``kill -9`` of everything.

        Raises:
            VersionConflictError: the head is another version (also when expected is above the head).
            DocumentExistsError: expected ABSENT and the document exists.
            DocumentDeletedError: the document is deleted and expected is not ABSENT.
            RecreatedError: expected is of an earlier incarnation than the head's.
            NotFoundError: expected is not ABSENT and the document never existed.
            RejectedError: the body is over the limit, or a label holds NUL.
        """
        ...

    def append(
        self,
        path: str,
        body: bytes,
        *,
        key: str,
        author: str = "",
        message: str = "",
        expected: Version | None = None,
    ) -> Receipt:
        """Add ``body`` to the end of whatever the head is; a newline goes between where a non-empty head lacks it.

        ``key`` is random, made once per command, and kept with the version: the same key with the same digest of
        ``body`` answers the first version, ``replayed``. With ``expected`` it is a compare-and-swap as well: for who
        has to know what stands before.

        Raises:
            VersionConflictError: the head is another version than ``expected``.
            NotFoundError: missing or deleted document (``tombstone`` set).
            RejectedError: the result is over the limit, or the key is known with another body.
        """
        ...

    def delete(self, path: str, expected: Version, *, author: str = "", message: str = "") -> Receipt:
        """Put a tombstone (a version without a body) on the head if it is ``expected``.

        A tombstone at expected + 1 in the present incarnation is ``replayed``.

        Raises: as ``publish``; ``NotFoundError`` when the document never existed.
        """
        ...

    def versions(self, path: str, *, before: int | None = None, limit: int | None = None) -> Iterator[Revision]:
        """History, newest first, tombstones and earlier incarnations included; only versions below ``before``.

        Raises:
            NotFoundError: the document never existed.
        """
        ...

    def list(
        self, prefix: str = "/", *, after: str | None = None, limit: int | None = None, deleted: bool = False
    ) -> Iterator[Listed]:
        """Documents whose path is ``prefix`` or lies below it, by path in code point order, only paths above ``after``.

        ``deleted`` adds those whose head is a tombstone.
        """
        ...

    def verify(self, path: str | None = None) -> Iterator[str]:
        """Check digests, hash chain and numbering of one document or all; yields one sentence for each fault found."""
        ...

    def close(self) -> None:
        """Release what the store holds. Closing twice is fine."""
        ...


class BranchStore(Store, Protocol):
    """A store that keeps branches (capability ``branches``): siblings of a base, and the decisions about them.

    A writer is its ``author``. Every refusal that somebody has to look at is a ``BranchError``; nothing is changed by
    it. Repeating any call after a lost answer changes nothing and is answered as before, ``replayed``.
    """

    def branch(
        self,
        path: str,
        body: bytes,
        expected: Version,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,
        incarnation: str | None = None,
        digest: str | None = None,
        kind: str = TEXT,
    ) -> Receipt | BranchReceipt:
        """Publish where the head is ``expected``; else keep ``body`` as an immutable sibling of that version.

        One atomic step. ``incarnation`` and ``digest`` are what the writer recorded of its base, where it did. The
        same body on the same base is the same branch, with one more owner when another author brings it; a body that
        equals its base is no branch (``unchanged``).

        Raises:
            DocumentDeletedError: the document is deleted.
            RecreatedError: the base is of another incarnation than the head's.
            BaseUnavailableError: version ``expected`` is not there, or not the one that was recorded.
            NotFoundError, RejectedError: as ``publish``.
        """
        ...

    def extend(
        self,
        path: str,
        branch: str,
        body: bytes,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,
        epoch: int | None = None,
        known: int | None = None,
    ) -> BranchReceipt:
        """Add a revision to the end of one's own open branch.

        ``epoch`` is the one that the writer holds, ``known`` the end that it builds on; where they are None, what the
        store last told this author counts.

        Raises:
            BranchError: fenced off by a newer epoch, never owned, not open, or the branch has another end (stale).
            NotFoundError: no such branch.
        """
        ...

    def branches(self, path: str) -> tuple[HeadPlace, list[Branch]]:
        """The head, and every branch of every incarnation, the oldest incarnation first."""
        ...

    def revision(self, path: str, branch: str, revision: int | None = None) -> BranchRevision:
        """One revision of a branch with its body; its end where ``revision`` is None.

        Raises:
            NotFoundError: no such branch or revision.
        """
        ...

    def standing(self, path: str, branch: str, *, version: int | None = None, revision: int | None = None) -> Standing:
        """Head, branch and all their best common ancestors, from one consistent state.

        ``version`` and ``revision`` ask for those of an earlier version and revision instead: what a resolver saw.

        Raises:
            NotFoundError: no such branch or revision.
            VersionConflictError: no such version.
        """
        ...

    def unresolved(self, prefix: str = "/", *, limit: int = 1000) -> list[Unresolved]:
        """Documents at or below ``prefix`` whose present incarnation has open branches, by path."""
        ...

    def take(self, path: str, branch: str, *, author: str) -> Branch:
        """Raise ``author``'s epoch on an open branch above everybody's: writers with an older one are fenced off."""
        ...

    def abandon(self, path: str, branch: str, *, author: str, epoch: int | None = None) -> Branch:
        """End one's own open branch, visibly. Repeating it is fine."""
        ...

    def decide(self, path: str, request: DecisionRequest) -> DecisionReceipt:
        """Compare both heads that the resolver saw, write the decision, and move the head where it says so.

        Raises:
            VersionConflictError: the head is another version than the resolver saw.
            BranchError: the branch grew unread, is closed, or an undo comes too late.
            NotFoundError: no such branch or decision.
        """
        ...

    def decisions(self, path: str, *, before: int | None = None, limit: int | None = None) -> list[Decision]:
        """The audit history, newest first; only decisions numbered below ``before``."""
        ...
