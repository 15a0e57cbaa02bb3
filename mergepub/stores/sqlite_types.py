"""Values of a type that their column is not for: SQLite takes them from whoever opens the file, we put none there.

Bytes in a column of text are refused as they are read, before anything is made of them or shown. ``mistyped`` looks for
such values in the whole file, once an operation has stumbled over one.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from mergepub.stores.sql import Cursor, Transaction

_BYTES = "body"  # the one column that holds bytes
_TYPES = {"TEXT": "text", "BIGINT": "integer", "BLOB": "blob"}


class TypedTransaction(Transaction):
    """A transaction whose rows hold bytes in the column of bodies alone."""

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        """As ``Transaction.row``.

        Raises:
            TypeError: a column of text holds bytes.
        """
        cursor = self._execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
        if row is not None:
            _check(cursor, row)
        return row

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """As ``Transaction.rows``.

        Raises:
            TypeError: a column of text holds bytes.
        """
        cursor = self._execute(statement, values)
        rows = cursor.fetchall()
        for row in rows:
            _check(cursor, row)
        return rows


def _check(cursor: Cursor, row: tuple[Any, ...]) -> None:
    if bytes not in map(type, row):
        return
    assert isinstance(cursor, sqlite3.Cursor)
    for (name, *_), value in zip(cursor.description, row, strict=True):
        if name != _BYTES and isinstance(value, bytes):
            raise TypeError(f"the column {name} holds bytes")


def mistyped(connection: sqlite3.Connection) -> str | None:
    """Where a value is not of its column's type, in words; None where all are."""
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for _, column, declared, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            fits = _TYPES.get(declared)
            query = f'SELECT typeof("{column}") FROM "{table}" WHERE typeof("{column}") NOT IN (?, ?) LIMIT 1'  # noqa: S608 - names of our own tables
            found = connection.execute(query, (fits, "null")).fetchone() if fits else None
            if found:
                return f"the column {column} of {table} holds a value of the type {found[0]}, not {fits}"
    return None
