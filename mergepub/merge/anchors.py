"""Matching two sequences of lines: unique lines first, exact subsequences between them.

Lines that the other side lacks are dropped before anything else; no common subsequence holds them. A line that stands
exactly once on either side says more about where text went than any count of equal lines can, so the longest increasing
run of such lines (Bram Cohen's patience) splits a large problem; what lies between two anchors is solved in the same
way, and exactly where it is small or holds no anchor.
"""

from __future__ import annotations

from _operator import eq, lt
from itertools import compress, islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mergepub.merge.lcs import Line

    Box = tuple[int, int, int, int]

_EXACT = 4096  # below so many possible pairs a problem is solved exactly at once
_PIECE = 1 << 17  # more lines than this without an anchor are cut into pieces: time stays linear beyond
_LEVELS = 8  # anchors are looked for in boxes between anchors so often: each time may cost as much as the first


def matched_lines(a: Sequence[Line], b: Sequence[Line], blank: Line | None = b"") -> tuple[list[int], list[int]]:
    """The indices of the lines of `a` and of `b` that belong together, in two lists of one length, both ascending.

    Together they are a common subsequence: a longest one where the two sides are small or hold no unique line, the
    longest between its anchors elsewhere. A line is its text, or a number that stands for it; `blank` is the one that
    is no anchor.
    """
    shared = set(b).intersection(a)
    in_a, in_b = list(map(shared.__contains__, a)), list(map(shared.__contains__, b))
    rows, columns = list(compress(range(len(a)), in_a)), list(compress(range(len(b)), in_b))
    matching = _Matching(list(compress(a, in_a)), list(compress(b, in_b)), blank)
    boxes = [(0, len(rows), 0, len(columns))]
    for level in range(_LEVELS + 1):
        for box in boxes:
            matching.fill(box, anchored=level < _LEVELS)
        boxes, matching.todo = matching.todo, []
    partners = matching.partners
    columns.insert(0, -1)
    return list(compress(rows, partners)), list(map(columns.__getitem__, filter(None, partners)))


class _Matching:
    """Which line of `b`, from 1, every line of `a` is matched with (0: none), and the boxes still to be looked at."""

    def __init__(self, a: list[Line], b: list[Line], blank: Line | None) -> None:
        self.a, self.b, self.blank = a, b, blank
        self.partners = [0] * len(a)
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
            i0, j0 = i0 + 1, j0 + 1
            partners[i0 - 1] = j0
        while i0 < i1 and j0 < j1 and a[i1 - 1] == b[j1 - 1]:
            i1, j1 = i1 - 1, j1 - 1
            partners[i1] = j1 + 1
        return i0, i1, j0, j1

    def _anchors(self, box: Box) -> tuple[list[int], list[int]]:
        """The longest run, ascending on both sides, of lines that stand once on either side; columns count from 1."""
        i0, i1, j0, j1 = box
        part_a, part_b = self.a[i0:i1], self.b[j0:j1]
        where = dict(zip(part_b, range(j0 + 1, j1 + 1), strict=True))
        for line in (self.blank, *_repeated(part_a), *_repeated(part_b)):
            where.pop(line, None)
        found = list(map(where.get, part_a))
        rows, columns = list(compress(range(i0, i1), found)), list(filter(None, found))
        if not all(map(lt, columns, islice(columns, 1, None))):
            best = increasing(columns)
            rows, columns = [rows[k] for k in best], [columns[k] for k in best]
        return rows, columns

    def _split(self, box: Box, rows: list[int], columns: list[int]) -> None:
        """Match the anchors `rows` with `columns`, from 1; what lies between them is left in `todo`."""
        i0, i1, j0, j1 = box
        partners = self.partners
        for i, j in zip(rows, columns, strict=True):
            if i > i0 and j > j0 + 1:
                self.todo.append((i0, i, j0, j - 1))
            partners[i] = j0 = j
            i0 = i + 1
        if i0 < i1 and j0 < j1:
            self.todo.append((i0, i1, j0, j1))

    def _solve(self, box: Box) -> None:
        """Match the longest common subsequence of the box, piece by piece where it is huge."""
        from mergepub.merge.lcs import common_pairs  # noqa: PLC0415 - what is left between anchors is often nothing

        i0, i1, j0, j1 = box
        rows, columns = i1 - i0, j1 - j0
        pieces = (max(rows, columns) + _PIECE - 1) // _PIECE
        for n in range(pieces):
            top, left = i0 + rows * n // pieces, j0 + columns * n // pieces
            lines_a = self.a[top : i0 + rows * (n + 1) // pieces]
            for i, j in common_pairs(lines_a, self.b[left : j0 + columns * (n + 1) // pieces]):
                self.partners[top + i] = left + j + 1


def _repeated(lines: Sequence[Line]) -> set[Line]:
    """The lines that stand more than once in `lines`: sorting finds them in half the time of counting."""
    ordered = sorted(lines)  # type: ignore[type-var]  # texts alone or numbers alone
    return set(compress(ordered, map(eq, ordered, islice(ordered, 1, None))))


def increasing(places: Sequence[int]) -> list[int]:
    """The indices of the longest ascending run of `places`, which are distinct."""
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

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
