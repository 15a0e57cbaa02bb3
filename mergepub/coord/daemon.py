"""The daemon: one asyncio loop over a store's database and a data directory.

It takes the directory's lock, makes the tables, rebuilds what an earlier daemon left (runs, sockets, radar, reports
that were not finished), and then serves until it is told to stop. ``kill -9`` at any moment loses nothing that was
answered.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mergepub.coord.clock import Clock
from mergepub.coord.connections import Limits, Listener
from mergepub.coord.control import Control
from mergepub.coord.evidence import Evidences
from mergepub.coord.methods import Methods
from mergepub.coord.observing import Intervals, Observer
from mergepub.coord.office import Desk, Log, Office
from mergepub.coord.processes import lives, started
from mergepub.coord.records import CAPTURE_SECONDS, Capture, Run
from mergepub.coord.reports import Reports
from mergepub.coord.state import State, Step, no_step
from mergepub.coord.surfaces import Root, bind
from mergepub.coord.wire import CoordError
from mergepub.errors import MergepubError, UnavailableError

if TYPE_CHECKING:
    from mergepub.stores.sql import SqlStore

_CONTROL_CONNECTIONS = 64
Round = Callable[[], Coroutine[Any, Any, None]]

_ROUND = 1.0  # seconds between two rounds of what is done from time to time
_KEEP = 30.0  # seconds between two notes of when overlaps were last known
_CLEAN = 3600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How a daemon works; ``coordination`` off leaves the radar alone. Times in seconds."""

    coordination: bool = True
    limits: Limits = field(default_factory=Limits)
    intervals: Intervals = field(default_factory=Intervals)
    capture_seconds: float = CAPTURE_SECONDS
    patience: float = 5.0


class Daemon:
    """One daemon; ``run`` is its life, ``stop`` ends it."""

    def __init__(
        self,
        store: SqlStore,
        data: Path,
        log: Log,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        capture: Capture | None = None,
        step: Step = no_step,
    ) -> None:
        self._settings = settings or Settings()
        self._root = Root(data)
        self._log = log
        self._clock = clock or Clock()
        self._state = State(store, str(self._root.data), self._clock, step)
        self._capture = capture or Evidences(self._root.evidence)
        self._troubles: dict[str, str] = {}
        self._closing = asyncio.Event()
        self._kept = self._clock.steady()
        self._cleaned: float | None = None

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until ``stop``; ``ready`` is called once all sockets stand.

        Raises:
            SurfaceError: another daemon serves the directory, something foreign stands in it, or it was taken away
                meanwhile: nobody reaches this daemon any more, and another one may serve in its place.
            InvalidStoreError: the tables are a newer mergepub's.
        """
        asyncio.get_running_loop().set_exception_handler(self._note_trouble)
        self._root.open()
        try:
            self._state.open()
            await self._serve(ready)
        finally:
            self._root.close()
        self._root.check_place()

    def _note_trouble(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Tell in one line what the loop itself met, as connections that cannot be accepted; once, not every time."""
        error = context.get("exception")
        trouble = f"{context['message']}: {type(error).__name__}: {error}" if error else str(context["message"])
        if trouble != self._troubles.get("loop"):
            self._log(trouble)
        self._troubles["loop"] = trouble

    def stop(self) -> None:
        """End ``run``: no new connections, waiting reads are answered, then everything is closed."""
        self._closing.set()

    async def _serve(self, ready: Callable[[], None]) -> None:
        settings = self._settings
        self._office = Office(self._state, self._root, self._clock, self._log, lapse=settings.intervals.lapse)
        self._office.closing = self._closing
        self._observer = Observer(self._office, settings.intervals)
        self._reports = Reports(self._office, self._capture, settings.capture_seconds, look=self._observer.look)
        self._methods = Methods(self._office, self._reports, coordination=settings.coordination)
        control = Control(self._office, self._start, self._end)
        limits = Limits(_CONTROL_CONNECTIONS, settings.limits.idle, settings.limits.write)
        self._control = Listener(control.answer, limits)
        rounds: list[asyncio.Task[None]] = []
        try:
            await self._rebuild()
            await self._control.start(bind(self._root.control, 0o600))
            # Finishing a report may take minutes, and whatever else is done from time to time does not wait for it.
            rounds += [asyncio.create_task(self._go_round(each)) for each in (self._one_round, self._reports_round)]
            ready()
            await self._closing.wait()
        finally:
            await self._close(rounds)

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _rebuild(self) -> None:
        office = self._office
        runs = await office.db(self._state.runs)
        await office.recall()
        await self._attempted(self._reports.clean_orphans)  # before there is a socket that a report can come from
        await self._attempted(self._remove_strays)
        for run in runs:
            try:
                await self._open_desk(run)
            except MergepubError as error:  # one foreign directory keeps no other run from its mail
                self._log(f"the run {run.id} has no socket: {error}")
            await self._observer.add(run, look=False)

    async def _remove_strays(self) -> None:
        """Remove the directories of runs whose end a crash cut off; what nobody here knows is somebody else's."""
        found = set(os.listdir(self._root.coord))
        for name in await self._office.db(self._state.ended_among, found):
            await asyncio.to_thread(self._root.release, name)

    async def _open_desk(self, run: Run) -> None:
        """Make the directory and the socket of a run.

        Raises:
            SurfaceError: something foreign stands there.
            UnavailableError: the disk does not let us.
        """
        desk = self._office.desks[run.id] = Desk(run)
        try:
            await self._open_socket(desk, run)
        except OSError as error:
            raise UnavailableError(f"the directory of {run.id} cannot be made: {error.strerror or error}") from error

    async def _open_socket(self, desk: Desk, run: Run) -> None:
        await asyncio.to_thread(self._root.make_run, run.id)
        if not self._settings.coordination:
            self._root.socket_of(run.id).unlink(missing_ok=True)
            self._root.say_off(run.id)
            return
        await self._office.refresh_co_authors(run.id)
        listener = Listener(lambda line, gone: self._methods.answer(desk, line, gone), self._settings.limits)
        await listener.start(bind(self._root.socket_of(run.id), 0o666))
        desk.listener = listener

    async def _start(self, run: Run) -> Run:
        """Start a run: its row, its socket, its first snapshot."""
        found = await self._office.db(started, {run.pid} - {0})
        made = await self._office.db(self._state.start, replace(run, process=found.get(run.pid, "")))
        try:
            await self._open_desk(made)
            await self._observer.add(made, look=True)
        except BaseException:
            await self._end(made.id)
            raise
        self._log(f"run {made.id} of {made.member} started in {made.checkout}")
        return made

    async def _end(self, run_id: str) -> Run:
        """End a run, after the report that it may be making; its directory and inbox are released."""
        desk = self._office.desks.get(run_id)
        if desk is None:
            return await self._office.db(self._state.end, run_id)
        try:
            async with desk.reporting:
                ended = await self._office.db(self._state.end, run_id)
        except CoordError:
            await self._leave(desk)  # it had ended already, by a write whose answer was lost
            raise
        await self._leave(desk)
        return ended

    async def _leave(self, desk: Desk) -> None:
        """Let go of all that a run has here."""
        run_id = desk.run.id
        if self._office.desks.pop(run_id, None) is None:
            return  # somebody else is at it
        if desk.listener:
            await desk.listener.close()
        await self._observer.remove(desk.run)
        await asyncio.to_thread(self._root.release, run_id)
        await self._attempted(self._reports.clean_transcripts)
        self._log(f"run {run_id} ended")

    # ── from time to time ───────────────────────────────────────────────────────────────────────────────────────────

    async def _go_round(self, once: Round) -> None:
        while True:
            await self._attempted(once)
            await asyncio.sleep(_ROUND)

    async def _attempted(self, call: Round) -> None:
        try:
            await call()
            self._troubles.pop(call.__name__, None)
        except Exception as error:  # the next round may go well
            trouble = f"a round failed: {type(error).__name__}: {error}"
            if trouble != self._troubles.get(call.__name__):  # told once, not every second
                self._log(trouble)
            self._troubles[call.__name__] = trouble

    async def _one_round(self) -> None:
        now, office = self._clock.steady(), self._office
        if not self._root.has_place():
            self.stop()
            return
        await office.settle(office.radar.expire(self._clock.now()))
        await self._end_dead()
        if now - self._kept >= _KEEP:
            self._kept = now
            await office.keep_all()

    async def _reports_round(self) -> None:
        await self._reports.finish()
        now = self._clock.steady()
        if self._cleaned is None or now - self._cleaned >= _CLEAN:
            self._cleaned = now
            await self._reports.clean()

    async def _end_dead(self) -> None:
        """End the runs whose process is gone without having said so."""
        runs = [desk.run for desk in self._office.desks.values() if desk.run.pid]
        found = await self._office.db(started, {run.pid for run in runs})
        for run in runs:
            desk = self._office.desks.get(run.id)
            if lives(run.pid, run.process, found) or desk is None or desk.reporting.locked():
                continue  # whose report is still under way is ended by a later round
            self._log(f"the process of run {run.id} is gone")
            with suppress(CoordError):  # somebody has ended it meanwhile
                await self._end(run.id)

    async def _close(self, rounds: Iterable[asyncio.Task[None]]) -> None:
        self._closing.set()
        for each in rounds:
            each.cancel()
        listeners = [desk.listener for desk in self._office.desks.values() if desk.listener]
        patience = self._settings.patience
        await asyncio.gather(*(each.close(patience) for each in [*listeners, self._control]))
        await self._observer.close()
        await self._attempted(self._office.keep_all)
        self._office.close()
        self._root.control.unlink(missing_ok=True)
