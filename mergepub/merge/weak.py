"""The one rule that gives up matches: weak lines do not hold a rewritten region apart.

Where a region is rewritten, the old and the new text still share blank lines, lone brackets, rules of dashes. A
shortest script matches them, wherever they happen to fall, and so cuts the region into pieces that have nothing to do
with each other; edits of the other side then slip in between, clean, into text that no longer exists. The rule: a run
of matched weak lines between two hunks is given up (the hunks and what is between them become one) when change
outweighs it on *both* sides: going away from the run, over further hunks and weak runs but over no other line, there
is a stretch in which the rewritten lines are at least two for every weak line that it holds and for every one of the
run.

Why it is safe: it only makes hunks larger. A larger hunk overlaps more of the other side, so a merge may conflict
that was clean, and no merge becomes clean that was a conflict, but for insertions that no longer stand in the gap.
Matches of any other line are never given up, nor long runs of weak ones (documents made of blank lines), nor a weak
line beside a small edit: single lines edited above and below a blank line stay two hunks. A pure insertion or
deletion rewrites nothing and weighs nothing. The rule knows neither which side is which nor up from down.
"""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    Hunk = tuple[int, int, int, int]

_FILLER = bytes(range(33)) + bytes(c for c in range(33, 128) if not chr(c).isalnum())
_MOST = 32  # lines; a longer run of weak lines is never given up
_LONGEST = 512  # bytes; nor is a longer gap
_WEIGHT = 2  # changed lines that outweigh one weak line


def weak_lines(text: bytes) -> int:
    """The number of lines of `text` when they are few and all of them are weak, else 0.

    A weak line is blank or made of punctuation alone: too common to prove anything. A letter, a digit or a byte of any
    other script makes a line a real one, however short: lists and tables are made of such.
    """
    if text == b"\n":
        return 1
    if text.translate(None, _FILLER):
        return 0
    lines = text.count(b"\n")
    return lines if lines <= _MOST else 0


def without_weak_matches(a: bytes, b: bytes, hunks: list[Hunk]) -> list[Hunk]:
    """Join hunks over matched weak lines that are outweighed by the changes on both their sides."""
    gaps = {
        k: lines
        for k, ((_, end, _, _), (start, _, _, _)) in enumerate(pairwise(hunks))
        if start - end < _LONGEST and (lines := weak_lines(a[end:start]))
    }
    sizes = {k: _changed(a, b, hunks[k]) for k in {*gaps, *(k + 1 for k in gaps)}}
    above: dict[int, int] = {}  # by how much change outweighs weak matches in the best stretch that ends at the gap
    for k in gaps:
        above[k] = sizes[k] + max(0, above.get(k - 1, 0) - _WEIGHT * gaps.get(k - 1, 0))
    below: dict[int, int] = {}  # the same for the stretch that begins below it
    for k in reversed(gaps):
        below[k] = sizes[k + 1] + max(0, below.get(k + 1, 0) - _WEIGHT * gaps.get(k + 1, 0))
    joined = hunks[:1]
    for k, hunk in enumerate(hunks[1:]):
        if k in gaps and min(above[k], below[k]) >= _WEIGHT * gaps[k]:
            joined[-1] = (joined[-1][0], hunk[1], joined[-1][2], hunk[3])
        else:
            joined.append(hunk)
    return joined


def _changed(a: bytes, b: bytes, hunk: Hunk) -> int:
    """The lines that a hunk replaces or puts in their place, whichever are more; a pure hunk rewrites nothing."""
    a0, a1, b0, b1 = hunk
    return max(a.count(b"\n", a0, a1), b.count(b"\n", b0, b1)) if a0 < a1 and b0 < b1 else 0
