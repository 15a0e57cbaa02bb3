"""How the PostgreSQL backend reaches its server: the URL, the connections, and what the server's errors mean.

Nothing here knows documents or statements about them. A connection is made in the thread that needs one, so that a
wrong password or a missing database is told at once and with its reason, and a command that runs once starts no thread.
A connection is a session with settings of its own: a pooler in between must keep sessions apart, not transactions.
"""

from __future__ import annotations

import logging
import os
import re
import select
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from mergepub.errors import (
    ContentionError,
    DamagedError,
    DeniedError,
    InputError,
    InvalidStoreError,
    MergepubError,
    NotFoundError,
    RejectedError,
    UnavailableError,
    UnknownOutcomeError,
)
from mergepub.values import dataclass

# What psycopg logs besides raising is for who asks for it; without a handler Python would print it on standard error.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

Connection = psycopg.Connection[tuple[Any, ...]]

# Our own options in a URL, with their defaults; the time-outs are in seconds.
_OPTIONS = {"schema": "mergepub", "statement_timeout": "30", "lock_timeout": "5", "pool_size": "10"}
_SECRETS = {"password", "sslpassword"}
# A client that vanished in the middle of a write holds its document no longer than this.
_IDLE_IN_TRANSACTION_SECONDS = 60
# A server that is gone without a word is noticed within half a minute, not after the kernel's quarter of an hour.
_NETWORK = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a URL asks for: ``conninfo`` for libpq, with the password; ``url`` without it; times in seconds."""

    url: str
    conninfo: dict[str, Any]
    schema: str
    statement_timeout: float
    lock_timeout: float
    pool_size: int


def settings_of(url: str) -> Settings:
    """Read ``postgresql://[user[:password]@][host[:port]][/database][?option=value&...]``.

    ``schema``, ``statement_timeout`` and ``lock_timeout`` (seconds) and ``pool_size`` are ours; every other option
    (``sslmode``, ``sslrootcert``, ``connect_timeout``, ``options`` ...) is libpq's and goes to it as it is.

    Raises:
        InputError: the URL or one of its options is not valid; the message never holds the password.
    """
    address, _, query = url.partition("?")
    pairs = [(name, value) for name, _, value in (pair.partition("=") for pair in query.split("&") if pair)]
    ours = _OPTIONS | {name: unquote(value) for name, value in pairs if name in _OPTIONS}
    shown = _joined(_without_password(address), [pair for pair in pairs if pair[0] not in _SECRETS])
    return Settings(
        shown,
        _conninfo(address, [pair for pair in pairs if pair[0] not in _OPTIONS]),
        _schema_name(ours["schema"]),
        _number("statement_timeout", ours["statement_timeout"], least=0.001),
        _number("lock_timeout", ours["lock_timeout"], least=0.001),
        int(_number("pool_size", ours["pool_size"], least=1)),
    )


def _joined(address: str, pairs: list[tuple[str, str]]) -> str:
    query = "&".join(f"{name}={value}" for name, value in pairs)
    return f"{address}?{query}" if query else address


def _without_password(address: str) -> str:
    scheme, _, rest = address.partition("://")
    user_info, at, host = rest.rpartition("@")
    if "@" in user_info or "/" in user_info:
        raise InputError(
            "the PostgreSQL URL has an @ or / in its user, password or database name",
            hint="write them as %40 and %2F there",
        )
    return f"{scheme}://{user_info.partition(':')[0]}{at}{host}"


def _conninfo(address: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    # libpq quotes in its messages what it cannot read; so it is asked about the harmless part first.
    harmless = _joined(_without_password(address), [pair for pair in pairs if pair[0] not in _SECRETS])
    try:
        conninfo_to_dict(harmless)
    except psycopg.Error as error:
        raise InputError(f"{harmless} is no PostgreSQL URL: {_reason(error)}") from None
    try:
        return _NETWORK | conninfo_to_dict(_joined(address, pairs)) | {"client_encoding": "UTF8"}
    except psycopg.Error:
        raise InputError(
            f"the password in the URL of {harmless} cannot be read", hint="write % as %25, / as %2F, @ as %40 in it"
        ) from None


def _schema_name(name: str) -> str:
    if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", name):
        raise InputError(f"bad schema {name!r}: use lower-case letters, digits and _, not starting with pg_")
    return name


def _number(name: str, text: str, *, least: float) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d+)?", text) or float(text) < least:
        raise InputError(f"bad {name} {text!r} in the store's URL: it must be a number of at least {least:g}")
    return float(text)


class Binary:
    """A connection as sql.py calls it, with the answers in binary: bodies come as they are, not as hexadecimal text."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[object] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run one statement, the values in its ``%s``."""
        return self._connection.execute(statement.encode(), values, binary=True)


class Pool:
    """Connections to one database, ready for use and used by one thread at a time; safe for threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._slots = threading.BoundedSemaphore(self._settings.pool_size)
        self._patient = threading.BoundedSemaphore(max(1, self._settings.pool_size // 2))
        self._idle: deque[Connection] = deque()
        self._generation = 0  # counts the closings

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit mode, outside any transaction; one that is left otherwise is not used again.

        Raises:
            UnavailableError: the server cannot be reached, or every connection stayed in use for the time that a
                statement may take.
            DeniedError: the server does not let us in.
        """
        if self._owner != os.getpid():  # a child process makes its own connections, and closes none of its parent's
            self._inherited = self._idle
            self._begin()
        if not self._slots.acquire(timeout=self._settings.statement_timeout):
            raise UnavailableError(
                f"all {self._settings.pool_size} connections to {self._settings.url} are in use; try again",
                hint="allow more with ?pool_size=N in the store's URL",
            )
        try:
            generation, connection = self._generation, self._ready()
            try:
                yield connection
            finally:
                self._take_back(connection, keep=generation == self._generation)
        finally:
            self._slots.release()

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Be one of few at a time who may wait for others with a connection in hand: half of all stay free of that.

        Raises:
            UnavailableError: too many wait already.
        """
        patient = self._patient
        if not patient.acquire(timeout=self._settings.statement_timeout):
            raise UnavailableError("too many writers wait for documents that others hold; try again")
        try:
            yield
        finally:
            patient.release()

    def close(self) -> None:
        """Close the connections, those in use as soon as they come back. The next call makes new ones."""
        self._generation += 1
        while self._idle:
            self._idle.pop().close()

    def _ready(self) -> Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if _is_alive(connection):
                return connection
            connection.close()

    def _take_back(self, connection: Connection, *, keep: bool) -> None:
        if connection.info.transaction_status in (TransactionStatus.INERROR, TransactionStatus.INTRANS):
            with suppress(psycopg.Error):
                connection.rollback()
        if keep and connection.info.transaction_status == TransactionStatus.IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _connect(self) -> Connection:
        try:
            connection = psycopg.connect(**self._settings.conninfo, autocommit=True)
            try:
                connection.execute(_SESSION, _session_values(self._settings))
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            raise _cannot_connect(error, self._settings.url) from error
        return connection


# One statement, so that a new connection costs one round trip more. Names are found in the system's schema first, then
# in ours, and in a session's temporary one last: nobody's table or function of a like name is ever taken for ours. A
# database whose default is to answer before a commit is on disk is told not to; stricter ones stay as they are.
#
# Every statement of ours finds its rows by a key, whatever the size of the tables, so the server plans each once. To
# plan costs several times what it costs to run, and a plan made for a small table would read all of a large one.
_SESSION = """
    SELECT set_config('search_path', quote_ident(%s) || ', pg_temp', false),
           set_config('statement_timeout', %s, false),
           set_config('lock_timeout', %s, false),
           set_config('idle_in_transaction_session_timeout', %s, false),
           set_config('default_transaction_isolation', 'read committed', false),
           set_config('plan_cache_mode', 'force_generic_plan', false),
           set_config('enable_seqscan', 'off', false),
           set_config('enable_hashjoin', 'off', false),
           set_config('enable_mergejoin', 'off', false),
           set_config('jit', 'off', false),
           set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)
"""


def _session_values(settings: Settings) -> tuple[str, str, str, str]:
    times = (settings.statement_timeout, settings.lock_timeout, _IDLE_IN_TRANSACTION_SECONDS)
    statement, lock, idle = (f"{round(seconds * 1000)}ms" for seconds in times)
    return settings.schema, statement, lock, idle


def _is_alive(connection: Connection) -> bool:
    """False when the server has closed an idle connection; costs no round trip while it has not said anything."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    try:  # a notice, or the end
        connection.execute("")
    except psycopg.Error:
        return False
    return True


def _cannot_connect(error: psycopg.Error, url: str) -> MergepubError:
    reason = _reason(error)
    # libpq hands on a refused log-in as text alone.
    if re.search(r"authentication failed|no password supplied|pg_hba\.conf|permission denied for database", reason):
        return DeniedError(
            f"the database {url} refuses the log-in: {reason}",
            hint="check the user in the URL, and the password in PGPASSWORD or ~/.pgpass",
        )
    return UnavailableError(f"the database {url} cannot be reached: {reason}", hint="check its address, then try again")


def translated(error: psycopg.Error, url: str, *, sent: bool) -> MergepubError:
    """The error of ours that says what the caller can do about ``error``.

    Args:
        error: what psycopg raised.
        url: the store's, without secrets.
        sent: whether a commit was under way, so that a lost connection leaves its outcome open.
    """
    state = error.sqlstate or ""
    if not state or state.startswith(("08", "57P")):
        return _lost(error, url, sent=sent)
    for states, kind, text in _MEANINGS:
        if state.startswith(states):
            return kind(f"{text} ({url}: {_reason(error)})")
    return MergepubError(f"the database {url} refused a statement: {_reason(error)} (SQLSTATE {state})")


def _lost(error: psycopg.Error, url: str, *, sent: bool) -> MergepubError:
    if not isinstance(error, psycopg.OperationalError):
        return MergepubError(f"the database {url} cannot be used: {_reason(error)}")
    if sent:
        return UnknownOutcomeError(
            f"the connection to {url} broke before the answer came; the write may or may not have happened",
            hint="repeat the same command: a write that arrived is recognised",
        )
    return UnavailableError(f"the connection to {url} broke: {_reason(error)}", hint="try again")


# SQLSTATE or its first characters -> class, sentence.
_MEANINGS: list[tuple[tuple[str, ...], type[MergepubError], str]] = [
    (("40001", "40P01", "23505"), ContentionError, "another writer was in the way; repeat the same call"),
    (("55P03",), UnavailableError, "another writer holds the document for too long; try again"),
    (("57014",), UnavailableError, "the database took longer than the statement time-out; try again"),
    (("42704",), NotFoundError, "there is no such role"),
    (("25006",), UnavailableError, "the database takes no writes now; is it a standby?"),
    (("23",), DamagedError, "the store contradicts itself: see mergepub verify"),
    (("28", "42501"), DeniedError, "the database does not allow this"),
    (("3F000", "42P01", "42703"), InvalidStoreError, "this is no mergepub store, or not any more"),
    (("22021", "22P05"), RejectedError, "the database's encoding cannot hold a character of this; it must be UTF8"),
    (("53", "57", "58"), UnavailableError, "the database cannot do it now; try again later"),
]


def _reason(error: psycopg.Error) -> str:
    text = error.diag.message_primary or str(error)
    return " ".join(text.split()) or type(error).__name__
