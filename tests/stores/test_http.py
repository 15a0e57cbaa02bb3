"""The HTTP store against the conformance suite: through a real service on a real socket, to SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.documents import ABSENT, MergedFrom, Receipt, Version, digest_of
from mergepub.errors import DeniedError, RejectedError, UnavailableError
from mergepub.outcomes import Published
from mergepub.publishing import publish
from mergepub.stores import open_store
from mergepub.stores.contract import MAX_BODY, Store
from mergepub.stores.http import HttpStore
from mergepub.stores.http_wire import Timeouts
from mergepub.stores.wrappers import RetryPolicy
from tests.stores.conformance import DOC, Opener, StoreConformance, refused
from tests.stores.http_service import HttpService
from tests.stores.scripted_server import HANG, HTML, RESET, Forwarding, ScriptedServer, reply

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

    def test_verify_names_the_version_whose_body_is_damaged(
        self, store: Store, service: HttpService, file: Path
    ) -> None:
        store.publish(DOC, b"one", ABSENT)
        store.publish(DOC, b"two", Version(1))
        connection = sqlite3.connect(file)
        with connection:
            connection.execute("UPDATE bodies SET body = ? WHERE digest = ?", (b"0ne", digest_of(b"one")))
        connection.close()
        hasty = HttpStore(service.url, policy=RetryPolicy(attempts=1))
        read, checked = hasty.verify()
        assert read.startswith(f"{DOC}/v1: ")
        assert checked == f"{DOC}: the body {digest_of(b'one')[:12]} does not have its digest (main@1)"
        hasty.close()
        empty_sqlite(file)


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


@pytest.mark.parametrize("lost", [RESET, HANG, b"", reply(502, HTML), reply(200), b"HTTP/1.1 201 Created\r\nContent-"])
def test_every_write_happens_once_when_its_first_answers_are_lost(
    running: HttpService, file: Path, lost: object
) -> None:
    way = ScriptedServer([Forwarding(running.url, lost=[lost])])
    store = HttpStore(way.url, timeouts=Timeouts(read=2.0 if lost is HANG else 20.0), policy=RetryPolicy.instant())

    def losing(call: Callable[[], Receipt]) -> Receipt:
        way.script[0] = Forwarding(running.url, lost=[lost])
        return call()

    receipts = [
        losing(lambda: store.publish(DOC, b"one\n", ABSENT)),
        losing(lambda: store.publish(DOC, b"two\n", Version(1))),
        losing(lambda: store.append(DOC, b"three\n", key="k")),
        losing(lambda: store.publish(DOC, b"merged\n", Version(3), merged_from=MergedFrom(1, 3, digest_of(b"ours")))),
        losing(lambda: store.delete(DOC, Version(4))),
    ]
    assert [(receipt.version.number, receipt.replayed) for receipt in receipts] == [(n, True) for n in range(1, 6)]
    assert [(row.version, row.deleted) for row in store.versions(DOC)] == [(n, n == 5) for n in range(5, 0, -1)]
    assert store.fetch(DOC, 3).body == b"two\nthree\n"
    store.close()
    way.close()
    empty_sqlite(file)


def test_a_conflict_costs_three_more_round_trips(running: HttpService, file: Path) -> None:
    way = ScriptedServer([Forwarding(running.url, lost=[])])
    store = HttpStore(way.url)
    body = b"".join(b"line %d\n" % number for number in range(9))
    for expected, edit in enumerate((body, body.replace(b"line 1", b"their line 1"))):
        publish(store, DOC, edit, expected)
    way.requests.clear()
    outcome = publish(store, DOC, body.replace(b"line 7", b"our line 7"), 1, on_conflict="merge")
    assert isinstance(outcome, Published)
    assert outcome.version == 3
    assert store.fetch(DOC).body == body.replace(b"line 1", b"their line 1").replace(b"line 7", b"our line 7")
    asked = [(request.method, request.target) for request in way.requests[:-1]]
    assert asked == [("PUT", DOC), ("GET", f"{DOC}/v1"), ("GET", DOC), ("PUT", DOC)]
    again = publish(store, DOC, body.replace(b"line 7", b"our line 7"), 1, on_conflict="merge")
    assert isinstance(again, Published)
    assert (again.version, again.replayed) == (3, True), "the merge is recognised by its record"
    store.close()
    way.close()
    empty_sqlite(file)


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


def test_verify_raises_when_the_store_goes_away(tmp_path: Path) -> None:
    service = HttpService(str(tmp_path / "store.sqlite")).start()
    store = HttpStore(service.url, policy=RetryPolicy(attempts=1))
    store.publish(DOC, b"one", ABSENT)
    faults = store.verify()
    service.remove()
    assert isinstance(refused(lambda: list(faults)), UnavailableError)
    store.close()


def test_a_service_with_tokens_takes_the_right_secret_and_no_other(tmp_path: Path) -> None:
    url = str(tmp_path / "store.sqlite")
    direct = open_store(url)
    direct.publish(DOC, b"one", ABSENT)
    direct.close()
    command = [sys.executable, "-m", "mergepub", "token", "create", "--name", "CI", "--allow", "publish:/docs/**"]
    secret = subprocess.run([*command, "--store", url], check=True, capture_output=True, text=True).stdout.strip()
    service = HttpService(url).start()
    (tmp_path / "token").write_text(secret)
    store = HttpStore(service.url, token_file=tmp_path / "token")
    assert store.publish(DOC, b"two", Version(1), author="somebody").version.number == 2
    assert store.fetch(DOC).author == "CI"
    assert isinstance(refused(lambda: store.publish("/other", b"x", ABSENT)), DeniedError)
    for token in (None, "mp_wrong"):
        stranger = HttpStore(service.url, token=token)
        for call in (lambda s=stranger: s.fetch(DOC), lambda s=stranger: s.publish(DOC, b"three", Version(2))):
            error = refused(call)
            assert isinstance(error, DeniedError)
            assert "MERGEPUB_TOKEN" in (error.hint or "")
        stranger.close()
    assert secret not in service.log
    store.close()
    service.remove()


def test_a_certificate_is_trusted_only_when_its_authority_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
    ]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *subject, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    service = HttpService(str(tmp_path / "store.sqlite"), "--tls-cert", certificate, "--tls-key", key).start()
    store = HttpStore(service.url, policy=RetryPolicy(attempts=1))
    error = refused(lambda: store.publish(DOC, b"x", ABSENT))
    assert type(error) is UnavailableError, "a handshake that failed sent nothing"
    assert "certificate" in str(error)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    assert store.publish(DOC, b"x", ABSENT).version.number == 1
    store.close()
    service.remove()
