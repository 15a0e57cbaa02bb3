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
_WEIGHT = 2  # changed lines that outweigh one weak line


def weak_lines(text: bytes) -> int:
    """The number of lines of `text` when all of them are weak, else 0.

    A weak line is blank, punctuation alone, or has less than four other bytes: too common to prove anything.
    """
    if len(text.translate(None, _FILLER)) > _STRONG * (text.count(b"\n") + 1):
        return 0  # not all of them can be weak: the common case, told at once
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        if len(line.translate(None, _FILLER)) >= _STRONG:
            return 0
    return len(lines)


def without_weak_matches(a: bytes, b: bytes, hunks: list[Hunk]) -> list[Hunk]:
    """Join hunks over matched weak lines that are outweighed by the changes on both their sides."""
    gaps = [
        0 if below[0] - above[1] > _LONGEST else weak_lines(a[above[1] : below[0]]) for above, below in pairwise(hunks)
    ]
    if not any(gaps):
        return hunks
    near = zip(hunks, [0, *gaps], [*gaps, 0], strict=True)
    sizes = [_changed(a, b, hunk) if gap_above or gap_below else 0 for hunk, gap_above, gap_below in near]
    above = _outweighing(sizes, gaps)
    below = _outweighing(sizes[::-1], gaps[::-1])[::-1]
    joined = [hunks[0]]
    for k, gap in enumerate(gaps):
        hunk = hunks[k + 1]
        if gap and min(above[k], below[k + 1]) > _WEIGHT * gap:
            hunk = (joined[-1][0], hunk[1], joined.pop()[2], hunk[3])
        joined.append(hunk)
    return joined


def _changed(a: bytes, b: bytes, hunk: Hunk) -> int:
    """The lines that a hunk replaces or puts in their place, whichever are more; a pure hunk rewrites nothing."""
    a0, a1, b0, b1 = hunk
    return max(a.count(b"\n", a0, a1), b.count(b"\n", b0, b1)) if a0 < a1 and b0 < b1 else 0


def _outweighing(sizes: Sequence[int], gaps: Sequence[int]) -> list[int]:
    """For every hunk: by how much change outweighs weak matches in the best stretch that ends with it."""
    score = sizes[0]
    scores = [score]
    for size, gap in zip(sizes[1:], gaps, strict=True):
        score = size + max(0, score - _WEIGHT * gap) if gap else size
        scores.append(score)
    return scores
