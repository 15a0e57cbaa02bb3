"""Mail between runs: sends, asks, replies and inbox reads, each in one transaction with all that belongs to it.

The order inside a send is fixed: an exact replay is answered first, then come the rate, the target, its state, the
authorisation, the peer cap, the inbox cap; then message, receipt and timeline entry are stored together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mergepub.coord import bounds, wire
from mergepub.coord.records import ACTIVE, Run
from mergepub.coord.state import Event, State, add_event, check_own, find_run
from mergepub.coord.wire import CoordError

if TYPE_CHECKING:
    from mergepub.stores.sql import Transaction

KINDS = {"coord.send": "message", "coord.ask": "question", "coord.reply": "reply"}
_IDS = {"message": "msg", "question": "question", "reply": "reply"}

_ADD = """INSERT INTO coord_messages (seq, id, kind, correlation, from_run, to_run, body, created, acked)
    SELECT COALESCE(MAX(seq), 0) + 1, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
        CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 0
    FROM coord_messages"""
_WAITING = """SELECT seq, id, kind, correlation, from_run, body, created FROM coord_messages
    WHERE to_run = ? AND acked = 0 AND seq <= ? ORDER BY seq"""
_ALL = 2**62


@dataclass(frozen=True, slots=True)
class Draft:
    """One send, ask or reply: ``target`` is the run, of a reply the question."""

    method: str
    target: str
    body: str
    key: str

    @property
    def digest(self) -> str:
        """What makes it the same as another one of that key."""
        return sha256(json.dumps([self.method, self.target, self.body]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Gate:
    """What is decided outside the database: ``rate`` and ``authorise`` raise when the answer is no.

    Both may be asked more than once for one send, and spend nothing the second time.
    """

    rate: Callable[[], None]
    authorise: Callable[[Run], None]


def deliver(state: State, own: Run, draft: Draft, gate: Gate) -> tuple[str, str | None]:
    """Store ``draft``: its id, and the run that it now waits for; None when it was stored before.

    Raises:
        CoordError: it is refused; nothing of it is stored.
    """
    name = draft.method.removeprefix("coord.")
    return state.write(name, lambda tx: _deliver(tx, state, own, draft, gate))


def _deliver(tx: Transaction, state: State, own: Run, draft: Draft, gate: Gate) -> tuple[str, str | None]:
    check_own(tx, own.id, draft.method)
    known = _receipt(tx, own, draft)
    if known is not None:
        return known, None
    gate.rate()
    target, to = _target(tx, state, draft)
    if to.state != ACTIVE:
        raise CoordError(wire.UNAVAILABLE, f"{draft.method}: the run {to.id} has ended", "finished")
    if draft.method == "coord.reply":
        _check_reply(own, to, target)
    else:
        gate.authorise(to)
        _open_peer(tx, own, to, draft)
    _check_room(tx, to, draft)
    return _stored(tx, state, own, to, draft), to.id


def _receipt(tx: Transaction, own: Run, draft: Draft) -> str | None:
    row = tx.row("SELECT digest, message FROM coord_receipts WHERE run = ? AND key = ?", own.id, draft.key)
    if row is None:
        return None
    if row[0] != draft.digest:
        raise CoordError(wire.CONFLICT, f"{draft.method}: this idempotency key was used for another call", "key-reused")
    return str(row[1])


def _target(tx: Transaction, state: State, draft: Draft) -> tuple[str, Run]:
    """The run that the question was asked of ("" for a send), and the one that it goes to."""
    asked, run_id = "", draft.target
    if draft.method == "coord.reply":
        query = "SELECT to_run, from_run FROM coord_messages WHERE id = ? AND kind = 'question'"
        row = tx.row(query, draft.target)
        if row is None:
            raise CoordError(wire.NOT_FOUND, f"{draft.method}: there is no question {wire.shown(draft.target)}")
        asked, run_id = row
    found = find_run(tx, state.home, run_id)
    if found is None:
        raise CoordError(wire.NOT_FOUND, f"{draft.method}: there is no run {wire.shown(run_id)}")
    return asked, found


def _check_reply(own: Run, to: Run, asked: str) -> None:
    if asked != own.id:
        raise CoordError(wire.DENIED, "coord.reply: this question was asked of another run", "not-yours")
    if to.workspace != own.workspace:
        raise CoordError(wire.DENIED, "coord.reply: the question came from another workspace", "other-workspace")


def _open_peer(tx: Transaction, own: Run, to: Run, draft: Draft) -> None:
    opened = [row[0] for row in tx.rows("SELECT peer FROM coord_opened WHERE run = ?", own.id)]
    if to.id in opened:
        return
    if len(opened) >= bounds.PEERS_OPENED:
        raise CoordError(
            wire.CONFLICT,
            f"{draft.method}: this run has opened {bounds.PEERS_OPENED} peers, the most it may",
            "peer-cap",
        )
    tx.run("INSERT INTO coord_opened (run, peer) VALUES (?, ?)", own.id, to.id)


def _check_room(tx: Transaction, to: Run, draft: Draft) -> None:
    if unread(tx, to.id) >= bounds.INBOX:
        raise CoordError(
            wire.CONFLICT,
            f"{draft.method}: {bounds.INBOX} messages wait for {to.id}, the most it may have",
            "inbox-full",
        )


def _stored(tx: Transaction, state: State, own: Run, to: Run, draft: Draft) -> str:
    kind = KINDS[draft.method]
    name = f"{_IDS[kind]}-{os.urandom(8).hex()}"
    correlation = draft.target if kind == "reply" else None
    created = state.clock.stamp()
    tx.run(_ADD, name, kind, correlation, own.id, to.id, draft.body, created)
    receipt = "INSERT INTO coord_receipts (run, key, digest, message) VALUES (?, ?, ?, ?)"
    tx.run(receipt, own.id, draft.key, draft.digest, name)
    data = {"from_run_id": own.id, "to_run_id": to.id, "body": draft.body}
    data |= {"correlation_id": correlation} if correlation else {}
    add_event(tx, Event(name, own.workspace, own.id, kind, data, created))
    return name


# ── the inbox ───────────────────────────────────────────────────────────────────────────────────────────────────────


def unread(tx: Transaction, run_id: str) -> int:
    """How many messages ``run_id`` has not acknowledged."""
    row = tx.row("SELECT COUNT(*) FROM coord_messages WHERE to_run = ? AND acked = 0", run_id)
    return int(row[0]) if row else 0


def count_unread(state: State, run_id: str) -> int:
    """As ``unread``, on its own."""
    return state.read(lambda tx: unread(tx, run_id))


def read_inbox(state: State, own: Run, token: str | None) -> dict[str, Any]:
    """Acknowledge the outstanding batch if ``token`` is its own, and give the outstanding or the next one."""
    return state.write("inbox", lambda tx: _read_inbox(tx, own.id, token))


def _read_inbox(tx: Transaction, run_id: str, token: str | None) -> dict[str, Any]:
    check_own(tx, run_id, "coord.inbox")
    row = tx.row("SELECT ack_token, batch_last FROM coord_runs WHERE id = ?", run_id)
    outstanding, last = row or (None, None)
    acked = token is not None and token == outstanding
    if acked:
        tx.run("UPDATE coord_messages SET acked = 1 WHERE to_run = ? AND acked = 0 AND seq <= ?", run_id, last)
        outstanding = None
    messages = tx.rows(_WAITING, run_id, _ALL if outstanding is None else last)
    if outstanding is None and (messages or acked):
        outstanding = f"ack-{os.urandom(12).hex()}" if messages else None
        mark = "UPDATE coord_runs SET ack_token = ?, batch_last = ? WHERE id = ?"
        tx.run(mark, outstanding, messages[-1][0] if messages else None, run_id)
    answer = {"messages": [_message(each) for each in messages], "acked": acked}
    return answer | ({"ack_token": outstanding} if outstanding else {})


def _message(row: tuple[Any, ...]) -> dict[str, Any]:
    _, name, kind, correlation, sender, body, created = row
    facts = {"id": name, "kind": kind} | ({"correlation_id": correlation} if correlation else {})
    return facts | {"from_run_id": sender, "body": body, "created_at": created}
