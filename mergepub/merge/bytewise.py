"""Myers' walk straight on the bytes of two bodies; lines are found where they are needed and nowhere else.

A point of the walk is a pair of byte offsets at line boundaries. On one diagonal more lines are more bytes, so the
furthest point is known without line numbers; deleting a line is one `find`, a snake one gallop of `memcmp`.
"""

from __future__ import annotations

from mergepub.merge.lines import common_prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    Hunk = tuple[int, int, int, int]
    Level = tuple[list[int], list[int], list[int], list[int], list[int]]

COMMIT = 512  # a snake of so many bytes settles what stands before it
_REACH = 256 << 10  # bytes ahead in which the end of an inserted or deleted section is looked for
_NEWLINE = 10
_DEEPEST = 12  # edits between two settled points; where more are needed, lines are split and matched instead


def snake(a: bytes, i: int, b: bytes, view_b: memoryview, j: int, *, known: int = 0) -> int:
    """The bytes of whole equal lines from `a[i:]` and `b[j:]` on; an unterminated line equals only another such.

    The first `known` bytes are known to be equal.
    """
    rest_a, rest_b = len(a) - i, len(b) - j
    n = known + common_prefix(a, i + known, view_b, j + known, (rest_a if rest_a < rest_b else rest_b) - known)
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
            n = snake(a, p, b, view_b, q, known=COMMIT)
            if n >= COMMIT:
                return p, q, n
    return None


def one_block(a: bytes, i: int, b: bytes, view_b: memoryview, j: int) -> tuple[int, int] | None:
    """A section deleted or inserted whole at `(i, j)`: the nearer point at which a long snake follows, or None."""
    ahead_a, ahead_b = a[i : i + COMMIT], b[j : j + COMMIT]
    if len(ahead_a) < COMMIT or len(ahead_b) < COMMIT:
        return None
    p, q = a.find(ahead_b, i + 1, i + _REACH), b.find(ahead_a, j + 1, j + _REACH)
    points = sorted((n, point) for n, point in ((p - i, (p, j)), (q - j, (i, q))) if n > 0)
    for _, (x, y) in points:
        starts_line = (x == i or a[x - 1] == _NEWLINE) and (y == j or b[y - 1] == _NEWLINE)
        if starts_line and snake(a, x, b, view_b, y) >= COMMIT:
            return x, y
    return None


def search(a: bytes, b: bytes, view_b: memoryview, i: int, j: int) -> tuple[list[Hunk], int, int] | None:
    """Myers' greedy search from `(i, j)`, where the lines differ, to the nearest long snake or the end of both.

    Returns:
        the hunks up to that snake, shortest in number of lines, and the point where the snake ends; None where more
        than a few edits are needed.
    """
    size_a, size_b, find_a, find_b = len(a), len(b), a.find, b.find
    # For every diagonal: the furthest point and the line boundary of `a` after it; a level also keeps the points before
    # the snakes and the diagonals they were reached from.
    xs, ys, nexts = [i], [j], [find_a(b"\n", i) + 1 or size_a]
    levels: list[Level] = [(xs, ys, xs, ys, [0])]
    for depth in range(1, _DEEPEST + 1):
        best, longest = -1, COMMIT - 1
        new_xs, new_ys, new_nexts, from_xs, from_ys, origins = [], [], [], [], [], []
        for k in range(depth + 1):
            x = y = origin = -1
            if k < depth and -1 < xs[k] < size_a:
                x, y, origin = nexts[k], ys[k], k
            if k and xs[k - 1] > x and ys[k - 1] < size_b:
                x, y, origin = xs[k - 1], find_b(b"\n", ys[k - 1]) + 1 or size_b, k - 1
            from_xs.append(x)
            from_ys.append(y)
            origins.append(origin)
            below = find_a(b"\n", x) + 1 or size_a if x >= 0 else -1
            if -1 < x < size_a and y < size_b and b.startswith(a[x:below], y):
                n = snake(a, x, b, view_b, y)
                if n:
                    x, y = x + n, y + n
                    below = find_a(b"\n", x) + 1 or size_a
                if n > longest:
                    best, longest = k, n
            if x == size_a and y == size_b:
                best, longest = k, size_a + size_b
            new_xs.append(x)
            new_ys.append(y)
            new_nexts.append(below)
        xs, ys, nexts = new_xs, new_ys, new_nexts
        levels.append((xs, ys, from_xs, from_ys, origins))
        if best >= 0:
            return _path(levels, best), xs[best], ys[best]
    return None


def _path(levels: list[Level], k: int) -> list[Hunk]:
    """The edits that lead from the first level to diagonal `k` of the last, touching ones joined."""
    hunks: list[Hunk] = []
    while len(levels) > 1:
        _, _, from_xs, from_ys, origins = levels.pop()
        a1, b1, k = from_xs[k], from_ys[k], origins[k]
        a0, b0 = levels[-1][0][k], levels[-1][1][k]
        if hunks and hunks[-1][0] == a1 and hunks[-1][2] == b1:
            _, a1, _, b1 = hunks.pop()
        hunks.append((a0, a1, b0, b1))
    hunks.reverse()
    return hunks
