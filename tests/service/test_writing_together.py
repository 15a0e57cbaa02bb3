"""Writes that wait on the event loop for one another: who goes with whom, and that everybody is answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mergepub.documents import ABSENT, Receipt, Version
from mergepub.errors import KeyReusedError, NotFoundError, RejectedError, UnknownOutcomeError, VersionConflictError
from mergepub.service.writing import MOST, Writer
from mergepub.stores.groupcommit import AloneError, Job
from mergepub.stores.sql import Order, SqlStore
from mergepub.stores.sqlite import SqliteStore

PATIENCE = 30


class Watched:
    """A store whose transactions are noted, and wait until they are let go."""

    def __init__(self, store: SqlStore, lanes: int = 1) -> None:
        self._store = store
        self.lanes = lanes
        self.batches: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()

    def write_all(self, orders: list[Order]) -> Any:
        self.batches.append([order.path for order in orders])
        assert self.gate.wait(PATIENCE)
        return self._store.write_all(orders)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.publish("/first", b"", ABSENT)
    return store


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def in_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await work()

    return asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def created(store: SqliteStore, path: str) -> Order:
    return store.order("publish", path, path.encode(), ABSENT)


def test_writes_of_one_turn_go_together_and_each_has_its_answer(store: SqliteStore, pool: ThreadPoolExecutor) -> None:
    watched = Watched(store)
    writer = Writer(watched, pool)  # type: ignore[arg-type]  # all of a store that it uses
    paths = [f"/d/{n}" for n in range(20)]
    orders = [created(store, path) for path in paths]
    orders.append(store.order("publish", "/first", b"x", Version(7)))
    orders.append(store.order("append", "/missing", b"x", key="k"))

    async def work() -> list[Any]:
        return await asyncio.gather(*map(writer.write, orders), return_exceptions=True)

    *answers, conflict, missing = in_loop(work)
    assert watched.batches == [[*paths, "/first", "/missing"]]
    assert all(isinstance(answer, Receipt) and answer.version.number == 1 for answer in answers)
    assert isinstance(conflict, VersionConflictError)
    assert isinstance(missing, NotFoundError)
    assert [row.path for row in store.list("/d")] == sorted(paths)


def test_those_that_come_meanwhile_share_the_next_transaction_up_to_its_limit(
    store: SqliteStore, pool: ThreadPoolExecutor
) -> None:
    watched = Watched(store)
    writer = Writer(watched, pool)  # type: ignore[arg-type]  # as above
    watched.gate.clear()

    async def work() -> list[Any]:
        first = asyncio.ensure_future(writer.write(created(store, "/a")))
        await until(lambda: len(watched.batches) == 1)
        rest = [asyncio.ensure_future(writer.write(created(store, f"/d/{n}"))) for n in range(MOST + 5)]
        await asyncio.sleep(0)
        watched.gate.set()
        return await asyncio.gather(first, *rest)

    assert all(isinstance(answer, Receipt) for answer in in_loop(work))
    assert list(map(len, watched.batches)) == [1, MOST, 5]


def test_where_several_transactions_gain_no_two_of_them_have_a_document_in_common(
    store: SqliteStore, pool: ThreadPoolExecutor
) -> None:
    watched = Watched(store, lanes=2)
    writer = Writer(watched, pool)  # type: ignore[arg-type]  # as above
    watched.gate.clear()

    async def work() -> list[Any]:
        first = asyncio.ensure_future(writer.write(created(store, "/a")))
        await until(lambda: len(watched.batches) == 1)
        again = [store.order("append", "/a", b"x", key=f"k{n}") for n in range(3)]
        others = [created(store, f"/d/{n}") for n in range(3)]
        rest = [asyncio.ensure_future(writer.write(order)) for order in (*again, *others)]
        await until(lambda: len(watched.batches) == 2)
        watched.gate.set()
        return await asyncio.gather(first, *rest)

    assert all(isinstance(answer, Receipt) for answer in in_loop(work))
    assert watched.batches == [["/a"], ["/d/0", "/d/1", "/d/2"], ["/a"] * 3]


def test_one_that_nobody_waits_for_any_more_is_written_and_holds_up_nobody(
    store: SqliteStore, pool: ThreadPoolExecutor
) -> None:
    watched = Watched(store)
    writer = Writer(watched, pool)  # type: ignore[arg-type]  # as above
    watched.gate.clear()

    async def work() -> Any:
        given_up = asyncio.ensure_future(writer.write(created(store, "/a")))
        other = asyncio.ensure_future(writer.write(created(store, "/b")))
        await until(lambda: bool(watched.batches))
        given_up.cancel()
        watched.gate.set()
        return await other

    assert isinstance(in_loop(work), Receipt)
    assert [row.path for row in store.list()] == ["/a", "/b", "/first"]


def test_one_that_has_to_be_written_by_itself_says_so_and_nothing_of_it_is_done(
    store: SqliteStore, pool: ThreadPoolExecutor
) -> None:
    writer = Writer(store, pool)
    asked: list[object] = []

    def needs_more(tx: Any) -> None:
        asked.append(tx)
        tx.run("DELETE FROM tokens")

    with pytest.raises(AloneError):
        in_loop(lambda: writer.write(Order("/x", needs_more)))
    assert len(asked) == 1


def test_a_thread_that_breaks_leaves_nobody_without_an_answer(store: SqliteStore, pool: ThreadPoolExecutor) -> None:
    class Broken(Watched):
        def write_all(self, orders: list[Order]) -> list[Job]:
            super().write_all(orders)
            raise RuntimeError("after the commit")

    writer = Writer(Broken(store), pool)  # type: ignore[arg-type]  # as above
    orders = [created(store, path) for path in ("/a", "/b")]

    async def work() -> list[Any]:
        return await asyncio.gather(*map(writer.write, orders), return_exceptions=True)

    assert all(isinstance(answer, UnknownOutcomeError) for answer in in_loop(work))


def test_an_order_is_refused_as_the_method_would_refuse(store: SqliteStore) -> None:
    with pytest.raises(RejectedError, match="takes 3 at most"):
        SqliteStore(store._file, max_body=3).order("publish", "/a", b"1234", ABSENT)
    store.append("/first", b"x", key="k")
    order = store.order("append", "/first", b"y", key="k")
    with pytest.raises(KeyReusedError):
        store.write(order)
