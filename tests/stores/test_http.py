"""The HTTP store against the conformance suite: through a real service on a real socket, to SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.documents import ABSENT, Version
from mergepub.errors import RejectedError
from mergepub.stores import open_store
from mergepub.stores.contract import MAX_BODY, Store
from mergepub.stores.http import HttpStore
from tests.stores.conformance import DOC, Opener, StoreConformance, refused
from tests.stores.http_service import HttpService

if TYPE_CHECKING:
    from tests.stores.postgres_server import PostgresServer

ZOE = "Zoë <zoe@example.org>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "store.sqlite"


@pytest.fixture(scope="module")
def running(file: Path) -> Iterator[HttpService]:
    service = HttpService(str(file)).start()
    yield service
    service.remove()


@pytest.fixture(scope="module")
def on_postgres(postgres_server: PostgresServer) -> Iterator[tuple[HttpService, str]]:
    with postgres_server.database() as name:
        service = HttpService(postgres_server.url(name)).start()
        yield service, name
        service.remove()


class OverHttp(StoreConformance):
    """What differs on HTTP: a label is one line."""

    expected_skips = 0

    @pytest.fixture
    def make_store(self, service: HttpService) -> Opener:
        return lambda: HttpStore(service.url, max_body=MAX_BODY)

    def test_labels_come_back_as_they_went_in(self, store: Store) -> None:
        message = "Grüße, 世界 😀\ttabbed; 'quoted' %s {} UTF-8''x"
        store.publish(DOC, b"1", ABSENT, author=ZOE, message=message, source="git:abc def")
        document, revision = store.fetch(DOC), next(store.versions(DOC))
        assert (document.author, document.message) == (ZOE, message)
        assert (revision.author, revision.message, revision.source) == (ZOE, message, "git:abc def")
        for lines in ("a\nb", "a\rb"):
            assert isinstance(
                refused(lambda lines=lines: store.publish("/b", b"", ABSENT, message=lines)), RejectedError
            )

    def test_a_deletion_of_the_version_that_was_fetched_is_recognised_when_repeated(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        version = store.fetch(DOC).version
        assert not store.delete(DOC, version).replayed
        assert store.delete(DOC, version).replayed

    def test_a_history_and_a_listing_longer_than_a_page_are_read_to_the_end(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mergepub.stores.http.PAGE", 3)
        for number in range(8):
            store.publish(DOC, b"%d" % number, Version(number))
            store.publish(f"/list/{number}", b"", ABSENT)
        assert [row.version for row in store.versions(DOC)] == [8, 7, 6, 5, 4, 3, 2, 1]
        assert [row.version for row in store.versions(DOC, before=7, limit=5)] == [6, 5, 4, 3, 2]
        assert [row.path for row in store.list("/list")] == [f"/list/{number}" for number in range(8)]
        assert [row.path for row in store.list(after="/list/2", limit=4)] == [f"/list/{n}" for n in range(3, 7)]


class TestHttpToSqlite(OverHttp):
    """``http://`` to a service on SQLite."""

    @pytest.fixture
    def service(self, running: HttpService, file: Path) -> Iterator[HttpService]:
        yield running
        empty_sqlite(file)

    def test_what_the_service_stores_is_what_the_store_behind_it_has(self, store: Store, file: Path) -> None:
        store.publish(DOC, b"a\n", ABSENT, author=ZOE)
        store.append(DOC, b"b\n", key="k")
        behind = open_store(str(file))
        assert list(behind.versions(DOC)) == list(store.versions(DOC))
        assert behind.fetch(DOC).body == store.fetch(DOC).body
        assert list(behind.verify()) == []
        behind.close()


class TestHttpToPostgres(OverHttp):
    """``http://`` to a service on PostgreSQL."""

    @pytest.fixture
    def service(self, on_postgres: tuple[HttpService, str], postgres_server: PostgresServer) -> Iterator[HttpService]:
        service, database = on_postgres
        yield service
        empty_postgres(postgres_server, database)


def empty_postgres(server: PostgresServer, database: str) -> None:
    """Delete all rows of all documents under the running service."""
    found = server.execute(
        "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables"
        " WHERE schemaname = 'mergepub' AND tablename <> 'mergepub_schema'",
        database,
    )
    if found[0][0]:
        server.execute(f"TRUNCATE {found[0][0]}", database)


def empty_sqlite(file: Path) -> None:
    """Delete all rows under the running service: a fresh store for the next test without a fresh process."""
    if not file.exists():
        return
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA foreign_keys = OFF")
    with connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for (table,) in tables.fetchall():
            connection.execute(f'DELETE FROM "{table}"')
    connection.close()


def test_the_limit_of_a_service_is_an_error_that_names_it(tmp_path: Path) -> None:
    service = HttpService(str(tmp_path / "store.sqlite"), "--max-body", "1000").start()
    store = HttpStore(service.url)
    try:
        store.publish(DOC, b"x" * 1000, ABSENT)
        for size in (1001, 20_000_000):
            for call in (
                lambda size=size: store.publish("/more", b"x" * size, ABSENT),
                lambda size=size: store.append(DOC, b"x" * size, key="k"),
            ):
                error = refused(call)
                assert isinstance(error, RejectedError)
                assert error.limit == 1000
    finally:
        store.close()
        service.remove()
