"""The daemon's work on reports with captures and stores that fail: what is refused, retried, set aside, let go of."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from mergepub.coord import reporting, wire
from mergepub.coord.evidence import Evidences
from mergepub.coord.office import Desk, Office
from mergepub.coord.records import CaptureError, Evidence, Report, Run, evidence_ref
from mergepub.coord.reports import Reports
from mergepub.coord.state import Event, State, add_event
from mergepub.coord.surfaces import Root
from mergepub.coord.wire import CoordError
from mergepub.errors import UnavailableError
from tests.coord.conftest import Hands, started

if TYPE_CHECKING:
    from mergepub.coord.records import Capture

PARAMS = {"outcome": "success", "summary": "done", "idempotency_key": "k"}


class Captures:
    """Captures nothing; raises what stands in ``troubles``, first things first."""

    def __init__(self, *troubles: BaseException) -> None:
        self.troubles = list(troubles)
        self.captured: list[str] = []

    def capture(self, run: Run, report: Report, documents: Sequence[str], deadline: float) -> Evidence:
        if self.troubles:
            raise self.troubles.pop(0)
        self.captured.append(report.id)
        return Evidence(evidence_ref(report.id), tuple(documents))

    def release(self, ref: str) -> None:
        pass

    def refs(self) -> Sequence[str]:
        return ()


class Bench:
    """An office with a desk, and reports over ``capture``."""

    def __init__(self, state: State, capture: Capture, root: Root) -> None:
        self.state = state
        self.log: list[str] = []
        self.office = Office(state, root, state.clock, self.log.append, lapse=60.0)
        self.desk = Desk(started(state))
        self.office.desks[self.desk.run.id] = self.desk
        self.reports = Reports(self.office, capture)

    async def report(self, **change: Any) -> dict[str, Any]:
        return await self.reports.report(self.desk, PARAMS | change)

    async def refused(self, **change: Any) -> CoordError:
        with pytest.raises(CoordError) as caught:
            await self.report(**change)
        return caught.value

    @property
    def row(self) -> dict[str, Any]:
        (row,) = reporting.reports(self.state)
        return row

    def events(self) -> list[str]:
        return [entry["kind"] for entry in self.state.timeline("w")]


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = Root(tmp_path / "d")
    for folder in (root.evidence, root.transcripts, root.coord):
        folder.mkdir(parents=True)
    return root


def on_bench(state: State, root: Root, capture: Capture, scene: Callable[[Bench], Any]) -> None:
    async def life() -> None:
        bench = Bench(state, capture, root)
        try:
            await scene(bench)
        finally:
            bench.office.close()

    asyncio.run(life())


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (CaptureError("no disk"), "no disk"),
        (OSError("gone"), "gone"),
        (TimeoutError(), "too long"),
        (KeyError("x"), "x"),
    ],
)
def test_a_capture_that_fails_accepts_nothing_and_the_key_can_be_repeated(
    state: State, root: Root, trouble: Exception, words: str
) -> None:
    captures = Captures(trouble)

    async def scene(bench: Bench) -> None:
        error = await bench.refused()
        assert error.code == wire.INTERNAL
        assert words in error.message
        assert (bench.row["state"], bench.row["attempts"]) == ("failed", 1)
        await bench.reports.finish()
        assert (captures.captured, bench.events()) == ([], [])
        receipt = await bench.report()
        assert await bench.report() == receipt
        assert (bench.row["state"], bench.events(), len(captures.captured)) == ("published", ["report"], 1)

    on_bench(state, root, captures, scene)


def test_an_event_that_cannot_be_stored_now_is_published_later_once(
    state: State, root: Root, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reporting.publish

    def away(*_: Any) -> None:
        raise UnavailableError("the store is away")

    async def scene(bench: Bench) -> None:
        monkeypatch.setattr(reporting, "publish", away)
        error = await bench.refused()
        assert error.code == wire.UNAVAILABLE
        assert (bench.row["state"], bench.row["attempts"]) == ("finalised", 1)
        hands.pass_(1)
        await bench.reports.finish()
        assert (bench.row["attempts"], bench.row["last_error"]) == (2, "the store is away")
        monkeypatch.setattr(reporting, "publish", real)
        await bench.reports.finish()
        assert bench.events() == []  # the next attempt is not due yet
        hands.pass_(2)
        for _ in range(2):
            await bench.reports.finish()
        assert (bench.row["state"], bench.events()) == ("published", ["report"])
        assert (await bench.report())["outcome"] == "success"

    on_bench(state, root, Captures(), scene)


def test_a_report_that_a_crash_left_is_captured_again_until_it_goes_well(
    state: State, root: Root, hands: Hands
) -> None:
    captures = Captures(CaptureError("one"), CaptureError("two"))

    async def scene(bench: Bench) -> None:
        reporting.reserve(state, bench.desk.run, PARAMS)
        for attempt, pause in ((1, 1), (2, 2)):
            await bench.reports.finish()
            assert (bench.row["state"], bench.row["attempts"]) == ("reserved", attempt)
            hands.pass_(pause)
        await bench.reports.finish()
        assert (bench.row["state"], bench.events()) == ("published", ["report"])
        assert [line for line in bench.log if "will be tried again" in line]

    on_bench(state, root, captures, scene)


def test_a_taken_event_id_is_quarantined_for_the_operator_and_keeps_nobody_waiting(state: State, root: Root) -> None:
    async def scene(bench: Bench) -> None:
        row = reporting.reserve(state, bench.desk.run, PARAMS)
        taken = Event(
            reporting.event_id(row), "w", bench.desk.run.id, "report", {"not": "ours"}, "2027-01-01T00:00:00Z"
        )
        state.write("test", lambda tx: add_event(tx, taken))
        await bench.reports.finish()
        assert bench.row["state"] == "quarantined"
        assert bench.row["last_error"]
        assert len(bench.events()) == 1
        assert (await bench.report())["report_id"] == row.id
        await bench.reports.finish()
        assert bench.row["state"] == "quarantined"

    on_bench(state, root, Captures(), scene)


def test_evidence_is_let_go_of_after_thirty_days_with_its_commit(
    state: State, root: Root, hands: Hands, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", "init", "-q", checkout], env=own, check=True)
    (checkout / "file").touch()

    def refs() -> bytes:
        return subprocess.run(["git", "-C", checkout, "for-each-ref"], env=own, check=True, capture_output=True).stdout

    async def scene(bench: Bench) -> None:
        bench.desk.run = state.start(Run("", "w", "m", "t", str(checkout)))
        ref = (await bench.report())["evidence_ref"]
        hands.pass_(30 * 86400 - 60)
        await bench.reports.clean()
        assert reporting.evidence_show(state, ref) is not None
        assert ref.encode() in refs()
        hands.pass_(60)
        await bench.reports.clean()
        assert reporting.evidence_show(state, ref) is None
        assert (refs(), list(root.evidence.iterdir())) == (b"", [])
        assert bench.row["state"] == "published"

    on_bench(state, root, Evidences(root.evidence), scene)


def test_transcripts_are_kept_until_no_report_can_need_them(state: State, root: Root) -> None:
    async def scene(bench: Bench) -> None:
        ended, waiting, strange = started(state), started(state), SimpleNamespace(id="run-strange")
        for run in (bench.desk.run, ended, waiting, strange):
            (root.transcripts / run.id).touch()
        reporting.reserve(state, waiting, PARAMS)
        state.end(ended.id)
        state.end(waiting.id)
        await bench.reports.clean_transcripts()
        left = {place.name for place in root.transcripts.iterdir()}
        assert left == {bench.desk.run.id, waiting.id}
        await bench.reports.finish()
        await bench.reports.clean_transcripts()
        assert {place.name for place in root.transcripts.iterdir()} == {bench.desk.run.id}

    on_bench(state, root, Captures(), scene)
