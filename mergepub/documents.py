"""The values that travel between stores, loops and renderings: frozen, without behaviour beyond their own fields.

No I/O, no policy. Times are RFC 3339 strings in UTC, digests lower-case hex of SHA-256, versions as described at
``Version``.
"""

from __future__ import annotations

from dataclasses import field
from hashlib import sha256

from mergepub.values import dataclass

TEXT = "text"
EVENTS = "events"


def digest_of(body: bytes) -> str:
    """SHA-256 of ``body`` in lower-case hex."""
    return sha256(body).hexdigest()


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a document, with three faces.

    ``number``: where the system counts in integers, else None. ``token``: opaque, compared for equality only, proves
    what a write builds on; None in a version that a caller only knows by number. ``ref``: fetches that version's body
    again; None where the system keeps no history.
    """

    number: int | None
    token: str | None = None
    ref: str | None = None


ABSENT = Version(0)
"""The expected version of a write that creates: the document must not exist now."""


@dataclass(frozen=True, slots=True)
class MergedFrom:
    """What a merged version was made of: base and their version numbers, digest of the caller's body."""

    base: int
    theirs: int
    digest: str


@dataclass(frozen=True, slots=True)
class Document:
    """A body as a store answered it, with everything that names it."""

    path: str
    body: bytes
    version: Version
    digest: str
    incarnation: str
    author: str
    message: str
    modified: str
    kind: str = TEXT
    current: int | None = None  # the head's number at the time of the answer


@dataclass(frozen=True, slots=True)
class Revision:
    """One row of a document's history: a version without its body. ``deleted`` marks a tombstone."""

    version: int
    digest: str
    size: int
    author: str
    message: str
    modified: str
    incarnation: str
    deleted: bool = False
    merged_from: MergedFrom | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """One row of a listing: the head of a document. ``deleted`` where the head is a tombstone."""

    path: str
    version: int
    digest: str
    modified: str
    kind: str = TEXT
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """A store's yes to a write.

    ``unchanged``: the body equalled the head's, no version was made. ``replayed``: the write had happened before;
    ``current`` is then the head's number when it has moved on. ``merged_from``: set on a replay that was recognised by
    its merge record. ``open_branches``: branches of the document that nobody has decided about, as far as the store
    says so.
    """

    version: Version
    incarnation: str
    unchanged: bool = False
    replayed: bool = False
    current: int | None = None
    merged_from: MergedFrom | None = None
    open_branches: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class BaseIdentity:
    """What an offline-capable writer starts from."""

    incarnation: str
    branch: str
    revision: int
    digest: str
