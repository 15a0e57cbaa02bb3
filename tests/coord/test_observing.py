"""Looks at checkouts: one at a time in each, none of which waits for another's disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from mergepub.coord import observing
from mergepub.coord.clock import Clock
from mergepub.coord.observing import Intervals, Observer
from mergepub.coord.office import Desk, Office
from mergepub.coord.records import Run
from mergepub.coord.surfaces import Root

if TYPE_CHECKING:
    from mergepub.coord.state import State

T = TypeVar("T")
NEVER = Intervals(quiet=0.01, least=0.01, most=3600.0, polling=3600.0)


class Disk:
    """Checkouts on a disk that hangs until it is told, and fails when it is told."""

    def __init__(self) -> None:
        self.works = threading.Event()
        self.works.set()
        self.fails = False
        self.at_once = self.most_at_once = 0
        self.looks: list[tuple[str, frozenset[str] | None]] = []
        self._lock = threading.Lock()

    def look(self, root: str, changed: Collection[str] | None) -> frozenset[str]:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.looks.append((root, None if changed is None else frozenset(changed)))
        if root.startswith("/slow"):
            assert self.works.wait(60)
        with self._lock:
            self.at_once -= 1
        if self.fails:
            raise OSError("no such disk")
        return frozenset({f"{root}/document"})


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made = Disk()

    class FakeLooker:
        def __init__(self, root: str) -> None:
            self._root = root

        def look(self, changed: Collection[str] | None = None) -> frozenset[str]:
            return made.look(self._root, changed)

        def concerns(self, name: str) -> bool:
            return "/tracked" in name

    monkeypatch.setattr(observing, "Looker", FakeLooker)
    monkeypatch.setattr(observing.Watch, "start", lambda self: setattr(self, "works", True) or True)
    yield made
    made.works.set()


def observe(state: State, scene: Callable[[Office, Observer], Awaitable[T]]) -> T:
    async def life() -> T:
        office = Office(state, Root(Path("/nowhere")), Clock(), lambda _: None, lapse=60.0)
        observer = Observer(office, NEVER)
        try:
            return await asyncio.wait_for(scene(office, observer), 60)
        finally:
            await observer.close()
            office.close()

    return asyncio.run(life())


def run_in(office: Office, checkout: str, name: str) -> Run:
    run = Run(name, "w", "m", "t", checkout)
    office.desks[name] = Desk(run)
    return run


def test_checkouts_on_a_disk_that_hangs_keep_nobody_from_another_one(
    state: State, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "_SLOW", 0.01)
    monkeypatch.setattr(observing, "_FIRST", 0.01)
    disk.works.clear()

    async def scene(office: Office, observer: Observer) -> frozenset[str]:
        for i in range(3 * observing._AT_ONCE):
            await observer.add(run_in(office, f"/slow/{i}", f"run-{i}"), look=True)
        other = run_in(office, "/quick", "run-quick")
        await observer.add(other, look=False)
        return await observer.look(other)

    assert observe(state, scene) == {"/quick/document"}


def test_whoever_waits_no_more_stops_no_look_and_the_next_one_waits_for_it(state: State, disk: Disk) -> None:
    async def scene(office: Office, observer: Observer) -> frozenset[str]:
        run = run_in(office, "/slow", "run-1")
        await observer.add(run, look=True)
        disk.works.clear()
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(observer.look(run), 0.01)
        while len(disk.looks) < 2:
            await asyncio.sleep(0.01)
        last = asyncio.create_task(observer.look(run))
        await asyncio.sleep(0)
        disk.works.set()
        return await last

    assert observe(state, scene) == {"/slow/document"}
    assert len(disk.looks) == 3  # at first, the one that hung, and one more for all who waited
    assert disk.most_at_once == 1


def test_a_look_that_fails_is_told_and_everything_is_looked_at_again(state: State, disk: Disk) -> None:
    async def scene(office: Office, observer: Observer) -> frozenset[str]:
        run = run_in(office, "/quick", "run-1")
        await observer.add(run, look=True)
        disk.fails = True
        with pytest.raises(OSError, match="no such disk"):
            await observer.look(run)
        disk.fails, failed = False, len(disk.looks)
        observer._note(observer._spots["/quick"], {"/quick/tracked"})
        while len(disk.looks) == failed:
            await asyncio.sleep(0.01)
        return await observer.look(run)

    assert observe(state, scene) == {"/quick/document"}
    assert [changed for _, changed in disk.looks] == [None] * 4  # at first, failed, noted, asked for


def test_only_what_is_tracked_makes_a_look_and_that_at_itself_alone(state: State, disk: Disk) -> None:
    async def scene(office: Office, observer: Observer) -> None:
        await observer.add(run_in(office, "/quick", "run-1"), look=True)
        spot = observer._spots["/quick"]
        due = spot.pace.due()
        observer._note(spot, {"/quick/build.log"})
        assert spot.pace.due() == due
        observer._note(spot, {"/quick/build.log", "/quick/tracked.md"})
        assert spot.pace.due() < due
        while disk.looks[-1][1] is None:
            await asyncio.sleep(0.01)
        observer._note(spot, set())  # a watch that begins knows of nothing that was before
        while disk.looks[-1][1] is not None:
            await asyncio.sleep(0.01)

    observe(state, scene)
    assert [changed for _, changed in disk.looks][-2:] == [frozenset({"/quick/tracked.md"}), None]


def test_a_run_that_has_ended_is_looked_at_for_its_report(state: State, disk: Disk) -> None:
    async def scene(office: Office, observer: Observer) -> frozenset[str]:
        return await observer.look(Run("run-1", "w", "m", "t", "/quick"))

    assert observe(state, scene) == {"/quick/document"}
