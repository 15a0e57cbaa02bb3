"""The one rule that gives up matches: weak lines between changed blocks hold nothing apart."""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Hunk = tuple[int, int, int, int]

_FILLER = bytes(range(33)) + bytes(c for c in range(33, 128) if not chr(c).isalnum())
_STRONG = 4  # bytes that are neither white space nor ASCII punctuation
_LONGEST = 4096  # a gap of more bytes than this is never given up
_WEIGHT = 2


def is_weak(line: bytes) -> bool:
    """Whether a line is blank, punctuation alone, or has less than four other bytes: too common to prove anything."""
    return len(line.translate(None, _FILLER)) < _STRONG


def _weak_lines(a: bytes, start: int, end: int) -> int:
    """The number of lines of `a[start:end]` when all of them are weak, else 0."""
    if end - start > _LONGEST:
        return 0
    lines = a[start:end].split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        if not is_weak(line):
            return 0
    return len(lines)


def without_weak_matches(a: bytes, b: bytes, hunks: Sequence[Hunk]) -> list[Hunk]:
    """Join hunks over matched weak lines that are outweighed by the changes on both their sides."""
    gaps = [_weak_lines(a, x[1], y[0]) for x, y in pairwise(hunks)]
    if not any(gaps):
        return list(hunks)
    sizes = [max(a.count(b"\n", a0, a1), b.count(b"\n", b0, b1)) for a0, a1, b0, b1 in hunks]
    above = _outweighing(sizes, gaps)
    below = _outweighing(sizes[::-1], gaps[::-1])[::-1]
    joined = [hunks[0]]
    for k, gap in enumerate(gaps):
        a0, a1, b0, b1 = hunks[k + 1]
        if gap and min(above[k], below[k + 1]) > _WEIGHT * gap:
            joined[-1] = (joined[-1][0], a1, joined[-1][2], b1)
        else:
            joined.append((a0, a1, b0, b1))
    return joined


def _outweighing(sizes: Sequence[int], gaps: Sequence[int]) -> list[int]:
    """For every hunk: by how much change outweighs weak matches in the best stretch that ends with it."""
    scores = [sizes[0]]
    for size, gap in zip(sizes[1:], gaps, strict=True):
        scores.append(size + (max(0, scores[-1] - _WEIGHT * gap) if gap else 0))
    return scores
