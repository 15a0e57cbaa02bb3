"""Many writes in one transaction on SQLite: the statements. What is done with them stands in groupcommit.py."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from mergepub.errors import ContentionError
from mergepub.stores.groupcommit import Batch, Change, Job, Kept, Row
from mergepub.stores.sql import HEADS, MIGRATIONS, Dialect
from mergepub.stores.sqlite_types import TypedTransaction

if TYPE_CHECKING:
    from mergepub.stores.sql import Cursor

# Tables refer to earlier ones alone. (Deferring foreign keys instead would have every statement prepared anew.)
_PLACES = {table: place for place, table in enumerate(re.findall(r"CREATE TABLE (\w+)", "".join(chain(*MIGRATIONS))))}


class TypedKept(Kept, TypedTransaction):
    """What is read is of the type of its column."""


class SqliteBatch(Batch):
    """On a connection in a writing transaction.

    A step of a statement costs more by its way to SQLite and back than by its work, so a statement takes many rows.
    """

    kept = TypedKept

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def write(self, jobs: list[Job]) -> None:
        """Run ``jobs``; the transaction is still to be committed."""
        paths = list({job.path for job in jobs})
        self.run(jobs, dict.fromkeys(paths) | self.heads(paths))

    def execute(self, statement: str, values: Sequence[object]) -> Cursor:
        """See ``Batch.execute``."""
        return self._connection.execute(statement, values)

    def heads(self, paths: list[str]) -> dict[str, Row]:
        """See ``Batch.heads``."""
        rows = TypedTransaction(self._connection, Dialect()).rows(_heads(len(paths)), *paths)
        return {path: tuple(head) for path, *head in rows}

    def change(self, changes: dict[str, list[Change]]) -> None:
        """See ``Batch.change``."""
        for statement, each in sorted(changes.items(), key=_place):
            if statement.lstrip().startswith("INSERT"):
                values = [value for change in each for value in change.values]
                changed = self._connection.execute(_many(statement, len(each)), values).rowcount
            else:
                changed = self._connection.executemany(statement, [change.values for change in each]).rowcount
            if each[0].swap and changed != len(each):
                raise ContentionError("a head moved during the write; repeat it")


def _place(change: tuple[str, list[Change]]) -> int:
    return _PLACES[change[1][0].table]


@lru_cache(256)
def _heads(count: int) -> str:
    return HEADS.replace("= ANY(?)", f"IN ({', '.join('?' * count)})")


@lru_cache(1024)
def _many(statement: str, count: int) -> str:
    """``statement``, an insertion of one row, for so many."""
    return re.sub(
        r"\bVALUES (\([^()]*\))", lambda values: "VALUES " + ", ".join([values[1]] * count), statement, count=1
    )
