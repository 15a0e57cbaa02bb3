"""Checking branches and decisions of a SQL store: the chain of decisions, what they name, what they explain.

A decision's own link vouches for its row. Beyond that, every change of a branch's state and every version that does not
follow on the one before has to be explained by a decision: so one that was taken out is missed, the newest one too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mergepub.histories import ABANDONED, DEFAULT, MAIN, OPEN, REJECTED
from mergepub.stores.sqldecisions import COLUMNS, LINKED, decision_link

if TYPE_CHECKING:
    from mergepub.stores.sql import Transaction
    from mergepub.stores.sqlverify import Revisions

Row = tuple[Any, ...]
Versions = dict[int, tuple[str, int]]
"""Which revision, by branch id and number, a version refers to."""

_BRANCHES = """SELECT b.id, b.name, b.parent, b.base_revision, b.base_digest, b.base_version, b.state
    FROM documents d JOIN branches b ON b.incarnation = d.incarnation WHERE d.path = ?
    ORDER BY d.first_version, b.id"""

# What may become of a branch without a decision: somebody gives it up, or stands for it again.
_BY_ITSELF = {OPEN: {OPEN, ABANDONED}, REJECTED: {REJECTED, OPEN, ABANDONED}}


def faults(tx: Transaction, path: str, versions: Versions, revisions: Revisions) -> Iterator[str]:
    """What is wrong with the branches and decisions of ``path``, one sentence each."""
    decisions = [dict(zip((*COLUMNS, "link"), row, strict=True)) for row in tx.rows(LINKED, path)]
    branches = tx.rows(_BRANCHES, path)
    yield from _chain(decisions)
    for decision in decisions:
        yield from _named(decision, versions, revisions)
    yield from _jumps(decisions, versions, revisions)
    yield from _states(decisions, branches)
    for branch in branches:
        yield from _base(branch, versions, revisions)


def _chain(decisions: list[dict[str, Any]]) -> Iterator[str]:
    link = ""
    for expected, decision in enumerate(decisions, start=1):
        number = decision["number"]
        if number != expected:
            yield f"decision {expected} is missing, {number} is there in its place"
            return
        if decision["link"] != decision_link(link, [decision[column] for column in COLUMNS]):
            yield f"decision {number} was changed: its link does not fit its facts and the decision before"
        link = decision["link"]


def _named(decision: dict[str, Any], versions: Versions, revisions: Revisions) -> Iterator[str]:
    """Both heads and the result that a decision names are there, and are what it says."""
    number = decision["number"]
    for version, branch, revision in (
        (decision["head_version"], decision["head_branch"], decision["head_revision"]),
        (decision["result_version"], decision["result_branch"], decision["result_revision"]),
    ):
        if version is not None and versions.get(version) != (branch, revision):
            yield f"decision {number} names another revision for version {version} than that version does"
    if (decision["branch"], decision["branch_revision"]) not in revisions:
        yield f"decision {number} is about a revision that is missing"


def _jumps(decisions: list[dict[str, Any]], versions: Versions, revisions: Revisions) -> Iterator[str]:
    """A version goes on where the one before ended, begins a life, or was decided."""
    decided = {decision["result_version"] for decision in decisions}
    for number, place in versions.items():
        before, here = versions.get(number - 1), revisions.get(place)
        if before is None or here is None or number in decided or here.first_version == number:
            continue
        if place != (before[0], before[1] + 1):
            yield f"version {number} does not follow on version {number - 1}, and no decision says why"


def _states(decisions: list[dict[str, Any]], branches: list[Row]) -> Iterator[str]:
    """Every branch is in the state in which the last decision about it left it, or in one that needs no decision."""
    wanted = {branch: DEFAULT if name == MAIN else OPEN for branch, name, *_ in branches}
    for decision in decisions:
        wanted |= {branch: after for branch, (_, after) in _changes(decision).items()}
    for branch, name, *_, state in branches:
        if state not in _BY_ITSELF.get(wanted[branch], {wanted[branch]}):
            yield f"the branch {name} is {state}, its decisions make it {wanted[branch]}"


def _changes(decision: dict[str, Any]) -> dict[str, list[str]]:
    try:
        changes: dict[str, list[str]] = json.loads(decision["states"])
        return {branch: [before, after] for branch, (before, after) in changes.items()}
    except (ValueError, TypeError, AttributeError):
        return {}  # its link does not fit either


def _base(branch: Row, versions: Versions, revisions: Revisions) -> Iterator[str]:
    """A branch names what it was made from: an end of its first revision, or the emptiness before all."""
    own, name, parent, revision, digest, version, _ = branch
    first = revisions.get((own, 1))
    if parent is None or first is None:
        if parent is not None or revision or digest is not None or version:
            yield f"the branch {name} names a base that it cannot have"
        return
    base = revisions.get((parent, revision))
    if revision and (base is None or base.digest != digest or base.name not in first.parents.split("\n")):
        yield f"the branch {name} names another base than its first revision was made from"
    elif not revision and (first.parents or digest is not None or version):
        yield f"the branch {name} names a base, and its first revision was made from nothing"
    elif revision and versions.get(version) != (parent, revision):
        yield f"the branch {name} says that it was made from version {version}, which is another revision"
