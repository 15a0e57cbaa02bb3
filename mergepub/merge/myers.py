"""Edit scripts between two bodies of lines: a walk on bytes where edits are few, windows of split lines elsewhere.

Pure: bytes in, offsets out. The steps of the walk stand in `bytewise`, what is done to a window in `dense`.
"""

from __future__ import annotations

from mergepub.merge.bytewise import COMMIT, one_block, one_line, search, snake
from mergepub.merge.slide import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mergepub.merge.dense import KeptLines

    Hunk = tuple[int, int, int, int]

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
        weak_rule: give up matches of weak lines alone between changed blocks (see `mergepub.merge.weak`).
        kept: where the lines of `a`, once split, are kept for another script from the same body.

    Returns:
        hunks `(a0, a1, b0, b1)` of byte offsets at line boundaries: `a[a0:a1]` is replaced by `b[b0:b1]`; ordered,
        never touching, all between them equal; pure insertions and deletions stand as far down as they can.
    """
    hunks = canonical(a, b, hunks_between(a, b, kept, weak_rule=weak_rule))
    if weak_rule and len(hunks) > 1:
        from mergepub.merge.weak import without_weak_matches  # noqa: PLC0415  # most scripts are one hunk

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
