"""Branches on a SQL database: siblings, revisions, owners and their epochs, ancestors; sqldecisions.py has decisions.

Functions of a transaction, called by ``SqlBranchStore``. The rules they keep stand in branchrules.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mergepub.errors import InvalidStoreError, VersionConflictError
from mergepub.histories import (
    ABANDONED,
    OPEN,
    REJECTED,
    Branch,
    BranchReceipt,
    BranchRevision,
    HeadPlace,
    Owner,
    Place,
    Standing,
)
from mergepub.stores import branchrules, refusals
from mergepub.stores.sql import (
    Before,
    Head,
    Transaction,
    Write,
    body_of,
    find_head,
    head_of,
    publish_head,
    put_body,
    put_revision,
)
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.documents import Receipt

_BRANCH = """SELECT b.id, b.name, b.incarnation, b.state, p.name, b.base_revision, b.base_digest, b.base_version,
        b.head_revision, b.head_digest, r.parents
    FROM documents d
    JOIN branches b ON b.incarnation = d.incarnation
    LEFT JOIN branches p ON p.id = b.parent
    LEFT JOIN revisions r ON r.branch = b.id AND r.revision = 1
    WHERE d.path = ?"""

_REVISION = """SELECT r.digest, r.parents, r.author, r.message, r.modified, r.link, d.kind
    FROM revisions r
    JOIN branches b ON b.id = r.branch
    JOIN documents d ON d.incarnation = b.incarnation
    WHERE r.branch = ? AND r.revision = ?"""

_ORIGINS = """SELECT r.parents FROM branches b JOIN revisions r ON r.branch = b.id AND r.revision = 1
    WHERE b.incarnation = ? AND b.name = ?"""

_OWN = """INSERT INTO branch_owners (branch, owner, epoch, revision) VALUES (?, ?, ?, ?)
    ON CONFLICT (branch, owner) DO UPDATE SET epoch = excluded.epoch, revision = excluded.revision"""

_SIBLING = """INSERT INTO branches (id, incarnation, name, parent, base_revision, base_digest, base_version,
        head_revision, head_digest, state)
    VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)"""


@dataclass(frozen=True, slots=True)
class Row:
    """A branch with the id that its tables use."""

    id: str
    branch: Branch


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def head_place(head: Head) -> HeadPlace:
    """The head as resolvers see it."""
    place = Place(head.branch_name, head.revision)
    return HeadPlace(head.version, head.incarnation, head.kind, place, head.digest)


def places(parents: str) -> tuple[Place, ...]:
    """The ``BRANCH@R`` lines of a revision.

    Raises:
        InvalidStoreError: they are none.
    """
    try:
        return tuple(Place(name, int(number)) for name, _, number in (line.partition("@") for line in parents.split()))
    except ValueError:
        raise damaged("what a revision was made from") from None


def damaged(what: str) -> InvalidStoreError:
    """Something of a branch or a decision is not what was written."""
    return InvalidStoreError(f"{what} is damaged in the store", hint="mergepub verify")


def find_branch(tx: Transaction, path: str, name: str) -> Row:
    """The branch of this name, of the newest incarnation that has one, with its owners.

    Raises:
        NotFoundError: no such document or branch.
    """
    row = tx.row(f"{_BRANCH} AND b.name = ? ORDER BY d.first_version DESC LIMIT 1", path, name)
    if row is None:
        head_of(tx, path)
        raise branchrules.no_branch(path, name)
    owners = tx.rows("SELECT owner, epoch, revision FROM branch_owners WHERE branch = ? ORDER BY owner", row[0])
    return _row(row, tuple(Owner(*owner) for owner in owners))


def _row(row: tuple[Any, ...], owners: tuple[Owner, ...]) -> Row:
    branch, name, incarnation, state, parent, base, base_digest, base_version, revision, digest, parents = row
    base_facts = (parent, base or 0, base_digest, base_version)
    origins = places(parents or "")
    return Row(branch, Branch(name, incarnation, state, *base_facts, revision, digest, origins, owners))


def branches(tx: Transaction, path: str) -> tuple[HeadPlace, list[Branch]]:
    """The head, and every branch of every incarnation, the oldest incarnation first."""
    head = head_of(tx, path)
    owners: dict[str, list[Owner]] = {}
    for branch, *facts in tx.rows(
        """SELECT o.branch, o.owner, o.epoch, o.revision FROM branch_owners o
        JOIN branches b ON b.id = o.branch JOIN documents d ON d.incarnation = b.incarnation
        WHERE d.path = ? ORDER BY o.owner""",
        path,
    ):
        owners.setdefault(branch, []).append(Owner(*facts))
    rows = tx.rows(f"{_BRANCH} ORDER BY d.first_version, b.base_version, b.name", path)
    return head_place(head), [_row(row, tuple(owners.get(row[0], ()))).branch for row in rows]


def revision(tx: Transaction, path: str, name: str, number: int | None) -> BranchRevision:
    """One revision of a branch, its end where ``number`` is None.

    Raises:
        NotFoundError: no such document, branch or revision; ``tombstone`` is set where it is one.
    """
    row = find_branch(tx, path, name)
    branch = row.branch
    asked = branch.revision if number is None else number
    found = tx.row(_REVISION, row.id, asked)
    if found is None:
        raise branchrules.no_revision(path, name, asked, branch.revision)
    digest, parents, author, message, modified, _, kind = found
    if digest is None:
        raise refusals.is_tombstone(path, _number_of(tx, path, row.id, asked))
    body = body_of(tx, path, digest)
    facts = (places(parents), author, message, modified, kind)
    return BranchRevision(branch.incarnation, Place(name, asked), body, digest, *facts)


def _number_of(tx: Transaction, path: str, branch: str, revision_: int) -> int:
    """The newest version that refers to a revision; 0 where none does."""
    row = tx.row(
        "SELECT COALESCE(MAX(number), 0) FROM versions WHERE path = ? AND branch = ? AND revision = ?",
        *(path, branch, revision_),
    )
    assert row is not None, "an aggregate has a row"
    return int(row[0])


def ancestors(tx: Transaction, incarnation: str, one: Place, other: Place) -> tuple[Place, ...]:
    """All best common ancestors of two revisions."""
    known: dict[str, tuple[Place, ...]] = {}

    def origins(name: str) -> tuple[Place, ...]:
        if name not in known:
            row = tx.row(_ORIGINS, incarnation, name)
            known[name] = places(row[0]) if row else ()
        return known[name]

    return branchrules.common_ancestors(one, other, origins)


def standing(tx: Transaction, path: str, name: str, version: int | None, number: int | None) -> Standing:
    """Head, branch and their common ancestors; none of a branch of another incarnation."""
    head = _place_of(tx, path, head_of(tx, path), version)
    branch = find_branch(tx, path, name).branch
    end = Place(name, branch.revision if number is None else number)
    if not 0 < end.revision <= branch.revision:
        raise branchrules.no_revision(path, name, end.revision, branch.revision)
    together = branch.incarnation == head.incarnation
    return Standing(head, branch, ancestors(tx, head.incarnation, head.place, end) if together else ())


def _place_of(tx: Transaction, path: str, head: Head, version: int | None) -> HeadPlace:
    if version in (None, head.version):
        return head_place(head)
    row = tx.row(
        """SELECT v.number, b.incarnation, d.kind, b.name, v.revision, r.digest FROM versions v
        JOIN revisions r ON r.branch = v.branch AND r.revision = v.revision
        JOIN branches b ON b.id = v.branch JOIN documents d ON d.incarnation = b.incarnation
        WHERE v.path = ? AND v.number = ?""",
        *(path, version),
    )
    if row is None:
        raise branchrules.other_head(path, version or 0, head.version)
    number, incarnation, kind, name, revision_, digest = row
    return HeadPlace(number, incarnation, kind, Place(name, revision_), digest)


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Base:
    """What a sibling is made from: the revision of a version, as the writer recorded it where it did."""

    number: int
    incarnation: str | None = None
    digest: str | None = None


def publish_or_branch(tx: Transaction, write: Write, base: Base) -> Receipt | BranchReceipt:
    """See ``BranchStore.branch``."""
    _check_base(tx, write.path, base)
    try:
        return publish_head(tx, write, base.number)
    except VersionConflictError as conflict:
        if conflict.reason:
            raise
    return _sibling(tx, head_of(tx, write.path), write, base)


def _check_base(tx: Transaction, path: str, base: Base) -> None:
    """Refuse a recorded base that is not what the document holds under its number: never guessed."""
    head = find_head(tx, path)
    if head is None or head.digest is None or base.number == 0:
        return
    if base.incarnation not in (None, "", head.incarnation):
        raise refusals.recreated(path, base.number, head.version)
    if base.digest is not None and base.number >= head.first_version:
        row = tx.row(
            """SELECT r.digest FROM versions v JOIN revisions r ON r.branch = v.branch AND r.revision = v.revision
            WHERE v.path = ? AND v.number = ?""",
            *(path, base.number),
        )
        if row is None or row[0] != base.digest:
            raise refusals.other_base(path, base.number, head.version)


def _sibling(tx: Transaction, head: Head, write: Write, base: Base) -> BranchReceipt:
    before, digest = _base_revision(tx, head, write.path, base)
    if digest == write.digest:
        return BranchReceipt("", 0, 0, base.number, head.version, head.incarnation, unchanged=True)
    assert write.digest is not None, "a sibling has a body"
    name = branchrules.sibling_name(base.number, Place(before.name, before.revision), write.digest)
    known = tx.row("SELECT id, state FROM branches WHERE incarnation = ? AND name = ?", head.incarnation, name)
    if known:
        epoch, replayed = _own_again(tx, known[0], known[1], write.author)
        return BranchReceipt(name, 1, epoch, base.number, head.version, head.incarnation, replayed=replayed)
    if write.body is not None:
        parent = b"" if digest is None else body_of(tx, write.path, digest)
        branchrules.check_extension(write.path, head.kind, parent, write.body)
    branch = os.urandom(8).hex()
    parent_id = before.branch or None
    put_body(tx, write.digest, write.body)
    named = (branch, head.incarnation, name, parent_id, before.revision, digest, base.number, write.digest, OPEN)
    tx.put(_SIBLING, *named)
    on = Before(branch, name, 0, before.modified, before.link, head.incarnation, head.kind)
    put_revision(tx, on, write, parents=str(before) if before.revision else "")
    tx.put(_OWN, branch, write.author, 1, 1)
    return BranchReceipt(name, 1, 1, base.number, head.version, head.incarnation)


def _base_revision(tx: Transaction, head: Head, path: str, base: Base) -> tuple[Before, str | None]:
    """The revision that version ``base.number`` refers to, with its digest; of 0 the emptiness before the first."""
    if base.number == 0:
        first = tx.row(
            """SELECT b.id, b.name FROM versions v JOIN branches b ON b.id = v.branch
            WHERE v.path = ? AND v.number = ?""",
            *(path, head.first_version),
        )
        assert first is not None, "an incarnation has a first version"
        return Before(first[0], first[1], 0, "", "", head.incarnation, head.kind), None
    row = tx.row(
        """SELECT v.branch, b.name, v.revision, r.modified, r.link, r.digest FROM versions v
        JOIN revisions r ON r.branch = v.branch AND r.revision = v.revision
        JOIN branches b ON b.id = v.branch WHERE v.path = ? AND v.number = ?""",
        *(path, base.number),
    )
    if row is None:
        raise refusals.other_base(path, base.number, head.version)
    branch, name, revision_, modified, link, digest = row
    return Before(branch, name, revision_, modified, link, head.incarnation, head.kind), digest


def _own_again(tx: Transaction, branch: str, state: str, author: str) -> tuple[int, bool]:
    """The same content on the same base is the same branch, and another writer of it one more owner.

    Gives the author's epoch, and whether it is the same author again.
    """
    row = tx.row("SELECT epoch FROM branch_owners WHERE branch = ? AND owner = ?", branch, author)
    if row:
        return row[0], True
    epoch = tx.row("SELECT COALESCE(MAX(epoch), 1) FROM branch_owners WHERE branch = ?", branch)
    assert epoch is not None, "an aggregate has a row"
    tx.put(_OWN, branch, author, epoch[0], 1)
    if state in (ABANDONED, REJECTED):  # somebody stands for it again: it is to be decided anew
        tx.put("UPDATE branches SET state = ? WHERE id = ?", OPEN, branch)
    return epoch[0], False


def extend_branch(tx: Transaction, write: Write, name: str, *, epoch: int | None, known: int | None) -> BranchReceipt:
    """See ``BranchStore.extend``."""
    head = head_of(tx, write.path)
    row = find_branch(tx, write.path, name)
    branch = row.branch
    branchrules.check_present(write.path, branch, head.incarnation)
    done = _extended_before(tx, head, row, write, known)
    if done:
        return done
    branchrules.check_open(write.path, branch, "extended")
    owner = branchrules.check_owner(write.path, branch, write.author, epoch)
    end = owner.revision if known is None else known
    if end != branch.revision:
        raise branchrules.grown(write.path, branch, end)
    if write.body is not None and branch.digest is not None:
        branchrules.check_extension(write.path, head.kind, body_of(tx, write.path, branch.digest), write.body)
    before = tx.row("SELECT modified, link FROM revisions WHERE branch = ? AND revision = ?", row.id, end)
    assert before is not None, "a branch holds its end"
    put_body(tx, write.digest, write.body)
    on = Before(row.id, name, end, before[0], before[1], head.incarnation, head.kind)
    put_revision(tx, on, write, parents=str(on))
    tx.put("UPDATE branches SET head_revision = ?, head_digest = ? WHERE id = ?", end + 1, write.digest, row.id)
    tx.put(_OWN, row.id, write.author, owner.epoch, end + 1)
    return BranchReceipt(name, end + 1, owner.epoch, branch.base_version, head.version, head.incarnation)


def _extended_before(tx: Transaction, head: Head, row: Row, write: Write, known: int | None) -> BranchReceipt | None:
    """The answer to an exact retry, and to a body that the branch ends with already."""
    branch = row.branch
    owner = next((owner for owner in branch.owners if owner.name == write.author), None)
    if owner is None:
        return None
    facts = (owner.epoch, branch.base_version, head.version, head.incarnation)
    if known is not None:
        next_one = tx.row("SELECT digest FROM revisions WHERE branch = ? AND revision = ?", row.id, known + 1)
        if next_one and next_one[0] == write.digest:
            return BranchReceipt(branch.name, known + 1, *facts, replayed=True)
    if branch.digest == write.digest:
        return BranchReceipt(branch.name, branch.revision, *facts, unchanged=True)
    return None


def take(tx: Transaction, path: str, name: str, author: str) -> Branch:
    """See ``BranchStore.take``."""
    head = head_of(tx, path)
    row = find_branch(tx, path, name)
    branchrules.check_present(path, row.branch, head.incarnation)
    branchrules.check_open(path, row.branch, "taken over")
    tx.put(_OWN, row.id, author, row.branch.epoch + 1, row.branch.revision)
    return find_branch(tx, path, name).branch


def abandon(tx: Transaction, path: str, name: str, author: str, epoch: int | None) -> Branch:
    """See ``BranchStore.abandon``."""
    head = head_of(tx, path)
    row = find_branch(tx, path, name)
    branchrules.check_present(path, row.branch, head.incarnation)
    branchrules.check_owner(path, row.branch, author, epoch)
    if row.branch.state != ABANDONED:
        branchrules.check_open(path, row.branch, "abandoned")
        tx.put("UPDATE branches SET state = ? WHERE id = ?", ABANDONED, row.id)
    return find_branch(tx, path, name).branch
