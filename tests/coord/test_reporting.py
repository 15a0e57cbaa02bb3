"""Reports on both databases: one a run, exact replays, the steps of a publication, retention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mergepub.coord import reporting, wire
from mergepub.coord.records import Evidence, Run
from mergepub.coord.state import Event, State, add_event
from mergepub.coord.wire import CoordError
from tests.coord.conftest import Hands, started

if TYPE_CHECKING:
    from mergepub.coord.reporting import Row


def report(key: str = "k", **change: Any) -> dict[str, Any]:
    return {"outcome": "success", "summary": "done", "idempotency_key": key} | change


def reserved(state: State, run: Run, **change: Any) -> Row:
    return reporting.reserve(state, run, report(**change))


def accepted(state: State, run: Run, **change: Any) -> Row:
    row = reserved(state, run, **change)
    return reporting.finalise(state, row, Evidence(f"evidence-{row.id}", ("/a",)))


def refused(state: State, run: Run, **change: Any) -> tuple[int, str | None]:
    with pytest.raises(CoordError) as caught:
        reserved(state, run, **change)
    return caught.value.code, caught.value.reason


def test_a_report_goes_its_way_and_its_event_is_on_the_timeline_once(state: State) -> None:
    run = started(state)
    row = accepted(state, run, evidence_refs=["log-1"])
    for _ in range(2):
        reporting.publish(state, row)
    reporting.mark(state, row)
    (entry,) = state.timeline("w")
    assert (entry["kind"], entry["run_id"], entry["id"]) == ("report", run.id, reporting.event_id(row))
    receipt = row.receipt()
    assert receipt["evidence_refs"] == ["log-1", receipt["evidence_ref"]]
    assert set(receipt) == {"report_id", "outcome", "summary", "next_action", "evidence_ref", "evidence_refs"}
    assert reporting.pending(state, 0) is None


def test_an_exact_repetition_gives_the_first_receipt(state: State) -> None:
    run = started(state)
    row = accepted(state, run)
    again = reserved(state, run)
    assert again.accepted
    assert again.receipt() == row.receipt()


def test_the_key_of_a_report_is_not_used_for_another_one(state: State) -> None:
    run = started(state)
    accepted(state, run)
    assert refused(state, run, summary="other") == (wire.CONFLICT, "key-reused")


@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_there_is_one_report_a_run(state: State, outcome: str) -> None:
    run = started(state)
    accepted(state, run, outcome=outcome)
    for second in wire.OUTCOMES:
        assert refused(state, run, key="k2", outcome=second) == (wire.CONFLICT, "key-reused")


def test_a_blocked_report_may_be_followed_by_others(state: State) -> None:
    run = started(state)
    accepted(state, run, outcome="blocked")
    accepted(state, run, key="k2", outcome="blocked")
    accepted(state, run, key="k3", outcome="success")
    assert refused(state, run, key="k4", outcome="blocked") == (wire.CONFLICT, "key-reused")


def test_a_failed_capture_accepts_nothing_and_its_key_can_be_repeated(state: State) -> None:
    run = started(state)
    row = reserved(state, run)
    reporting.fail(state, row, "no disk")
    assert reporting.pending(state, 0) is None
    again = reserved(state, run)
    assert (again.id, again.state) == (row.id, reporting.RESERVED)
    reporting.fail(state, again, "no disk")
    assert reserved(state, run, key="other").id != row.id


def test_pending_reports_are_walked_in_a_circle(state: State) -> None:
    rows = [accepted(state, started(state)) for _ in range(3)]
    cursor, seen = 0, []
    for _ in range(5):
        found = reporting.pending(state, cursor)
        assert found is not None
        seen.append(found.id)
        cursor = found.seq
    assert seen == [rows[i % 3].id for i in range(5)]


def test_attempts_pause_twice_as_long_each_time_up_to_32_seconds(state: State, hands: Hands) -> None:
    accepted(state, started(state))
    for attempt, pause in enumerate([1, 2, 4, 8, 16, 32, 32]):
        row = reporting.pending(state, 0)
        assert row is not None
        assert row.attempts == attempt
        reporting.retry_later(state, row, f"trouble {attempt}")
        hands.pass_(pause - 0.01)
        assert reporting.pending(state, 0) is None
        hands.pass_(0.01)
    assert reporting.reports(state)[0]["last_error"] == "trouble 6"


def test_an_event_of_another_content_is_a_permanent_conflict(state: State) -> None:
    run = started(state)
    row = accepted(state, run)
    event = Event(reporting.event_id(row), "w", run.id, "report", {"other": 1}, "2027-01-01T00:00:00Z")
    state.write("test", lambda tx: add_event(tx, event))
    with pytest.raises(reporting.EventTakenError):
        reporting.publish(state, row)
    reporting.quarantine(state, row, "taken")
    assert reporting.pending(state, 0) is None
    found = reporting.reports(state)[0]
    assert (found["state"], found["last_error"]) == ("quarantined", "taken")


def test_evidence_is_kept_for_thirty_days(state: State, hands: Hands) -> None:
    row = accepted(state, started(state))
    assert row.evidence
    shown = reporting.evidence_show(state, row.evidence)
    assert shown is not None
    assert shown["captured"]["documents"] == ["/a"]
    assert [e["evidence_ref"] for e in reporting.evidence_list(state)] == [row.evidence]
    hands.pass_(30 * 86400 - 1)
    assert reporting.expired(state) == []
    hands.pass_(1)
    assert reporting.expired(state) == [row.evidence]
    reporting.forget(state, row.evidence)
    assert reporting.evidence_show(state, row.evidence) is None
    assert reporting.kept_refs(state) == set()


def test_what_is_being_captured_is_no_orphan(state: State) -> None:
    row = reserved(state, started(state))
    assert reporting.kept_refs(state) == {f"evidence-{row.id}"}
    reporting.fail(state, row, "no disk")
    assert reporting.kept_refs(state) == set()


def test_a_jump_of_the_calendar_ends_no_evidence(state: State, hands: Hands) -> None:
    accepted(state, started(state))
    hands.wall += 400 * 86400
    assert reporting.expired(state) == []
