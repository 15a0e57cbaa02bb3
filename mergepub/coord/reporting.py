"""Reports: reserve the row, capture, finalise, publish the event, mark it published; each step durable by itself.

    reserved ──capture──▸ finalised ──event──▸ published
        │ failed                      │ quarantined
        ▾ (its key may be repeated)   ▾ (the event's id is taken by something else: for the operator)

A crash leaves a row reserved or finalised; ``pending`` finds it, and it is finished from there. The event's id is made
from the report's, so it is added once however often it is tried.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mergepub.coord import wire
from mergepub.coord.records import EVIDENCE_DAYS, Evidence, Report, Run, evidence_ref
from mergepub.coord.state import Event, State, add_event, check_own, find_run
from mergepub.coord.wire import CoordError

if TYPE_CHECKING:
    from mergepub.stores.sql import Transaction

RESERVED, FAILED, FINALISED, PUBLISHED, QUARANTINED = "reserved", "failed", "finalised", "published", "quarantined"
LONGEST_PAUSE = 32.0
"""Seconds between two attempts: 1, 2, 4 and so on up to this."""

NEXT = {
    "success": "read the evidence and decide whether to accept the work; nothing was verified or published by this",
    "failure": "read the evidence and decide whether to try again",
    "blocked": "remove what blocks the run; it goes on with its task",
}

_COLUMNS = "id, run, key, digest, outcome, summary, refs, state, evidence, next_action, attempts, last_error, seq"
_ADD = """INSERT INTO coord_reports (seq, id, run, key, digest, outcome, summary, refs, state, next_action, created,
        attempts, next_attempt, last_error)
    SELECT COALESCE(MAX(seq), 0) + 1, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
        CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 'reserved', CAST(? AS TEXT), CAST(? AS TEXT), 0, 0, ''
    FROM coord_reports"""
_PENDING = f"""SELECT {_COLUMNS} FROM coord_reports
    WHERE state IN ('reserved', 'finalised') AND next_attempt <= ? AND seq > ? AND seq <= ?
        AND run IN (SELECT id FROM coord_runs WHERE home = ?)
    ORDER BY seq LIMIT 1"""  # noqa: S608 - names alone
_ADD_EVIDENCE = """INSERT INTO coord_evidence (ref, report, run, facts, created, expires) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (ref) DO UPDATE SET facts = excluded.facts, created = excluded.created, expires = excluded.expires"""
_ALL = 2**62


@dataclass(frozen=True, slots=True)
class Row:
    """A report as it is kept; fields in the order of ``_COLUMNS``."""

    id: str
    run: str
    key: str
    digest: str
    outcome: str
    summary: str
    refs: str
    state: str
    evidence: str | None
    next_action: str
    attempts: int
    last_error: str
    seq: int

    @property
    def report(self) -> Report:
        """What was reported."""
        return Report(self.id, self.run, self.outcome, self.summary, tuple(json.loads(self.refs)))

    @property
    def accepted(self) -> bool:
        """Whether it is durable that it was accepted."""
        return self.state in (FINALISED, PUBLISHED, QUARANTINED)

    def receipt(self) -> dict[str, Any]:
        """The answer to the one who reported."""
        assert self.evidence is not None, "an accepted report has evidence"
        refs = [*json.loads(self.refs), self.evidence]
        facts = {"report_id": self.id, "outcome": self.outcome, "summary": self.summary}
        return facts | {"next_action": self.next_action, "evidence_ref": self.evidence, "evidence_refs": refs}


def reserve(state: State, own: Run, params: dict[str, Any]) -> Row:
    """The row of this report: reserved now, or an accepted one of the same key.

    Raises:
        CoordError: the key was used for another report, or the run has reported already.
    """
    return state.write("reserve", lambda tx: _reserve(tx, state, own, params))


def _reserve(tx: Transaction, state: State, own: Run, params: dict[str, Any]) -> Row:
    check_own(tx, own.id, "coord.report")
    refs = params.get("evidence_refs", [])
    given = [params["outcome"], params["summary"], refs]
    digest = sha256(json.dumps(given).encode()).hexdigest()
    known = _find(tx, "run = ? AND key = ?", own.id, params["idempotency_key"])
    if known and known.digest != digest:
        text = "coord.report: this idempotency key was used for another report"
        raise CoordError(wire.CONFLICT, text, "key-reused")
    if known and known.accepted:
        return known
    _refuse_a_second(tx, own, params["idempotency_key"])
    if known:
        tx.run("UPDATE coord_reports SET state = 'reserved', attempts = 0, next_attempt = 0 WHERE id = ?", known.id)
    else:
        values = (own.id, params["idempotency_key"], digest, params["outcome"], params["summary"], json.dumps(refs))
        tx.run(_ADD, f"report-{os.urandom(8).hex()}", *values, NEXT[params["outcome"]], state.clock.stamp())
    row = _find(tx, "run = ? AND key = ?", own.id, params["idempotency_key"])
    assert row is not None, "it was put just now"
    return row


def _refuse_a_second(tx: Transaction, own: Run, key: str) -> None:
    """One report a run: only what was blocked may be followed by another one."""
    last = "run = ? AND key <> ? AND state <> 'failed' AND outcome <> 'blocked'"
    if _find(tx, last, own.id, key):
        text = "coord.report: this run has reported its outcome already, under another idempotency key"
        raise CoordError(wire.CONFLICT, text, "key-reused")


def finalise(state: State, row: Row, evidence: Evidence) -> Row:
    """Accept the report with what was captured."""
    return state.write("finalise", lambda tx: _finalise(tx, state, row, evidence))


def _finalise(tx: Transaction, state: State, row: Row, evidence: Evidence) -> Row:
    facts = json.dumps(asdict(evidence))
    expires = state.clock.now() + EVIDENCE_DAYS * 86400.0
    tx.run(
        "UPDATE coord_reports SET state = 'finalised', evidence = ?, attempts = 0, next_attempt = 0, last_error = ''"
        " WHERE id = ? AND state IN ('reserved', 'finalised')",
        evidence.ref,
        row.id,
    )
    tx.run(_ADD_EVIDENCE, evidence.ref, row.id, row.run, facts, state.clock.stamp(), expires)
    found = _find(tx, "id = ?", row.id)
    assert found is not None, "reports are never removed"
    return found


class EventTakenError(Exception):
    """The id of a report's event stands for something else on the timeline: no repetition helps."""


def publish(state: State, row: Row) -> None:
    """Add the report's event to the timeline, unless it is there.

    Raises:
        EventTakenError: another event has its id.
    """
    taken = state.write("publish", lambda tx: _publish(tx, state, row))
    if taken:
        raise EventTakenError(f"another event has the id {event_id(row)}")


def event_id(row: Row) -> str:
    """The id of a report's event."""
    return f"event-{sha256(row.id.encode()).hexdigest()[:16]}"


def _publish(tx: Transaction, state: State, row: Row) -> bool:
    run = find_run(tx, state.home, row.run)
    assert run is not None, "runs are never removed"
    known = tx.row("SELECT run, kind, data FROM coord_timeline WHERE id = ?", event_id(row))
    data = row.receipt() | {"from_run_id": row.run}
    if known:
        return (known[0], known[1], json.loads(known[2])) != (row.run, "report", data)
    add_event(tx, Event(event_id(row), run.workspace, run.id, "report", data, state.clock.stamp()))
    return False


def mark(state: State, row: Row) -> None:
    """Note that the event is on the timeline."""
    state.write("mark", lambda tx: tx.run("UPDATE coord_reports SET state = 'published' WHERE id = ?", row.id))


def fail(state: State, row: Row, error: str) -> None:
    """The evidence could not be captured and the caller is told so: the report is not accepted."""
    _note(state, row, FAILED, error)


def quarantine(state: State, row: Row, error: str) -> None:
    """Put the report aside, for the operator to see: repeating cannot help."""
    _note(state, row, QUARANTINED, error)


def retry_later(state: State, row: Row, error: str) -> None:
    """Note a failed attempt, and when the next one is due."""
    pause = min(LONGEST_PAUSE, 2.0**row.attempts)
    _note(state, row, row.state, error, due=state.clock.now() + pause)


def _note(state: State, row: Row, to: str, error: str, *, due: float = 0.0) -> None:
    values = (to, row.attempts + 1, due, error, row.id)
    change = "UPDATE coord_reports SET state = ?, attempts = ?, next_attempt = ?, last_error = ? WHERE id = ?"
    state.write("note", lambda tx: tx.run(change, *values))


def pending(state: State, cursor: int) -> Row | None:
    """The first report above ``cursor`` that is due to be finished, else the first one up to it: so none starves."""
    now = state.clock.now()

    def look(tx: Transaction) -> tuple[Any, ...] | None:
        first = tx.row(_PENDING, now, cursor, _ALL, state.home)
        return first or tx.row(_PENDING, now, 0, cursor, state.home)

    row = state.read(look)
    return Row(*row) if row else None


def find(state: State, report_id: str) -> Row:
    """One report as it stands now."""
    row = state.read(lambda tx: _find(tx, "id = ?", report_id))
    assert row is not None, "reports are never removed"
    return row


def reports(state: State) -> list[dict[str, Any]]:
    """Every report with how far it got, oldest first, for the operator."""
    query = f"SELECT {_COLUMNS} FROM coord_reports WHERE run IN (SELECT id FROM coord_runs WHERE home = ?) ORDER BY seq"  # noqa: S608 - names alone
    rows = [Row(*row) for row in state.read(lambda tx: tx.rows(query, state.home))]
    names = ("id", "run", "outcome", "state", "attempts", "last_error")
    return [{name: getattr(row, name) for name in names} for row in rows]


def runs_to_report(state: State) -> set[str]:
    """The runs that are active, or whose report is not finalised yet."""
    query = """SELECT id FROM coord_runs WHERE home = ? AND state = 'active'
        UNION SELECT run FROM coord_reports WHERE state = 'reserved'"""
    return {row[0] for row in state.read(lambda tx: tx.rows(query, state.home))}


def run_of(state: State, row: Row) -> Run:
    """The run that reported."""
    run = state.read(lambda tx: find_run(tx, state.home, row.run))
    assert run is not None, "runs are never removed"
    return run


def _find(tx: Transaction, where: str, *values: Any) -> Row | None:
    found = tx.row(f"SELECT {_COLUMNS} FROM coord_reports WHERE {where}", *values)  # noqa: S608 - conditions of this module
    return Row(*found) if found else None


# ── evidence ────────────────────────────────────────────────────────────────────────────────────────────────────────

_EVIDENCE = """SELECT e.ref, e.report, e.run, e.created, e.expires, e.facts, r.outcome, r.summary, r.state, r.attempts,
        r.last_error
    FROM coord_evidence e JOIN coord_reports r ON r.id = e.report JOIN coord_runs u ON u.id = e.run WHERE u.home = ?"""


def evidence_list(state: State) -> list[dict[str, Any]]:
    """All evidence that is kept, oldest first, without what was captured."""
    rows = state.read(lambda tx: tx.rows(f"{_EVIDENCE} ORDER BY r.seq", state.home))
    return [_evidence(row, facts=False) for row in rows]


def evidence_show(state: State, ref: str) -> dict[str, Any] | None:
    """One piece of evidence with what was captured, None where there is none of that name."""
    row = state.read(lambda tx: tx.row(f"{_EVIDENCE} AND e.ref = ?", state.home, ref))
    return _evidence(row, facts=True) if row else None


def _evidence(row: tuple[Any, ...], *, facts: bool) -> dict[str, Any]:
    from mergepub.coord.clock import stamp  # noqa: PLC0415 - shown seldom

    names = ("evidence_ref", "report_id", "run_id", "created_at", "expires_at", "facts", "outcome", "summary")
    shown = dict(zip((*names, "report_state", "attempts", "last_error"), row, strict=True))
    shown["expires_at"] = stamp(shown["expires_at"])
    captured = json.loads(shown.pop("facts"))
    return shown | ({"captured": captured} if facts else {})


def expired(state: State) -> list[str]:
    """The refs whose time is over."""
    query = "SELECT ref FROM coord_evidence WHERE expires <= ? AND run IN (SELECT id FROM coord_runs WHERE home = ?)"
    return [row[0] for row in state.read(lambda tx: tx.rows(query, state.clock.now(), state.home))]


def forget(state: State, ref: str) -> None:
    """Keep nothing of ``ref`` any more; the report stays."""
    state.write("forget", lambda tx: tx.run("DELETE FROM coord_evidence WHERE ref = ?", ref))


def captured_among(state: State, refs: Collection[str]) -> list[str]:
    """Which of ``refs`` were captured for reports of this home."""
    query = """SELECT r.id FROM coord_reports r JOIN coord_runs u ON u.id = r.run WHERE r.id = ? AND u.home = ?"""
    names = {ref: ref.removeprefix("evidence-") for ref in refs}
    return state.read(lambda tx: [ref for ref, name in names.items() if tx.row(query, name, state.home)])


def kept_refs(state: State) -> set[str]:
    """The refs of the evidence that is kept, and of what may be captured right now."""
    query = """SELECT e.ref FROM coord_evidence e JOIN coord_runs u ON u.id = e.run WHERE u.home = ?"""
    reserved = "SELECT id FROM coord_reports WHERE state = 'reserved'"
    kept, captured = state.read(lambda tx: (tx.rows(query, state.home), tx.rows(reserved)))
    return {row[0] for row in kept} | {evidence_ref(row[0]) for row in captured}
