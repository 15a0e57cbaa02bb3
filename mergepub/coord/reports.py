"""The daemon's work on reports: from a request to its published event, and whatever a crash or a fault left undone."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mergepub.coord import reporting, wire
from mergepub.coord.records import CAPTURE_SECONDS, EVIDENCE_DAYS, CaptureError
from mergepub.coord.reporting import FINALISED, RESERVED, EventTakenError, Row
from mergepub.coord.threads import in_thread
from mergepub.coord.wire import CoordError
from mergepub.errors import MergepubError

if TYPE_CHECKING:
    from pathlib import Path

    from mergepub.coord.office import Desk, Office
    from mergepub.coord.records import Capture, Run

_AT_ONCE = 8  # captures
LOOK_SECONDS = 10.0
_MARGIN = 5.0  # seconds that a capture may take to notice that its time is over


class Reports:
    """One daemon's reports."""

    def __init__(
        self,
        office: Office,
        capture: Capture,
        seconds: float = CAPTURE_SECONDS,
        *,
        look: Callable[[Run], Awaitable[frozenset[str]]] | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """``look``: finds the documents that a run edits, anew; None: the radar's last snapshot is good enough.

        It may take ``look_seconds``, a capture ``seconds``.
        """
        self._office = office
        self._capture = capture
        self._seconds = seconds
        self._look = look or self._last_seen
        self._look_seconds = look_seconds
        self._cursor = 0
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def report(self, desk: Desk, params: dict[str, Any]) -> dict[str, Any]:
        """Accept a report: its receipt, once its event is on the timeline.

        Raises:
            CoordError: it is refused, or its evidence cannot be captured.
        """
        async with desk.reporting:
            row = await self._office.db(reporting.reserve, self._office.state, desk.run, params)
            if row.accepted:
                return row.receipt()
            row = await self._accepted(row, desk.run)
            await self._published(row)
            return row.receipt()

    async def _accepted(self, row: Row, run: Run) -> Row:
        try:
            return await self._captured(row, run)
        except Exception as error:  # whatever it is, the report is not accepted, and the caller is told so
            why = _why(error)
            await self._office.db(reporting.fail, self._office.state, row, why)
            text = f"coord.report: the evidence could not be captured: {why}; repeat it with the same key"
            raise CoordError(wire.INTERNAL, text) from error

    async def _captured(self, row: Row, run: Run) -> Row:
        office = self._office
        office.state.step("capture:before")
        documents, doubts = await self._documents(run)
        async with self._places:
            deadline = time.monotonic() + self._seconds
            # A capture that is cut off is made again, so it keeps no process from ending.
            captured = in_thread(lambda: self._capture.capture(run, row.report, documents, deadline), "coord-capture")
            evidence = await asyncio.wait_for(captured, self._seconds + _MARGIN)
        office.state.step("capture:done")
        evidence = replace(evidence, unresolved=(*doubts, *evidence.unresolved))
        return await office.db(reporting.finalise, office.state, row, evidence)

    async def _documents(self, run: Run) -> tuple[list[str], tuple[str, ...]]:
        """The documents that a run edits, and in sentences what is doubtful about them."""
        try:
            return sorted(await asyncio.wait_for(self._look(run), self._look_seconds)), ()
        except Exception as error:  # whatever it is, the radar's last snapshot is something
            found = self._office.radar.files(run.id)
            what = "are not known" if found is None else "are those that the radar saw last"
            return sorted(found or ()), (f"the edited documents {what}: the checkout was not read: {_why(error)}",)

    async def _last_seen(self, run: Run) -> frozenset[str]:
        return self._office.radar.files(run.id) or frozenset()

    async def _published(self, row: Row) -> None:
        office = self._office
        try:
            await office.db(reporting.publish, office.state, row)
            await office.db(reporting.mark, office.state, row)
        except EventTakenError as error:
            office.log(f"report {row.id} is in quarantine: {error}")
            await office.db(reporting.quarantine, office.state, row, str(error))
        except MergepubError as error:
            await office.db(reporting.retry_later, office.state, row, str(error))
            text = f"coord.report: accepted, its event is not on the timeline yet: {error}; repeat it with the same key"
            raise CoordError(wire.UNAVAILABLE, text) from error

    # ── what was left undone ────────────────────────────────────────────────────────────────────────────────────────

    async def finish(self) -> None:
        """Finish each report that is due once: those that a crash left, and those that met a fault."""
        seen: set[str] = set()
        while (row := await self._office.db(reporting.pending, self._office.state, self._cursor)) is not None:
            if row.id in seen:
                return
            seen.add(row.id)
            self._cursor = row.seq
            desk = self._office.desks.get(row.run)
            if desk is None:
                await self._finish(row)
            elif not desk.reporting.locked():  # otherwise somebody is at it
                async with desk.reporting:
                    await self._finish(row)

    async def _finish(self, row: Row) -> None:
        office = self._office
        now = await office.db(reporting.find, office.state, row.id)
        try:
            if now.state == RESERVED:
                now = await self._captured(now, await office.db(reporting.run_of, office.state, now))
            if now.state == FINALISED:
                await self._published(now)
        except CoordError:
            return  # noted already
        except Exception as error:  # whatever it is, a later attempt may go well
            office.log(f"report {row.id} will be tried again: {_why(error)}")
            await office.db(reporting.retry_later, office.state, now, _why(error))

    async def clean(self) -> None:
        """Let go of evidence whose time is over."""
        for ref in await self._office.db(reporting.expired, self._office.state):
            await self._office.db(self._capture.release, ref)
            await self._office.db(reporting.forget, self._office.state, ref)
        await self.clean_transcripts()

    async def clean_transcripts(self) -> None:
        """Let go of the transcripts that no report will need any more."""
        office = self._office
        needed = await office.db(reporting.runs_to_report, office.state)
        names = set(await office.db(os.listdir, office.root.transcripts)) - needed
        ours = await office.db(office.state.ended_among, names)
        for name in {*ours, *(name for name in names if self._is_old(office.root.transcripts / name))}:
            await office.db(office.root.release_transcript, name)

    async def clean_orphans(self) -> None:
        """Let go of what a crash left of captures that no report names; only before anything is captured.

        The directory may have served another store before: what no report here knows stays until its time is over.
        """
        office = self._office
        found = set(await office.db(self._capture.refs)) - await office.db(reporting.kept_refs, office.state)
        ours = await office.db(reporting.captured_among, office.state, found)
        for ref in {*ours, *(ref for ref in found if self._is_old(office.root.evidence / ref))}:
            await office.db(self._capture.release, ref)

    def _is_old(self, place: Path) -> bool:
        """Whether evidence would not be kept for so long."""
        try:
            return place.lstat().st_mtime < self._office.clock.now() - EVIDENCE_DAYS * 86400.0
        except OSError:
            return False


def _why(error: Exception) -> str:
    if isinstance(error, CaptureError | MergepubError):
        return str(error)
    return "it took too long" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
