"""The schema of a PostgreSQL store: made once, upgraded once, never of what is not ours; usable without DDL rights."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest
from mergepub.documents import ABSENT, Version
from mergepub.errors import DeniedError, InputError, InvalidStoreError, MergepubError, NotFoundError
from mergepub.stores import postgres, postgres_schema, sql
from mergepub.stores.postgres import PostgresStore
from mergepub.stores.tokens import Token, TokenStore

if TYPE_CHECKING:
    from tests.stores.postgres_server import PostgresServer

INIT = "import sys; from mergepub.stores.postgres import PostgresStore; PostgresStore(sys.argv[1]).init()"


def schemas(server: PostgresServer, database: str) -> list[str]:
    rows = server.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information)' ORDER BY 1", database)
    return [name for (name,) in rows]


def make(url: str, *grant_to: str) -> None:
    store = PostgresStore(url)
    store.init(grant_to=grant_to)
    store.close()


def every_call(store: PostgresStore) -> list[Callable[[], object]]:
    return [
        lambda: store.fetch("/a"),
        lambda: store.publish("/a", b"1", ABSENT),
        lambda: store.append("/a", b"1", key="k"),
        lambda: list(store.list()),
        lambda: list(store.verify()),
        store.init,
    ]


def test_looking_for_a_store_that_is_not_there_makes_none_and_names_the_command_that_does(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    store = PostgresStore(postgres_server.url(postgres_database))
    for call in (lambda: store.fetch("/a"), lambda: list(store.list()), lambda: store.publish("/a", b"", Version(1))):
        with pytest.raises(NotFoundError, match="no store in the schema mergepub") as caught:
            call()
        assert "mergepub store init --store" in str(caught.value.hint)
    store.close()
    assert schemas(postgres_server, postgres_database) == ["public"]


def test_the_first_document_makes_the_store_in_a_schema_of_its_own(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    store = PostgresStore(postgres_server.url(postgres_database))
    store.publish("/a", b"1", ABSENT)
    store.close()
    assert schemas(postgres_server, postgres_database) == ["mergepub", "public"]
    assert postgres_server.execute("SELECT number FROM mergepub.mergepub_schema", postgres_database) == [(sql.SCHEMA,)]


def test_making_a_store_that_stands_changes_nothing(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    store.publish("/a", b"1", ABSENT)
    store.init()
    again = PostgresStore(postgres_url)
    again.init()
    assert again.fetch("/a").body == b"1"
    store.close()
    again.close()


def test_eight_processes_that_make_the_store_at_once_make_one(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    url = postgres_server.url(postgres_database)
    processes = [subprocess.Popen([sys.executable, "-c", INIT, url]) for _ in range(8)]
    assert [process.wait(60) for process in processes] == [0] * 8
    assert postgres_server.execute("SELECT number FROM mergepub.mergepub_schema", postgres_database) == [(sql.SCHEMA,)]


def test_an_older_store_is_upgraded_when_it_is_opened_and_keeps_what_it_holds(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = PostgresStore(postgres_url)
    old.publish("/a", b"1", ABSENT)
    monkeypatch.setattr(sql, "MIGRATIONS", (*sql.MIGRATIONS, ("CREATE TABLE extra (x {blob})",)))
    for module in (postgres, postgres_schema):
        monkeypatch.setattr(module, "SCHEMA", sql.SCHEMA + 1)
    new = PostgresStore(postgres_url)
    assert new.fetch("/a").body == b"1"
    assert new._read(lambda tx: tx.rows("SELECT x FROM extra")) == []
    assert new._read(lambda tx: tx.rows("SELECT number FROM mergepub_schema")) == [(sql.SCHEMA + 1,)]
    old.close()
    new.close()


def test_a_newer_store_is_refused_and_left_alone(postgres_url: str) -> None:
    make(postgres_url)
    later = sql.SCHEMA + 7
    store = PostgresStore(postgres_url)
    store._write("/", lambda tx: tx.run("UPDATE mergepub_schema SET number = ?", later))
    store.close()
    newcomer = PostgresStore(postgres_url)
    for call in every_call(newcomer):
        with pytest.raises(InvalidStoreError, match=f"has schema {later}, this mergepub knows up to {sql.SCHEMA}"):
            call()
    newcomer.close()


def test_nothing_is_written_to_a_store_that_was_upgraded_after_it_was_opened(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    store.publish("/a", b"1", ABSENT)
    store._write("/", lambda tx: tx.run("UPDATE mergepub_schema SET number = number + 1"))
    with pytest.raises(InvalidStoreError, match="has schema"):
        store.publish("/a", b"2", Version(1))
    reader = PostgresStore(postgres_url)
    reader._stands = True
    assert reader.fetch("/a").body == b"1"
    store.close()
    reader.close()


@pytest.mark.parametrize(
    "tables",
    [
        "CREATE TABLE other.documents (id INT)",
        "CREATE TABLE other.heads (path TEXT); CREATE TABLE other.bodies (x INT)",
        "CREATE VIEW other.versions AS SELECT 1",
        "CREATE SEQUENCE other.numbers",
    ],
)
def test_other_peoples_tables_are_refused_and_left_alone(
    postgres_server: PostgresServer, postgres_database: str, tables: str
) -> None:
    postgres_server.execute("CREATE SCHEMA other; " + tables, postgres_database)
    relations = "SELECT relname, relkind FROM pg_class WHERE relnamespace = 'other'::regnamespace ORDER BY 1"
    before = postgres_server.execute(relations, postgres_database)
    store = PostgresStore(postgres_server.url(postgres_database, schema="other"))
    for call in every_call(store):
        with pytest.raises(InvalidStoreError, match="tables of something else"):
            call()
    store.close()
    assert postgres_server.execute(relations, postgres_database) == before


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE other.mergepub_schema (number BIGINT)",
        "CREATE TABLE other.mergepub_schema AS SELECT 1::bigint AS number UNION ALL SELECT 1",
        "CREATE TABLE other.mergepub_schema AS SELECT 'one' AS number",
        "CREATE TABLE other.mergepub_schema (version BIGINT)",
    ],
)
def test_a_table_that_only_looks_like_our_mark_is_refused(
    postgres_server: PostgresServer, postgres_database: str, table: str
) -> None:
    postgres_server.execute(f"CREATE SCHEMA other; {table}", postgres_database)
    store = PostgresStore(postgres_server.url(postgres_database, schema="other"))
    for call in every_call(store):
        with pytest.raises(InvalidStoreError, match="no mergepub store"):
            call()
    store.close()


def test_an_empty_schema_that_an_administrator_made_is_used(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    postgres_server.execute("CREATE ROLE tenant LOGIN", postgres_database)
    postgres_server.execute("CREATE SCHEMA docs AUTHORIZATION tenant", postgres_database)
    store = PostgresStore(postgres_server.url(postgres_database, "tenant", schema="docs"))
    store.publish("/a", b"1", ABSENT)
    assert store.fetch("/a").body == b"1"
    store.close()
    postgres_server.execute("DROP OWNED BY tenant", postgres_database)
    postgres_server.execute("DROP ROLE tenant", postgres_database)


def test_a_database_of_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    postgres_server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    store = PostgresStore(postgres_server.url("latin"))
    with pytest.raises(InvalidStoreError, match="another encoding than UTF8: LATIN1"):
        store.publish("/a", b"1", ABSENT)
    store.close()
    assert schemas(postgres_server, "latin") == ["public"]


@pytest.fixture
def role(postgres_server: PostgresServer, postgres_database: str) -> str:
    """A role that may log in and nothing else."""
    name = postgres_server.fresh_name()
    postgres_server.execute(f"CREATE ROLE {name} LOGIN")
    postgres_server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", postgres_database)
    return name


def test_a_role_without_rights_is_denied_and_told_who_must_run_what(
    postgres_server: PostgresServer, postgres_database: str, role: str
) -> None:
    store = PostgresStore(postgres_server.url(postgres_database, role))
    with pytest.raises(DeniedError, match="may not make or upgrade the store") as caught:
        store.publish("/a", b"1", ABSENT)
    assert "mergepub store init --store URL --grant-to ROLE" in str(caught.value.hint)
    make(postgres_server.url(postgres_database))
    with pytest.raises(DeniedError, match="does not allow this"):
        store.fetch("/a")
    store.close()


def test_a_role_without_the_right_to_create_tables_uses_a_store_that_stands(
    postgres_server: PostgresServer, postgres_database: str, role: str
) -> None:
    for _ in range(2):
        make(postgres_server.url(postgres_database), role)
    store = PostgresStore(postgres_server.url(postgres_database, role))
    store.publish("/a", b"1", ABSENT)
    store.append("/a", b"2", key="k")
    store.delete("/a", Version(2))
    store.publish("/a", b"3", ABSENT)
    assert [revision.version for revision in store.versions("/a")] == [4, 3, 2, 1]
    assert list(store.verify()) == []
    store.close()


def test_a_granted_role_keeps_the_tokens_of_its_service(
    postgres_server: PostgresServer, postgres_database: str, role: str
) -> None:
    make(postgres_server.url(postgres_database), role)
    store = PostgresStore(postgres_server.url(postgres_database, role))
    tokens = TokenStore(store)
    token = Token("CI", "key", "digest", ("publish:/docs/**", "read:/**"), "2026-01-01T00:00:00Z")
    tokens.add(token)
    with pytest.raises(InputError, match="there is a token 'CI' already"):
        tokens.add(token)
    tokens.revoke("CI")
    tokens.add(replace(token, key="key2"))
    assert tokens.load() == [replace(token, key="key2")]
    with pytest.raises(NotFoundError):
        tokens.revoke("CD")
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE revisions SET author = 'eve'",
        "UPDATE versions SET number = 9",
        "UPDATE bodies SET body = ''",
        "DELETE FROM heads",
        "DELETE FROM versions",
        "DELETE FROM bodies",
        "UPDATE mergepub_schema SET number = 9",
        "INSERT INTO mergepub_schema VALUES (9)",
        "TRUNCATE revisions CASCADE",
        "DROP TABLE heads",
        "CREATE TABLE more (x INT)",
    ],
)
def test_a_granted_role_can_neither_change_nor_remove_what_is_published(
    postgres_server: PostgresServer, postgres_database: str, role: str, statement: str
) -> None:
    make(postgres_server.url(postgres_database), role)
    with psycopg.connect(postgres_server.url(postgres_database, role), autocommit=True) as connection:
        connection.execute("SET search_path = mergepub")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)  # type: ignore[call-overload]  # written above


def test_granting_to_a_role_that_does_not_exist_says_so(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    with pytest.raises(NotFoundError, match='role "nobody at all" does not exist'):
        store.init(grant_to=["nobody at all"])
    store.close()


def test_a_store_whose_tables_were_dropped_under_it_says_so(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    store = PostgresStore(postgres_server.url(postgres_database))
    store.publish("/a", b"1", ABSENT)
    postgres_server.execute("DROP SCHEMA mergepub CASCADE", postgres_database)
    with pytest.raises(InvalidStoreError, match="no mergepub store, or not any more"):
        store.fetch("/a")
    with pytest.raises(MergepubError):
        store.publish("/a", b"2", Version(1))
    store.close()


def test_tables_of_like_names_elsewhere_on_the_search_path_are_never_taken_for_ours(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    for statement in (
        "CREATE TABLE public.heads (path TEXT)",
        "CREATE TABLE public.mergepub_schema (number BIGINT)",
        "CREATE FUNCTION public.coalesce_trap(x TEXT) RETURNS TEXT LANGUAGE SQL AS 'SELECT NULL'",
        f"ALTER DATABASE {postgres_database} SET search_path = public",
    ):
        postgres_server.execute(statement, postgres_database)
    store = PostgresStore(postgres_server.url(postgres_database))
    store.publish("/a", b"1", ABSENT)
    assert store.fetch("/a").body == b"1"
    store.close()
    assert postgres_server.execute("SELECT count(*) FROM public.heads", postgres_database) == [(0,)]


def test_paths_are_ordered_by_code_point_and_bodies_stored_unpacked(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    make(postgres_server.url(postgres_database))
    columns = postgres_server.execute(
        """SELECT relname, collname, attstorage FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
        LEFT JOIN pg_collation l ON l.oid = attcollation
        WHERE relnamespace = 'mergepub'::regnamespace AND relkind = 'r' AND attname IN ('path', 'body')""",
        postgres_database,
    )
    assert {collation for table, collation, _ in columns if table != "bodies"} == {"C"}
    assert [storage for table, _, storage in columns if table == "bodies"] == ["e"]
