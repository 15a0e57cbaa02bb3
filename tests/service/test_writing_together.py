"""Writes that wait on the event loop for one another: who goes with whom, and that everybody is answered."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mergepub.documents import ABSENT, Receipt, Version
from mergepub.errors import KeyReusedError, NotFoundError, RejectedError, UnknownOutcomeError, VersionConflictError
from mergepub.service.hand import Answer, Call, Hand, answers
from mergepub.service.writing import MOST, Writer
from mergepub.stores.branchrules import NoBranchError
from mergepub.stores.groupcommit import AloneError
from mergepub.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from mergepub.stores.sql import SqlStore

PATIENCE = 30


class Watched:
    """Hands of a store: its transactions are noted, and wait until they are let go."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.batches: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()

    async def write(self, calls: Sequence[Call]) -> list[Answer]:
        self.batches.append([args[0] for _, args, _ in calls])
        return await asyncio.to_thread(self._transact, calls)

    def _transact(self, calls: Sequence[Call]) -> list[Answer]:
        assert self.gate.wait(PATIENCE)
        return answers(self._store, calls)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.publish("/first", b"", ABSENT)
    return store


def in_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await work()

    return asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def created(path: str) -> Call:
    return "publish", (path, path.encode(), ABSENT), {}


def appended(path: str, key: str) -> Call:
    return "append", (path, b"x"), {"key": key}


def written(writer: Writer, *calls: Call) -> list[asyncio.Future[Any]]:
    return [asyncio.ensure_future(writer.write(call[1][0], call)) for call in calls]


def test_writes_of_one_turn_go_together_and_each_has_its_answer(store: SqliteStore) -> None:
    watched = Watched(store)
    writer = Writer([watched.write])
    paths = [f"/d/{n}" for n in range(20)]
    calls = [*map(created, paths), ("publish", ("/first", b"x", Version(7)), {}), appended("/missing", "k")]

    async def work() -> list[Any]:
        return await asyncio.gather(*written(writer, *calls), return_exceptions=True)

    *made, conflict, missing = in_loop(work)
    assert watched.batches == [[*paths, "/first", "/missing"]]
    assert all(isinstance(answer, Receipt) and answer.version.number == 1 for answer in made)
    assert isinstance(conflict, VersionConflictError)
    assert isinstance(missing, NotFoundError)
    assert [row.path for row in store.list("/d")] == sorted(paths)


def test_those_that_come_meanwhile_share_the_next_transaction_up_to_its_limit(store: SqliteStore) -> None:
    watched = Watched(store)
    writer = Writer([watched.write])
    watched.gate.clear()

    async def work() -> list[Any]:
        (first,) = written(writer, created("/a"))
        await until(lambda: len(watched.batches) == 1)
        rest = written(writer, *[created(f"/d/{n}") for n in range(MOST + 5)])
        await asyncio.sleep(0)
        watched.gate.set()
        return await asyncio.gather(first, *rest)

    assert all(isinstance(answer, Receipt) for answer in in_loop(work))
    assert list(map(len, watched.batches)) == [1, MOST, 5]


def test_where_several_transactions_gain_no_two_of_them_have_a_document_in_common(store: SqliteStore) -> None:
    watched = Watched(store)
    writer = Writer([watched.write] * 2)
    watched.gate.clear()

    async def work() -> list[Any]:
        (first,) = written(writer, created("/a"))
        await until(lambda: len(watched.batches) == 1)
        again = [appended("/a", f"k{n}") for n in range(3)]
        rest = written(writer, *again, *[created(f"/d/{n}") for n in range(3)])
        await until(lambda: len(watched.batches) == 2)
        watched.gate.set()
        return await asyncio.gather(first, *rest)

    assert all(isinstance(answer, Receipt) for answer in in_loop(work))
    assert watched.batches == [["/a"], ["/d/0", "/d/1", "/d/2"], ["/a"] * 3]


def test_one_that_nobody_waits_for_any_more_is_written_and_holds_up_nobody(store: SqliteStore) -> None:
    watched = Watched(store)
    writer = Writer([watched.write])
    watched.gate.clear()

    async def work() -> Any:
        given_up, other = written(writer, created("/a"), created("/b"))
        await until(lambda: bool(watched.batches))
        given_up.cancel()
        watched.gate.set()
        return await other

    assert isinstance(in_loop(work), Receipt)
    assert [row.path for row in store.list()] == ["/a", "/b", "/first"]


def test_one_that_has_to_be_written_by_itself_says_so_and_nothing_of_it_is_done(tmp_path: Path) -> None:
    none_yet = SqliteStore(tmp_path / "new.sqlite")  # its first document makes it
    writer = Writer([Watched(none_yet).write])
    with pytest.raises(AloneError):
        in_loop(lambda: writer.write("/x", created("/x")))
    assert not (tmp_path / "new.sqlite").exists()


def test_a_call_that_is_refused_beforehand_is_answered_so_and_the_others_are_done(store: SqliteStore) -> None:
    writer = Writer([Watched(store).write])

    async def work() -> list[Any]:
        two_lines: Call = ("publish", ("/b", b"x", ABSENT), {"author": "A\nB"})
        return await asyncio.gather(*written(writer, created("/a"), two_lines), return_exceptions=True)

    made, refused = in_loop(work)
    assert isinstance(made, Receipt)
    assert isinstance(refused, RejectedError)


def test_writes_to_branches_go_with_others_and_those_of_one_document_see_one_another(store: SqliteStore) -> None:
    base = store.publish("/a", b"1\n", ABSENT).version
    store.publish("/a", b"2\n", base)
    watched = Watched(store)
    writer = Writer([watched.write])
    calls: list[Call] = [("branch", ("/a", f"{name}\n".encode(), base), {"author": name}) for name in ("Ada", "Ben")]
    calls += [created("/b"), ("extend", ("/a", "no-such-branch", b"x\n"), {"author": "Ada"})]

    async def work() -> list[Any]:
        return await asyncio.gather(*written(writer, *calls), return_exceptions=True)

    ada, ben, made, missing = in_loop(work)
    assert watched.batches == [["/a", "/a", "/b", "/a"]]
    assert isinstance(made, Receipt)
    assert isinstance(missing, NoBranchError)
    _, branches = store.branches("/a")
    assert {branch.name for branch in branches if branch.state == "open"} == {ada.branch, ben.branch}
    assert len({ada.branch, ben.branch}) == 2
    assert list(store.verify()) == []


def test_a_hand_that_breaks_leaves_nobody_without_an_answer(store: SqliteStore) -> None:
    async def broken(calls: Sequence[Call]) -> list[Answer]:
        answers(store, calls)
        raise EOFError("after the commit")

    writer = Writer([broken])

    async def work() -> list[Any]:
        return await asyncio.gather(*written(writer, created("/a"), created("/b")), return_exceptions=True)

    assert all(isinstance(answer, UnknownOutcomeError) for answer in in_loop(work))


def test_a_process_that_is_killed_at_work_leaves_an_open_outcome_and_the_next_write_has_a_new_one(
    store: SqliteStore,
) -> None:
    hand = Hand(store.url, 1 << 20)
    told: list[Exception] = []
    writer = Writer([hand.write], told.append)

    async def work() -> list[Any]:
        first = await writer.write("/a", created("/a"))
        assert hand._process is not None
        hand._process.send_signal(signal.SIGSTOP)
        waiting = asyncio.gather(*written(writer, created("/b")), return_exceptions=True)
        await asyncio.sleep(0)
        while not writer._under_way:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # it is on its way now
        hand._process.kill()
        lost = (await waiting)[0]
        again = await writer.write("/c", created("/c"))
        await hand.close()
        return [first, lost, again]

    first, lost, again = in_loop(work)
    assert (first.version, again.version) == (Version(1, "1", "1"),) * 2
    assert isinstance(lost, UnknownOutcomeError)
    assert len(told) == 1


def test_a_process_that_was_killed_with_nothing_to_do_leaves_nothing_open(store: SqliteStore) -> None:
    hand = Hand(store.url, 1 << 20)
    writer = Writer([hand.write])

    async def work() -> list[Any]:
        first = await writer.write("/a", created("/a"))
        assert hand._process is not None
        hand._process.kill()
        hand._process.wait(PATIENCE)
        second = await writer.write("/b", created("/b"))
        await hand.close()
        return [first, second]

    assert [answer.version for answer in in_loop(work)] == [Version(1, "1", "1")] * 2


def test_a_process_ends_with_its_socket_and_not_before_whoever_stops_the_service_as_a_whole(store: SqliteStore) -> None:
    hand = Hand(store.url, 1 << 20)

    async def work() -> tuple[list[Answer], int | None]:
        await hand.write([created("/a")])
        process = hand._process
        assert process is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        made = await hand.write([created("/b")])
        await hand.close()
        return made, process.returncode

    ((receipt, error),), status = in_loop(work)
    assert (error, status) == (None, 0)
    assert isinstance(receipt, Receipt)


def test_an_order_is_refused_as_the_method_would_refuse(store: SqliteStore) -> None:
    with pytest.raises(RejectedError, match="takes 3 at most"):
        SqliteStore(store._file, max_body=3).order("publish", "/a", b"1234", ABSENT)
    store.append("/first", b"x", key="k")
    order = store.order("append", "/first", b"y", key="k")
    with pytest.raises(KeyReusedError):
        store.write(order)
