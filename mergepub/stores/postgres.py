"""PostgreSQL: one store for any number of machines, behind any number of services.

This module brings transactions and locks. Connections and the meaning of the server's errors stand in postgres_wire.py,
the schema in postgres_schema.py, what the operations do in sql.py.

**Writing.** A write locks the row of its document's head and nothing else, reads the head, and swaps it; writers of
other documents never wait for it. Where there is no row to lock yet, two creators meet at the key of the first version:
the loser's transaction is undone and repeated, and then sees the winner. Statements go out in a pipeline, those that
change rows as one, so a publish is three round trips: lock and head; rows and swap; commit.

**The schema** is PostgreSQL's word for a drawer in a database; ours is called ``mergepub`` unless ``?schema=NAME`` says
otherwise. ``mergepub store init`` makes it; so does the first document, where the role may. Opening looks with plain
SELECTs, so a role without the right to create tables can use a store that stands.

Nothing is announced by NOTIFY: its commits queue for a single lock, which halves the rate of eight writers of documents
of their own. Who wants to wait for a change looks at the head from time to time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from mergepub.errors import ContentionError, MergepubError, NotFoundError
from mergepub.stores import postgres_schema
from mergepub.stores.contract import now
from mergepub.stores.groupcommit import AloneError, Job
from mergepub.stores.postgres_batch import PostgresBatch
from mergepub.stores.postgres_wire import Binary, Connection, Pool, settings_of, translated
from mergepub.stores.sql import SCHEMA, Order, Transaction
from mergepub.stores.sqlbranching import SqlBranchStore
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.stores.sql import Cursor

T = TypeVar("T")

ATTEMPTS = 8
"""How often a write is begun, when another one gets in its way, before it is a ``ContentionError``."""

LANES = 2
"""Transactions at a time: while one waits for the disk, the next is made."""

_LOCK = """SELECT (SELECT number FROM mergepub_schema), (SELECT version FROM heads WHERE path = %s FOR UPDATE)"""


def open_url(url: str, *, max_body: int | None = None) -> PostgresStore:
    """The store of ``postgresql://...``; see ``settings_of`` for what a URL may say. Nothing is connected yet.

    Raises:
        InputError: the URL is not valid.
    """
    return PostgresStore(url, max_body=max_body)


class PostgresStore(SqlBranchStore):
    """A store in a schema of a PostgreSQL database; safe for threads."""

    def __init__(self, url: str, *, max_body: int | None = None, clock: Callable[[], str] = now) -> None:
        """See ``open_url``; ``clock`` gives the time that versions carry."""
        self._settings = settings_of(url)
        super().__init__(self._settings.url, max_body=max_body, clock=clock)
        self._pool = Pool(self._settings)
        self._stands = False  # whether the schema was found to be there and of our number
        self.lanes = min(LANES, self._settings.pool_size)

    def close(self) -> None:
        """Close the connections, those in use as soon as they come back. The next call makes new ones."""
        self._pool.close()

    def init(self, *, grant_to: Sequence[str] = ()) -> None:
        """Make the schema, or bring it up to date; nothing happens to one that stands.

        Args:
            grant_to: roles that may use the store from then on, without any right to change its tables or to alter
                or remove what is in its history.

        Raises:
            DeniedError: the role of the URL may not create or grant.
            InvalidStoreError: other people's tables stand in the schema, or it is of a newer number.
        """
        with self._translated(), self._connection(creates=True) as connection:
            for role in grant_to:
                postgres_schema.grant(connection, self._settings.schema, role)

    def _read(self, operation: Callable[[Transaction], T]) -> T:
        with self._translated(), self._connection() as connection, connection.pipeline():
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                return operation(_Batching(connection))
            finally:
                connection.execute("COMMIT")

    def _look(self, operation: Callable[[Transaction], T]) -> T:
        with self._translated(), self._connection() as connection:
            return operation(Transaction(Binary(connection), postgres_schema.DIALECT))

    def _write(self, path: str, operation: Callable[[Transaction], T], *, creates: bool = False) -> T:
        with suppress(AloneError):  # at first without waiting for anybody
            done: T = self.write_all([Order(path, operation)])[0].answer()
            return done
        with self._pool.patience():
            return self._write_alone(path, operation, creates)

    def write_all(self, orders: Sequence[Order]) -> Sequence[Job]:
        """See ``SqlStore.write_all``."""
        jobs = [Job(order) for order in orders]
        try:
            if not self._stands:
                with self._translated(), self._connection():
                    pass  # it stands now
        except NotFoundError:
            return jobs  # one of them alone may make it
        except MergepubError as error:
            for job in jobs:
                job.end(error)
            return jobs
        PostgresBatch(jobs).write(self._connection, lambda error, sent: translated(error, self.url, sent=sent))
        return jobs

    def _write_alone(self, path: str, operation: Callable[[Transaction], T], creates: bool) -> T:
        for _ in range(ATTEMPTS - 1):
            with suppress(ContentionError):
                return self._write_once(path, operation, creates)
        return self._write_once(path, operation, creates)

    def _write_once(self, path: str, operation: Callable[[Transaction], T], creates: bool) -> T:
        commit = _Commit()
        with (
            self._translated(commit),
            self._connection(creates=creates) as connection,
            connection.pipeline(),
        ):
            connection.execute("BEGIN")
            locked = connection.execute(_LOCK, (path,))
            transaction = _Batching(connection)
            try:
                done = operation(transaction)
                transaction.send()
                self._check_number(locked)
            except MergepubError:
                connection.execute("ROLLBACK")
                raise
            commit.sent = True
            connection.execute("COMMIT")
        return done

    def _check_number(self, locked: psycopg.Cursor[tuple[Any, ...]]) -> None:
        """Commit nothing to a schema that a newer mergepub has upgraded since this store was opened."""
        row = locked.fetchone()
        if row is None or row[0] != SCHEMA:
            self._stands = False
            raise ContentionError(f"the schema of {self.url} changed; repeat the call")

    @contextmanager
    def _connection(self, *, creates: bool = False) -> Iterator[Connection]:
        with self._pool.connection() as connection:
            if not self._stands:
                self._ensure_schema(connection, creates)
                self._stands = True
            yield connection

    def _ensure_schema(self, connection: Connection, creates: bool) -> None:
        schema = self._settings.schema
        number = postgres_schema.number(connection, schema)
        if number is None and not creates:
            raise NotFoundError(
                f"there is no store in the schema {schema} of {self.url} yet",
                hint=f"make it with: mergepub store init --store {quote(self.url)}",
            )
        if number is None or number < SCHEMA:
            postgres_schema.migrate(connection, schema)

    @contextmanager
    def _translated(self, commit: _Commit | None = None) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise translated(error, self.url, sent=commit is not None and commit.sent) from error


@dataclass
class _Commit:
    """Whether the commit of a write was sent: from then on a lost connection leaves the outcome open."""

    sent: bool = False


class _Batching(Transaction):
    """One transaction in as few messages as it takes: a statement costs more by its message than by its work.

    What is ``put`` waits, and travels as the common table expressions of the next statement: they are one statement
    then, and see the state before it. So two on one table never travel together, and whatever reads sends them first.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(Binary(connection), postgres_schema.DIALECT)
        self._waiting: dict[str, tuple[str, Sequence[object]]] = {}  # by table

    def put(self, statement: str, *values: object) -> None:
        """See ``Transaction.put``; anything but a change of rows is sent by itself."""
        table = _changed_table(statement)
        if table is None or table in self._waiting:
            self.send()
        if table is None:
            self._execute(statement, values)
        else:
            self._waiting[table] = statement, values

    def run(self, statement: str, *values: object) -> int:
        """See ``Transaction.run``, of a change of rows."""
        self.put(f"{statement} RETURNING 1", *values)
        cursor = self.send()
        assert cursor is not None, "it was put just now"
        # Not Pipeline.sync(): it begins to wait before all of a large body has left, and the server waits for the rest.
        return len(cursor.fetchall())

    def send(self) -> Cursor | None:
        """Send what waits as one statement; the answer is the last one's."""
        if not self._waiting:
            return None
        *others, (last, _) = self._waiting.values()
        values = [value for _, values in self._waiting.values() for value in values]
        self._waiting.clear()
        parts = ", ".join(f"part{i} AS ({statement})" for i, (statement, _) in enumerate(others))
        return super()._execute(f"WITH {parts} {last}" if parts else last, values)

    def _execute(self, statement: str, values: Sequence[object]) -> Cursor:
        self.send()
        return super()._execute(statement, values)


@cache
def _changed_table(statement: str) -> str | None:
    """The table whose rows ``statement`` changes, None when it does something else."""
    match = re.match(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", statement)
    return match and match[1]
