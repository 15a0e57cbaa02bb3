"""The daemon's eyes: one spot a checkout, looked at when its watch says so and from time to time, for all its runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mergepub.coord.threads import in_thread
from mergepub.coord.watching import Looker, Pace, Watch

if TYPE_CHECKING:
    from mergepub.coord.office import Office
    from mergepub.coord.records import Run

_SHARE = 20.0  # a look that takes long is made so much more seldom
_AT_ONCE = 4  # looks, for they take turns with everything else here; of those that wait for a disk, any number
_SLOW = 2.0
_FIRST = 15.0  # seconds that whoever starts a run waits for its first look


@dataclass(frozen=True, slots=True)
class Intervals:
    """How the watch is paced, in seconds; ``polling`` is the longest interval where nothing tells of changes."""

    quiet: float = 0.1
    least: float = 0.3
    most: float = 30.0
    polling: float = 2.0

    @property
    def lapse(self) -> float:
        """After such a pause a clearing was not witnessed."""
        return 3 * max(self.most, self.polling)


class _Spot:
    """One checkout under observation."""

    def __init__(self, root: str, intervals: Intervals, now: float) -> None:
        self.looker = Looker(root)
        self.pace = Pace(intervals.quiet, intervals.least, intervals.most, looked=now)
        self.runs: set[str] = set()
        self.names: set[str] = set()
        self.unsure = True  # whether names may be missing, so that everything has to be looked at
        self.news = asyncio.Event()
        self.looking = asyncio.Lock()
        self.looked = False
        self.next: asyncio.Task[frozenset[str]] | None = None  # the look that has not begun
        self.watch: Watch | None = None
        self.task: asyncio.Task[None] | None = None


class Observer:
    """Looks at the checkouts of all living runs and tells the radar."""

    def __init__(self, office: Office, intervals: Intervals) -> None:
        self._office = office
        self._intervals = intervals
        self._spots: dict[str, _Spot] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._looks: set[asyncio.Task[frozenset[str]]] = set()
        self._told = False

    async def add(self, run: Run, *, look: bool) -> None:
        """Observe ``run`` from now on; ``look``: and return after its first snapshot, unless that takes long."""
        self._office.radar.join(run.id, run.workspace)
        spot = self._spots.get(run.checkout)
        if spot is None:
            spot = self._spots[run.checkout] = self._begin(run.checkout)
        spot.runs.add(run.id)
        if look:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look(spot, fully=True), _FIRST)
        else:
            spot.news.set()

    async def remove(self, run: Run) -> None:
        """Observe ``run`` no more; its overlaps end."""
        spot = self._spots.get(run.checkout)
        if spot is not None:
            spot.runs.discard(run.id)
            if not spot.runs:
                await self._end(run.checkout)
        await self._office.settle(self._office.radar.leave(run.id))

    async def look(self, run: Run) -> frozenset[str]:
        """The documents that ``run`` edits now: the radar's snapshot may be some moments old, or not there yet."""
        spot = self._spots.get(run.checkout)
        if spot is None:  # the run has ended
            return await in_thread(Looker(run.checkout).look, "coord-look")
        return await self._look(spot, fully=True)

    async def close(self) -> None:
        """Observe nothing more."""
        for root in list(self._spots):
            await self._end(root)
        for look in list(self._looks):
            look.cancel()

    def _begin(self, root: str) -> _Spot:
        spot = _Spot(root, self._intervals, self._office.clock.steady())
        loop = asyncio.get_running_loop()

        def changed(names: set[str]) -> None:  # called from the watch's thread
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._note, spot, names)

        spot.watch = Watch(root, changed)
        if not spot.watch.start() and not self._told:
            self._told = True
            seconds = self._intervals.polling
            self._office.log(f"the package watchfiles is missing: checkouts are looked at every {seconds:g} seconds")
        spot.task = asyncio.create_task(self._observe(spot))
        return spot

    async def _end(self, root: str) -> None:
        spot = self._spots.pop(root)
        if spot.watch:
            spot.watch.stop()
        if spot.task:
            spot.task.cancel()

    def _note(self, spot: _Spot, names: set[str]) -> None:
        concerned = {name for name in names if spot.looker.concerns(name)}
        if names and not concerned:  # what is not tracked may change all the time, and delays no look
            return
        spot.names |= concerned
        spot.unsure |= not names
        spot.pace.note_change(self._office.clock.steady())
        spot.news.set()

    async def _observe(self, spot: _Spot) -> None:
        while True:
            try:
                await self._await_due(spot)
                await self._look(spot)
            except Exception as error:  # a fault of the store, or of this checkout: the next look may go well
                self._office.log(f"looking failed: {type(error).__name__}: {error}")
                await asyncio.sleep(1.0)

    async def _await_due(self, spot: _Spot) -> None:
        while spot.looked and (left := spot.pace.due() - self._office.clock.steady()) > 0:
            spot.news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(spot.news.wait(), left)

    async def _look(self, spot: _Spot, *, fully: bool = False) -> frozenset[str]:
        """A snapshot from a look that begins after this call: at what the watch named, or at everything.

        Whoever stops waiting for it stops nothing: a look is one at a time in a checkout, and goes to its end.
        """
        spot.unsure |= fully
        if spot.next is None:
            spot.next = asyncio.create_task(self._look_next(spot))
            self._looks.add(spot.next)
            spot.next.add_done_callback(self._forget_look)
        return await asyncio.shield(spot.next)

    def _forget_look(self, look: asyncio.Task[frozenset[str]]) -> None:
        self._looks.discard(look)
        if not look.cancelled():
            look.exception()  # whoever waits for it is told; maybe nobody does any more

    async def _look_next(self, spot: _Spot) -> frozenset[str]:
        office = self._office
        async with spot.looking:
            spot.next = None
            fully = spot.unsure or not spot.names or not (spot.watch and spot.watch.works)
            names, spot.names, spot.unsure = spot.names, set(), False
            try:
                files = await self._looked(spot, None if fully else names)
            except BaseException:
                spot.unsure = True
                raise
            changes = [
                change
                for run in sorted(spot.runs)
                if run in office.desks
                for change in office.radar.observe(run, files, office.clock.now())
            ]
        await office.settle(changes)
        return files

    async def _looked(self, spot: _Spot, names: set[str] | None) -> frozenset[str]:
        async with self._places:
            began = self._office.clock.steady()
            spot.pace.note_look(began)
            look = in_thread(lambda: spot.looker.look(names), "coord-look")
            await asyncio.wait({look}, timeout=_SLOW)
        files = await look
        spot.looked = True
        if names is None:
            self._adapt(spot, self._office.clock.steady() - began)
        return files

    def _adapt(self, spot: _Spot, took: float) -> None:
        told = spot.watch is not None and spot.watch.works
        spot.pace.most = max(self._intervals.most if told else self._intervals.polling, took * _SHARE)
