"""Hunks of a stretch of two bodies that differ too much for a walk on bytes: lines are split and matched."""

from __future__ import annotations

from itertools import accumulate

from mergepub.merge.anchors import matched_lines

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
    rows, columns = matched_lines(lines_a, lines_b)
    rows.append(len(lines_a))
    columns.append(len(lines_b))
    # Line n starts at at_x[n] + n: its own newlines are not counted in the lengths.
    at_a = list(accumulate(map(len, lines_a), initial=a0))
    at_b = list(accumulate(map(len, lines_b), initial=b0))
    at_a[-1], at_b[-1] = a1 - len(lines_a), b1 - len(lines_b)
    hunks: list[Hunk] = []
    i0 = j0 = 0
    for i, j in zip(rows, columns, strict=True):
        if i != i0 or j != j0:
            hunks.append((at_a[i0] + i0, at_a[i] + i, at_b[j0] + j0, at_b[j] + j))
        i0, j0 = i + 1, j + 1
    return hunks
