"""Many writes in one transaction on PostgreSQL: the statements. What is done with them stands in groupcommit.py.

A write costs the server and us more by its messages than by its rows. So the heads of all are locked and read, and the
changes of all are sent as one statement.

- A head that somebody else has locked is passed over (``SKIP LOCKED``): its writer goes on alone and waits for it
  alone. So a transaction never waits for a head while it holds others, and two services cannot lock each other out.
- A commit whose answer is lost is an unknown outcome for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

import psycopg

from mergepub.errors import ContentionError, MergepubError, UnknownOutcomeError
from mergepub.stores.groupcommit import Batch, Change, Job, Row
from mergepub.stores.postgres_wire import Binary, Connection
from mergepub.stores.sql import HEADS, SCHEMA

if TYPE_CHECKING:
    from mergepub.stores.sql import Cursor

# One row always: a schema's number, and which of the paths were locked for us.
_LOCK = """SELECT (SELECT number FROM mergepub_schema),
    ARRAY(SELECT path FROM heads WHERE path = ANY(?) ORDER BY path FOR UPDATE SKIP LOCKED)"""

_TYPES = {str: "text", int: "bigint", bytes: "bytea"}


class PostgresBatch(Batch):
    """The transaction of ``jobs``."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs
        self._begun = False
        self._commits = False
        self._sent: Cursor | None = None

    def write(
        self,
        connection: Callable[[], AbstractContextManager[Connection]],
        meaning: Callable[[psycopg.Error, bool], MergepubError],
    ) -> None:
        """Run all jobs; each has its answer afterwards.

        ``connection`` lends one outside a transaction; ``meaning`` translates an error (see ``translated``).
        """
        try:
            with connection() as self._connection, self._connection.pipeline():
                self._begun = True
                self._transact()
        except psycopg.Error as error:
            meant = meaning(error, self._commits)
            self._end(meant if isinstance(meant, UnknownOutcomeError) or not self._begun else None)
        except MergepubError as error:
            # Without a connection nobody has to wait for one again, one by one.
            self._end(None if self._begun else error)

    def _end(self, error: Exception | None) -> None:
        for job in self._jobs:
            job.end(error)

    def _transact(self) -> None:
        self._connection.execute("BEGIN")
        self.run(self._jobs, self._locked(sorted({job.path for job in self._jobs})))
        self._commits = self._sent is not None
        self._connection.execute("COMMIT")
        if self._sent:
            # Not left to the end of the pipeline: it begins to wait before all of a large body has left, and the server
            # waits for the rest.
            self._sent.fetchall()

    def _locked(self, paths: list[str]) -> dict[str, Row | None]:
        """The heads of the paths that are ours now: locked, or of no document yet."""
        locked = self._asked(_LOCK, paths)
        found = self.heads(paths)
        number, ours = locked.fetchone()
        if number != SCHEMA:
            raise ContentionError("the schema changed; alone every writer looks at it anew")
        mine = set(ours)
        return {path: found.get(path) for path in paths if path in mine or path not in found}

    def _asked(self, statement: str, paths: list[str]) -> Cursor:
        return self._connection.execute(statement.replace("?", "%s").encode(), (paths,), binary=True)

    def execute(self, statement: str, values: Sequence[object]) -> Cursor:
        """See ``Batch.execute``."""
        return Binary(self._connection).execute(statement.replace("?", "%s"), values)

    def heads(self, paths: list[str]) -> dict[str, Row]:
        """See ``Batch.heads``."""
        return {path: tuple(head) for path, *head in self._asked(HEADS, paths).fetchall()}

    def change(self, changes: dict[str, list[Change]]) -> None:
        """One statement for all; every service has the same order of tables and of rows, so none locks another out."""
        count = sum(map(len, changes.values()))
        parts: list[str] = []
        values: list[object] = []
        swaps: list[str] = []
        for name, statement in enumerate(sorted(changes)):
            text, given = _as_one(changes[statement], single=len(changes) == count)
            parts.append(f"part{name} AS ({text})")
            values += given
            swaps += [f"part{name}"] if changes[statement][0].swap else []
        # A division by zero undoes the transaction without asking us, so the commit need not wait for our answer.
        swapped = " + ".join(f"(SELECT count(*) FROM {name})" for name in swaps) or "0"  # noqa: S608 - names made above
        wanted = sum(change.swap for each in changes.values() for change in each)
        text = f"WITH {', '.join(parts)} SELECT 1 / ({swapped} = %s)::int"
        self._sent = self._connection.execute(text.encode(), [*values, wanted], binary=True)


def _as_one(changes: list[Change], *, single: bool) -> tuple[str, Sequence[object]]:
    """The statement of ``changes``, with its values: arrays, but for a ``single`` one the values themselves."""
    statement = changes[0].statement + (" RETURNING 1" if changes[0].swap else "")
    if single:
        return statement.replace("?", "%s"), changes[0].values
    rows = sorted((change.values for change in changes), key=_first)
    columns = [list(column) for column in zip(*rows, strict=True)]
    types = tuple(map(_type, columns))
    return _many(statement, types), [column for column, kind in zip(columns, types, strict=True) if kind]


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
