"""Checking a SQL store's integrity: digests, chains, numbering, heads. Reads only; one sentence for each fault.

Branches and decisions are checked in sqlverify_branches.py. What the chains cover is said at ``sql.link_of`` and
``sql.seal_of``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mergepub.documents import digest_of
from mergepub.stores import refusals, sqlverify_branches
from mergepub.stores.sql import Transaction, link_of, seal_of
from mergepub.values import dataclass

_PATHS = """SELECT path FROM heads UNION SELECT path FROM versions UNION SELECT path FROM documents ORDER BY 1"""

_REVISIONS = """SELECT r.branch, r.revision, r.digest, r.parents, r.previous, r.link, r.author, r.message, r.modified,
        r.source, b.name, b.head_revision, b.head_digest, d.incarnation, d.kind, d.first_version
    FROM documents d
    JOIN branches b ON b.incarnation = d.incarnation
    JOIN revisions r ON r.branch = b.id
    WHERE d.path = ? ORDER BY d.first_version, b.id, r.revision"""

_BRANCHES = """SELECT b.id, b.name, b.head_revision, b.head_digest FROM documents d
    JOIN branches b ON b.incarnation = d.incarnation WHERE d.path = ? ORDER BY d.first_version, b.id"""

_VERSIONS = "SELECT number, branch, revision, seal FROM versions WHERE path = ? ORDER BY number"

_STRAY_RECORDS = """SELECT 'merge record', version FROM merge_records m WHERE path = ? AND NOT EXISTS
        (SELECT 1 FROM versions v WHERE v.path = m.path AND v.number = m.version)
    UNION ALL SELECT 'append key', version FROM append_keys k WHERE path = ? AND NOT EXISTS
        (SELECT 1 FROM versions v WHERE v.path = k.path AND v.number = k.version)"""


@dataclass(frozen=True, slots=True)
class _Revision:
    """A revision with its branch and document. Fields in the order of ``_REVISIONS``."""

    branch: str
    revision: int
    digest: str | None
    parents: str
    previous: str
    link: str
    author: str
    message: str
    modified: str
    source: str | None
    branch_name: str
    head_revision: int
    head_digest: str | None
    incarnation: str
    kind: str
    first_version: int

    @property
    def name(self) -> str:
        return f"{self.branch_name}@{self.revision}"


Revisions = dict[tuple[str, int], _Revision]
"""Every revision of a document by branch id and number."""


def paths(tx: Transaction) -> list[str]:
    """Every path that any table of documents knows."""
    return [path for (path,) in tx.rows(_PATHS)]


def faults(tx: Transaction, path: str) -> list[str]:
    """What is wrong with the document at ``path``, one sentence each.

    Raises:
        NotFoundError: no table knows the path.
    """
    revisions = {(row[0], row[1]): _Revision(*row) for row in tx.rows(_REVISIONS, path)}
    versions = tx.rows(_VERSIONS, path)
    if not revisions and not versions and not tx.row("SELECT 1 FROM heads WHERE path = ?", path):
        raise refusals.never_existed(path)
    found = [
        *_bodies(tx, revisions),
        *_branches(tx, path, revisions),
        *_links(path, revisions),
        *_numbering(path, versions, revisions),
        *_lives(versions, revisions),
        *_head(tx, path, versions, revisions),
        *_records(tx, path),
        *sqlverify_branches.faults(tx, path, {number: (branch, at) for number, branch, at, _ in versions}, revisions),
    ]
    return [f"{path}: {fault}" for fault in found]


def _bodies(tx: Transaction, revisions: Revisions) -> Iterator[str]:
    sound: dict[str, str | None] = {}
    for revision in revisions.values():
        digest = revision.digest
        if digest is None:
            continue
        if digest not in sound:
            sound[digest] = _body_fault(tx, digest)
        if sound[digest]:
            yield f"{sound[digest]} ({revision.name})"


def _body_fault(tx: Transaction, digest: str) -> str | None:
    row = tx.row("SELECT size, body FROM bodies WHERE digest = ?", digest)
    if row is None:
        return f"the body {digest[:12]} is missing"
    size, body = row[0], row[1]
    if not isinstance(body, bytes | bytearray | memoryview) or digest_of(bytes(body)) != digest:
        return f"the body {digest[:12]} does not have its digest"
    return None if size == len(body) else f"the body {digest[:12]} does not have its size"


def _branches(tx: Transaction, path: str, revisions: Revisions) -> Iterator[str]:
    """Every branch holds its revisions from 1 to its head, whose digest it names."""
    for branch, name, head, digest in tx.rows(_BRANCHES, path):
        present = [number for b, number in revisions if b == branch]
        for number in sorted(set(range(1, head + 1)) - set(present)):
            yield f"the revision {name}@{number} is missing"
        for number in sorted(set(present) - set(range(1, head + 1))):
            yield f"the revision {name}@{number} is above its branch's head {head}"
        if (branch, head) in revisions and revisions[branch, head].digest != digest:
            yield f"the branch {name} names another digest than its head {name}@{head}"


def _links(path: str, revisions: Revisions) -> Iterator[str]:
    """The hash chain: each link is what its revision's facts give, and the next one builds on it."""
    links = {revision.link for revision in revisions.values()} | {""}
    for (branch, number), each in revisions.items():
        if each.link != _link(path, each):
            yield f"the revision {each.name} was changed: its link does not fit its facts"
        before = revisions.get((branch, number - 1))
        if (before and each.previous != before.link) or each.previous not in links:
            yield f"the revision {each.name} does not build on the one before it: the hash chain is broken"


def _link(path: str, each: _Revision) -> str:
    return link_of(
        each.previous,
        path=path,
        incarnation=each.incarnation,
        kind=each.kind,
        branch=each.branch_name,
        revision=each.revision,
        digest=each.digest,
        parents=each.parents,
        author=each.author,
        message=each.message,
        modified=each.modified,
        source=each.source,
    )


def _numbering(path: str, versions: list[tuple[Any, ...]], revisions: Revisions) -> Iterator[str]:
    """Versions count from 1 without holes, and each seal builds on the one before."""
    expected, seal, former = 1, "", None
    for number, branch, revision, own_seal in versions:
        if number != expected:
            yield _hole(expected, number)
        each = revisions.get((branch, revision))
        if each is None:
            yield f"version {number} names a revision that is missing"
        elif number == expected and own_seal != seal_of(seal, path=path, number=number, link=each.link):
            yield f"version {number} was changed: its seal does not fit its revision and the version before"
        elif former and each.previous == former.link and each.modified < former.modified:
            # Only on what it was made on: a decision may well refer back to an older revision.
            yield f"version {number} is older than the version before it"
        expected, seal, former = number + 1, own_seal, each


def _hole(expected: int, number: int) -> str:
    if number == expected + 1:
        return f"version {expected} is missing"
    return f"versions {expected} to {number - 1} are missing" if number > expected else f"version {number} is no number"


def _lives(versions: list[tuple[Any, ...]], revisions: Revisions) -> Iterator[str]:
    """An incarnation begins where its document says, at version 1 or on a tombstone; a tombstone ends one."""
    before: _Revision | None = None
    for number, branch, revision, _ in versions:
        each = revisions.get((branch, revision))
        if each and (before is None or each.incarnation != before.incarnation):
            if before and before.digest is not None:
                yield f"version {number} begins a new incarnation, and the version before is no tombstone"
            if each.first_version != number:
                yield f"version {number} begins an incarnation whose document names {each.first_version} as its first"
        elif each and before and before.digest is None:
            yield f"version {number} follows a tombstone in the same incarnation"
        before = each or before


def _head(tx: Transaction, path: str, versions: list[tuple[Any, ...]], revisions: Revisions) -> Iterator[str]:
    head = tx.row("SELECT version, branch, revision, digest FROM heads WHERE path = ?", path)
    if head is None:
        yield "there is no head"
        return
    if not versions:
        yield "there is a head and no version"
        return
    number, branch, revision, _ = versions[-1]
    if head[0] != number:
        yield f"the head is version {head[0]}, the newest version is {number}"
    elif head[1:3] != (branch, revision):
        yield f"the head and version {number} name different revisions"
    each = revisions.get((head[1], head[2]))
    if each and each.digest != head[3]:
        yield f"the head names another digest than its revision {each.name}"


def _records(tx: Transaction, path: str) -> Iterator[str]:
    for record, version in tx.rows(_STRAY_RECORDS, path, path):
        yield f"the {record} of version {version} has no such version"
