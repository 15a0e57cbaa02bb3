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

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    gaps = _weak_gaps(a, hunks)
    given_up = _outweighed(_rewritten(a, b, hunks, gaps), gaps)
    if not given_up:
        return hunks
    joined: list[Hunk] = []
    done = 0
    for first, last in _runs(given_up):
        joined += hunks[done:first]
        (a0, _, b0, _), (_, a1, _, b1) = hunks[first], hunks[last + 1]
        joined.append((a0, a1, b0, b1))
        done = last + 2
    return joined + hunks[done:]


def _weak_gaps(a: bytes, hunks: list[Hunk]) -> dict[int, int]:
    """The weak lines between hunk k and the next, for every k where nothing else stands between them."""
    gaps: dict[int, int] = {}
    end = hunks[0][1] if hunks else 0
    for k, (start, next_end, _, _) in enumerate(islice(hunks, 1, None)):
        if a[end] in _FILLER and start - end < _LONGEST:
            lines = 1 if start - end == 1 else weak_lines(a[end:start])
            if lines:
                gaps[k] = lines
        end = next_end
    return gaps


def _rewritten(a: bytes, b: bytes, hunks: list[Hunk], gaps: Iterable[int]) -> dict[int, int]:
    """For hunks beside a gap: the lines replaced or put in their place, whichever are more; 0 for a pure hunk."""
    sizes: dict[int, int] = {}
    for gap in gaps:
        for k in (gap, gap + 1) if gap not in sizes else (gap + 1,):
            a0, a1, b0, b1 = hunks[k]
            old, new = (a.count(b"\n", a0, a1), b.count(b"\n", b0, b1)) if a0 < a1 and b0 < b1 else (0, 0)
            sizes[k] = old if old > new else new
    return sizes


def _outweighed(sizes: dict[int, int], gaps: dict[int, int]) -> list[int]:
    """The gaps that are outweighed by the change in the best stretch above them and in the best one below."""
    scores: list[int] = []  # of the stretches that begin below each gap, from the last gap up
    score, last = 0, -2
    for k in reversed(gaps):
        carried = score - _WEIGHT * gaps[last] if last == k + 1 else 0
        score = sizes[k + 1] + carried if carried > 0 else sizes[k + 1]
        scores.append(score)
        last = k
    given_up: list[int] = []
    carried, last = 0, -2
    for k, lines in gaps.items():
        score = sizes[k] + carried if carried > 0 and last == k - 1 else sizes[k]
        below = scores.pop()
        if score >= _WEIGHT * lines <= below:
            given_up.append(k)
        carried, last = score - _WEIGHT * lines, k
    return given_up


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of every run of consecutive numbers."""
    first = last = -2
    for number in numbers:
        if number != last + 1:
            if first >= 0:
                yield first, last
            first = number
        last = number
    yield first, last
