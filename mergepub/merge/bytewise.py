"""Myers' walk straight on the bytes of two bodies; lines are found where they are needed and nowhere else.

A point of the walk is a pair of byte offsets at line boundaries. On one diagonal more lines are more bytes, so the
furthest point is known without line numbers; deleting a line is one `find`, a snake one gallop of `memcmp`.
"""

from __future__ import annotations

from mergepub.merge.lines import common_prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    Hunk = tuple[int, int, int, int]
    Level = tuple[list[int], list[int]]

COMMIT = 512  # a snake of so many bytes settles what stands before it
REACH = 256 << 10  # bytes ahead in which the end of an inserted or deleted section is looked for
_NEWLINE = 10
DEEPEST = 12  # edits between two settled points; where more are needed, lines are split and matched instead


def snake(a: bytes, i: int, b: bytes, view_b: memoryview, j: int, *, known: int = 0) -> int:
    """The bytes of whole equal lines from `a[i:]` and `b[j:]` on; an unterminated line equals only another such.

    The first `known` bytes are known to be equal.
    """
    rest_a, rest_b = len(a) - i, len(b) - j
    n = known + common_prefix(a, i + known, view_b, j + known, (rest_a if rest_a < rest_b else rest_b) - known)
    if n == rest_a == rest_b:
        return n
    return max(0, a.rfind(b"\n", i, i + n) + 1 - i)


def one_line(
    a: bytes, i: int, b: bytes, view_b: memoryview, j: int, *, commit: int = COMMIT
) -> tuple[int, int, int] | None:
    """The commonest edit: one line deleted, inserted or replaced at `(i, j)`, followed by a long snake.

    Returns:
        the point after the edit and the length of the snake that starts there, or None.
    """
    below_a, below_b = a.find(b"\n", i) + 1, b.find(b"\n", j) + 1
    if not below_a or not below_b:
        return None
    for p, q in ((below_a, j), (i, below_b), (below_a, below_b)):
        if len(b) - q > commit and a.startswith(view_b[q : q + commit], p):
            n = snake(a, p, b, view_b, q, known=commit)
            if n >= commit:
                return p, q, n
    return None


def one_block(a: bytes, i: int, b: bytes, view_b: memoryview, j: int) -> tuple[int, int] | None:
    """A section deleted or inserted whole at `(i, j)`: the nearer point at which a long snake follows, or None."""
    ahead_a, ahead_b = a[i : i + COMMIT], b[j : j + COMMIT]
    if len(ahead_a) < COMMIT or len(ahead_b) < COMMIT:
        return None
    p, q = a.find(ahead_b, i + 1, i + REACH), b.find(ahead_a, j + 1, j + REACH)
    points = sorted((n, point) for n, point in ((p - i, (p, j)), (q - j, (i, q))) if n > 0)
    for _, (x, y) in points:
        starts_line = (x == i or a[x - 1] == _NEWLINE) and (y == j or b[y - 1] == _NEWLINE)
        if starts_line and snake(a, x, b, view_b, y) >= COMMIT:
            return x, y
    return None


def search(
    a: bytes, b: bytes, view_b: memoryview, i: int, j: int, *, commit: int = COMMIT
) -> tuple[list[Hunk], int, int] | None:
    """Myers' greedy search from `(i, j)`, where the lines differ, to the nearest long snake or the end of both.

    Returns:
        the hunks up to that snake, shortest in number of lines, and the point where the snake ends; None where more
        than a few edits are needed.
    """
    size_a, size_b = len(a), len(b)
    xs, ys = [i], [j]  # for every diagonal the furthest point, -1 where there is none
    levels: list[Level] = []
    for depth in range(1, DEEPEST + 1):
        levels.append((xs, ys))
        best, longest = -1, commit - 1
        new_xs, new_ys = [], []
        for k in range(depth + 1):
            x, y, _ = _edited(a, b, xs, ys, k)
            # Two bytes tell most lines apart.
            if (
                -1 < x < size_a
                and y < size_b
                and a[x] == b[y]
                and b.startswith(a[x : a.find(b"\n", x) + 1 or size_a], y)
            ):
                n = snake(a, x, b, view_b, y)
                x, y = x + n, y + n
                if n > longest:
                    best, longest = k, n
            if x == size_a and y == size_b:
                best, longest = k, size_a + size_b
            new_xs.append(x)
            new_ys.append(y)
        xs, ys = new_xs, new_ys
        if best >= 0:
            return _path(a, b, levels, best), xs[best], ys[best]
    return None


def _edited(a: bytes, b: bytes, xs: list[int], ys: list[int], k: int) -> tuple[int, int, int]:
    """The furthest point of diagonal `k` one edit after a level, and the diagonal that it was reached from."""
    x = y = origin = -1
    if k < len(xs) and -1 < xs[k] < len(a):
        x, y, origin = a.find(b"\n", xs[k]) + 1 or len(a), ys[k], k
    if k and xs[k - 1] > x and ys[k - 1] < len(b):
        x, y, origin = xs[k - 1], b.find(b"\n", ys[k - 1]) + 1 or len(b), k - 1
    return x, y, origin


def _path(a: bytes, b: bytes, levels: list[Level], k: int) -> list[Hunk]:
    """The edits that lead from the first level to diagonal `k` of the level after the last, touching ones joined."""
    hunks: list[Hunk] = []
    while levels:
        xs, ys = levels.pop()
        a1, b1, k = _edited(a, b, xs, ys, k)
        a0, b0 = xs[k], ys[k]
        if hunks and hunks[-1][0] == a1 and hunks[-1][2] == b1:
            _, a1, _, b1 = hunks.pop()
        hunks.append((a0, a1, b0, b1))
    hunks.reverse()
    return hunks
