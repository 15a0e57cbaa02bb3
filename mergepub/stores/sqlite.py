"""The embedded default: one SQLite file, safe for many threads and processes of one machine.

This module opens, creates, locks and migrates the file, and translates what SQLite says; what the operations do stands
in sql.py. Write-ahead log, ``synchronous=FULL``: an acknowledged write survives ``kill -9`` and a power cut.

**Nothing is created on the way to an error.** The file comes into being whole, under its final name, with the first
document in it. A file that is not ours is looked at without a lock or a side file, and left alone.

**Writers queue.** SQLite's own waiting sleeps longer the longer one waits, so writers in a loop starve the patient
ones. Here a writer first takes a turnstile, an advisory lock on the *directory* of the file (nothing is left behind),
and holds it while it waits for SQLite's lock: whoever has just written must queue like everybody else. The turnstile is
courtesy, SQLite's lock is what protects: where directories cannot be locked, all wait without it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from mergepub.errors import (
    DamagedError,
    InputError,
    InvalidStoreError,
    MergepubError,
    NotFoundError,
    UnavailableError,
)
from mergepub.stores.contract import now
from mergepub.stores.sql import SCHEMA, Dialect, Order, Transaction
from mergepub.stores.sqlbranching import SqlBranchStore
from mergepub.stores.sqlite_types import TypedTransaction, mistyped

if TYPE_CHECKING:
    from mergepub.stores.groupcommit import Job

T = TypeVar("T")

_inherited: list[sqlite3.Connection] = []  # kept so that nothing ever closes them
_looked_at: set[tuple[int, int]] = set()  # device and inode of every file whose header this process has read
_looking = threading.Lock()

APPLICATION_ID = 0x4D507562  # "MPub"
BUSY_TIMEOUT = 5.0
_STATEMENTS = 1024  # kept ready: those of a batch are as many as it can have sizes
_HEADER_SIZE = 100  # of every SQLite database

_DIALECT = Dialect()
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT)
_SAID = {
    sqlite3.SQLITE_BUSY: "is locked by another process; try again",
    sqlite3.SQLITE_LOCKED: "is locked by another process; try again",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full or a limit is reached; make room and try again",
    sqlite3.SQLITE_READONLY: "cannot be written: the file or its directory is read-only",
    sqlite3.SQLITE_PERM: "cannot be opened: permission denied",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that its directory exists and is writable",
    sqlite3.SQLITE_IOERR: "cannot be read or written (input/output error): is the disk full?",
}


def open_url(url: str, *, max_body: int | None = None) -> SqliteStore:
    """The store of ``sqlite:///relative``, ``sqlite:////absolute`` or a plain path.

    Raises:
        InputError: the URL names no file.
    """
    file = url
    if url.lower().startswith("sqlite:"):
        _, slashes, file = url.partition(":///")
        if not slashes:
            raise InputError(f"bad store {url!r}", hint="write sqlite:///relative or sqlite:////absolute")
    if not file:
        raise InputError(f"bad store {url!r}: it names no file", hint="try sqlite:///store.sqlite")
    return SqliteStore(file, max_body=max_body)


class SqliteStore(SqlBranchStore):
    """A store in a file."""

    def __init__(
        self,
        file: str | os.PathLike[str],
        *,
        max_body: int | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
        clock: Callable[[], str] = now,
    ) -> None:
        """A store in ``file``; nothing is opened yet. ``busy_timeout``: seconds that a call waits for others."""
        self._file = os.path.abspath(file)  # realpath would follow links and move the side files
        super().__init__(f"sqlite:///{self._file}", max_body=max_body, clock=clock)
        self._busy_timeout = busy_timeout
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._owner: tuple[int, ...] = ()

    def close(self) -> None:
        """Release all connections. The next call opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _read(self, operation: Callable[[Transaction], T]) -> T:
        with self._translated():
            if self._is_missing():
                raise self._missing()
            with self._connection() as connection, self._transaction(connection, "BEGIN"):
                return operation(TypedTransaction(connection, _DIALECT))

    def _write(self, path: str, operation: Callable[[Transaction], T], *, creates: bool = False) -> T:  # noqa: ARG002 - SQLite locks the whole store
        with self._translated():
            if self._is_missing():
                if not creates:
                    raise self._missing()
                done = self._created(operation)
                if done is not None:
                    return done
            with self._connection() as connection, self._turn(connection):
                return operation(TypedTransaction(connection, _DIALECT))

    def write_all(self, orders: Sequence[Order]) -> Sequence[Job]:
        """See ``SqlStore.write_all``."""
        from mergepub.stores.groupcommit import Job  # noqa: PLC0415 - a command writes one by one
        from mergepub.stores.sqlite_batch import SqliteBatch  # noqa: PLC0415

        jobs = [Job(order) for order in orders]
        begun = False
        try:
            with self._translated():
                if self._is_missing():
                    return jobs
                with self._connection() as connection, self._turn(connection):
                    begun = True
                    SqliteBatch(connection).write(jobs)
        except Exception as error:
            for job in jobs:  # where there was no transaction to be had, nobody has to wait for that again, one by one
                job.end(None if begun else error)
        return jobs

    def _damages(self, tx: Transaction) -> list[str]:
        damages = [str(said) for (said,) in tx.rows("PRAGMA integrity_check(20)") if said != "ok"]
        dangling = tx.rows("PRAGMA foreign_key_check")
        return damages + [
            f"a row of {table} names a row of {parent} that is missing" for table, _, parent, _ in dangling
        ]

    # Connections: as many as there were calls at once, kept for the next call. A child process makes its own.

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = self._taken() or self._opened()
        sound = True
        try:
            yield connection
        except BaseException as error:
            sound = isinstance(error, MergepubError)  # a refusal; after anything else a new one is safer
            raise
        finally:
            if sound and not connection.in_transaction:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def _taken(self) -> sqlite3.Connection | None:
        """An idle connection, if it is this process's own and its file is still the one of that name."""
        found = os.stat(self._file)
        owner = (os.getpid(), found.st_dev, found.st_ino)
        with self._lock:
            if self._owner != owner:
                self._retire(self._owner[:1] == owner[:1])
                self._owner = owner
            return self._idle.pop() if self._idle else None

    def _retire(self, ours: bool) -> None:
        """Let go of the idle connections; those that a fork inherited are the parent's, and must not be closed here."""
        idle, self._idle = self._idle, []
        if not ours:
            _inherited.extend(idle)
            return
        for connection in idle:
            connection.close()

    def _opened(self) -> sqlite3.Connection:
        self._check_ours()
        connection = self._connect(f"{_uri(self._file)}?mode=rw")
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, uri: str) -> sqlite3.Connection:
        # Waiting is done here, not by SQLite: see the module's docstring.
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, timeout=0, check_same_thread=False, cached_statements=_STATEMENTS
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        deadline = self._deadline()
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA fullfsync = ON")  # where fsync alone does not reach the disk (macOS)
        _patiently(lambda: connection.execute("PRAGMA synchronous = FULL"), deadline)
        present = _patiently(lambda: self._schema_of(connection), deadline)
        if present < SCHEMA:
            self._migrate(connection, deadline)
        elif present > SCHEMA:
            raise self._newer(present)

    def _schema_of(self, connection: sqlite3.Connection) -> int:
        """The schema's number; 0 in a file without tables. A known inode may have come to another file by now."""
        if _number(connection, "application_id") != APPLICATION_ID:
            if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
                raise InvalidStoreError(f"{self._file} is a database of something else", hint="name another file")
            return 0
        return _number(connection, "user_version")

    def _migrate(self, connection: sqlite3.Connection, deadline: float) -> None:
        with self._transaction(connection, "BEGIN IMMEDIATE", deadline):
            Transaction(connection, _DIALECT).migrate(_number(connection, "user_version"))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
        # Only now: until the switch an empty file is empty for all who look, then a whole store at once.
        _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"), deadline)

    # Creation and recognition

    def _is_missing(self) -> bool:
        try:
            return not os.stat(self._file).st_size  # an empty file is none yet
        except FileNotFoundError:
            return True

    def _missing(self) -> NotFoundError:
        folder = os.path.dirname(self._file)
        where = "" if os.path.isdir(folder) else f", nor the folder {folder}"
        return NotFoundError(
            f"there is no store {self._file} yet{where}",
            hint="name another with --store or MERGEPUB_STORE; the first publish with --expected-version 0 creates it, "
            "and so does: mergepub store init",
        )

    def _check_ours(self) -> None:
        """Look at the file's header, by itself: without a lock, a side file or a change.

        SQLite could be told not to lock either, but would then call a file damaged while its log is being written
        back into it, or after a crash in the middle of that; with its lock and its log it knows better.
        """
        if os.path.isdir(self._file):
            raise InvalidStoreError(f"{self._file} is a directory, not a store", hint="name a file in it")
        with _looking:
            found = os.stat(self._file)
            if (found.st_dev, found.st_ino) in _looked_at:
                return
            if found.st_size:
                self._check_header()
                _looked_at.add((found.st_dev, found.st_ino))

    def _check_header(self) -> None:
        """Read the header; never while this process has the file open in SQLite.

        POSIX drops all locks that a process holds on a file as soon as it closes any descriptor of it. Without its lock
        a connection is not seen by other processes, and the last of them to leave removes the log that it reads and
        writes. So a file is read once, before the first connection to it.
        """
        with open(self._file, "rb", buffering=0) as file:
            header = file.read(_HEADER_SIZE)
        if len(header) < _HEADER_SIZE or not header.startswith(b"SQLite format 3\0"):
            raise self._no_store()
        schema, owner = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if owner != APPLICATION_ID:
            raise InvalidStoreError(f"{self._file} is a database of something else", hint="name another file")
        if schema > SCHEMA:
            raise self._newer(schema)

    def _no_store(self) -> InvalidStoreError:
        return InvalidStoreError(f"{self._file} is not a store", hint="name another file")

    def _newer(self, schema: int) -> InvalidStoreError:
        return InvalidStoreError(
            f"{self._file} has schema {schema}, this mergepub knows up to {SCHEMA}", hint="upgrade mergepub"
        )

    def _created(self, operation: Callable[[Transaction], T]) -> T | None:
        """Make the store with what ``operation`` writes in it; None when another process was first."""
        from mergepub.stores.sqlite_files import draft_beside, leftover, linked  # noqa: PLC0415 - a store is made once

        log = leftover(self._file)
        if log:
            raise InvalidStoreError(
                f"{self._file} is gone, but its log {log} is there and may hold what was published last",
                hint="bring the file back beside its log, or move the log away to begin a new store",
            )
        with draft_beside(self._file) as draft:
            done = self._drafted(draft, operation)
            return done if linked(draft, self._file) else None

    def _drafted(self, draft: str, operation: Callable[[Transaction], T]) -> T:
        connection = self._connect(f"{_uri(draft)}?mode=rwc")
        try:
            self._prepare(connection)
            with self._transaction(connection, "BEGIN IMMEDIATE"):
                return operation(TypedTransaction(connection, _DIALECT))
        finally:
            connection.close()

    # Transactions and waiting

    @contextmanager
    def _turn(self, connection: sqlite3.Connection) -> Iterator[None]:
        """A writing transaction, begun in turn."""
        deadline = self._deadline()
        with _turnstile(os.path.dirname(self._file), deadline):
            _patiently(lambda: connection.execute("BEGIN IMMEDIATE"), deadline)
        with self._transaction(connection, None, deadline):
            yield

    @contextmanager
    def _transaction(
        self, connection: sqlite3.Connection, begin: str | None, deadline: float | None = None
    ) -> Iterator[None]:
        deadline = self._deadline() if deadline is None else deadline
        if begin:
            _patiently(lambda: connection.execute(begin), deadline)
        try:
            # The first look at the file fixes the state that a reading transaction sees.
            schema = _patiently(lambda: _number(connection, "user_version"), deadline)
            if schema > SCHEMA:
                raise self._newer(schema)
            yield
            _patiently(lambda: connection.execute("COMMIT"), deadline)
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    def _deadline(self) -> float:
        return time.monotonic() + self._busy_timeout

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._said(error) from error
        except UnicodeDecodeError as error:  # damaged bytes in what SQLite itself wanted to say
            raise self._damaged("it cannot be read") from error
        except (AttributeError, TypeError, ValueError) as error:  # what a value of another type leads to, or a defect
            found = self._mistyped()
            if found is None:
                raise
            raise self._damaged(found) from error
        except OSError as error:
            raise UnavailableError(
                f"the store {self._file} cannot be opened: {error.strerror}",
                hint="check the name, and who may read and write the file and its folder",
            ) from error

    def _mistyped(self) -> str | None:
        with suppress(sqlite3.Error, OSError), self._connection() as connection:
            return mistyped(connection)
        return None

    def _said(self, error: sqlite3.Error) -> MergepubError:
        code = _code(error)
        if code == sqlite3.SQLITE_NOTADB:
            return self._no_store()
        if code in _DAMAGED:
            return self._damaged(str(error))
        return UnavailableError(f"the store {self._file} {_SAID.get(code, f'cannot be used: {error}; try again')}")

    def _damaged(self, how: str) -> DamagedError:
        return DamagedError(
            f"the store {self._file} is damaged: {how}", hint="see mergepub verify; restore a copy of the file"
        )


def _code(error: sqlite3.Error) -> int:
    """The primary result code; errors that Python's module raises itself carry none.

    Of these an ``OperationalError`` is about text in the store that is not UTF-8, the others about a wrong use.
    """
    own = sqlite3.SQLITE_CORRUPT if isinstance(error, sqlite3.OperationalError) else sqlite3.SQLITE_MISUSE
    return getattr(error, "sqlite_errorcode", own) & 0xFF


def _uri(file: str) -> str:
    """The file as SQLite takes it, with what has a meaning in a URI escaped; anything else may stand as it is."""
    return "file://" + file.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _patiently(attempt: Callable[[], T], deadline: float) -> T:
    """Repeat ``attempt`` while the store is busy, until ``deadline``; equal chances for everybody who waits."""
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(_a_moment())


@contextmanager
def _turnstile(directory: str, deadline: float) -> Iterator[None]:
    """Hold the lock of ``directory``; when it is late, or no such lock can be had, go on without."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        while not _is_locked(descriptor) and time.monotonic() < deadline:
            time.sleep(_a_moment())
        yield
    finally:
        os.close(descriptor)  # gives the lock back


def _is_locked(descriptor: int) -> bool:
    """Try to lock; also true where there is nothing to wait for, because the file system has no such locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _a_moment() -> float:
    """Half a millisecond to two: spreads the waiting."""
    return 0.0005 + os.urandom(1)[0] / 255 * 0.0015
