"""Matching two sequences of lines: unique lines first, exact subsequences between them.

A line that stands exactly once on either side says more about where text went than any count of equal lines can, so the
longest increasing run of such lines (Bram Cohen's patience) splits a large problem; what lies between two anchors is
solved in the same way, and exactly where it is small or holds no anchor.
"""

from __future__ import annotations

from _collections import _count_elements  # type: ignore[import-not-found]  # Counter's own loop, without its import
from bisect import bisect_left

from mergepub.merge.lcs import common_pairs
from mergepub.merge.weak import is_weak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Run = tuple[int, int, int]

_EXACT = 4096  # below so many possible pairs a problem is solved exactly at once
_PIECE = 1 << 17  # more lines than this without an anchor are cut into pieces: time stays linear beyond


def matching_runs(a: Sequence[bytes], b: Sequence[bytes]) -> list[Run]:
    """Runs `(i, j, n)` of equal lines, ascending on both sides, adjacent runs joined: a common subsequence.

    The longest one between its anchors; unique lines that are not weak are anchors where the two sides are not small.
    """
    pairs: list[Run] = []
    todo = [(0, len(a), 0, len(b))]
    while todo:
        i0, i1, j0, j1 = todo.pop()
        while i0 < i1 and j0 < j1 and a[i0] == b[j0]:
            pairs.append((i0, j0, 1))
            i0, j0 = i0 + 1, j0 + 1
        while i0 < i1 and j0 < j1 and a[i1 - 1] == b[j1 - 1]:
            i1, j1 = i1 - 1, j1 - 1
            pairs.append((i1, j1, 1))
        if i0 < i1 and j0 < j1:
            _solve(a, b, (i0, i1, j0, j1), todo, pairs)
    pairs.sort()
    return _joined(pairs)


def _solve(
    a: Sequence[bytes],
    b: Sequence[bytes],
    box: tuple[int, int, int, int],
    todo: list[tuple[int, int, int, int]],
    pairs: list[Run],
) -> None:
    """Match the lines of one box, or split it at anchors and leave the boxes between them in `todo`."""
    i0, i1, j0, j1 = box
    counts_a: dict[bytes, int] = {}
    counts_b: dict[bytes, int] = {}
    part_a, part_b = a[i0:i1], b[j0:j1]
    _count_elements(counts_a, part_a)
    _count_elements(counts_b, part_b)
    rows = [i for i, line in enumerate(part_a, i0) if line in counts_b]
    if not rows:
        return
    columns = [j for j, line in enumerate(part_b, j0) if line in counts_a]
    if len(rows) * len(columns) > _EXACT:
        where = dict(zip(part_b, range(j0, j1), strict=True))
        points = [(i, where[a[i]]) for i in rows if counts_a[a[i]] == 1 and counts_b[a[i]] == 1 and not is_weak(a[i])]
        if points:
            _split(box, increasing(points), todo, pairs)
            return
    for top in range(0, max(len(rows), len(columns)), _PIECE):
        some, others = rows, columns
        if max(len(rows), len(columns)) > _PIECE:
            some, others = _slice(rows, columns, top)
        found = common_pairs([a[i] for i in some], [b[j] for j in others])
        pairs += [(some[r], others[c], 1) for r, c in found]


def _slice(rows: list[int], columns: list[int], top: int) -> tuple[list[int], list[int]]:
    """The piece of both lists that begins at `top` of the longer one, the shorter cut in proportion."""
    size = max(len(rows), len(columns))
    end = min(size, top + _PIECE)
    return (
        rows[len(rows) * top // size : len(rows) * end // size],
        columns[len(columns) * top // size : len(columns) * end // size],
    )


def _split(
    box: tuple[int, int, int, int],
    points: Iterable[tuple[int, int]],
    todo: list[tuple[int, int, int, int]],
    pairs: list[Run],
) -> None:
    """Take the anchors `points` as matched and leave what lies between them in `todo`."""
    i0, i1, j0, j1 = box
    for i, j in points:
        if i > i0 and j > j0:
            todo.append((i0, i, j0, j))
        pairs.append((i, j, 1))
        i0, j0 = i + 1, j + 1
    if i0 < i1 and j0 < j1:
        todo.append((i0, i1, j0, j1))


def increasing(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of `points` (ascending in the first, distinct in the second number) that ascends in both."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for k, (_, j) in enumerate(points):
        n = len(ends) if not ends or j > ends[-1] else bisect_left(ends, j)
        before.append(last[n - 1] if n else -1)
        if n == len(ends):
            ends.append(j)
            last.append(k)
        else:
            ends[n] = j
            last[n] = k
    chosen: list[tuple[int, int]] = []
    k = last[-1] if last else -1
    while k >= 0:
        chosen.append(points[k])
        k = before[k]
    chosen.reverse()
    return chosen


def _joined(pairs: Iterable[Run]) -> list[Run]:
    """Ascending single matches as maximal runs."""
    runs: list[Run] = []
    i0 = j0 = n = 0
    for i, j, _ in pairs:
        if i == i0 + n and j == j0 + n:
            n += 1
            continue
        if n:
            runs.append((i0, j0, n))
        i0, j0, n = i, j, 1
    if n:
        runs.append((i0, j0, n))
    return runs
