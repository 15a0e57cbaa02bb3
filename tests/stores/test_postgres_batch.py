"""Writes that share a transaction on PostgreSQL: every answer is its own, a yes is durable; none waits for another."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from mergepub.documents import ABSENT, Receipt, Version, digest_of
from mergepub.errors import (
    ContentionError,
    InvalidStoreError,
    MergepubError,
    NotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)
from mergepub.stores.postgres import PostgresStore
from mergepub.stores.postgres_batch import PostgresBatch
from mergepub.stores.sql import Transaction
from tests.stores.together import kept, together

WRITERS = 24
Call = Callable[[], object]


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    store.publish("/first", b"", ABSENT)
    yield store
    store.close()


@pytest.fixture
def batches(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the transactions from now on; 1 for each that a writer makes alone after all."""
    sizes: list[int] = []
    write, alone = PostgresBatch.write, store._write_once

    def counting(batch: PostgresBatch, *how: object) -> None:
        sizes.append(len(batch._jobs))
        write(batch, *how)  # type: ignore[arg-type]  # handed on

    def counting_alone(*how: object) -> object:
        sizes.append(1)
        return alone(*how)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(PostgresBatch, "write", counting)
    monkeypatch.setattr(store, "_write_once", counting_alone)
    return sizes


@contextmanager
def held(store: PostgresStore, *paths: str) -> Iterator[None]:
    """Somebody else holds these heads."""
    with store._pool.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM heads WHERE path = ANY(%s) FOR UPDATE", (list(paths),))
        yield


def publishes(store: PostgresStore, paths: list[str], expected: Version = ABSENT) -> list[Call]:
    return [partial(store.publish, path, path.encode(), expected) for path in paths]


def test_writes_that_come_at_once_share_one_transaction_and_each_has_its_answer(
    store: PostgresStore, batches: list[int]
) -> None:
    paths = [f"/d/{number}" for number in range(WRITERS)]
    answers = together(store, publishes(store, paths))
    assert batches == [WRITERS]
    assert all(isinstance(answer, Receipt) and answer.version.number == 1 for answer in answers)
    assert [store.fetch(path).body for path in paths] == [path.encode() for path in paths]
    assert list(store.verify()) == []


def test_new_documents_next_versions_merges_and_tombstones_travel_together(
    store: PostgresStore, batches: list[int]
) -> None:
    for path in ("/a", "/b", "/c"):
        store.publish(path, b"1\n", ABSENT)
    batches.clear()
    calls: list[Call] = [
        lambda: store.publish("/new", b"1", ABSENT, author="ana"),
        lambda: store.publish("/a", b"2", Version(1), message="why", source="commit"),
        lambda: store.append("/b", b"2", key="k"),
        lambda: store.delete("/c", Version(1)),
        lambda: store.publish("/first", b"2", Version(1)),
    ]
    answers = together(store, calls)
    assert all(isinstance(answer, Receipt) for answer in answers), answers
    assert batches == [5]
    assert store.fetch("/b").body == b"1\n2"
    assert next(store.versions("/a")).source == "commit"
    assert next(store.versions("/c")).deleted
    assert list(store.verify()) == []


def test_of_many_on_one_document_one_makes_the_version(store: PostgresStore, batches: list[int]) -> None:
    calls: list[Call] = [partial(store.publish, "/first", b"%d" % n, Version(1)) for n in range(WRITERS)]
    answers = together(store, calls)
    made = [answer for answer in answers if isinstance(answer, Receipt)]
    lost = [answer for answer in answers if isinstance(answer, VersionConflictError)]
    assert (len(made), len(lost)) == (1, WRITERS - 1)
    assert all((error.expected, error.current) == (1, 2) for error in lost)
    assert batches == [WRITERS]
    assert list(store.verify()) == []


def test_appends_to_one_document_follow_one_another_in_one_transaction(
    store: PostgresStore, batches: list[int]
) -> None:
    calls: list[Call] = [partial(store.append, "/first", b"%d\n" % n, key=f"k{n}") for n in range(WRITERS)]
    answers = together(store, calls)
    assert [answer.version.number for answer in answers if isinstance(answer, Receipt)] == [*range(2, WRITERS + 2)]
    assert batches == [WRITERS]
    assert store.fetch("/first").body == b"".join(b"%d\n" % n for n in range(WRITERS))
    assert list(store.verify()) == []


def test_the_same_body_for_many_documents_is_kept_once(store: PostgresStore, batches: list[int]) -> None:
    calls: list[Call] = [partial(store.publish, f"/d/{n}", b"same", ABSENT) for n in range(8)]
    assert all(isinstance(answer, Receipt) for answer in together(store, calls))
    assert batches == [8]
    assert list(store.verify()) == []


def test_what_is_refused_leaves_nothing_and_the_others_everything(store: PostgresStore, batches: list[int]) -> None:
    def breaks_off(tx: Transaction) -> None:
        tx.put("INSERT INTO bodies (digest, size, body) VALUES (?, ?, ?)", "0" * 64, 1, b"x")
        raise NotFoundError("after its first change")

    calls: list[Call] = []
    for number in range(8):
        calls += publishes(store, [f"/good/{number}"])
        calls.append(partial(store.append, f"/missing/{number}", b"x", key=f"k{number}"))
    calls.append(lambda: store._write("/x", breaks_off))
    answers = together(store, calls)
    assert all(isinstance(answer, Receipt) for answer in answers[:-1:2])
    assert all(isinstance(answer, NotFoundError) for answer in [*answers[1::2], answers[-1]])
    assert batches == [17]
    assert [row.path for row in store.list("/good")] == [f"/good/{n}" for n in range(8)]
    assert list(store.list("/missing")) == []
    assert store._read(lambda tx: tx.row("SELECT digest FROM bodies WHERE digest = ?", "0" * 64)) is None


def test_a_statement_that_fails_fails_its_own_writer_alone(store: PostgresStore) -> None:
    def breaks(tx: Transaction) -> None:
        tx.put("INSERT INTO heads (path, version, branch, revision) VALUES (?, ?, ?, ?)", "/x", 9, "none", 9)

    def asks_nonsense(tx: Transaction) -> None:
        tx.row("SELECT nothing FROM heads")

    calls = publishes(store, [f"/d/{n}" for n in range(5)])
    calls[2:2] = [lambda: store._write("/x", breaks), lambda: store._write("/y", asks_nonsense)]
    answers = together(store, calls)
    broken = [answers.pop(2), answers.pop(2)]
    assert all(isinstance(error, MergepubError) for error in broken), broken
    assert all(isinstance(answer, Receipt) and not answer.replayed for answer in answers)
    assert len(list(store.list("/d"))) == 5
    assert list(store.verify()) == []


def test_a_document_that_another_service_holds_keeps_only_its_own_writer_waiting(store: PostgresStore) -> None:
    for path in ("/a", "/b"):
        store.publish(path, b"1", ABSENT)
    impatient = PostgresStore(store.url + "&lock_timeout=0.3")
    impatient.fetch("/a")
    with held(store, "/a"):
        answers = together(impatient, publishes(impatient, ["/a", "/b"], Version(1)))
        assert isinstance(answers[0], UnavailableError)
        assert "another writer holds the document" in str(answers[0])
        assert isinstance(answers[1], Receipt)
    assert impatient.publish("/a", b"2", Version(1)).version.number == 2
    impatient.close()


def test_writers_of_other_documents_are_answered_while_one_still_waits(store: PostgresStore) -> None:
    store.publish("/a", b"1", ABSENT)
    waiting = threading.Thread(target=lambda: store.publish("/a", b"2", Version(1)))
    with held(store, "/a"):
        waiting.start()
        for number in range(20):
            store.publish(f"/d/{number}", b"x", ABSENT)
        assert waiting.is_alive()
    waiting.join(30)
    assert store.fetch("/a").body == b"2"


def test_many_who_wait_for_one_document_leave_connections_for_the_others(store: PostgresStore) -> None:
    store.publish("/a", b"1", ABSENT)
    others = [PostgresStore(store.url) for _ in range(2)]
    assert [each.fetch("/a").body for each in others] == [b"1", b"1"]
    waiting = [
        threading.Thread(target=partial(kept, partial(each.append, "/a", b"x", key=f"{number}-{n}")))
        for number, each in enumerate(others)
        for n in range(15)
    ]
    with held(store, "/a"):
        for thread in waiting:
            thread.start()
        for each in others:
            receipts = [each.publish(f"/d/{id(each)}/{n}", b"x", ABSENT) for n in range(5)]
            assert all(not receipt.replayed for receipt in receipts)
        assert all(thread.is_alive() for thread in waiting)
    for thread in waiting:
        thread.join(60)
    assert store.fetch("/a").current == 31
    for each in others:
        each.close()


def test_two_services_with_crossing_batches_never_lock_each_other_out(store: PostgresStore) -> None:
    stores = [PostgresStore(store.url) for _ in range(2)]
    paths = [f"/d/{number}" for number in range(12)]
    for path in paths:
        store.publish(path, b"", ABSENT)
    errors: list[BaseException] = []

    def write(number: int, each: PostgresStore) -> None:
        order = random.Random(number)
        for step in range(15):
            path = order.choice(paths)
            try:
                each.append(path, b"%d" % order.randrange(4), key=f"{number}-{step}")
            except MergepubError as error:
                errors.append(error)

    threads = [threading.Thread(target=write, args=(n, each)) for n, each in enumerate(stores * 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sum(row.version for row in store.list("/d")) == 12 + 16 * 15
    assert list(store.verify()) == []
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert store._read(lambda tx: tx.row(deadlocks)) == (0,)
    for each in stores:
        each.close()


def test_two_services_that_create_the_same_documents_at_once_make_each_once(store: PostgresStore) -> None:
    other = PostgresStore(store.url)
    other.fetch("/first")
    paths = [f"/d/{number}" for number in range(16)]
    answers: list[list[object]] = [[], []]

    def create(index: int, each: PostgresStore, order: list[str]) -> None:
        answers[index] = together(each, [partial(each.publish, path, b"%d" % index, ABSENT) for path in order])

    both = [(0, store, paths), (1, other, paths[::-1])]
    threads = [threading.Thread(target=create, args=each) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    made = [answer for each in answers for answer in each if isinstance(answer, Receipt)]
    assert len(made) == len(paths)
    assert all(isinstance(each, Receipt | VersionConflictError) for both in answers for each in both)
    assert [row.version for row in store.list("/d")] == [1] * 16
    assert list(store.verify()) == []
    other.close()


def test_a_lost_commit_is_an_unknown_outcome_for_all_and_repeating_settles_it(store: PostgresStore) -> None:
    # The server ends the connection at the very commit, from a deferred trigger: nothing of it ever happened.
    schema = store._settings.schema
    statements = (
        f"""CREATE FUNCTION {schema}.die() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$""",
        f"""CREATE CONSTRAINT TRIGGER die AFTER INSERT ON {schema}.versions DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION {schema}.die()""",
    )
    for statement in statements:
        store._write("/", partial(Transaction.put, statement=statement))
    calls = publishes(store, [f"/d/{n}" for n in range(6)])
    answers = together(store, calls)
    assert all(isinstance(answer, UnknownOutcomeError) for answer in answers), answers
    store._write("/", lambda tx: tx.put(f"DROP FUNCTION {schema}.die CASCADE"))
    again = together(store, calls)
    assert [(a.version.number, a.replayed) for a in again if isinstance(a, Receipt)] == [(1, False)] * 6


def test_a_connection_lost_before_the_commit_costs_nobody_an_answer(store: PostgresStore) -> None:
    def lose_the_connection(tx: Transaction) -> None:
        tx.row("SELECT pg_terminate_backend(pg_backend_pid())")

    calls = publishes(store, [f"/d/{n}" for n in range(6)])
    answers = together(store, [*calls, lambda: store._write("/x", lose_the_connection)])
    assert isinstance(answers.pop(), UnavailableError)
    assert all(isinstance(answer, Receipt) and not answer.replayed for answer in answers), answers


def test_one_that_was_undone_by_another_writer_is_begun_anew(store: PostgresStore) -> None:
    begun: list[int] = []

    def contends(_: Transaction) -> str:
        begun.append(1)
        if len(begun) < 3:
            raise ContentionError("in the way")
        return "done"

    answers = together(store, [*publishes(store, ["/d"]), lambda: store._write("/x", contends)])
    assert isinstance(answers[0], Receipt)
    assert answers[1] == "done"


def test_a_database_that_is_away_keeps_a_batch_waiting_once(store: PostgresStore, batches: list[int]) -> None:
    store.close()
    store._settings.conninfo["host"] = "/nowhere"
    answers = together(store, publishes(store, [f"/d/{n}" for n in range(6)]))
    assert all(isinstance(answer, UnavailableError) for answer in answers)
    assert batches == [6]


def test_a_schema_that_a_newer_mergepub_upgraded_meanwhile_is_written_by_nobody(store: PostgresStore) -> None:
    store._write("/", lambda tx: tx.run("UPDATE mergepub_schema SET number = number + 1"))
    answers = together(store, publishes(store, [f"/d/{n}" for n in range(3)]))
    assert all(isinstance(answer, InvalidStoreError) and "knows up to" in str(answer) for answer in answers), answers
    with store._pool.connection() as connection:
        assert connection.execute("SELECT path FROM heads").fetchall() == [("/first",)]


def test_large_bodies_travel_together(store: PostgresStore, batches: list[int]) -> None:
    bodies = {f"/d/{n}": random.Random(n).randbytes(1 << 20) for n in range(6)}
    calls: list[Call] = [partial(store.publish, path, body, ABSENT) for path, body in bodies.items()]
    assert all(isinstance(answer, Receipt) for answer in together(store, calls))
    assert batches == [6]
    assert all(store.fetch(path).digest == digest_of(body) for path, body in bodies.items())
