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

    Box = tuple[int, int, int, int]

_EXACT = 4096  # below so many possible pairs a problem is solved exactly at once
_PIECE = 1 << 17  # more lines than this without an anchor are cut into pieces: time stays linear beyond
_LEVELS = 8  # anchors are looked for in boxes between anchors so often: each time may cost as much as the first


def matched_lines(a: Sequence[int], b: Sequence[int | None], blank: int = 0) -> tuple[list[int], list[int]]:
    """The indices of the lines of `a` and of `b` that belong together, in two lists of one length, both ascending.

    Together they are a common subsequence: a longest one where the two sides are small or hold no unique line, the
    longest between its anchors elsewhere.

    Args:
        a: The lines of one side, every text as a number from 1.
        b: Those of the other; 0 or None is a line that `a` does not hold, and there may be more of these.
        blank: The number of the one text that is no anchor; 0 is none.
    """
    left_b = list(filter(None, b))
    shared = set(left_b)
    in_a = list(map(shared.__contains__, a))
    left_a = list(compress(a, in_a))
    if len(there := set(left_a)) < len(shared):
        b = [line if line in there else 0 for line in b]
        left_b = list(filter(None, b))
    rows, columns = list(compress(range(len(a)), in_a)), list(compress(range(len(b)), b))
    matching = _Matching(left_a, left_b, blank)
    boxes = [(0, len(rows), 0, len(columns))]
    for level in range(_LEVELS + 1):
        for box in boxes:
            matching.fill(box, anchored=level < _LEVELS)
        boxes, matching.todo = matching.todo, []
    matching.rows.sort()
    matching.columns.sort()
    columns.insert(0, 0)
    return list(map(rows.__getitem__, matching.rows)), list(map(columns.__getitem__, matching.columns))


class _Matching:
    """The lines of `a` and (from 1) of `b` that are matched so far, in no order, and the boxes still to be looked at.

    Matched lines never cross, so that to sort both brings together again what belongs together.
    """

    def __init__(self, a: list[int], b: list[int], blank: int) -> None:
        self.a, self.b, self.blank = a, b, blank
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.todo: list[Box] = []

    def fill(self, box: Box, *, anchored: bool) -> None:
        """Match the lines of `a[i0:i1]` and `b[j0:j1]`, or split them at anchors and leave the rest in `todo`."""
        a, b = self.a, self.b
        i0, i1, j0, j1 = box
        while i0 < i1 and j0 < j1 and a[i0] == b[j0]:
            self.rows.append(i0)
            i0, j0 = i0 + 1, j0 + 1
            self.columns.append(j0)
        while i0 < i1 and j0 < j1 and a[i1 - 1] == b[j1 - 1]:
            i1, j1 = i1 - 1, j1 - 1
            self.rows.append(i1)
            self.columns.append(j1 + 1)
        if i0 == i1 or j0 == j1:
            return
        box = i0, i1, j0, j1
        rows, columns = self._anchors(box) if anchored and (i1 - i0) * (j1 - j0) > _EXACT else ([], [])
        if rows:
            self._split(box, rows, columns)
        else:
            self._solve(box)

    def _anchors(self, box: Box) -> tuple[list[int], list[int]]:
        """The longest run, ascending on both sides, of lines that stand once on either side; columns count from 1.

        A line that stands twice in `b` is looked for only where the count of texts says that there is one, and one that
        stands twice in `a` only where places do not ascend: neither is so in most documents, but for blank lines.
        """
        i0, i1, j0, j1 = box
        part_a, part_b = self.a[i0:i1], self.b[j0:j1]
        where = dict(zip(part_b, range(j0 + 1, j1 + 1), strict=True))
        where.pop(self.blank, None)
        if len(where) + part_b.count(self.blank) < len(part_b):
            for line in _repeated(part_b):
                where.pop(line, None)
        rows, columns = _found(where, part_a, i0)
        if not _ascending(columns):
            for line in _repeated(part_a):
                where.pop(line, None)
            rows, columns = _found(where, part_a, i0)
            best = increasing(columns)
            rows, columns = [rows[k] for k in best], [columns[k] for k in best]
        return rows, columns

    def _split(self, box: Box, rows: list[int], columns: list[int]) -> None:
        """Match the anchors `rows` with `columns`, from 1; what lies between them is left in `todo`."""
        i0, i1, j0, j1 = box
        self.rows += rows
        self.columns += columns
        for i, j in zip([*rows, i1], [*columns, j1 + 1], strict=True):
            if i > i0 and j > j0 + 1:
                self.todo.append((i0, i, j0, j - 1))
            i0, j0 = i + 1, j

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
                self.rows.append(top + i)
                self.columns.append(left + j + 1)


def _found(where: dict[int, int], lines: Sequence[int], start: int) -> tuple[list[int], list[int]]:
    """Where the lines stand that the dictionary knows, counted from `start`, and what it says of them."""
    found = list(map(where.get, lines))
    return list(compress(range(start, start + len(lines)), found)), list(filter(None, found))


def _ascending(places: Sequence[int]) -> bool:
    return all(map(lt, places, islice(places, 1, None)))


def _repeated(lines: Sequence[int]) -> set[int]:
    """The lines that stand more than once in `lines`: sorting finds them in half the time of counting."""
    ordered = sorted(lines)
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
