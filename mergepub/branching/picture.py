"""The picture of a document's history: versions, branches and decisions as a graph of lines, the newest first. Pure.

A node is one revision that is a version, or a run of revisions of a branch that are none. Every node stands above what
it was made from; each has a lane of its own until its lane meets another's.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mergepub.histories import MAIN, Place

if TYPE_CHECKING:
    from mergepub.documents import Revision
    from mergepub.histories import Branch, Decision

Key = tuple[str, Place]
"""Incarnation and (last) revision of a node."""


@dataclass(slots=True)
class Node:
    """``rank`` orders what nothing else orders: the newest version that the node is, or its branch's base."""

    key: Key
    parents: list[Key]
    label: str
    rank: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the picture: the lanes, and the label where a node stands in it."""

    lanes: str
    label: str = ""


def picture(versions: Sequence[Revision], branches: Sequence[Branch], decisions: Sequence[Decision]) -> Iterator[Line]:
    """The lines of the picture, the newest first."""
    return _drawn(_ordered(_nodes(versions, branches, decisions)))


# ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def places_of(versions: Sequence[Revision], decisions: Sequence[Decision]) -> dict[int, Key]:
    """Which revision every version refers to: a decision says it, any other change extends the one before."""
    said = {row.result_version: row.result for row in decisions}
    found: dict[int, Key] = {}
    life, place = "", Place(MAIN, 0)
    for row in sorted(versions, key=lambda row: row.version):
        if row.incarnation != life:
            life, place = row.incarnation, Place(MAIN, 0)
        place = said.get(row.version) or Place(place.branch, place.revision + 1)
        found[row.version] = (life, place)
    return found


@dataclass(slots=True)
class _Marks:
    """What is known of the revisions of a document by their key."""

    labels: dict[Key, list[str]] = field(default_factory=dict)
    ranks: dict[Key, float] = field(default_factory=dict)


def _nodes(versions: Sequence[Revision], branches: Sequence[Branch], decisions: Sequence[Decision]) -> dict[Key, Node]:
    marks = _Marks()
    by_result = {row.result_version: row for row in decisions}
    rows = {row.version: row for row in versions}
    for number, key in places_of(versions, decisions).items():
        marks.labels.setdefault(key, []).append(_version_label(rows[number], by_result.get(number)))
        marks.ranks[key] = number
    pointed = {(branch.incarnation, origin) for branch in branches for origin in branch.origins}
    nodes: dict[Key, Node] = {}
    for branch in branches:
        nodes |= _branch_nodes(branch, marks, pointed)
    return nodes


def _branch_nodes(branch: Branch, marks: _Marks, pointed: set[Key]) -> dict[Key, Node]:
    nodes: dict[Key, Node] = {}
    below = [(branch.incarnation, origin) for origin in branch.origins]
    first = 1
    for number in range(1, branch.revision + 1):
        place = Place(branch.name, number)
        key = (branch.incarnation, place)
        following = (branch.incarnation, Place(branch.name, number + 1))
        if not (key in marks.labels or key in pointed or number == branch.revision or following in marks.labels):
            continue  # a run goes on
        name = f"{place}" if first == number else f"{branch.name}@{first}..{number}"
        said = [*reversed(marks.labels.get(key, [])), *([branch.state] if number == branch.revision else [])]
        rank = marks.ranks.get(key, branch.base_version + 0.5)
        nodes[key] = Node(key, below, f"{name}  {'; '.join(said)}", rank)
        below, first = [key], number + 1
    return nodes


def _version_label(row: Revision, decision: Decision | None) -> str:
    words = [f"v{row.version}", row.author or "-"]
    if row.deleted:
        words.append("deleted")
    if decision is not None:
        what = decision.strategy if decision.undoes is None else f"undo of {decision.undoes}"
        words = [f"v{row.version}", f"(decision {decision.number}: {what} by {decision.resolver or '-'})"]
    if row.message and decision is None:
        words.append(row.message)
    return " ".join(words)


def _ordered(nodes: dict[Key, Node]) -> list[Node]:
    """Every node before what it was made from; of those that could come next, the newest."""
    children = dict.fromkeys(nodes, 0)
    for node in nodes.values():
        for parent in node.parents:
            children[parent] += 1
    ready = [(-node.rank, key) for key, node in nodes.items() if not children[key]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = nodes[heapq.heappop(ready)[1]]
        ordered.append(node)
        for parent in node.parents:
            children[parent] -= 1
            if not children[parent]:
                heapq.heappush(ready, (-nodes[parent].rank, parent))
    return ordered


# ── lanes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _drawn(ordered: list[Node]) -> Iterator[Line]:
    lanes: list[Key] = []  # what each lane leads down to
    for node in ordered:
        if node.key not in lanes:
            lanes.append(node.key)
        yield from _joined(lanes, node.key)
        at = lanes.index(node.key)
        yield Line(" ".join("*" if i == at else "|" for i in range(len(lanes))), node.label)
        lanes[at : at + 1] = node.parents
        if len(node.parents) > 1:
            yield Line(_widened(at, len(lanes)))
        elif not node.parents and at < len(lanes):
            yield Line(_narrowed(at, len(lanes) + 1))


def _joined(lanes: list[Key], key: Key) -> Iterator[Line]:
    """Lanes that lead to the same node meet above it."""
    first = lanes.index(key)
    while lanes.count(key) > 1:
        last = len(lanes) - 1 - lanes[::-1].index(key)
        marks = ["|"] * last + ["/"] + ["/"] * (len(lanes) - last - 1)
        if last - first > 1:
            marks[first + 1 : last] = ["|"] * (last - first - 1)
        yield Line(_slanted(marks, last))
        del lanes[last]


def _slanted(marks: list[str], last: int) -> str:
    """The lanes from ``last`` on lean to the left by one."""
    return " ".join(marks[:last]) + "".join(f"{mark} " for mark in marks[last:]).rstrip()


def _widened(at: int, width: int) -> str:
    """The lane after ``at`` begins; those after it lean to the right by one."""
    return " ".join(["|"] * (at + 1)) + "".join("\\ " for _ in range(width - at - 1)).rstrip()


def _narrowed(at: int, width: int) -> str:
    """The lane ``at`` has ended; those after it lean to the left by one."""
    return " ".join(["|"] * at) + (" " if at else "") + " " + "".join("/ " for _ in range(width - at - 1)).rstrip()
