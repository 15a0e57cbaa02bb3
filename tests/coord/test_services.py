"""Parts of the daemon in this process: failing captures, authorisation before the first look, rude servers, polling."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from mergepub.coord import client, reporting, wire
from mergepub.coord.evidence import Evidences
from mergepub.coord.methods import Methods
from mergepub.coord.office import Desk, Office
from mergepub.coord.records import CaptureError, Evidence, Report, Run
from mergepub.coord.reports import Reports
from mergepub.coord.surfaces import Root
from mergepub.coord.wire import CoordError
from mergepub.errors import UnavailableError
from tests.coord.conftest import Hands, started
from tests.coord.living import PATIENCE, SCRIPT, living, wait_for

if TYPE_CHECKING:
    from mergepub.coord.state import State

T = TypeVar("T")


class Captures:
    """Captures as it is told: evidence, or what is raised; remembers what was released."""

    def __init__(self, *outcomes: Exception | float | None) -> None:
        self.outcomes = list(outcomes)
        self.calls = 0
        self.released: list[str] = []
        self.kept: list[str] = []

    def capture(self, run: Run, report: Report, documents: Sequence[str], deadline: float) -> Evidence:
        self.calls += 1
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            time.sleep(outcome)
        return Evidence(f"evidence-{report.id}", tuple(documents))

    def release(self, ref: str) -> None:
        self.released.append(ref)

    def refs(self) -> Sequence[str]:
        return self.kept


@pytest.fixture
def data() -> Iterator[Path]:
    """A directory whose name is short: the path of a socket has 107 bytes at most, and some stand far below this."""
    with tempfile.TemporaryDirectory(prefix="mp-") as folder:
        yield Path(folder)


def in_office(state: State, scene: Callable[[Office], Awaitable[T]], data: Path = Path("/nowhere")) -> T:
    async def life() -> T:
        office = Office(state, Root(data), state.clock, lambda _: None, lapse=60.0)
        try:
            return await asyncio.wait_for(scene(office), PATIENCE)
        finally:
            office.close()

    return asyncio.run(life())


REPORT = {"outcome": "success", "summary": "done", "idempotency_key": "k"}


@pytest.mark.parametrize(
    "trouble", [CaptureError("the disk is full"), OSError("no"), ValueError("a defect"), UnavailableError("gone")]
)
def test_a_report_whose_capture_fails_is_not_accepted_and_can_be_repeated(state: State, trouble: Exception) -> None:
    run = started(state)
    captures = Captures(trouble)

    async def scene(office: Office) -> tuple[CoordError, dict[str, Any]]:
        reports, desk = Reports(office, captures), Desk(run)
        with pytest.raises(CoordError) as caught:
            await reports.report(desk, REPORT)
        await reports.finish()
        assert captures.calls == 1
        assert state.timeline("w") == []
        return caught.value, await reports.report(desk, REPORT)

    error, receipt = in_office(state, scene)
    assert error.code == wire.INTERNAL
    assert "repeat it with the same key" in error.message
    assert receipt["evidence_refs"] == [receipt["evidence_ref"]]
    assert [entry["kind"] for entry in state.timeline("w")] == ["report"]


def test_a_capture_that_takes_too_long_fails_the_report(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(state)

    async def scene(office: Office) -> str:
        reports = Reports(office, Captures(20.0), seconds=-4.9)
        with pytest.raises(CoordError) as caught:
            await reports.report(Desk(run), REPORT)
        return caught.value.message

    assert "it took too long" in in_office(state, scene)


def test_a_reserved_report_whose_capture_fails_after_a_restart_is_tried_again(state: State, hands: Hands) -> None:
    run = started(state)
    reporting.reserve(state, run, REPORT)
    captures = Captures(CaptureError("not yet"))

    async def scene(office: Office) -> None:
        reports = Reports(office, captures)
        await reports.finish()
        assert reporting.reports(state)[0]["state"] == reporting.RESERVED
        await reports.finish()
        assert captures.calls == 1
        hands.pass_(1)
        await reports.finish()

    in_office(state, scene)
    (row,) = reporting.reports(state)
    assert (row["state"], captures.calls) == (reporting.PUBLISHED, 2)


def test_a_report_whose_event_is_taken_is_in_quarantine_and_its_receipt_stands(state: State) -> None:
    from mergepub.coord.state import Event, add_event

    run = started(state)
    row = reporting.reserve(state, run, REPORT)
    event = Event(reporting.event_id(row), "w", run.id, "report", {}, state.clock.stamp())
    state.write("test", lambda tx: add_event(tx, event))

    async def scene(office: Office) -> dict[str, Any]:
        return await Reports(office, Captures()).report(Desk(run), REPORT)

    receipt = in_office(state, scene)
    assert receipt["report_id"] == row.id
    (found,) = reporting.reports(state)
    assert found["state"] == reporting.QUARANTINED
    assert "another event" in found["last_error"]


def test_evidence_whose_time_is_over_or_that_no_report_names_is_released(
    state: State, hands: Hands, data: Path
) -> None:
    run, other = started(state), started(state)
    stray = f"evidence-{reporting.reserve(state, other, REPORT).id}"
    reporting.fail(state, reporting.find(state, stray.removeprefix("evidence-")), "no")
    captures = Captures()

    async def scene(office: Office) -> dict[str, Any]:
        office.root.open()
        reports = Reports(office, captures)
        receipt = await reports.report(Desk(run), REPORT)
        captures.kept = [receipt["evidence_ref"], stray]
        await reports.clean_orphans()
        assert captures.released == [stray]
        hands.pass_(31 * 86400)
        await reports.clean()
        office.root.close()
        return receipt

    receipt = in_office(state, scene, data)
    assert captures.released == [stray, receipt["evidence_ref"]]
    assert reporting.evidence_list(state) == []


def test_what_another_store_left_in_the_directory_stays_until_its_time_is_over(
    state: State, hands: Hands, data: Path
) -> None:
    ended = started(state)
    state.end(ended.id)
    captures = Captures()
    captures.kept = ["evidence-report-of-others"]

    async def scene(office: Office) -> list[str]:
        office.root.open()
        for name in (ended.id, "run-of-others"):
            (office.root.transcripts / name).touch()
        (office.root.evidence / captures.kept[0]).mkdir()
        for place in (*office.root.transcripts.iterdir(), *office.root.evidence.iterdir()):
            os.utime(place, (hands.wall, hands.wall))
        reports = Reports(office, captures)
        left = []
        for _ in range(2):
            await reports.clean_orphans()
            await reports.clean_transcripts()
            left.append(",".join([*(each.name for each in office.root.transcripts.iterdir()), *captures.released]))
            hands.pass_(31 * 86400)
        office.root.close()
        return left

    assert in_office(state, scene, data) == ["run-of-others", "evidence-report-of-others"]


@pytest.mark.parametrize("seen", [None, frozenset({"/docs/b", "/docs/a"})], ids=["never looked at", "looked at before"])
@pytest.mark.parametrize("trouble", [OSError("no such disk"), None], ids=["fails", "hangs"])
def test_a_checkout_that_cannot_be_read_now_leaves_a_report_what_the_radar_saw_last(
    state: State, seen: frozenset[str] | None, trouble: Exception | None
) -> None:
    run = started(state)

    async def look(_: Run) -> frozenset[str]:
        if trouble:
            raise trouble
        await asyncio.Event().wait()
        return frozenset()

    async def scene(office: Office) -> dict[str, Any]:
        office.radar.join(run.id, run.workspace)
        if seen is not None:
            office.radar.observe(run.id, seen, office.clock.now())
        return await Reports(office, Captures(), look=look, look_seconds=0.01).report(Desk(run), REPORT)

    receipt = in_office(state, scene)
    shown = reporting.evidence_show(state, receipt["evidence_ref"])
    assert shown is not None
    assert shown["captured"]["documents"] == sorted(seen or ())
    (doubt,) = shown["captured"]["unresolved"]
    assert doubt.startswith("the edited documents are " + ("those that the radar saw last" if seen else "not known"))
    assert ("no such disk" if trouble else "it took too long") in doubt


def test_before_the_first_look_nobody_is_turned_away_for_good(state: State) -> None:
    a, b = started(state), started(state)

    async def scene(office: Office) -> tuple[Any, Any]:
        for run in (a, b):
            office.desks[run.id] = Desk(run)
            office.radar.join(run.id, "w")
        methods = Methods(office, Reports(office, Evidences(Path("/nowhere"))))
        request = wire.request(1, "coord.send", {"to_run_id": b.id, "body": "x", "idempotency_key": "k"})
        first = await methods.answer(office.desks[a.id], request, asyncio.Event())
        for run in (a, b):
            office.radar.observe(run.id, frozenset(), office.clock.now())
        second = await methods.answer(office.desks[a.id], request, asyncio.Event())
        return json.loads(first or b""), json.loads(second or b"")

    first, second = in_office(state, scene)
    assert (first["error"]["code"], first["error"]["data"]) == (-32003, {"reason": "not-ready"})
    assert (second["error"]["code"], second["error"]["data"]) == (-32001, {"reason": "not-a-peer"})


def test_with_coordination_off_every_method_says_so(state: State) -> None:
    run = started(state)

    async def scene(office: Office) -> Any:
        reports = Reports(office, Captures())
        methods = Methods(office, reports, coordination=False)
        return json.loads(await methods.answer(Desk(run), wire.request(1, "coord.status", {}), asyncio.Event()) or b"")

    answer = in_office(state, scene)
    assert (answer["error"]["code"], answer["error"]["data"]) == (-32004, {"reason": "off"})


def test_a_fault_of_the_store_is_unavailable_and_a_defect_is_internal(state: State) -> None:
    from mergepub.coord.methods import answered

    def raising(error: Exception) -> Callable[[], Awaitable[dict[str, Any]]]:
        async def call() -> dict[str, Any]:
            raise error

        return call

    async def scene(office: Office) -> list[Any]:
        request = wire.Request(1, "coord.status", {})
        errors = [UnavailableError("locked"), ZeroDivisionError("x"), CoordError(-32000, "m: t")]
        return [json.loads(await answered(office, request, raising(error)))["error"] for error in errors]

    unavailable, defect, refusal = in_office(state, scene)
    assert (unavailable["code"], unavailable["message"]) == (-32004, "coord.status: locked")
    assert (defect["code"], defect["message"]) == (-32603, "coord.status: internal failure")
    assert refusal["code"] == -32000


# ── the client ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def place(data: Path) -> Path:
    return data / "coord3.sock"


@pytest.fixture
def server(place: Path) -> Iterator[socket.socket]:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(place))
    made.listen()
    yield made
    made.close()


def answering(server: socket.socket, answer: bytes) -> None:
    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


@pytest.mark.parametrize("answer", [b"junk\n", b"{}\n", b"[]\n", b'{"result":5}\n', b'{"error":"no"}\n', b"\xff\n"])
def test_an_answer_that_is_none_is_an_internal_failure(server: socket.socket, place: Path, answer: bytes) -> None:
    answering(server, answer)
    with pytest.raises(CoordError) as caught:
        client.call(place, "coord.status", {})
    assert (caught.value.code, caught.value.exit_status) == (-32603, 1)


@pytest.mark.parametrize("answer", [b"", b'{"jsonrpc":"2.0"'])
def test_a_connection_that_ends_without_an_answer_says_to_repeat_the_call(
    server: socket.socket, place: Path, answer: bytes
) -> None:
    answering(server, answer)
    with pytest.raises(CoordError, match="repeat it with the same idempotency key") as caught:
        client.call(place, "coord.send", {})
    assert (caught.value.code, caught.value.exit_status) == (-32004, 4)


def test_an_answer_that_never_comes_is_waited_for_a_bounded_time(server: socket.socket, place: Path) -> None:
    with pytest.raises(CoordError, match="no answer in time"):
        client.call(place, "coord.send", {}, seconds=0.1)


def test_a_socket_that_nobody_listens_on_is_no_socket(server: socket.socket, place: Path) -> None:
    server.close()
    with pytest.raises(CoordError) as caught:
        client.call(place, "coord.status", {})
    assert caught.value.reason == "no-socket"


# ── without watchfiles ──────────────────────────────────────────────────────────────────────────────────────────────

WITHOUT = """import sys
sys.modules["watchfiles"] = None
from mergepub.cli.app import run
sys.exit(run(["coord", "serve", *sys.argv[1:]]))
"""


def test_without_watchfiles_checkouts_are_looked_at_from_time_to_time() -> None:
    with living("--polling-seconds", "0.1", program=(sys.executable, "-c", WITHOUT)) as daemon:
        one, two = (daemon.checkout(name, "/docs/g.md") for name in ("one", "two"))
        for folder in (one, two):
            daemon.run(folder)
        assert "watchfiles is missing" in daemon.log()
        for folder in (one, two):
            (folder / "g.md").write_bytes(b"edited\n")
        wait_for(lambda: daemon.operator("radar.show")["overlaps"], "no overlap is found")
    assert SCRIPT.exists()
