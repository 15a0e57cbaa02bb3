"""The tables of coordination, in the database of a SQL store, with ordered migrations and a number of their own.

A store that nobody coordinates over has none of them: the daemon makes them when it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mergepub.errors import InvalidStoreError

if TYPE_CHECKING:
    from mergepub.stores.sql import SqlStore, Transaction

PLACE = "/-/coord"
"""A name for the lock of a backend that locks by path; no document can have it."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE coord_runs (
            id TEXT PRIMARY KEY,
            home TEXT NOT NULL,
            workspace TEXT NOT NULL,
            member TEXT NOT NULL,
            task TEXT NOT NULL,
            checkout TEXT NOT NULL,
            transcript TEXT NOT NULL,
            pid BIGINT NOT NULL,
            state TEXT NOT NULL,
            started TEXT NOT NULL,
            ended TEXT NOT NULL,
            ack_token TEXT,
            batch_last BIGINT)""",
        "CREATE INDEX coord_runs_by_state ON coord_runs (home, state)",
        """CREATE TABLE coord_messages (
            seq BIGINT PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            correlation TEXT,
            from_run TEXT NOT NULL REFERENCES coord_runs (id),
            to_run TEXT NOT NULL REFERENCES coord_runs (id),
            body TEXT NOT NULL,
            created TEXT NOT NULL,
            acked BIGINT NOT NULL)""",
        "CREATE INDEX coord_messages_by_inbox ON coord_messages (to_run, acked, seq)",
        """CREATE TABLE coord_receipts (
            run TEXT NOT NULL REFERENCES coord_runs (id),
            key TEXT NOT NULL,
            digest TEXT NOT NULL,
            message TEXT NOT NULL,
            PRIMARY KEY (run, key))""",
        """CREATE TABLE coord_opened (
            run TEXT NOT NULL REFERENCES coord_runs (id),
            peer TEXT NOT NULL REFERENCES coord_runs (id),
            PRIMARY KEY (run, peer))""",
        """CREATE TABLE coord_timeline (
            seq BIGINT PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            workspace TEXT NOT NULL,
            run TEXT NOT NULL,
            kind TEXT NOT NULL,
            data TEXT NOT NULL,
            created TEXT NOT NULL)""",
        "CREATE INDEX coord_timeline_by_workspace ON coord_timeline (workspace, seq)",
        """CREATE TABLE coord_overlaps (
            a TEXT NOT NULL REFERENCES coord_runs (id),
            b TEXT NOT NULL REFERENCES coord_runs (id),
            workspace TEXT NOT NULL,
            state TEXT NOT NULL,
            files TEXT NOT NULL,
            seen DOUBLE PRECISION NOT NULL,
            until DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (a, b))""",
        """CREATE TABLE coord_reports (
            seq BIGINT PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            run TEXT NOT NULL REFERENCES coord_runs (id),
            key TEXT NOT NULL,
            digest TEXT NOT NULL,
            outcome TEXT NOT NULL,
            summary TEXT NOT NULL,
            refs TEXT NOT NULL,
            state TEXT NOT NULL,
            evidence TEXT,
            next_action TEXT NOT NULL,
            created TEXT NOT NULL,
            attempts BIGINT NOT NULL,
            next_attempt DOUBLE PRECISION NOT NULL,
            last_error TEXT NOT NULL,
            UNIQUE (run, key))""",
        "CREATE INDEX coord_reports_by_state ON coord_reports (state, seq)",
        """CREATE TABLE coord_evidence (
            ref TEXT PRIMARY KEY,
            report TEXT NOT NULL REFERENCES coord_reports (id),
            run TEXT NOT NULL,
            facts TEXT NOT NULL,
            created TEXT NOT NULL,
            expires DOUBLE PRECISION NOT NULL)""",
    ),
    ("ALTER TABLE coord_runs ADD COLUMN process TEXT NOT NULL DEFAULT ''",),
)
"""Ordered, never edited once released: number n is what the first n of them make."""

NUMBER = len(MIGRATIONS)


def ensure(store: SqlStore) -> None:
    """Make the store where there is none, and the tables, or bring them up to date.

    Raises:
        InvalidStoreError: they are those of a newer mergepub.
        DeniedError: the database does not let us.
    """
    store.init()
    if _present(store) < NUMBER:
        store._write(PLACE, _migrate)


def _present(store: SqlStore) -> int:
    try:
        row = store._read(lambda tx: tx.row("SELECT number FROM coord_schema"))
    except InvalidStoreError:  # there is no such table yet; whatever else is wrong, the migration meets it again
        return 0
    return _checked(int(row[0]) if row else 0)


def _checked(number: int) -> int:
    if number > NUMBER:
        raise InvalidStoreError(
            f"coordination has schema {number} in this store, this mergepub knows up to {NUMBER}",
            hint="upgrade mergepub",
        )
    return number


def _migrate(tx: Transaction) -> None:
    tx.put("CREATE TABLE IF NOT EXISTS coord_schema (number BIGINT NOT NULL)")
    row = tx.row("SELECT number FROM coord_schema")
    for statements in MIGRATIONS[_checked(int(row[0]) if row else 0) :]:
        for statement in statements:
            tx.put(statement)
    tx.run("DELETE FROM coord_schema")
    tx.run("INSERT INTO coord_schema (number) VALUES (?)", NUMBER)
