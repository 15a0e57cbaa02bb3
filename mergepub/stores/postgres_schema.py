"""The schema of a PostgreSQL store: is it there, is it ours, bring it up to date, let other roles use it.

What it consists of stands in sql.py; this module adds one table, ``mergepub_schema``, whose one row is the schema's
number and whose presence is what makes a schema ours.
"""

from __future__ import annotations

from hashlib import sha256

import psycopg
from psycopg import sql

from mergepub.errors import DeniedError, InvalidStoreError
from mergepub.stores.postgres_wire import Binary, Connection
from mergepub.stores.sql import SCHEMA, Dialect, Transaction

DIALECT = Dialect(placeholder="%s", blob="BYTEA", path='TEXT COLLATE "C"')
TABLE = "mergepub_schema"

_LOOK = """SELECT to_regclass(%(table)s) IS NOT NULL, to_regnamespace(%(schema)s) IS NOT NULL,
    EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s))"""

# Upgrading waits as long as it takes for its turn, and a minute for the tables that others are writing to.
_PATIENCE = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '60s', true)"

_GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT ON {tables} TO {role}",
    "REVOKE INSERT ON {schema}.mergepub_schema FROM {role}",
    # Only what moves can be changed; revisions, versions and bodies can be neither changed nor removed.
    "GRANT UPDATE ON {schema}.heads, {schema}.branches, {schema}.branch_owners, {schema}.tokens TO {role}",
    "GRANT DELETE ON {schema}.tokens TO {role}",
)


def number(connection: Connection, schema: str) -> int | None:
    """The number of the schema that stands, None where there is none. Looks only.

    Raises:
        InvalidStoreError: what stands there is not ours, or newer than this mergepub.
    """
    ours, _, occupied = _look(connection, schema)
    if not ours:
        if occupied:
            raise InvalidStoreError(
                f"the schema {schema} of the database holds tables of something else",
                hint="name another schema with ?schema=NAME in the store's URL",
            )
        return None
    rows = connection.execute(sql.SQL("SELECT number FROM {}").format(sql.Identifier(schema, TABLE))).fetchall()
    if len(rows) != 1 or not isinstance(rows[0][0], int):
        raise InvalidStoreError(f"the table {schema}.{TABLE} does not hold one number: this is no mergepub store")
    present = rows[0][0]
    if present > SCHEMA:
        raise InvalidStoreError(
            f"the store in schema {schema} has schema {present}, this mergepub knows up to {SCHEMA}",
            hint="upgrade mergepub",
        )
    return present


def migrate(connection: Connection, schema: str) -> None:
    """Make the schema, or bring it to ``SCHEMA``: all of it or nothing, in one process at a time.

    Raises:
        DeniedError: the role may not create or change tables.
        InvalidStoreError: as ``number``, or the database's encoding is not UTF8.
    """
    try:
        with connection.transaction():
            connection.execute(_PATIENCE)
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_lock_key(schema),))
            present = number(connection, schema)
            if present != SCHEMA:
                _upgrade(connection, schema, present)
    except psycopg.errors.InsufficientPrivilege as error:
        raise DeniedError(
            f"this role may not make or upgrade the store in schema {schema}: {error.diag.message_primary}",
            hint="let a role that may create tables run: mergepub store init --store URL --grant-to ROLE",
        ) from error


def grant(connection: Connection, schema: str, role: str) -> None:
    """Let ``role`` use the store: read everything, add to it, move heads; not change or remove what is written.

    Coordination's tables are no part of it: mail between runs is nothing that whoever serves documents may read, and a
    message in it is from whom it says because the daemon alone adds it.
    """
    with connection.transaction():
        tables = sql.SQL(", ").join(sql.Identifier(schema, table) for table in _tables(connection, schema))
        names = {"schema": sql.Identifier(schema), "tables": tables, "role": sql.Identifier(role)}
        for statement in _GRANTS:
            connection.execute(sql.SQL(statement).format(**names))


def _tables(connection: Connection, schema: str) -> list[str]:
    query = r"SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename NOT LIKE 'coord\_%%'"
    return [name for (name,) in connection.execute(query, (schema,)).fetchall()]


def _look(connection: Connection, schema: str) -> tuple[bool, bool, bool]:
    """Whether our table is there, whether the schema is, whether anything is in it."""
    row = connection.execute(_LOOK, {"schema": f'"{schema}"', "table": f'"{schema}".{TABLE}'}).fetchone()
    assert row is not None, "a SELECT without FROM has one row"
    return row[0], row[1], row[2]


def _lock_key(schema: str) -> int:
    return int.from_bytes(sha256(f"mergepub schema {schema}".encode()).digest()[:8], signed=True)


def _upgrade(connection: Connection, schema: str, present: int | None) -> None:
    if present is None:
        _begin(connection, schema)
    Transaction(Binary(connection), DIALECT).migrate(present or 0)
    if present is None:
        # Bodies are handed out whole and mostly text of a few KiB: packing them costs more than it saves.
        connection.execute("ALTER TABLE bodies ALTER COLUMN body SET STORAGE EXTERNAL")
    else:
        _share_new_tables(connection, schema)
    connection.execute("DELETE FROM mergepub_schema")
    connection.execute("INSERT INTO mergepub_schema (number) VALUES (%s)", (SCHEMA,))


def _share_new_tables(connection: Connection, schema: str) -> None:
    """Roles that could use the store before it was upgraded can use all of it afterwards."""
    roles = connection.execute(
        """SELECT DISTINCT grantee FROM information_schema.role_table_grants
        WHERE table_schema = %s AND table_name = 'versions' AND privilege_type = 'INSERT'
        AND grantee NOT IN ('PUBLIC', current_user)""",
        (schema,),
    ).fetchall()
    for (role,) in roles:
        grant(connection, schema, role)


def _begin(connection: Connection, schema: str) -> None:
    row = connection.execute("SELECT current_setting('server_encoding')").fetchone()
    if row != ("UTF8",):
        raise InvalidStoreError(
            f"the database has another encoding than UTF8: {row and row[0]}", hint="make one with: createdb -E UTF8"
        )
    if not _look(connection, schema)[1]:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    connection.execute("CREATE TABLE mergepub_schema (number BIGINT NOT NULL)")
