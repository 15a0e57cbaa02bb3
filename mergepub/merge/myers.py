"""Edit scripts between two bodies of lines: a walk on bytes where edits are few, windows of split lines elsewhere.

Pure: bytes in, offsets out. The walk is Myers', straight on the bytes of two bodies; lines are found where they are
needed and nowhere else. A point of the walk is a pair of byte offsets at line boundaries. On one diagonal more lines
are more bytes, so the furthest point is known without line numbers; deleting a line is one `find`, a snake one gallop
of `memcmp`. What is done to a window stands in `dense`.
"""

from __future__ import annotations

from mergepub.merge.lines import common_prefix
from mergepub.merge.scripts import canonical, without_weak_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mergepub.merge.dense import KeptLines

    Hunk = tuple[int, int, int, int]
    Level = tuple[list[int], list[int]]

COMMIT = 512  # a snake of so many bytes settles what stands before it
REACH = 256 << 10  # bytes ahead in which the end of an inserted or deleted section is looked for
_NEWLINE = 10
DEEPEST = 12  # edits between two settled points; where more are needed, lines are split and matched instead
WINDOW = 24 << 10  # bytes of each side that are split first; 16 times as many where that is not enough
GROWTH = 16
_SURE_LINES = 12  # a run of equal lines in a window is trusted from this size on
_SURE_BYTES = 256


def edit_scripts(base: bytes, ours: bytes, theirs: bytes) -> tuple[list[Hunk], list[Hunk]]:
    """The edit scripts from `base` to `ours` and to `theirs`, as :func:`edit_script` finds each.

    What is split of the base for one of them is kept for the other.
    """
    kept: KeptLines = {}
    return edit_script(base, ours, kept=kept), edit_script(base, theirs, kept=kept)


def edit_script(a: bytes, b: bytes, *, weak_rule: bool = True, kept: KeptLines | None = None) -> list[Hunk]:
    r"""The hunks that make `b` of `a`, in canonical form.

    Args:
        a: the old body; lines end at `\n` alone, the last may be unterminated and then differs from a terminated one.
        b: the new body.
        weak_rule: give up matches of weak lines alone between changed blocks (see `mergepub.merge.scripts`).
        kept: where the lines of `a`, once split, are kept for another script from the same body.

    Returns:
        hunks `(a0, a1, b0, b1)` of byte offsets at line boundaries: `a[a0:a1]` is replaced by `b[b0:b1]`; ordered,
        never touching, all between them equal; pure insertions and deletions stand as far down as they can.
    """
    hunks = canonical(a, b, hunks_between(a, b, kept, weak_rule=weak_rule))
    if weak_rule and len(hunks) > 1:
        hunks = without_weak_matches(a, b, hunks)
    return hunks


def hunks_between(
    a: bytes, b: bytes, kept: KeptLines | None = None, *, weak_rule: bool = False, commit: int = COMMIT
) -> list[Hunk]:
    """The hunks that make `b` of `a`, ordered; they may touch where windows meet. The lines of `a` go into `kept`.

    Matches that the weak rule will give up are left out where that is easily seen, if it will be applied. So many bytes
    that go on unchanged settle what stands before them as `commit` says.
    """
    if kept is None:
        kept = {}
    view_b = memoryview(b)
    x = y = snake(a, 0, b, view_b, 0)
    hunks: list[Hunk] = []
    while x < len(a) and y < len(b):
        edit = one_line(a, x, b, view_b, y, commit=commit)
        if edit:
            p, q, n = edit
            hunks.append((x, p, y, q))
            x, y = p + n, q + n
            continue
        found, x, y = (
            search(a, b, view_b, x, y, commit=commit)
            or _section(a, b, view_b, x, y)
            or _window(a, b, x, y, kept, weak_rule)
        )
        hunks += found
        n = snake(a, x, b, view_b, y)
        x, y = x + n, y + n
    if x < len(a) or y < len(b):
        hunks.append((x, len(a), y, len(b)))
    return hunks


def _section(a: bytes, b: bytes, view_b: memoryview, x: int, y: int) -> tuple[list[Hunk], int, int] | None:
    """A hunk that inserts or deletes a whole section, and the point below it."""
    point = one_block(a, x, b, view_b, y)
    return point and ([(x, point[0], y, point[1])], *point)


def _window(  # noqa: PLR0917  # two bodies, a point in both, and how they are compared
    a: bytes, b: bytes, x: int, y: int, kept: KeptLines, weak_rule: bool
) -> tuple[list[Hunk], int, int]:
    """Match a window of lines from `(x, y)` on, the smallest that is enough."""
    size = WINDOW
    while True:
        found = window(a, b, x, y, size, kept, weak_rule=weak_rule)
        if found:
            return found
        size *= GROWTH


def window(  # noqa: PLR0917  # as above
    a: bytes, b: bytes, x: int, y: int, size: int, kept: KeptLines, *, weak_rule: bool
) -> tuple[list[Hunk], int, int] | None:
    """Match a window of lines of so many bytes: its hunks up to the last run that is sure, and where that run ends.

    A window is taken when it gets half its size ahead, so the work of all windows is that of the bodies once or twice;
    else the answer is None.
    """
    from mergepub.merge.dense import dense_hunks  # noqa: PLC0415  # most bodies never need it

    x1, y1 = _line_end(a, x + size), _line_end(b, y + size)
    last = x1 == len(a) and y1 == len(b)
    hunks = dense_hunks(a, b, (x, x1, y, y1), kept, at_least=0 if last else _SURE_LINES, weak_rule=weak_rule)
    if last:
        return hunks, x1, y1
    sure, p, q = _sure(a, hunks, x1, y1)
    return (sure, p, q) if max(p - x, q - y) * 2 >= size else None


def _line_end(text: bytes, at: int) -> int:
    """The first line boundary at or after `at`."""
    return (text.find(b"\n", at - 1) + 1 or len(text)) if at < len(text) else len(text)


def _sure(a: bytes, hunks: Sequence[Hunk], x1: int, y1: int) -> tuple[list[Hunk], int, int]:
    """The hunks before the last long run of equal lines in a window ending at `(x1, y1)`, and the end of that run."""
    below_a, below_b = x1, y1
    for k in range(len(hunks) - 1, -1, -1):
        a0, a1, b0, _ = hunks[k]
        if below_a - a1 >= _SURE_BYTES and a.count(b"\n", a1, below_a) >= _SURE_LINES:
            return list(hunks[: k + 1]), below_a, below_b
        below_a, below_b = a0, b0
    return [], 0, 0


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
