"""Decisions on a SQL database: one transaction that compares both heads, writes the decision and moves the head.

The rules stand in branchrules.py. A decision's row is never changed; an undo is a row of its own. The rows of a
document are a hash chain: ``decision_link`` says what is hashed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from mergepub.documents import digest_of
from mergepub.histories import (
    CHOOSE,
    CONTINUE,
    DEFAULT,
    REBASE,
    REJECT,
    SUPERSEDED,
    UNDO,
    Decision,
    DecisionReceipt,
    DecisionRequest,
    Place,
)
from mergepub.stores import branchrules, refusals
from mergepub.stores.sql import (
    Before,
    Head,
    Made,
    Transaction,
    Write,
    body_of,
    chained,
    head_of,
    put_body,
    put_revision,
    put_version,
    swap_head,
)
from mergepub.stores.sqlbranches import Row, damaged, find_branch
from mergepub.values import dataclass

_DECISION = """SELECT m.number, m.incarnation, m.strategy, m.head_version, h.name, m.head_revision, b.name,
        m.branch_revision, m.result_version, r.name, m.result_revision, m.resolver, m.reason, m.modified, m.approved,
        m.effects, m.undoes, m.states, m.head_branch, m.result_branch, m.branch
    FROM merge_decisions m
    JOIN branches h ON h.id = m.head_branch
    JOIN branches b ON b.id = m.branch
    LEFT JOIN branches r ON r.id = m.result_branch
    WHERE m.path = ?"""

COLUMNS = (
    *("path", "number", "incarnation", "strategy", "head_version", "head_branch", "head_revision", "branch"),
    *("branch_revision", "result_version", "result_branch", "result_revision", "resolver", "reason", "modified"),
    *("approved", "effects", "undoes", "states", "request"),
)
"""What a decision's link covers, in this order."""

_NAMES, _MARKS = ", ".join(COLUMNS), ", ".join("?" * len(COLUMNS))
_INSERT = f"INSERT INTO merge_decisions ({_NAMES}, link) VALUES ({_MARKS}, ?)"  # noqa: S608 - names of ours

LINKED = f"SELECT {_NAMES}, link FROM merge_decisions WHERE path = ? ORDER BY number"  # noqa: S608 - names of ours
"""The decisions of a path, the oldest first: ``COLUMNS`` and the link."""

_CONTINUATION = """INSERT INTO branches (id, incarnation, name, parent, base_revision, base_digest, base_version,
        head_revision, head_digest, state)
    VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)"""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A decision with the ids that its tables use, and the states it changed: branch id -> before, after."""

    decision: Decision
    states: dict[str, list[str]]
    head: str
    result: str | None
    branch: str


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything that one decision works on."""

    tx: Transaction
    path: str
    head: Head
    request: DecisionRequest
    modified: str

    def write(self, body: bytes | None) -> Write:
        """A revision made by the decision."""
        return Write(self.path, body, self.modified, self.request.resolver, self.request.reason)


def decide(tx: Transaction, path: str, request: DecisionRequest, modified: str) -> DecisionReceipt:
    """See ``BranchStore.decide``."""
    head = head_of(tx, path)
    digest = None if request.body is None else digest_of(request.body)
    key = branchrules.request_key(request, head.incarnation, digest)
    known = tx.row(f"{_DECISION} AND m.request = ?", path, key)
    if known:
        return _replayed(_kept(known).decision, head)
    if head.digest is None:
        raise refusals.deleted(path, request.expected_head, head.version)
    case = _Case(tx, path, head, request, modified)
    if request.strategy == UNDO:
        return _undo(case, key)
    branchrules.check_seen(path, request, head.version)
    assert request.seen is not None, "check_request saw to it"
    row = find_branch(tx, path, request.seen.branch)
    branchrules.check_present(path, row.branch, head.incarnation)
    branchrules.check_decidable(path, request, row.branch, Place(head.branch_name, head.revision))
    result = _APPLY[request.strategy](case, row)
    named = branchrules.states_after(request.strategy, row.branch.name, head.branch_name)
    before = {row.branch.name: (row.id, row.branch.state), head.branch_name: (head.branch, DEFAULT)}
    states = {before[name][0]: [before[name][1], after] for name, after in named.items()}
    if request.strategy == CONTINUE and result:
        states[result.branch] = [SUPERSEDED, DEFAULT]  # where an undo puts it
    return _record(case, key, (row.id, row.branch.revision), result, states)


def _replayed(decision: Decision, head: Head) -> DecisionReceipt:
    version = decision.head_version if decision.result_version is None else decision.result_version
    return DecisionReceipt(decision, version, replayed=True, current=None if version == head.version else head.version)


# ── what a decision does ────────────────────────────────────────────────────────────────────────────────────────────


def _choose(case: _Case, row: Row) -> Made:
    found = case.tx.row(
        "SELECT digest, link FROM revisions WHERE branch = ? AND revision = ?", row.id, row.branch.revision
    )
    assert found is not None, "a branch holds its end"
    return _move(case, Made(row.id, row.branch.revision, found[0], found[1]))


def _continue(case: _Case, row: Row) -> Made:
    head = case.head
    parents = f"{head.branch_name}@{head.revision}\n{row.branch.end}"
    return _move(case, _on_new_branch(case, _before(head), head.digest, case.request.body, parents, head.version))


def _rebase(case: _Case, _: Row) -> Made:
    case_body, head = case.request.body, case.head
    assert case_body is not None, "check_request saw to it"
    branchrules.check_extension(case.path, head.kind, _bytes(case, head.digest), case_body)
    write = case.write(case_body)
    put_body(case.tx, write.digest, write.body)
    link = put_revision(case.tx, _before(head), write, parents=f"{head.branch_name}@{head.revision}")
    moved = "UPDATE branches SET head_revision = ?, head_digest = ? WHERE id = ?"
    case.tx.put(moved, head.revision + 1, write.digest, head.branch)
    return _move(case, Made(head.branch, head.revision + 1, write.digest, link))


def _reject(_: _Case, __: Row) -> None:
    return None


_APPLY = {CHOOSE: _choose, CONTINUE: _continue, REBASE: _rebase, REJECT: _reject}


def _move(case: _Case, made: Made) -> Made:
    put_version(case.tx, case.head, case.path, made)
    swap_head(case.tx, case.path, case.head.version + 1, made)
    return made


def _before(head: Head) -> Before:
    return Before(head.branch, head.branch_name, head.revision, head.modified, head.link, head.incarnation, head.kind)


def _bytes(case: _Case, digest: str | None) -> bytes:
    return b"" if digest is None else body_of(case.tx, case.path, digest)


def _on_new_branch(  # noqa: PLR0917 - what a branch starts from, and its first revision
    case: _Case, base: Before, digest: str | None, body: bytes | None, parents: str, base_version: int
) -> Made:
    """The first revision of a new branch off ``base``, which is version ``base_version``."""
    version = case.head.version + 1
    if body is not None:
        branchrules.check_extension(case.path, case.head.kind, _bytes(case, digest), body)
    write = case.write(body)
    branch, name = os.urandom(8).hex(), branchrules.continuation_name(version, case.request.strategy)
    put_body(case.tx, write.digest, write.body)
    facts = (base.branch, base.revision, digest, base_version, write.digest, DEFAULT)
    case.tx.put(_CONTINUATION, branch, base.incarnation, name, *facts)
    on = Before(branch, name, 0, base.modified, base.link, base.incarnation, base.kind)
    return Made(branch, 1, write.digest, put_revision(case.tx, on, write, parents=parents))


# ── undoing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _undo(case: _Case, key: str) -> DecisionReceipt:
    branchrules.check_seen(case.path, case.request, case.head.version)
    number = case.request.undoes
    row = case.tx.row(f"{_DECISION} AND m.number = ?", case.path, number)
    if row is None:
        raise branchrules.no_decision(case.path, number or 0)
    kept = _kept(row)
    if not _stands(case, kept):
        raise branchrules.not_undoable(case.path, kept.decision.number, case.head.version)
    states = {branch: [after, before] for branch, (before, after) in kept.states.items()}
    result = None if kept.decision.result_version is None else _back(case, kept, states)
    return _record(case, key, (kept.branch, kept.decision.branch.revision), result, states)


def _stands(case: _Case, kept: _Kept) -> bool:
    """Whether the decision's result is the head still; of one that left the head alone, whether its state stands."""
    if kept.decision.incarnation != case.head.incarnation:
        return False
    if kept.decision.result_version is not None:
        return kept.decision.result_version == case.head.version
    present = {branch: _state(case, branch) for branch in kept.states}
    return present == {branch: after for branch, (_, after) in kept.states.items()}


def _state(case: _Case, branch: str) -> str:
    row = case.tx.row("SELECT state FROM branches WHERE id = ?", branch)
    assert row is not None, "a decision names branches that are there"
    return str(row[0])


def _back(case: _Case, kept: _Kept, states: dict[str, list[str]]) -> Made:
    """The head as it was before the decision: its revision again, or its bytes on a branch where that one grew on."""
    former = kept.decision.head
    row = case.tx.row(
        """SELECT r.digest, r.link, r.modified, b.head_revision FROM revisions r JOIN branches b ON b.id = r.branch
        WHERE r.branch = ? AND r.revision = ?""",
        *(kept.head, former.revision),
    )
    assert row is not None, "no revision is ever removed"
    digest, link, modified, end = row
    if end == former.revision:
        return _move(case, Made(kept.head, former.revision, digest, link))
    base = Before(kept.head, former.branch, former.revision, modified, link, case.head.incarnation, case.head.kind)
    version = kept.decision.head_version
    made = _on_new_branch(case, base, digest, _bytes(case, digest), str(former), version)
    states[kept.head] = [DEFAULT, SUPERSEDED]
    states[made.branch] = [SUPERSEDED, DEFAULT]
    return _move(case, made)


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _record(
    case: _Case, key: str, seen: tuple[str, int], result: Made | None, states: dict[str, list[str]]
) -> DecisionReceipt:
    tx, path, head, request = case.tx, case.path, case.head, case.request
    for each, (_, after) in states.items():
        tx.put("UPDATE branches SET state = ? WHERE id = ?", after, each)
    last = tx.row(
        "SELECT number, link, modified FROM merge_decisions WHERE path = ? ORDER BY number DESC LIMIT 1", path
    )
    number, previous, before = (last[0] + 1, *last[1:]) if last else (1, "", "")
    modified = max(case.modified, before)  # a clock set back never puts a decision before an earlier one
    made = (head.version + 1, result.branch, result.revision) if result else (None, None, None)
    values = (
        *(path, number, head.incarnation, request.strategy, head.version, head.branch, head.revision),
        *(*seen, *made, request.resolver, request.reason, modified),
        *(json.dumps(list(request.approved)), int(request.effects), request.undoes, json.dumps(states), key),
    )
    tx.put(_INSERT, *values, decision_link(previous, values))
    row = tx.row(f"{_DECISION} AND m.number = ?", path, number)
    assert row is not None, "it was written just now"
    return DecisionReceipt(_kept(row).decision, head.version if result is None else head.version + 1)


def decision_link(previous: str, values: Sequence[object]) -> str:
    """The chain value of a decision: SHA-256 in hex over ``previous``, the link of the one before it, and its columns.

    Each as a netstring, in the order of ``COLUMNS``; numbers in decimal, what a decision has not is empty.
    """
    return chained("mergepub decision 1", previous, *("" if value is None else str(value) for value in values))


def link_all(tx: Transaction) -> None:
    """Link the decisions of a store in which there were no links yet."""
    for (path,) in tx.rows("SELECT DISTINCT path FROM merge_decisions"):
        link = ""
        for *values, _ in tx.rows(LINKED, path):
            link = decision_link(link, values)
            tx.put("UPDATE merge_decisions SET link = ? WHERE path = ? AND number = ?", link, path, values[1])


def _kept(row: tuple[Any, ...]) -> _Kept:
    number, incarnation, strategy, head_version, head, head_revision, branch, branch_revision = row[:8]
    version, result, result_revision, resolver, reason, modified, approved, effects, undoes = row[8:17]
    states, head_id, result_id, branch_id = row[17:]
    decision = Decision(
        number,
        incarnation,
        strategy,
        head_version,
        Place(head, head_revision),
        Place(branch, branch_revision),
        version,
        None if result is None else Place(result, result_revision),
        resolver,
        reason,
        modified,
        tuple(_loaded(approved, list, "what a decision approved")),
        bool(effects),
        undoes,
    )
    changed = _loaded(states, dict, "what a decision did to branches")
    return _Kept(decision, changed, head_id, result_id, branch_id)


def _loaded(text: str, kind: type, what: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise damaged(what)
    return value


def decisions(tx: Transaction, path: str, before: int | None, limit: int | None) -> list[Decision]:
    """The audit history, newest first."""
    head_of(tx, path)
    most = 2**62
    rows = tx.rows(
        f"{_DECISION} AND m.number < ? ORDER BY m.number DESC LIMIT ?",
        *(path, most if before is None else before, most if limit is None else limit),
    )
    return [_kept(row).decision for row in rows]
