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

from itertools import compress, count, islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Hunk = tuple[int, int, int, int]

_FILLER = bytes(range(33)) + bytes(c for c in range(33, 128) if not chr(c).isalnum())
_MOST = 32  # lines; a longer run of weak lines is never given up
_LONGEST = 512  # bytes; nor is a longer gap
_FEW = 16  # hunks
_LARGE = 4096  # bytes of a hunk
_WEIGHT = 2  # changed lines that outweigh one weak line
_NEVER = 1 << 62  # more lines than anything outweighs


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
    weak_gaps = _weak_gaps(a, hunks)
    if not weak_gaps:
        return hunks
    beside, gaps = _beside(weak_gaps)
    changed = [hunks[k] for k in beside]
    if len(changed) < _FEW:
        enough = _WEIGHT * sum(weak_gaps.values())
        changed = [_clipped(a, hunk, enough) for hunk in changed]
    outweighed = _outweighed(_rewritten(a, b, changed), gaps)
    return _joined(hunks, list(compress(beside, outweighed)))


def without_weak_runs(hunks: list[Hunk], sizes: list[int], gaps: list[int]) -> list[Hunk]:
    """The same for hunks of any coordinates between which weak lines alone are matched.

    Args:
        hunks: what is joined.
        sizes: the lines that each of them rewrites; 0 for a pure one.
        gaps: the weak lines between each and the next.
    """
    limited = [lines if lines <= _MOST else _NEVER for lines in gaps]
    return _joined(hunks, list(compress(count(), _outweighed(sizes, limited))))


def _joined(hunks: list[Hunk], given_up: list[int]) -> list[Hunk]:
    """The hunks, those in `given_up` joined with the next."""
    joined: list[Hunk] = []
    done = 0
    for first, last in _runs(given_up):
        joined += hunks[done:first]
        (a0, _, b0, _), (_, a1, _, b1) = hunks[first], hunks[last + 1]
        joined.append((a0, a1, b0, b1))
        done = last + 2
    return joined + hunks[done:] if done else hunks


def _weak_gaps(a: bytes, hunks: list[Hunk]) -> dict[int, int]:
    """The weak lines between hunk k and the next, for every k where nothing else stands between them."""
    gaps: dict[int, int] = {}
    end = hunks[0][1] if hunks else 0
    for k, (start, next_end, _, _) in enumerate(islice(hunks, 1, None)):
        if a[end] in _FILLER:
            if start - end == 1:
                gaps[k] = 1
            elif a[start - 2] in _FILLER and start - end < _LONGEST and (lines := weak_lines(a[end:start])):
                gaps[k] = lines
        end = next_end
    return gaps


def _beside(weak_gaps: dict[int, int]) -> tuple[list[int], list[int]]:
    """The hunks above and below a weak gap, and the weak lines between each and the next; endless for others."""
    beside: list[int] = []
    gaps: list[int] = []
    last = -1
    for k, lines in weak_gaps.items():
        if k != last:
            beside.append(k)
            gaps.append(_NEVER)
        last = k + 1
        beside.append(last)
        gaps.append(lines)
    return beside, gaps[1:]


def _clipped(a: bytes, hunk: Hunk, enough: int) -> Hunk:
    """The hunk, or so much of a large one as rewrites more than `enough` lines: nobody needs all of them counted."""
    a0, a1, b0, b1 = hunk
    if a1 - a0 > _LARGE and b0 < b1 and a.count(b"\n", a0, a0 + _LARGE) > enough:
        return a0, a0 + _LARGE, b0, min(b1, b0 + _LARGE)
    return hunk


def _rewritten(a: bytes, b: bytes, hunks: list[Hunk]) -> list[int]:
    """For every hunk: the lines replaced or put in their place, whichever are more; 0 for a pure hunk."""
    sizes: list[int] = []
    count_a, count_b = a.count, b.count
    for a0, a1, b0, b1 in hunks:
        old, new = (count_a(b"\n", a0, a1), count_b(b"\n", b0, b1)) if a0 < a1 and b0 < b1 else (0, 0)
        sizes.append(old if old > new else new)
    return sizes


def _outweighed(sizes: list[int], gaps: list[int]) -> list[bool]:
    """For every gap between hunks of these sizes: whether it is outweighed by change both above and below.

    By how much, the best stretch tells that begins at the gap. It holds the next hunk, and goes on beyond the gap after
    it where that is worth it.
    """
    below: list[int] = []
    carried = 0
    for size, lines in zip(reversed(sizes), reversed(gaps), strict=False):
        score = size + carried if carried > 0 else size
        below.append(score)
        carried = score - _WEIGHT * lines
    result: list[bool] = []
    carried = 0
    for size, lines, score_below in zip(sizes, gaps, reversed(below), strict=False):
        score = size + carried if carried > 0 else size
        carried = score - _WEIGHT * lines
        result.append(carried >= 0 and score_below >= _WEIGHT * lines)
    return result


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of every run of consecutive numbers."""
    first = last = -2
    for number in numbers:
        if number != last + 1:
            if first >= 0:
                yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last
