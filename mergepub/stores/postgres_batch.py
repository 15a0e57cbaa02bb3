"""Writers of one process share a transaction on PostgreSQL: whoever comes while one is under way joins the next one.

A write costs the server and us more by its messages than by its rows. So one writer leads: it locks the heads of all
who wait, reads them, lets every operation say what it changes, and sends the changes of all of them as one statement
for each kind. Nobody is answered before the commit.

- A head that somebody else has locked is passed over (``SKIP LOCKED``): its writer goes on alone and waits for it
  alone. So a batch never waits for a head while it holds others, and two services cannot lock each other out.
- Several writes of one document are done one after the other in the same transaction, each on the head before it.
- What an operation changes is kept until all have spoken; so one that is refused leaves nothing, without a savepoint.
- An operation that needs more than this, a statement that fails and a transaction that is undone send their writers
  on alone. A commit whose answer is lost is an unknown outcome for all of them.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from mergepub.errors import ContentionError, MergepubError, UnavailableError, UnknownOutcomeError
from mergepub.stores import postgres_schema
from mergepub.stores.postgres_wire import Binary, Connection
from mergepub.stores.sql import HEAD, HEADS, SCHEMA, Transaction
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.stores.sql import Cursor

T = TypeVar("T")

MOST = 64
"""Operations in one transaction."""

LEADERS = 4
"""Transactions at a time: while one waits for the disk, the next is made."""

WORTH = 3
"""So many have to wait, for each transaction under way, before another one begins: few and large ones cost least."""

# One row always: a schema's number, and which of the paths were locked for us.
_LOCK = """SELECT (SELECT number FROM mergepub_schema),
    ARRAY(SELECT path FROM heads WHERE path = ANY(?) ORDER BY path FOR UPDATE SKIP LOCKED)"""

_CHANGE = re.compile(r"\s*(?:INSERT INTO|UPDATE)\s+(\w+)")
_TYPES = {str: "text", int: "bigint", bytes: "bytea"}
_SWAPPED = " RETURNING 1"


class AloneError(Exception):
    """The operation needs a transaction of its own; nothing of it was done."""


class _Job:
    """One operation, waiting; and what became of it."""

    def __init__(self, path: str, operation: Callable[[Transaction], Any]) -> None:
        self.path = path
        self.operation = operation
        self.leads = False
        self.gate = threading.Lock()  # held until there is an answer, or until this writer has to lead
        self.gate.acquire()
        self._result: Any = None
        self._error: BaseException | None = AloneError()

    def attempt(self, kept: _Kept) -> list[_Change]:
        """Run it; the changes it asks for, none when it is refused."""
        try:
            self._result, self._error = self.operation(kept), None
        except psycopg.Error:
            raise  # the transaction is broken for all
        except ContentionError:
            self.alone()
        except Exception as error:  # its answer
            self._error = error
        return [] if self._error else kept.changes

    def alone(self) -> None:
        """Send its writer on alone."""
        self._error = AloneError()

    def fail(self, error: BaseException) -> None:
        """Answer with ``error``."""
        self._error = error

    def answer(self) -> Any:
        """What the operation returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result


@dataclass(frozen=True, slots=True)
class _Change:
    """A statement with its values. ``swap``: it must change one row, and says so by a row of its own."""

    statement: str
    values: Sequence[object]
    table: str
    swap: bool = False


class _Kept(Transaction):
    """An operation's share of the transaction: the head is known already, and what it changes waits."""

    def __init__(self, connection: Connection, path: str, head: tuple[Any, ...] | None) -> None:
        super().__init__(Binary(connection), postgres_schema.DIALECT)
        self._path = path
        self._head = head
        self.changes: list[_Change] = []

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        """See ``Transaction.row``."""
        if statement is HEAD and values == (self._path,) and not self.changes:
            return self._head
        return super().row(statement, *values)

    def put(self, statement: str, *values: object) -> None:
        """See ``Transaction.put``."""
        self._keep(statement, values, swap=False)

    def swap(self, statement: str, *values: object) -> bool:
        """See ``Transaction.swap``: whether it holds is seen when all is sent."""
        self._keep(statement + _SWAPPED, values, swap=True)
        return True

    def run(self, statement: str, *values: object) -> int:  # noqa: ARG002 - as in the class above
        """Nobody knows yet how many rows it would change."""
        raise AloneError

    def _keep(self, statement: str, values: Sequence[object], *, swap: bool) -> None:
        match = _CHANGE.match(statement)
        if match is None:
            raise AloneError
        self.changes.append(_Change(statement, values, match[1], swap))

    def _execute(self, statement: str, values: Sequence[object]) -> Cursor:
        if self.changes:
            raise AloneError  # it would not see what it has changed itself
        return super()._execute(statement, values)


class PostgresGroup:
    """Everybody who writes through one store.

    ``connection`` lends a connection outside a transaction; ``meaning`` translates an error (see ``translated``);
    ``pool_size`` is how many connections there are, ``patience`` for how many seconds one may be waited for.
    """

    def __init__(
        self,
        connection: Callable[[], AbstractContextManager[Connection]],
        meaning: Callable[[psycopg.Error, bool], MergepubError],
        *,
        pool_size: int,
        patience: float,
    ) -> None:
        self._connection = connection
        self._meaning = meaning
        self._pool_size = pool_size
        self._patience = patience
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._mutex = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._busy: set[str] = set()  # the paths in transactions under way
        self._leaders = 0  # how many lead, or were told to
        self._loners = threading.BoundedSemaphore(max(1, self._pool_size // 2))

    def run(self, path: str, operation: Callable[[Transaction], T]) -> T:
        """The result of ``operation``, durable.

        Raises:
            AloneError: it has to be run alone; nothing of it was done.
        """
        if self._owner != os.getpid():  # a child process waits for nobody of its parent's
            self._begin()
        job = _Job(path, operation)
        with self._mutex:
            self._waiting.append(job)
            self._appoint()
        self._wait(job)
        if job.leads:
            self._lead(job)
        result: T = job.answer()
        return result

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Go alone, one of few at a time: those who wait for a document leave connections for all other documents.

        Raises:
            UnavailableError: too many wait already.
        """
        loners = self._loners
        if not loners.acquire(timeout=self._patience):
            raise UnavailableError("too many writers wait for documents that others hold; try again")
        try:
            yield
        finally:
            loners.release()

    def _wait(self, job: _Job) -> None:
        try:
            job.gate.acquire()
        except BaseException:  # interrupted: it needs no answer any more, but if it was told to lead, somebody has to
            with self._mutex:
                if job.leads:
                    self._resign([job])
                elif job in self._waiting:
                    self._waiting.remove(job)
            raise

    def _lead(self, leader: _Job) -> None:
        jobs = [leader]
        try:
            with self._mutex:
                jobs += self._taken(leader.path)
            _Batch(jobs).run(self._connection, self._meaning)
        finally:
            with self._mutex:
                self._resign(jobs)  # first: the next transaction begins while this one's answers are taken
            for job in jobs[1:]:
                job.gate.release()

    def _taken(self, own: str) -> list[_Job]:
        """Those who wait, in their order, but for documents that another leader has in hand."""
        free = [job for job in self._waiting if job.path == own or job.path not in self._busy][: MOST - 1]
        self._busy |= {job.path for job in free}
        for job in free:
            self._waiting.remove(job)
        return free

    def _resign(self, jobs: Iterable[_Job]) -> None:
        self._leaders -= 1
        self._busy -= {job.path for job in jobs}
        self._appoint()

    def _appoint(self) -> None:
        """Let the one lead who has waited longest, if there is need of a leader."""
        if self._leaders and (self._leaders == LEADERS or len(self._waiting) < WORTH * self._leaders):
            return
        job = next((job for job in self._waiting if job.path not in self._busy), None)
        if job is not None:
            self._waiting.remove(job)
            self._busy.add(job.path)
            self._leaders += 1
            job.leads = True
            job.gate.release()


class _Batch:
    """The operations of one transaction."""

    def __init__(self, jobs: list[_Job]) -> None:
        self._jobs = jobs
        self._begun = False
        self._commits = False

    def run(
        self,
        connection: Callable[[], AbstractContextManager[Connection]],
        meaning: Callable[[psycopg.Error, bool], MergepubError],
    ) -> None:
        """Every job has its answer afterwards; an error that is not one of a job's is raised."""
        try:
            with connection() as lent, lent.pipeline():
                self._begun = True
                self._transact(lent)
        except psycopg.Error as error:
            meant = meaning(error, self._commits)
            self._end(meant if isinstance(meant, UnknownOutcomeError) or not self._begun else AloneError())
        except MergepubError as error:
            # Without a connection nobody has to wait for one again, one by one.
            self._end(AloneError() if self._begun else error)
        except BaseException:  # the leader is interrupted
            text = "a writer of the same process was interrupted while it committed; repeat the write"
            self._end(UnknownOutcomeError(text) if self._commits else AloneError())
            raise

    def _end(self, error: Exception) -> None:
        for job in self._jobs:
            job.fail(error)

    def _transact(self, connection: Connection) -> None:
        first, *waves = _waves(self._jobs)
        paths = sorted({job.path for job in self._jobs})
        connection.execute("BEGIN")
        locked = _ask(connection, _LOCK, paths)
        heads = self._heads(connection, paths, locked)
        sent = _send(connection, _changes(connection, first, heads))
        for wave in waves:
            heads = _heads_of(_ask(connection, HEADS, [job.path for job in wave if job.path in heads]), heads)
            sent = _send(connection, _changes(connection, wave, heads)) or sent
        self._commits = sent is not None
        connection.execute("COMMIT")
        if sent:
            # Not left to the end of the pipeline: it begins to wait before all of a large body has left, and the server
            # waits for the rest.
            sent.fetchall()

    def _heads(self, connection: Connection, paths: list[str], locked: Cursor) -> dict[str, tuple[Any, ...] | None]:
        """The heads of the paths that are ours now: locked, or of no document yet."""
        read = _ask(connection, HEADS, paths)
        number, ours = locked.fetchone()
        if number != SCHEMA:
            raise ContentionError("the schema changed; alone every writer looks at it anew")
        found = _heads_of(read, {})
        mine = set(ours)
        return {path: found.get(path) for path in paths if path in mine or path not in found}


def _ask(connection: Connection, statement: str, paths: list[str]) -> Cursor:
    return connection.execute(statement.replace("?", "%s").encode(), (paths,), binary=True)


def _heads_of(read: Cursor, before: dict[str, tuple[Any, ...] | None]) -> dict[str, tuple[Any, ...] | None]:
    return before | {path: head for path, *head in read.fetchall()}


def _changes(connection: Connection, wave: list[_Job], heads: dict[str, tuple[Any, ...] | None]) -> list[list[_Change]]:
    """What the jobs of one wave change; one whose head is held by somebody else stays as it is, and goes on alone."""
    ours = [job for job in wave if job.path in heads]
    return [job.attempt(_Kept(connection, job.path, heads[job.path])) for job in ours]


def _waves(jobs: Iterable[_Job]) -> list[list[_Job]]:
    """The jobs in their order, so that no wave has a path twice."""
    waves: list[list[_Job]] = []
    count: dict[str, int] = {}
    for job in jobs:
        turn = count[job.path] = count.get(job.path, -1) + 1
        if turn == len(waves):
            waves.append([])
        waves[turn].append(job)
    return waves


def _send(connection: Connection, changes: Iterable[list[_Change]]) -> Cursor | None:
    """Send what the operations of one wave change; the answer still to be fetched, None where there was nothing.

    Statements that travel together see the state before all of them, so of one operation two on one table never do.
    The transaction fails when a head was not what it was when it was read.
    """
    rest = [each for each in changes if each]
    sent = None
    while rest:
        split = [_before_repetition(each) for each in rest]
        sent = _send_together(connection, [change for now, _ in split for change in now])
        rest = [later for _, later in split if later]
    return sent


def _before_repetition(changes: list[_Change]) -> tuple[list[_Change], list[_Change]]:
    tables: set[str] = set()
    for index, change in enumerate(changes):
        if change.table in tables:
            return changes[:index], changes[index:]
        tables.add(change.table)
    return changes, []


def _send_together(connection: Connection, changes: list[_Change]) -> Cursor:
    """One statement for all; every service has the same order of tables and of rows, so that none locks another out."""
    rows: dict[str, list[_Change]] = {}
    for change in changes:
        rows.setdefault(change.statement, []).append(change)
    parts: list[str] = []
    values: list[object] = []
    for index, statement in enumerate(sorted(rows)):
        text, given = _as_one(statement, _values(rows[statement]), single=len(rows) == len(changes))
        parts.append(f"part{index} AS ({text})")
        values += given
    swaps = [f"part{index}" for index, statement in enumerate(sorted(rows)) if rows[statement][0].swap]
    # A division by zero undoes the transaction without asking us, so the commit need not wait for our answer.
    count = " + ".join(f"(SELECT count(*) FROM {name})" for name in swaps) or "0"  # noqa: S608 - names made above
    wanted = sum(change.swap for change in changes)
    text = f"WITH {', '.join(parts)} SELECT 1 / ({count} = %s)::int"
    return connection.execute(text.encode(), [*values, wanted], binary=True)


def _as_one(statement: str, rows: list[Sequence[object]], *, single: bool) -> tuple[str, Sequence[object]]:
    """``statement`` for all ``rows``, with its values: arrays, but for a ``single`` row the values themselves."""
    if single:
        return statement.replace("?", "%s"), rows[0]
    columns = [list(column) for column in zip(*sorted(rows, key=_first), strict=True)]
    types = tuple(map(_type, columns))
    return _many(statement, types), [column for column, kind in zip(columns, types, strict=True) if kind]


def _values(changes: list[_Change]) -> list[Sequence[object]]:
    return [change.values for change in changes]


def _first(values: Sequence[object]) -> str:
    return str(values[0])


def _type(column: list[object]) -> str | None:
    """The SQL type of a column of values, None where all are NULL."""
    return next((_TYPES[type(value)] for value in column if value is not None), None)


@cache
def _many(statement: str, types: tuple[str | None, ...]) -> str:
    """``statement``, a change of one row, as one of many: its values in arrays, column by column; ``types`` of them."""
    names = iter([f"c{i}" if kind else "NULL" for i, kind in enumerate(types)])
    text = re.sub(r"\?", lambda _: next(names), statement)
    given = ", ".join(f"%b::{kind}[]" for kind in types if kind)
    named = ", ".join(f"c{i}" for i, kind in enumerate(types) if kind)
    source = f"FROM unnest({given}) AS new({named})"
    if text.lstrip().startswith("UPDATE"):
        return re.sub(r"\bWHERE\b", f"{source} WHERE", text, count=1)
    return re.sub(r"\bVALUES \(([^()]*)\)", rf"SELECT \1 {source}", text, count=1)
