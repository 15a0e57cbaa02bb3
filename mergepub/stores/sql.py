"""What the SQL backends share: schema, statements, and the logic of every operation.

A backend brings a connection, a ``Dialect`` and two methods: ``_read`` runs an operation on one consistent state,
``_write`` runs it in a transaction that no other writer of the same path can interleave with. Connecting, locking,
migrating and the translation of errors are the backend's. Checking a store's integrity lives in sqlverify.py.

**Chains.** Every revision carries ``link``, the SHA-256 of its own facts and of ``previous``, the link of the revision
before it; every version carries ``seal``, the SHA-256 of its number, its revision's link and the seal of the version
before it. So a noted link or seal vouches for the whole history below. ``link_of`` and ``seal_of`` say what is hashed.
Decisions are a chain of their own, see ``sqldecisions.decision_link``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import field, replace
from hashlib import sha256
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mergepub.documents import EVENTS, TEXT, Document, Listed, MergedFrom, Receipt, Revision, Version, digest_of
from mergepub.errors import ContentionError, DamagedError, InputError, InvalidStoreError
from mergepub.stores import refusals
from mergepub.stores.contract import MAX_BODY, Capabilities, incarnation_id, integer_version, now
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.stores.groupcommit import Job

T = TypeVar("T")

MAIN = "main"
_ALL = 2**62  # a number above every version and every count of rows

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE documents (
            incarnation TEXT PRIMARY KEY,
            path {path} NOT NULL,
            kind TEXT NOT NULL,
            first_version BIGINT NOT NULL)""",
        "CREATE INDEX documents_by_path ON documents (path)",
        """CREATE TABLE branches (
            id TEXT PRIMARY KEY,
            incarnation TEXT NOT NULL REFERENCES documents (incarnation),
            name TEXT NOT NULL,
            parent TEXT REFERENCES branches (id),
            base_revision BIGINT,
            base_digest TEXT,
            head_revision BIGINT NOT NULL,
            head_digest TEXT,
            state TEXT NOT NULL,
            UNIQUE (incarnation, name))""",
        """CREATE TABLE branch_owners (
            branch TEXT NOT NULL REFERENCES branches (id),
            owner TEXT NOT NULL,
            epoch BIGINT NOT NULL,
            PRIMARY KEY (branch, owner))""",
        """CREATE TABLE bodies (
            digest TEXT PRIMARY KEY,
            size BIGINT NOT NULL,
            body {blob} NOT NULL)""",
        """CREATE TABLE revisions (
            branch TEXT NOT NULL REFERENCES branches (id),
            revision BIGINT NOT NULL,
            digest TEXT REFERENCES bodies (digest),
            parents TEXT NOT NULL,
            previous TEXT NOT NULL,
            link TEXT NOT NULL,
            author TEXT NOT NULL,
            message TEXT NOT NULL,
            modified TEXT NOT NULL,
            source TEXT,
            PRIMARY KEY (branch, revision))""",
        """CREATE TABLE versions (
            path {path} NOT NULL,
            number BIGINT NOT NULL,
            branch TEXT NOT NULL,
            revision BIGINT NOT NULL,
            seal TEXT NOT NULL,
            PRIMARY KEY (path, number),
            FOREIGN KEY (branch, revision) REFERENCES revisions (branch, revision))""",
        """CREATE TABLE heads (
            path {path} PRIMARY KEY,
            version BIGINT NOT NULL,
            branch TEXT NOT NULL,
            revision BIGINT NOT NULL,
            digest TEXT,
            FOREIGN KEY (path, version) REFERENCES versions (path, number))""",
        """CREATE TABLE merge_records (
            path {path} NOT NULL,
            version BIGINT NOT NULL,
            base BIGINT NOT NULL,
            theirs BIGINT NOT NULL,
            digest TEXT NOT NULL,
            PRIMARY KEY (path, version),
            FOREIGN KEY (path, version) REFERENCES versions (path, number))""",
        "CREATE INDEX merge_records_by_pair ON merge_records (path, base, digest)",
        """CREATE TABLE append_keys (
            path {path} NOT NULL,
            key TEXT NOT NULL,
            digest TEXT NOT NULL,
            version BIGINT NOT NULL,
            PRIMARY KEY (path, key),
            FOREIGN KEY (path, version) REFERENCES versions (path, number))""",
        """CREATE TABLE tokens (
            name TEXT PRIMARY KEY,
            key TEXT NOT NULL UNIQUE,
            digest TEXT NOT NULL,
            allowed TEXT NOT NULL,
            created TEXT NOT NULL,
            expires TEXT,
            revoked TEXT)""",
    ),
    (
        # What a writer knew as its branch's end; a branch's base by number; decisions, which are never changed.
        "ALTER TABLE branch_owners ADD COLUMN revision BIGINT NOT NULL DEFAULT 0",
        "CREATE INDEX branches_by_state ON branches (incarnation, state, name)",
        "ALTER TABLE branches ADD COLUMN base_version BIGINT NOT NULL DEFAULT 0",
        """CREATE TABLE merge_decisions (
            path {path} NOT NULL,
            number BIGINT NOT NULL,
            incarnation TEXT NOT NULL REFERENCES documents (incarnation),
            strategy TEXT NOT NULL,
            head_version BIGINT NOT NULL,
            head_branch TEXT NOT NULL,
            head_revision BIGINT NOT NULL,
            branch TEXT NOT NULL,
            branch_revision BIGINT NOT NULL,
            result_version BIGINT,
            result_branch TEXT,
            result_revision BIGINT,
            resolver TEXT NOT NULL,
            reason TEXT NOT NULL,
            modified TEXT NOT NULL,
            approved TEXT NOT NULL,
            effects BIGINT NOT NULL,
            undoes BIGINT,
            states TEXT NOT NULL,
            request TEXT NOT NULL,
            PRIMARY KEY (path, number),
            FOREIGN KEY (path, result_version) REFERENCES versions (path, number))""",
        "CREATE INDEX merge_decisions_by_request ON merge_decisions (path, request)",
    ),
    (
        # Decisions are chained too; ``Transaction.migrate`` links those that were made before.
        "ALTER TABLE merge_decisions ADD COLUMN link TEXT NOT NULL DEFAULT ''",
    ),
)
"""Ordered, never edited once released: schema number n is what the first n of them make."""

SCHEMA = len(MIGRATIONS)

_FETCH = """SELECT h.version, v.number, r.digest, r.author, r.message, r.modified, d.incarnation, d.kind, o.body
    FROM heads h
    LEFT JOIN versions v ON v.path = h.path AND v.number = COALESCE(?, h.version)
    LEFT JOIN revisions r ON r.branch = v.branch AND r.revision = v.revision
    LEFT JOIN branches b ON b.id = v.branch
    LEFT JOIN documents d ON d.incarnation = b.incarnation
    LEFT JOIN bodies o ON o.digest = r.digest
    WHERE h.path = ?"""

_VERSIONS = """SELECT v.number, r.digest, o.size, r.author, r.message, r.modified, r.source, b.incarnation,
        m.base, m.theirs, m.digest
    FROM versions v
    JOIN revisions r ON r.branch = v.branch AND r.revision = v.revision
    JOIN branches b ON b.id = v.branch
    LEFT JOIN bodies o ON o.digest = r.digest
    LEFT JOIN merge_records m ON m.path = v.path AND m.version = v.number
    WHERE v.path = ? AND v.number < ? ORDER BY v.number DESC LIMIT ?"""

_APPENDED = """SELECT k.digest, k.version, b.incarnation
    FROM append_keys k
    JOIN versions v ON v.path = k.path AND v.number = k.version
    JOIN branches b ON b.id = v.branch
    WHERE k.path = ? AND k.key = ?"""

_HEAD_FACTS = """h.version, h.branch, h.revision, h.digest, b.name, d.incarnation, d.kind, d.first_version,
        r.modified, r.link, v.seal,
        (SELECT COUNT(*) FROM (SELECT 1 FROM branches o WHERE o.incarnation = d.incarnation AND o.state = 'open'
            LIMIT 100) AS counted)
    FROM heads h
    JOIN versions v ON v.path = h.path AND v.number = h.version
    JOIN revisions r ON r.branch = h.branch AND r.revision = h.revision
    JOIN branches b ON b.id = h.branch
    JOIN documents d ON d.incarnation = b.incarnation"""

HEAD = f"SELECT {_HEAD_FACTS} WHERE h.path = ?"
"""The head of one path, as a ``Head``."""

HEADS = f"SELECT h.path, {_HEAD_FACTS} WHERE h.path = ANY(?)"
"""The heads of the paths in an array, each after its path; for systems that have arrays."""

# The comparison of compare-and-swap stands in the swap itself, whatever a backend's locks are worth.
_SWAP = """INSERT INTO heads (path, version, branch, revision, digest) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (path) DO UPDATE SET version = excluded.version, branch = excluded.branch,
        revision = excluded.revision, digest = excluded.digest
    WHERE heads.version = excluded.version - 1"""


class Cursor(Protocol):
    """What ``execute`` gives back: sqlite3 and psycopg agree on it."""

    @property
    def rowcount(self) -> int:
        """Rows changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        ...


class Connection(Protocol):
    """A database connection inside a transaction."""

    def execute(self, statement: Any, parameters: Any = ..., /) -> Cursor:
        """Run one statement."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where two SQL systems differ: the placeholder, the type of bodies, the type of paths (code point order)."""

    placeholder: str = "?"
    blob: str = "BLOB"
    path: str = "TEXT"


class Transaction:
    """A connection with a dialect, for the time of one operation."""

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self._connection = connection
        self._dialect = dialect

    def run(self, statement: str, *values: object) -> int:
        """Run ``statement``; the number of rows changed."""
        return self._execute(statement, values).rowcount

    def put(self, statement: str, *values: object) -> None:
        """Run ``statement``, whose number of rows nobody asks for: a backend need not wait for its answer."""
        self._execute(statement, values)

    def swap(self, statement: str, *values: object) -> bool:
        """Run ``statement``; whether it changed its one row. A backend that commits for many may find out later."""
        return self.run(statement, *values) == 1

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of the answer, or None."""
        row: tuple[Any, ...] | None = self._execute(statement, values).fetchone()
        return row

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of the answer."""
        return self._execute(statement, values).fetchall()

    def migrate(self, present: int) -> None:
        """Bring a store of schema ``present`` to ``SCHEMA``; the caller notes the number in the same transaction."""
        for statements in MIGRATIONS[present:]:
            for statement in statements:
                self.run(statement.format(path=self._dialect.path, blob=self._dialect.blob))
        if 0 < present < 3:
            from mergepub.stores.sqldecisions import link_all  # noqa: PLC0415 - old stores alone need it

            link_all(self)

    def _execute(self, statement: str, values: Sequence[object]) -> Cursor:
        return self._connection.execute(statement.replace("?", self._dialect.placeholder), values)


@dataclass(frozen=True, slots=True)
class Order:
    """A write that is checked and ready: what ``_write`` of a store takes. Made by ``SqlStore.order``."""

    path: str
    operation: Callable[[Transaction], Any]
    creates: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a document; ``digest`` is None when it is a tombstone. Fields in the order of ``HEAD``.

    ``open_branches``: branches of this life of the document that nobody has decided about, 100 where there are more.
    """

    version: int
    branch: str
    revision: int
    digest: str | None
    branch_name: str
    incarnation: str
    kind: str
    first_version: int
    modified: str
    link: str
    seal: str
    open_branches: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """One write, checked and ready: ``body`` None puts a tombstone."""

    path: str
    body: bytes | None
    modified: str
    author: str
    message: str
    merged_from: MergedFrom | None = None
    source: str | None = None
    kind: str = TEXT
    digest: str | None = field(init=False)

    def __post_init__(self) -> None:
        # Once, and before any lock is taken.
        object.__setattr__(self, "digest", None if self.body is None else digest_of(self.body))


class SqlStore(ABC):
    """The contract on a SQL database.

    Beyond it, whoever has many writes at hand takes an ``order`` of each and gives them to ``write_all``.
    """

    lanes = 1
    """How many calls of ``write_all`` at a time gain anything."""

    def __init__(self, url: str, *, max_body: int | None, clock: Callable[[], str] = now) -> None:
        self._url = url
        self._capabilities = Capabilities(branches=True, max_bytes=MAX_BODY if max_body is None else max_body)
        self._clock = clock
        self._ordering: SqlStore | None = None

    def order(self, method: str, *args: Any, **kwargs: Any) -> Order:
        """What the writing ``method`` of this name would do, checked as it does and not done yet; safe for threads.

        Raises: what the method raises without looking into the store.
        """
        if self._ordering is None:
            twin = copy(self)
            twin._write = Order  # type: ignore[assignment,method-assign]  # an order takes the same and does nothing
            self._ordering = twin
        made: Order = getattr(self._ordering, method)(*args, **kwargs)
        return made

    def write(self, order: Order) -> Any:
        """Do what ``order`` says, as the method would have that it was made by."""
        return self._write(order.path, order.operation, creates=order.creates)

    @abstractmethod
    def write_all(self, orders: Sequence[Order]) -> Sequence[Job]:
        """Do what ``orders`` say, in one transaction as far as possible; see groupcommit.py. Raises nothing.

        The answer of each is in its job, in the same order; those that say ``AloneError`` are still to be written.
        """

    @abstractmethod
    def _read(self, operation: Callable[[Transaction], T]) -> T:
        """Run ``operation`` on one consistent state of the store."""

    def _look(self, operation: Callable[[Transaction], T]) -> T:
        """As ``_read``, for an ``operation`` of one statement, which sees one state even outside a transaction."""
        return self._read(operation)

    @abstractmethod
    def _write(self, path: str, operation: Callable[[Transaction], T], *, creates: bool = False) -> T:
        """Run ``operation`` with no other writer of ``path`` in between; when it returns, what it wrote is durable.

        An exception leaves nothing of it behind. ``creates``: the operation may make the first document of a store.
        """

    def _damages(self, tx: Transaction) -> list[str]:  # noqa: ARG002 - for systems that can tell
        """What the database says is wrong with itself, below the level of documents; one sentence each."""
        return []

    @abstractmethod
    def close(self) -> None:
        """See ``Store.close``."""

    def init(self, *, grant_to: Sequence[str] = ()) -> None:
        """Make the store where there is none, or bring it up to date; one that stands is left as it is.

        Args:
            grant_to: names of roles that may use it, where the database has roles.

        Raises:
            InputError: it has none.
        """
        if grant_to:
            raise InputError(f"the store {self.url} knows no roles", hint="file permissions say who may use it")
        self._write("/-/init", lambda tx: None, creates=True)  # noqa: ARG005 - whatever is written first makes the store

    @property
    def url(self) -> str:
        """The URL that opens this store again, without secrets."""
        return self._url

    @property
    def capabilities(self) -> Capabilities:
        """Atomic compare-and-swap, full history."""
        return self._capabilities

    def fetch(self, path: str, version: int | None = None) -> Document:
        """See ``Store.fetch``."""
        return self._look(lambda tx: _fetch(tx, path, version))

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
        """See ``Store.publish``."""
        number = refusals.number_of(expected)
        refusals.check_kind(kind)
        self._check(body, author, message, source)
        write = Write(path, body, self._clock(), author, message, merged_from, source, kind)
        return self._write(path, lambda tx: publish_head(tx, write, number), creates=number == 0)

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
        """See ``Store.append``."""
        refusals.check_append(body, key)
        self._check(body, author, message)
        write = Write(path, body, self._clock(), author, message)
        number = None if expected is None else refusals.number_of(expected)
        return self._write(path, lambda tx: self._append(tx, write, key, number))

    def delete(self, path: str, expected: Version, *, author: str = "", message: str = "") -> Receipt:
        """See ``Store.delete``."""
        number = refusals.number_of(expected)
        self._check(b"", author, message)
        write = Write(path, None, self._clock(), author, message)
        return self._write(path, lambda tx: _delete(tx, write, number))

    def versions(self, path: str, *, before: int | None = None, limit: int | None = None) -> Iterator[Revision]:
        """See ``Store.versions``."""
        return iter(self._read(lambda tx: _versions(tx, path, before, limit)))

    def list(
        self, prefix: str = "/", *, after: str | None = None, limit: int | None = None, deleted: bool = False
    ) -> Iterator[Listed]:
        """See ``Store.list``."""
        return iter(self._look(lambda tx: _list(tx, prefix, after, limit, deleted)))

    def verify(self, path: str | None = None) -> Iterator[str]:
        """See ``Store.verify``. Each document is checked in one consistent state."""
        from mergepub.stores import sqlverify  # noqa: PLC0415 - no other command needs it

        yield from self._read(self._damages if path is None else lambda _: [])
        for name in [path] if path else self._read(sqlverify.paths):
            yield from self._faults(name)

    def _faults(self, path: str) -> Sequence[str]:
        from mergepub.stores import sqlverify  # noqa: PLC0415 - as above

        try:
            return self._read(lambda tx: sqlverify.faults(tx, path))
        except InvalidStoreError as error:  # that this document cannot be read hides nothing about the others
            return [f"{path}: {error.message}"]

    def _check(self, body: bytes, author: str, message: str, source: str | None = None) -> None:
        refusals.check_write(body, self._capabilities.max_bytes, author=author, message=message, source=source)

    def _append(self, tx: Transaction, write: Write, key: str, expected: int | None) -> Receipt:
        head = head_of(tx, write.path)
        known = _same_append(tx, head, write, key)
        if known:
            return known
        if head.digest is None:
            raise refusals.is_tombstone(write.path, head.version)
        if expected is not None:
            _compare(head, write.path, expected)
        longer = _joined(body_of(tx, write.path, head.digest), write.body or b"")
        self._check(longer, write.author, write.message)
        receipt = _extend(tx, head, replace(write, body=longer))
        record = "INSERT INTO append_keys (path, key, digest, version) VALUES (?, ?, ?, ?)"
        tx.put(record, write.path, key, write.digest, receipt.version.number)
        return receipt


def find_head(tx: Transaction, path: str) -> Head | None:
    """The head of ``path``, or None where there never was a document."""
    row = tx.row(HEAD, path)
    return Head(*row) if row else None


def head_of(tx: Transaction, path: str) -> Head:
    """The head of ``path``.

    Raises:
        NotFoundError: the document never existed.
    """
    head = find_head(tx, path)
    if head is None:
        raise refusals.never_existed(path)
    return head


def link_of(
    previous: str,
    *,
    path: str,
    incarnation: str,
    kind: str,
    branch: str,
    revision: int,
    digest: str | None,
    parents: str,
    author: str,
    message: str,
    modified: str,
    source: str | None,
) -> str:
    """The chain value of a revision: SHA-256 in hex over these fields, each as a netstring, in this order.

    ``branch`` is the branch's name, ``digest`` is empty for a tombstone, ``parents`` are ``BRANCH@R`` lines,
    ``previous`` is the link of the revision before: the first parent's, or of a re-created document the tombstone's.
    """
    facts = (path, incarnation, kind, branch, str(revision), digest or "", parents, author, message, modified)
    return chained("mergepub revision 1", previous, *facts, source or "")


def seal_of(previous: str, *, path: str, number: int, link: str) -> str:
    """The chain value of a version: SHA-256 in hex over the seal before it, path, number and its revision's link."""
    return chained("mergepub version 1", previous, path, str(number), link)


def chained(*fields: str) -> str:
    """SHA-256 in hex over ``fields``, each as a netstring: so no two lists of fields are the same bytes."""
    data = [text.encode("utf-8") for text in fields]
    return sha256(b"".join([b"%d:%s," % (len(each), each) for each in data])).hexdigest()


def publish_head(tx: Transaction, write: Write, expected: int) -> Receipt:
    """See ``Store.publish``."""
    head = find_head(tx, write.path)
    if head is None and expected:
        raise refusals.never_existed(write.path)
    if head is None or head.digest is None:
        if head and expected:
            raise refusals.deleted(write.path, expected, head.version)
        return _extend(tx, _new_life(tx, head, write), write)
    # Nothing can have been made from the head yet, so a write that builds on it is no retry.
    known = None if expected == head.version else _replayed(tx, head, write, expected)
    if known:
        return known
    if write.digest == head.digest:
        return Receipt(
            integer_version(head.version), head.incarnation, unchanged=True, open_branches=head.open_branches
        )
    _compare(head, write.path, expected)
    return _extend(tx, head, write)


def _delete(tx: Transaction, write: Write, expected: int) -> Receipt:
    head = head_of(tx, write.path)
    if head.digest is None:
        if expected + 1 == head.version:
            return _replay_of(head, head.version)
        raise refusals.deleted(write.path, expected, head.version)
    _compare(head, write.path, expected)
    return _extend(tx, head, write)


def _compare(head: Head, path: str, expected: int) -> None:
    if expected != head.version:
        raise refusals.mismatch(path, expected, head.version, head.first_version)


def _replayed(tx: Transaction, head: Head, write: Write, expected: int) -> Receipt | None:
    """The answer to an exact retry: the version is there already, as itself or as what was merged from this body."""
    follower = head.first_version if expected == 0 else expected + 1
    same = """SELECT v.number FROM versions v JOIN revisions r ON r.branch = v.branch AND r.revision = v.revision
        WHERE v.path = ? AND v.number = ? AND v.number >= ? AND r.digest = ?"""
    if tx.row(same, write.path, follower, head.first_version, write.digest):
        return _replay_of(head, follower)
    merged = """SELECT version, base, theirs, digest FROM merge_records
        WHERE path = ? AND base = ? AND digest = ? AND version >= ? ORDER BY version LIMIT 1"""
    record = tx.row(merged, write.path, expected, write.digest, head.first_version)
    return _replay_of(head, record[0], MergedFrom(*record[1:])) if record else None


def _replay_of(head: Head, number: int, merged_from: MergedFrom | None = None) -> Receipt:
    current = None if number == head.version else head.version
    version = integer_version(number)
    return Receipt(
        version,
        head.incarnation,
        replayed=True,
        current=current,
        merged_from=merged_from,
        open_branches=head.open_branches,
    )


def _same_append(tx: Transaction, head: Head, write: Write, key: str) -> Receipt | None:
    """The answer to an append whose key is known; also when the document was deleted since: it did happen."""
    known = tx.row(_APPENDED, write.path, key)
    if known is None:
        return None
    digest, number, incarnation = known
    if digest != write.digest:
        raise refusals.other_append(key)
    return replace(_replay_of(head, number), incarnation=incarnation)


def _joined(body: bytes, more: bytes) -> bytes:
    glue = b"\n" if body and not body.endswith(b"\n") else b""
    return body + glue + more


def _new_life(tx: Transaction, head: Head | None, write: Write) -> Head:
    """Begin an incarnation; the answer stands for its head before its first version."""
    incarnation, branch = incarnation_id(), os.urandom(8).hex()
    version, modified, link, seal = (head.version, head.modified, head.link, head.seal) if head else (0, "", "", "")
    document = "INSERT INTO documents (incarnation, path, kind, first_version) VALUES (?, ?, ?, ?)"
    tx.put(document, incarnation, write.path, write.kind, version + 1)
    main = "INSERT INTO branches (id, incarnation, name, head_revision, state) VALUES (?, ?, ?, 0, 'default')"
    tx.put(main, branch, incarnation, MAIN)
    return Head(version, branch, 0, None, MAIN, incarnation, write.kind, version + 1, modified, link, seal)


def _extend(tx: Transaction, head: Head, write: Write) -> Receipt:
    """Put ``write`` on ``head``: body, revision, version, and the swap of the head."""
    number, revision = head.version + 1, head.revision + 1
    if head.kind == EVENTS and write.body is not None:
        _check_extension(tx, write.path, head.kind, head.digest, write.body)
    put_body(tx, write.digest, write.body)
    before = Before(head.branch, head.branch_name, head.revision, head.modified, head.link, head.incarnation, head.kind)
    link = put_revision(tx, before, write, parents=str(before) if head.revision else "")
    put_version(tx, head, write.path, Made(head.branch, revision, write.digest, link))
    if write.merged_from:
        made = write.merged_from
        record = "INSERT INTO merge_records (path, version, base, theirs, digest) VALUES (?, ?, ?, ?, ?)"
        tx.put(record, write.path, number, made.base, made.theirs, made.digest)
    tx.put("UPDATE branches SET head_revision = ?, head_digest = ? WHERE id = ?", revision, write.digest, head.branch)
    swap_head(tx, write.path, number, Made(head.branch, revision, write.digest, link))
    return Receipt(integer_version(number), head.incarnation, open_branches=head.open_branches)


@dataclass(frozen=True, slots=True)
class Before:
    """What a new revision is put on: the end of its branch, with the link and time that it builds on."""

    branch: str
    name: str
    revision: int
    modified: str
    link: str
    incarnation: str
    kind: str

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}"


@dataclass(frozen=True, slots=True)
class Made:
    """A revision that stands, for a version to refer to."""

    branch: str
    revision: int
    digest: str | None
    link: str


def _check_extension(tx: Transaction, path: str, kind: str, parent: str | None, body: bytes) -> None:
    from mergepub.stores.branchrules import check_extension  # noqa: PLC0415 - documents of text never need it

    check_extension(path, kind, b"" if parent is None else body_of(tx, path, parent), body)


def put_body(tx: Transaction, digest: str | None, content: bytes | None) -> None:
    """Keep a body, once per digest."""
    if digest is not None and content is not None:
        body = "INSERT INTO bodies (digest, size, body) VALUES (?, ?, ?) ON CONFLICT (digest) DO NOTHING"
        tx.put(body, digest, len(content), content)


def put_version(tx: Transaction, head: Head, path: str, made: Made) -> None:
    """Let the version after ``head`` refer to a revision; the head itself is swapped by ``swap_head``."""
    number = head.version + 1
    seal = seal_of(head.seal, path=path, number=number, link=made.link)
    version = "INSERT INTO versions (path, number, branch, revision, seal) VALUES (?, ?, ?, ?, ?)"
    tx.put(version, path, number, made.branch, made.revision, seal)


def swap_head(tx: Transaction, path: str, number: int, made: Made) -> None:
    """Swap the head for version ``number``.

    Raises:
        ContentionError: it is not at the version before any more.
    """
    if not tx.swap(_SWAP, path, number, made.branch, made.revision, made.digest):
        raise ContentionError(f"the head of {path} moved during the write; repeat it")


def put_revision(tx: Transaction, before: Before, write: Write, *, parents: str) -> str:
    """Add the revision after ``before`` and return its link; ``parents`` are ``BRANCH@R`` lines."""
    modified = max(write.modified, before.modified)  # a clock set back never puts a revision before its parent
    link = link_of(
        before.link,
        path=write.path,
        incarnation=before.incarnation,
        kind=before.kind,
        branch=before.name,
        revision=before.revision + 1,
        digest=write.digest,
        parents=parents,
        author=write.author,
        message=write.message,
        modified=modified,
        source=write.source,
    )
    named = (before.branch, before.revision + 1, write.digest, parents, before.link, link)
    tx.put(
        """INSERT INTO revisions (branch, revision, digest, parents, previous, link, author, message, modified, source)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        *(*named, write.author, write.message, modified, write.source),
    )
    return link


def _fetch(tx: Transaction, path: str, version: int | None) -> Document:
    row = tx.row(_FETCH, version, path)
    if row is None:
        raise refusals.never_existed(path)
    head, number, digest, author, message, modified, incarnation, kind, body = row
    if incarnation is None:
        raise refusals.no_such_version(path, head if version is None else version, head)
    if digest is None:
        raise refusals.is_tombstone(path, number)
    facts = (integer_version(number), digest, incarnation, author, message, modified, kind, head)
    return Document(path, _sound(path, digest, body), *facts)


def body_of(tx: Transaction, path: str, digest: str) -> bytes:
    """The body with this digest, checked."""
    row = tx.row("SELECT body FROM bodies WHERE digest = ?", digest)
    return _sound(path, digest, row and row[0])


def _sound(path: str, digest: str, body: Any) -> bytes:
    """``body``, checked: a damaged body is never handed out, and never merged into anything."""
    if not isinstance(body, bytes) or digest_of(body) != digest:
        raise DamagedError(f"a body of {path} is damaged in the store", hint=f"mergepub verify {quote(path)}")
    return body


def _versions(tx: Transaction, path: str, before: int | None, limit: int | None) -> list[Revision]:
    head_of(tx, path)
    rows = tx.rows(_VERSIONS, path, _ALL if before is None else before, _ALL if limit is None else limit)
    return [_revision(*row) for row in rows]


def _revision(number: int, digest: str | None, size: int | None, *facts: Any) -> Revision:
    author, message, modified, source, incarnation, *made_from = facts
    merged_from = None if made_from[0] is None else MergedFrom(*made_from)
    labels = (author, message, modified, incarnation)
    return Revision(number, digest or "", size or 0, *labels, digest is None, merged_from, source)


def _list(tx: Transaction, prefix: str, after: str | None, limit: int | None, deleted: bool) -> list[Listed]:
    below = prefix if prefix.endswith("/") else prefix + "/"
    rows = tx.rows(
        """SELECT h.path, h.version, h.digest, r.modified, d.kind FROM heads h
        JOIN revisions r ON r.branch = h.branch AND r.revision = h.revision
        JOIN branches b ON b.id = h.branch
        JOIN documents d ON d.incarnation = b.incarnation
        WHERE (h.path = ? OR h.path >= ?) AND h.path >= ? AND h.path < ? AND h.path > ?
        AND (? OR h.digest IS NOT NULL) ORDER BY h.path LIMIT ?""",
        *(prefix, below, prefix, below[:-1] + "0", after or "", deleted, _ALL if limit is None else limit),
    )  # "0" follows "/": everything below a prefix lies between the two
    return [
        Listed(path, version, digest or "", modified, kind, digest is None)
        for path, version, digest, modified, kind in rows
    ]
