"""Matching two sequences of lines: unique lines first, exact subsequences between them.

Lines that the other side lacks are dropped before anything else; no common subsequence holds them. A line that stands
exactly once on either side says more about where text went than any count of equal lines can, so the longest increasing
run of such lines (Bram Cohen's patience) splits a large problem; what lies between two anchors is solved in the same
way, and exactly where it is small or holds no anchor.
"""

from __future__ import annotations

from _bisect import bisect_left
from _collections import _count_elements  # type: ignore[import-not-found]  # Counter's own loop, without its import
from itertools import compress

from mergepub.merge.lcs import common_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Box = tuple[int, int, int, int]

_EXACT = 4096  # below so many possible pairs a problem is solved exactly at once
_PIECE = 1 << 17  # more lines than this without an anchor are cut into pieces: time stays linear beyond
_LEVELS = 8  # anchors are looked for in boxes between anchors so often: each time may cost as much as the first


def matched_lines(a: Sequence[bytes], b: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """The indices of the lines of `a` and of `b` that belong together, in two lists of one length, both ascending.

    Together they are a common subsequence: a longest one where the two sides are small or hold no unique line, the
    longest between its anchors elsewhere.
    """
    shared = set(a).intersection(b)
    rows = list(compress(range(len(a)), map(shared.__contains__, a)))
    columns = list(compress(range(len(b)), map(shared.__contains__, b)))
    matching = _Matching([a[i] for i in rows], [b[j] for j in columns])
    boxes = [(0, len(rows), 0, len(columns))]
    for level in range(_LEVELS + 1):
        for box in boxes:
            matching.fill(box, anchored=level < _LEVELS)
        boxes, matching.todo = matching.todo, []
    partners = matching.partners
    return [i for i, j in zip(rows, partners, strict=True) if j >= 0], [columns[j] for j in partners if j >= 0]


class _Matching:
    """Which line of `b` every line of `a` is matched with (-1: none), and the boxes that are still to be looked at."""

    def __init__(self, a: list[bytes], b: list[bytes]) -> None:
        self.a, self.b = a, b
        self.partners = [-1] * len(a)
        self.todo: list[Box] = []

    def fill(self, box: Box, *, anchored: bool) -> None:
        """Match the lines of `a[i0:i1]` and `b[j0:j1]`, or split them at anchors and leave the rest in `todo`."""
        box = i0, i1, j0, j1 = self._trim(box)
        if i0 == i1 or j0 == j1:
            return
        rows, columns = self._anchors(box) if anchored and (i1 - i0) * (j1 - j0) > _EXACT else ([], [])
        if rows:
            self._split(box, rows, columns)
        else:
            self._solve(box)

    def _trim(self, box: Box) -> Box:
        """Match equal lines at both ends of the box."""
        i0, i1, j0, j1 = box
        a, b, partners = self.a, self.b, self.partners
        while i0 < i1 and j0 < j1 and a[i0] == b[j0]:
            partners[i0] = j0
            i0, j0 = i0 + 1, j0 + 1
        while i0 < i1 and j0 < j1 and a[i1 - 1] == b[j1 - 1]:
            i1, j1 = i1 - 1, j1 - 1
            partners[i1] = j1
        return i0, i1, j0, j1

    def _anchors(self, box: Box) -> tuple[list[int], list[int]]:
        """The places of the longest run, ascending on both sides, of lines that stand once on either side."""
        i0, i1, j0, j1 = box
        part_a, part_b = self.a[i0:i1], self.b[j0:j1]
        unique = _once(part_a).intersection(_once(part_b))
        unique.discard(b"")
        in_a, in_b = list(map(unique.__contains__, part_a)), list(map(unique.__contains__, part_b))
        rows, columns = list(compress(range(i0, i1), in_a)), list(compress(range(j0, j1), in_b))
        lines_a, lines_b = list(compress(part_a, in_a)), list(compress(part_b, in_b))
        if lines_a != lines_b:
            where = dict(zip(lines_b, columns, strict=True))
            columns = [where[line] for line in lines_a]
            best = increasing(columns)
            rows, columns = [rows[k] for k in best], [columns[k] for k in best]
        return rows, columns

    def _split(self, box: Box, rows: list[int], columns: list[int]) -> None:
        """Match the anchors `rows` with `columns`; what lies between them is left in `todo`."""
        i0, i1, j0, j1 = box
        for i, j in zip(rows, columns, strict=True):
            if i > i0 and j > j0:
                self.todo.append((i0, i, j0, j))
            self.partners[i] = j
            i0, j0 = i + 1, j + 1
        if i0 < i1 and j0 < j1:
            self.todo.append((i0, i1, j0, j1))

    def _solve(self, box: Box) -> None:
        """Match the longest common subsequence of the box, piece by piece where it is huge."""
        i0, i1, j0, j1 = box
        rows, columns = i1 - i0, j1 - j0
        pieces = (max(rows, columns) + _PIECE - 1) // _PIECE
        for n in range(pieces):
            top, left = i0 + rows * n // pieces, j0 + columns * n // pieces
            lines_a = self.a[top : i0 + rows * (n + 1) // pieces]
            for i, j in common_pairs(lines_a, self.b[left : j0 + columns * (n + 1) // pieces]):
                self.partners[top + i] = left + j


def _once(lines: Sequence[bytes]) -> set[bytes]:
    """The lines that stand once in `lines`."""
    counts: dict[bytes, int] = {}
    _count_elements(counts, lines)
    return {line for line, n in counts.items() if n == 1}


def increasing(places: Sequence[int]) -> list[int]:
    """The indices of the longest ascending run of `places`, which are distinct."""
    ends: list[int] = []  # ends[n]: the smallest place at which a run of n + 1 ends
    last: list[int] = []  # the index of that place
    before: list[int] = []  # for every index: the one before it in its run
    top = -1
    for k, place in enumerate(places):
        if place > top:
            before.append(last[-1] if last else -1)
            ends.append(place)
            last.append(k)
        else:
            n = bisect_left(ends, place)
            before.append(last[n - 1] if n else -1)
            ends[n] = place
            last[n] = k
        top = ends[-1]
    run: list[int] = []
    k = last[-1] if last else -1
    while k >= 0:
        run.append(k)
        k = before[k]
    run.reverse()
    return run
