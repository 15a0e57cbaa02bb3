"""The durable side: runs, overlaps and the timeline, each change in one transaction of the store's database.

Mail stands in mailing.py, reports in reporting.py; they work through ``State.write`` and ``State.read``. Safe for
threads. What belongs to another daemon's ``home`` (its data directory) is not looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from mergepub.coord import schema, wire
from mergepub.coord.radar import Overlap
from mergepub.coord.records import ACTIVE, FINISHED, Run
from mergepub.coord.wire import CoordError

if TYPE_CHECKING:
    from mergepub.coord.clock import Clock
    from mergepub.stores.sql import SqlStore, Transaction

T = TypeVar("T")

_LOOK = "SELECT number FROM coord_schema"
_LOCK_ROW = "SELECT number FROM coord_schema FOR UPDATE"  # SQLite locks the whole store by itself

_RUN = "id, workspace, member, task, checkout, transcript, pid, state, started, ended, process"
_ADD_RUN = f"INSERT INTO coord_runs (home, {_RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - names alone
_ADD_EVENT = """INSERT INTO coord_timeline (seq, id, workspace, run, kind, data, created)
    SELECT COALESCE(MAX(seq), 0) + 1, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
        CAST(? AS TEXT), CAST(? AS TEXT)
    FROM coord_timeline"""
_PUT_OVERLAP = """INSERT INTO coord_overlaps (a, b, workspace, state, files, seen, until) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (a, b) DO UPDATE SET state = excluded.state, files = excluded.files, seen = excluded.seen,
        until = excluded.until"""

Step = Callable[[str], None]
"""Told the name of every point of a write that a crash can come at."""


def no_step(_: str) -> None:
    """Nothing happens."""


class State:
    """What survives a restart. Opened by ``open``, closed with the store."""

    def __init__(self, store: SqlStore, home: str, clock: Clock, step: Step = no_step) -> None:
        self.store = store
        self.home = home
        self.clock = clock
        self._step = step
        self._lock = _LOCK_ROW if store.url.startswith("postgresql") else _LOOK

    def open(self) -> None:
        """Make the tables where they are missing.

        Raises:
            InvalidStoreError: they are a newer mergepub's.
        """
        schema.ensure(self.store)

    def write(self, name: str, operation: Callable[[Transaction], T]) -> T:
        """Run ``operation`` alone among all that write here, whole or not at all; durable when it returns.

        It may be run more than once, and leaves nothing when it raises. ``name`` is what its steps are called.
        """

        def whole(tx: Transaction) -> T:
            tx.row(self._lock)
            done = operation(tx)
            self._step(f"{name}:uncommitted")
            return done

        self._step(f"{name}:before")
        done = self.store._write(schema.PLACE, whole)
        self._step(f"{name}:committed")
        return done

    def read(self, operation: Callable[[Transaction], T]) -> T:
        """Run ``operation`` on one consistent state."""
        return self.store._read(operation)

    def step(self, name: str) -> None:
        """Name a point between two writes."""
        self._step(name)

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, run: Run) -> Run:
        """Keep a new run; with its id, the time it started, and its own transcript in the folder that was given."""
        name = f"run-{os.urandom(6).hex()}"
        transcript = os.path.join(run.transcript, name) if run.transcript else ""
        made = replace(run, id=name, transcript=transcript, state=ACTIVE, started=self.clock.stamp())
        self.write("start", lambda tx: tx.run(_ADD_RUN, self.home, *_row_of(made)))
        return made

    def end(self, run_id: str) -> Run:
        """End a run: its inbox is released, what it sent stays.

        Raises:
            CoordError: there is no such run, or it has ended already.
        """
        return self.write("end", lambda tx: self._end(tx, run_id))

    def _end(self, tx: Transaction, run_id: str) -> Run:
        run = find_run(tx, self.home, run_id)
        if run is None:
            raise CoordError(wire.NOT_FOUND, f"run.stop: there is no run {wire.shown(run_id)}")
        if run.state != ACTIVE:
            raise CoordError(wire.BAD_STATE, f"run.stop: the run {run_id} has ended already")
        ended = self.clock.stamp()
        tx.run(
            "UPDATE coord_runs SET state = ?, ended = ?, ack_token = NULL, batch_last = NULL WHERE id = ?",
            FINISHED,
            ended,
            run_id,
        )
        tx.run("DELETE FROM coord_messages WHERE to_run = ?", run_id)
        tx.run("DELETE FROM coord_receipts WHERE run = ?", run_id)
        tx.run("DELETE FROM coord_opened WHERE run = ?", run_id)
        tx.run("DELETE FROM coord_overlaps WHERE a = ? OR b = ?", run_id, run_id)
        return replace(run, state=FINISHED, ended=ended)

    def runs(self, *, active: bool = True) -> list[Run]:
        """The runs of this home, oldest first; ``active``: only those that have not ended."""
        where = "WHERE home = ?" + (" AND state = 'active'" if active else "")
        query = f"SELECT {_RUN} FROM coord_runs {where} ORDER BY started, id"  # noqa: S608 - names alone
        return [Run(*row) for row in self.read(lambda tx: tx.rows(query, self.home))]

    def ended_among(self, names: Collection[str]) -> list[str]:
        """Which of ``names`` are runs of this home that have ended."""
        query = "SELECT id FROM coord_runs WHERE id = ? AND home = ? AND state <> 'active'"
        return self.read(lambda tx: [name for name in names if tx.row(query, name, self.home)])

    # ── overlaps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def overlaps(self) -> list[Overlap]:
        """What the radar knew last."""
        query = """SELECT o.a, o.b, o.workspace, o.state, o.files, o.seen, o.until
            FROM coord_overlaps o JOIN coord_runs r ON r.id = o.a JOIN coord_runs s ON s.id = o.b
            WHERE r.home = ? AND r.state = 'active' AND s.state = 'active' ORDER BY o.a, o.b"""
        rows = self.read(lambda tx: tx.rows(query, self.home))
        return [Overlap(a, b, where, was, tuple(json.loads(files)), *times) for a, b, where, was, files, *times in rows]

    def keep_overlaps(self, changed: Sequence[Overlap], gone: Sequence[tuple[str, str]] = ()) -> None:
        """Keep what the radar knows now."""
        if changed or gone:
            self.write("overlaps", lambda tx: _keep_overlaps(tx, changed, gone))

    # ── the timeline ────────────────────────────────────────────────────────────────────────────────────────────────

    def timeline(self, workspace: str | None, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """The entries of one workspace, or of all, oldest first: the newest ``limit`` above number ``after``."""
        # A run of another home has its entries in the same table; they are its own workspace's business.
        query = """SELECT t.seq, t.id, t.workspace, t.run, t.kind, t.data, t.created
            FROM coord_timeline t JOIN coord_runs r ON r.id = t.run
            WHERE r.home = ? AND t.seq > ? AND (t.workspace = ? OR ? = 1) ORDER BY t.seq DESC LIMIT ?"""
        rows = self.read(lambda tx: tx.rows(query, self.home, after, workspace or "", int(workspace is None), limit))
        return [_event(row) for row in reversed(rows)]


def _row_of(run: Run) -> tuple[Any, ...]:
    return tuple(getattr(run, name) for name in _RUN.split(", "))


def check_own(tx: Transaction, run_id: str, method: str) -> None:
    """Refuse a call of a run that has ended meanwhile.

    Raises:
        CoordError: it has.
    """
    if tx.row("SELECT id FROM coord_runs WHERE id = ? AND state = 'active'", run_id) is None:
        raise CoordError(wire.UNAVAILABLE, f"{method}: this run has ended", "finished")


def find_run(tx: Transaction, home: str, run_id: str) -> Run | None:
    """The run, None where this home has none of that id."""
    query = f"SELECT {_RUN} FROM coord_runs WHERE id = ? AND home = ?"  # noqa: S608 - names alone
    row = tx.row(query, run_id, home)
    return Run(*row) if row else None


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a workspace's timeline, attributed to ``run``."""

    id: str
    workspace: str
    run: str
    kind: str
    data: dict[str, Any]
    created: str


def add_event(tx: Transaction, event: Event) -> None:
    """Add one entry to a workspace's timeline."""
    data = json.dumps(event.data, ensure_ascii=False)
    tx.run(_ADD_EVENT, event.id, event.workspace, event.run, event.kind, data, event.created)


def _event(row: tuple[Any, ...]) -> dict[str, Any]:
    names = ("seq", "id", "workspace_id", "run_id", "kind", "data", "created_at")
    facts = dict(zip(names, row, strict=True))
    return facts | {"data": json.loads(facts["data"])}


def _keep_overlaps(tx: Transaction, changed: Sequence[Overlap], gone: Sequence[tuple[str, str]]) -> None:
    for a, b in gone:
        tx.run("DELETE FROM coord_overlaps WHERE a = ? AND b = ?", a, b)
    for each in changed:
        files = json.dumps(each.files)
        tx.run(_PUT_OVERLAP, each.a, each.b, each.workspace, each.state, files, float(each.seen), float(each.until))
