"""Myers' walk straight on the bytes of two bodies; lines are found where they are needed and nowhere else.

A point of the walk is a pair of byte offsets at line boundaries. On one diagonal more lines are more bytes, so the
furthest point is known without line numbers; deleting a line is one `find`, a snake one gallop of `memcmp`.
"""

from __future__ import annotations

from mergepub.merge.spans import common_prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    Hunk = tuple[int, int, int, int]
    Level = tuple[list[int], list[int], list[int], list[int], list[int]]

COMMIT = 1024  # a snake of so many bytes settles what stands before it
_DEEPEST = 10  # edits between two settled points; where more are needed, lines are split and matched instead


def snake(a: bytes, i: int, b: bytes, view_b: memoryview, j: int) -> int:
    """The bytes of whole equal lines from `a[i:]` and `b[j:]` on; an unterminated line equals only another such."""
    rest_a, rest_b = len(a) - i, len(b) - j
    n = common_prefix(a, i, view_b, j, rest_a if rest_a < rest_b else rest_b)
    if n == rest_a == rest_b:
        return n
    return max(0, a.rfind(b"\n", i, i + n) + 1 - i)


def one_line(a: bytes, i: int, b: bytes, view_b: memoryview, j: int) -> tuple[int, int, int] | None:
    """The commonest edit: one line deleted, inserted or replaced at `(i, j)`, followed by a long snake.

    Returns:
        the point after the edit and the length of the snake that starts there, or None.
    """
    below_a, below_b = a.find(b"\n", i) + 1, b.find(b"\n", j) + 1
    if not below_a or not below_b:
        return None
    for p, q in ((below_a, j), (i, below_b), (below_a, below_b)):
        if len(b) - q > COMMIT and a.startswith(view_b[q : q + COMMIT], p):
            n = snake(a, p, b, view_b, q)
            if n >= COMMIT:
                return p, q, n
    return None


def search(a: bytes, b: bytes, view_b: memoryview, i: int, j: int) -> tuple[list[Hunk], int, int] | None:
    """Myers' greedy search from `(i, j)`, where the lines differ, to the nearest long snake or the end of both.

    Returns:
        the hunks up to that snake, shortest in number of lines, and the point where the snake ends; None where more
        than a few edits are needed.
    """
    size_a, size_b = len(a), len(b)
    # A level holds, for every diagonal: the furthest point, the point before its snake, and the diagonal it came from.
    xs, ys = [i], [j]
    levels: list[Level] = []
    for depth in range(1, _DEEPEST + 1):
        level: Level = ([], [], [], [], [])
        best, longest = -1, COMMIT - 1
        for k in range(depth + 1):
            x = y = origin = -1
            if k < depth and -1 < xs[k] < size_a:
                x, y, origin = a.find(b"\n", xs[k]) + 1 or size_a, ys[k], k
            if k and xs[k - 1] > x and ys[k - 1] < size_b:
                x, y, origin = xs[k - 1], b.find(b"\n", ys[k - 1]) + 1 or size_b, k - 1
            n = 0
            if -1 < x < size_a and y < size_b and a[x] == b[y]:
                n = snake(a, x, b, view_b, y)
            if n > longest:
                best, longest = k, n
            if x + n == size_a and y + n == size_b:
                best, longest = k, size_a + size_b
            for column, value in zip(level, (x + n, y + n, x, y, origin), strict=True):
                column.append(value)
        levels.append(level)
        xs, ys = level[0], level[1]
        if best >= 0:
            return _path(levels, best, i, j), xs[best], ys[best]
    return None


def _path(levels: list[Level], k: int, i: int, j: int) -> list[Hunk]:
    """The edits that lead from `(i, j)` to diagonal `k` of the last level, touching ones joined."""
    hunks: list[Hunk] = []
    for depth in range(len(levels) - 1, -1, -1):
        _, _, xs, ys, origins = levels[depth]
        a1, b1, k = xs[k], ys[k], origins[k]
        a0, b0 = (levels[depth - 1][0][k], levels[depth - 1][1][k]) if depth else (i, j)
        if hunks and hunks[-1][0] == a1 and hunks[-1][2] == b1:
            _, a1, _, b1 = hunks.pop()
        hunks.append((a0, a1, b0, b1))
    hunks.reverse()
    return hunks
