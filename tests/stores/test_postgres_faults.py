"""The PostgreSQL store when things go wrong: locks, time-outs, broken connections, killed servers."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from mergepub.documents import ABSENT, Version, digest_of
from mergepub.errors import (
    ContentionError,
    DeniedError,
    InvalidStoreError,
    MergepubError,
    UnavailableError,
    UnknownOutcomeError,
)
from mergepub.stores.postgres import ATTEMPTS, PostgresStore
from tests.stores.conformance import acknowledged, started

if TYPE_CHECKING:
    from mergepub.stores.sql import Transaction
    from tests.stores.postgres_server import PostgresServer

DOC = "/docs/guide.md"


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    """A store with one version of one document."""
    store = PostgresStore(postgres_url)
    store.publish(DOC, b"1", ABSENT)
    yield store
    store.close()


@contextmanager
def another(store: PostgresStore, **options: str) -> Iterator[PostgresStore]:
    """The same store, opened once more with other options in its URL."""
    opened = PostgresStore(store.url + "".join(f"&{name}={value}" for name, value in options.items()))
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def held(store: PostgresStore, path: str) -> Iterator[None]:
    """Somebody holds the head of ``path``."""
    ready, release = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        tx.row("SELECT version FROM heads WHERE path = ?", path)
        ready.set()
        release.wait(30)

    thread = threading.Thread(target=lambda: store._write(path, hold))
    thread.start()
    ready.wait(30)
    try:
        yield
    finally:
        release.set()
        thread.join()


def lose_the_connection(tx: Transaction) -> None:
    tx.row("SELECT pg_terminate_backend(pg_backend_pid())")


def backend(store: PostgresStore) -> object:
    """The process of the server that the store's connection talks to."""
    return store._read(lambda tx: tx.row("SELECT pg_backend_pid()"))


def end_connections(store: PostgresStore) -> None:
    """End every other connection of the store's database, as an administrator would."""
    with psycopg.connect(**store._settings.conninfo, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


# Locks and time-outs


def test_a_writer_that_waits_too_long_for_another_is_told_and_writes_nothing(store: PostgresStore) -> None:
    with another(store, lock_timeout="0.1") as impatient:
        with held(store, DOC), pytest.raises(UnavailableError, match="another writer holds the document") as caught:
            impatient.publish(DOC, b"2", Version(1))
        assert type(caught.value) is UnavailableError
        assert impatient.publish(DOC, b"2", Version(1)).version.number == 2


def test_writers_of_other_documents_and_readers_do_not_wait(store: PostgresStore) -> None:
    with another(store, lock_timeout="0.1") as impatient, held(store, DOC):
        assert impatient.publish("/other", b"1", ABSENT).version.number == 1
        assert impatient.fetch(DOC).body == b"1"
        assert [listed.path for listed in impatient.list()] == [DOC, "/other"]


def test_a_statement_that_takes_too_long_is_unavailable(store: PostgresStore) -> None:
    with (
        another(store, statement_timeout="0.1") as impatient,
        held(store, DOC),
        pytest.raises(UnavailableError, match="statement time-out"),
    ):
        impatient.publish(DOC, b"2", Version(1))


def test_a_store_that_contradicts_itself_is_no_store_and_names_verify(store: PostgresStore) -> None:
    with pytest.raises(InvalidStoreError, match="mergepub verify"):
        store._write("/x", lambda tx: tx.run("INSERT INTO heads VALUES ('/x', 9, 'none', 9, NULL)"))


@pytest.mark.parametrize("state", ["40001", "40P01", "23505"])
def test_what_another_writer_undid_is_begun_anew_and_in_the_end_is_contention(store: PostgresStore, state: str) -> None:
    begun: list[Transaction] = []

    def fails(tx: Transaction) -> None:
        begun.append(tx)
        tx.put(f"DO $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = '{state}'; END $$")

    def succeeds_at_last(tx: Transaction) -> str:
        if len(begun) < ATTEMPTS - 1:
            fails(tx)
        return "done"

    assert store._write(DOC, succeeds_at_last) == "done"
    begun.clear()
    with pytest.raises(ContentionError, match="another writer was in the way"):
        store._write(DOC, fails)
    assert len(begun) == ATTEMPTS + 1, "once among others, then alone"


def test_a_database_that_takes_no_writes_is_read_and_says_so(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    url = postgres_server.url(postgres_database)
    store = PostgresStore(url)
    store.publish(DOC, b"1", ABSENT)
    store.close()
    postgres_server.execute(f"ALTER DATABASE {postgres_database} SET default_transaction_read_only = on")
    assert store.fetch(DOC).body == b"1"
    with pytest.raises(UnavailableError, match="takes no writes now"):
        store.publish(DOC, b"2", Version(1))
    store.close()


def test_a_commit_is_on_disk_before_it_is_acknowledged_whatever_the_database_defaults_to(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    for given, used in (("off", "on"), ("remote_apply", "remote_apply")):
        postgres_server.execute(f"ALTER DATABASE {postgres_database} SET synchronous_commit = {given}")
        store = PostgresStore(postgres_server.url(postgres_database))
        store.init()
        assert store._read(lambda tx: tx.row("SELECT current_setting('synchronous_commit')")) == (used,)
        store.close()


# Connections


def test_a_refused_log_in_is_denied_at_once_and_its_password_is_not_told(own_postgres: PostgresServer) -> None:
    own_postgres.execute("CREATE ROLE ana LOGIN PASSWORD 'right'")
    rules = own_postgres.data / "pg_hba.conf"
    rules.write_text("local all ana scram-sha-256\n" + rules.read_text())
    own_postgres.restart()
    with_password = own_postgres.url(user="ana").replace("ana@", "ana:{}@")
    for password in ("wr0ng", ""):
        store = PostgresStore(with_password.format(password))
        with pytest.raises(DeniedError, match="refuses the log-in") as caught:
            store.fetch(DOC)
        assert "wr0ng" not in str(caught.value)
    own_postgres.execute("GRANT CREATE ON DATABASE postgres TO ana")
    store = PostgresStore(with_password.format("right"))
    store.publish(DOC, b"1", ABSENT)
    store.close()


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / ".s.PGSQL.5432"))
        silent.listen()
        store = PostgresStore(f"postgresql:///x?host={tmp_path}&connect_timeout=1")
        with pytest.raises(UnavailableError, match="timeout"):
            store.fetch(DOC)


def test_a_database_that_does_not_exist_is_unavailable_and_named(postgres_server: PostgresServer) -> None:
    store = PostgresStore(postgres_server.url("nowhere"))
    with pytest.raises(UnavailableError, match='database "nowhere" does not exist'):
        store.fetch(DOC)


def test_connections_that_the_server_ended_are_replaced_unnoticed(store: PostgresStore) -> None:
    with another(store) as other:
        other.fetch(DOC)
        end_connections(store)
        assert store.fetch(DOC).body == b"1"
        assert other.publish(DOC, b"2", Version(1)).version.number == 2


def test_a_store_goes_on_after_a_restart_of_the_database(own_postgres: PostgresServer) -> None:
    store = PostgresStore(own_postgres.url())
    store.publish(DOC, b"1", ABSENT)
    own_postgres.restart()
    assert store.publish(DOC, b"2", Version(1)).version.number == 2
    own_postgres.kill()
    with pytest.raises(UnavailableError, match="cannot be reached"):
        store.fetch(DOC)
    own_postgres.start()
    assert store.fetch(DOC).body == b"2"
    store.close()


def test_a_connection_lost_before_the_commit_is_unavailable_and_nothing_was_written(store: PostgresStore) -> None:
    with pytest.raises(UnavailableError, match="broke") as caught:
        store._write(DOC, lose_the_connection)
    assert type(caught.value) is UnavailableError
    with pytest.raises(UnavailableError, match="broke") as caught:
        store._read(lose_the_connection)
    assert type(caught.value) is UnavailableError
    assert store.publish(DOC, b"2", Version(1)).version.number == 2


def test_a_connection_lost_while_committing_leaves_the_outcome_open_and_repeating_settles_it(
    store: PostgresStore,
) -> None:
    # The server ends the connection at the very commit, from a deferred trigger: this one never happened.
    schema = store._settings.schema
    statements = (
        f"""CREATE FUNCTION {schema}.die() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$""",
        f"""CREATE CONSTRAINT TRIGGER die AFTER INSERT ON {schema}.versions DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION {schema}.die()""",
    )
    for statement in statements:
        store._write("/", lambda tx, statement=statement: tx.put(statement))
    with pytest.raises(UnknownOutcomeError, match="may or may not have happened"):
        store.publish(DOC, b"2", Version(1))
    store._write("/", lambda tx: tx.put(f"DROP FUNCTION {schema}.die CASCADE"))
    receipt = store.publish(DOC, b"2", Version(1))
    assert (receipt.version.number, receipt.replayed) == (2, False)


def test_an_answer_lost_after_the_commit_is_open_too_and_repeating_finds_the_version(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = psycopg.Pipeline.__exit__

    def loses_the_answer(pipeline: psycopg.Pipeline, *raised: Any) -> None:
        whole(pipeline, *raised)
        pipeline._conn.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Pipeline, "__exit__", loses_the_answer)
        with pytest.raises(UnknownOutcomeError):
            store.publish(DOC, b"2", Version(1))
    receipt = store.publish(DOC, b"2", Version(1))
    assert (receipt.version.number, receipt.replayed) == (2, True)


def test_more_threads_than_connections_share_them(store: PostgresStore) -> None:
    with another(store, pool_size="2") as small:
        threads = [threading.Thread(target=small.append, args=(DOC, b"x"), kwargs={"key": f"{i}"}) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 <= len(small._pool._idle) <= 2
        assert store.fetch(DOC).current == 13


def test_a_call_that_gets_no_connection_in_time_says_how_to_have_more(store: PostgresStore) -> None:
    with another(store, pool_size="1", statement_timeout="0.2") as small:
        small.fetch(DOC)
        with (
            small._pool.connection(),
            pytest.raises(UnavailableError, match=r"all 1 connections .* are in use") as caught,
        ):
            small.fetch(DOC)
        assert "pool_size=N" in str(caught.value.hint)
        assert small.fetch(DOC).body == b"1"


def test_an_error_of_the_caller_gives_the_connection_back_clean(store: PostgresStore) -> None:
    def fails(tx: Transaction) -> None:
        tx.put("DELETE FROM heads")
        raise LookupError("the caller's own")

    with another(store, pool_size="1") as small:
        before = backend(small)
        for _ in range(3):
            with pytest.raises(LookupError):
                small._write(DOC, fails)
        assert small.fetch(DOC).body == b"1"
        assert backend(small) == before


def test_a_child_process_makes_connections_of_its_own(store: PostgresStore) -> None:
    parents = backend(store)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if backend(store) != parents and store.fetch(DOC).body == b"1" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert backend(store) == parents


def test_a_closed_store_opens_again(store: PostgresStore) -> None:
    store.close()
    assert store.fetch(DOC).body == b"1"


def test_labels_that_postgresql_could_not_hold_are_refused_before_it_sees_them(store: PostgresStore) -> None:
    for labels in ({"author": "a\0"}, {"message": "m\0"}, {"source": "\udcff"}):
        with pytest.raises(MergepubError) as caught:
            store.publish(DOC, b"2", Version(1), **labels)  # type: ignore[arg-type]  # one label at a time
        assert caught.value.exit_status == 2


# Crashes


def test_what_was_acknowledged_survives_kill_9_of_the_database_under_load(own_postgres: PostgresServer) -> None:
    url, paths = own_postgres.url(), [f"/docs/{i}" for i in range(3)]
    store = PostgresStore(url)
    for path in paths:
        store.publish(path, b"", ABSENT)
    for _ in range(2):
        writers = [started("fill", url, path) for path in paths]
        firsts = [writer.stdout.readline() for writer in writers if writer.stdout]
        time.sleep(random.uniform(0.05, 0.2))
        own_postgres.kill()
        lost = [acknowledged(writer) for writer in writers]
        assert all(writer.returncode not in (0, None) for writer in writers)
        own_postgres.start()
        for path, first, rest in zip(paths, firsts, lost, strict=True):
            number, digest = first.split()
            for version, body in [(int(number), digest.decode()), *rest]:
                assert digest_of(store.fetch(path, version).body) == body
            numbers = [revision.version for revision in store.versions(path)]
            assert numbers == [*range(len(numbers), 0, -1)]
    assert list(store.verify()) == []
    store.close()
