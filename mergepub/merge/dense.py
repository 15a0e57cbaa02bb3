"""Hunks of a stretch of two bodies that differ too much for a walk on bytes: lines are split and matched."""

from __future__ import annotations

from itertools import accumulate

from mergepub.merge.anchors import matching_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    Hunk = tuple[int, int, int, int]


def split_lines(text: bytes, start: int, end: int) -> list[bytes]:
    r"""The lines of `text[start:end]` without their newline; an unterminated one carries a newline instead.

    No other line holds a newline, so it equals no terminated line of the same text.
    """
    lines = text[start:end].split(b"\n")
    if lines[-1]:
        lines[-1] += b"\n"
    else:
        lines.pop()
    return lines


def dense_hunks(a: bytes, b: bytes, box: tuple[int, int, int, int]) -> list[Hunk]:
    """The hunks between `a[a0:a1]` and `b[b0:b1]` of a `box` `(a0, a1, b0, b1)` of line boundaries."""
    a0, a1, b0, b1 = box
    lines_a, lines_b = split_lines(a, a0, a1), split_lines(b, b0, b1)
    starts_a = [a0, *accumulate((len(line) + 1 for line in lines_a), initial=a0)][1:]
    starts_b = [b0, *accumulate((len(line) + 1 for line in lines_b), initial=b0)][1:]
    starts_a[-1], starts_b[-1] = a1, b1
    hunks: list[Hunk] = []
    i0 = j0 = 0
    for i, j, n in [*matching_runs(lines_a, lines_b), (len(lines_a), len(lines_b), 0)]:
        if i > i0 or j > j0:
            hunks.append((starts_a[i0], starts_a[i], starts_b[j0], starts_b[j]))
        i0, j0 = i + n, j + n
    return hunks
