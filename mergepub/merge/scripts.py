"""Edit scripts once they are found: made canonical, cleared of matches that mean nothing, told in another way.

*Canonical* (:func:`canonical`). The same text inserted by two writers can stand at several places of a script with
equal right (one blank line more among many). When every script puts it at the last of them, the same insertion always
stands at the same point of the base: pure insertions and deletions slide down as far as they go.

*Weak matches* (:func:`without_weak_matches`). Where a region is rewritten, the old and the new text still share blank
lines, lone brackets, rules of dashes. A shortest script matches them, wherever they happen to fall, and so cuts the
region into pieces that have nothing to do with each other; edits of the other side then slip in between, clean, into
text that no longer exists. The one rule that gives up matches: a run of matched weak lines between two hunks is given
up (the hunks and what is between them become one) when change outweighs it on *both* sides: going away from the run,
over further hunks and weak runs but over no other line, there is a stretch in which the rewritten lines are at least
two for every weak line that it holds and for every one of the run.

Why that is safe: it only makes hunks larger. A larger hunk overlaps more of the other side, so a merge may conflict
that was clean, and no merge becomes clean that was a conflict, but for insertions that no longer stand in the gap.
Matches of any other line are never given up, nor long runs of weak ones (documents made of blank lines), nor a weak
line beside a small edit: single lines edited above and below a blank line stay two hunks. A pure insertion or
deletion rewrites nothing and weighs nothing. The rule knows neither which side is which nor up from down.

*Ties* (:func:`without_ties`). Often a pure hunk could as well stand one gap higher, joined with the hunk above it: a
paragraph and its blank line may be taken as inserted before or after the next blank line. Where two sides clash, the
higher place is tried too, and stands where it leaves fewer conflicts; everywhere else the canonical place stands, so
that the same insertion made by both sides keeps meeting itself. Nor is it always an insertion that a script says where
lines were inserted. Of a new section above an edited one, a shortest script may match the headings' underlines and say
that the heading was replaced and the rest inserted below. Where the other side inserts just these lines there, they are
one insertion, whatever the script says (:func:`inserted_by_both`).

One file for the three: most merges need two of them, every merge with a conflict all, and to load three costs more.
"""

from __future__ import annotations

from mergepub.merge.lines import common_prefix, ends_terminated, line_count, same_text
from mergepub.merge.regions import CONFLICT, OURS, THEIRS, changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from mergepub.merge.lines import Range
    from mergepub.merge.regions import Change, Hunk

    Bodies = tuple[bytes, bytes, bytes]
    Scripts = tuple[list[Hunk], list[Hunk]]

_FEW = 16  # hunks; of these, all are looked at sooner than chosen
_FILLER = bytes(range(33)) + bytes(c for c in range(33, 128) if not chr(c).isalnum())
_MOST = 32  # lines; a longer run of weak lines is never given up
_LONGEST = 512  # bytes; nor is a longer gap
_LARGE = 4096  # bytes of a hunk
_WEIGHT = 2  # changed lines that outweigh one weak line
_NEVER = 1 << 62  # more lines than anything outweighs


def canonical(a: bytes, b: bytes, hunks: Iterable[Hunk]) -> list[Hunk]:
    """Slide every pure hunk down, join hunks that touch, until nothing moves.

    Works from the last hunk up: a hunk that reaches the next one joins it and, while the joint is pure, slides on. Most
    hunks are neither pure nor touch the next; to pass by these halves the time.

    Args:
        a: the old body.
        b: the new body.
        hunks: ordered hunks of byte offsets at line boundaries; they may touch.

    Returns:
        the canonical script: ordered, never touching, everything between hunks equal.
    """
    hunks = list(hunks)
    loose: Sequence[int] = range(len(hunks)) if len(hunks) < _FEW else _loose(hunks)
    if not loose:
        return hunks
    view_a, view_b = memoryview(a), memoryview(b)
    below: list[Hunk] = []
    done = len(hunks)
    for k in reversed(loose):
        below += hunks[done - 1 : k : -1]
        hunk, done = hunks[k], k
        while True:
            limit = below[-1][0] if below else len(a)
            a0, a1, b0, b1 = hunk
            shift = 0
            if a0 == a1:
                shift = _room(b, view_b, b0, b1, limit - a1)
            elif b0 == b1:
                shift = _room(a, view_a, a0, a1, limit - a1)
            if not below or a1 + shift < limit:
                below.append((a0 + shift, a1 + shift, b0 + shift, b1 + shift))
                break
            _, a1, _, b1 = below.pop()
            hunk = (a0 + shift, a1, b0 + shift, b1)  # joined with the one below, looked at again
    below.reverse()
    return hunks[:done] + below


def _loose(hunks: list[Hunk]) -> list[int]:
    """Which of the hunks are pure or touch the next."""
    loose: list[int] = []
    above = -1
    for k, (a0, a1, b0, b1) in enumerate(hunks):
        if a0 == above and loose[-1:] != [k - 1]:
            loose.append(k - 1)
        if a0 == a1 or b0 == b1:
            loose.append(k)
        above = a1
    return loose


def _room(text: bytes, view: memoryview, start: int, end: int, gap: int) -> int:
    """How many bytes of whole lines the range `start:end` of `text` can move down within the `gap` bytes after it."""
    if not gap or text[start] != text[end]:
        return 0
    return max(0, text.rfind(b"\n", start, start + common_prefix(text, start, view, end, gap)) + 1 - start)


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
    return _joined(hunks, _outweighed(beside, _rewritten(a, b, changed), gaps))


def without_weak_runs(hunks: list[Hunk], sizes: list[int], gaps: list[int]) -> list[Hunk]:
    """The same for hunks of any coordinates between which weak lines alone are matched.

    Args:
        hunks: what is joined.
        sizes: the lines that each of them rewrites; 0 for a pure one.
        gaps: the weak lines between each and the next.
    """
    limited = [lines if lines <= _MOST else _NEVER for lines in gaps]
    return _joined(hunks, _outweighed(range(len(gaps)), sizes, limited))


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
    for k, (start, next_end, _, _) in enumerate(hunks[1:]):
        if a[end] in _FILLER:
            if start - end == 1:
                gaps[k] = 1
            # One byte in the middle tells most lines from weak ones.
            elif a[start + end >> 1] in _FILLER and start - end < _LONGEST and (lines := weak_lines(a[end:start])):
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


def _outweighed(numbers: Iterable[int], sizes: list[int], gaps: list[int]) -> list[int]:
    """The numbers of those gaps between hunks of these sizes that are outweighed by change both above and below.

    By how much, the best stretch tells that begins at the gap. It holds the next hunk, and goes on beyond the gap after
    it where that is worth it.
    """
    below: list[int] = []
    carried = 0
    for size, lines in zip(reversed(sizes), reversed(gaps), strict=False):
        score = size + carried if carried > 0 else size
        below.append(score)
        carried = score - _WEIGHT * lines
    result: list[int] = []
    carried = 0
    for number, size, lines, score_below in zip(numbers, sizes, gaps, reversed(below), strict=False):
        score = size + carried if carried > 0 else size
        weight = _WEIGHT * lines
        carried = score - weight
        if carried >= 0 and score_below >= weight:
            result.append(number)
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


def without_ties(found: list[Change], bodies: Bodies, scripts: Scripts, *, touching: bool) -> list[Change]:
    """The changes, without those conflicts that a higher place of a hunk dissolves.

    Args:
        found: The changes of a merge.
        bodies: Base, ours and theirs.
        scripts: The canonical scripts from base to ours and to theirs, of which ``found`` was made.
        touching: As in :func:`mergepub.merge.regions.changes`.
    """
    if not touching:
        found = inserted_by_both(found, bodies)
    conflicts = [change for change in found if change[0] == CONFLICT]
    ours, our_joints = joined_up(bodies[0], bodies[1], scripts[0], conflicts)
    theirs, their_joints = joined_up(bodies[0], bodies[2], scripts[1], conflicts)
    if not our_joints and not their_joints:
        return found
    result: list[Change] = []
    done = 0
    for start, end in _stretches(found, sorted(our_joints + their_joints)):
        result += found[done:start]
        result += _better(found[start:end], bodies, (ours, theirs), touching)
        done = end
    return result + found[done:]


def inserted_by_both(found: Sequence[Change], bodies: Bodies) -> list[Change]:
    """The changes, without those conflicts in which one side inserted lines that the other side has there as well.

    That other side has them from the start of the conflict on, in lines that it is said to have replaced and in those
    below. All of its changes there are one, which stands.
    """
    result: list[Change] = []
    done = 0
    for n, change in enumerate(found):
        for kind in (OURS, THEIRS) if change[0] == CONFLICT else ():
            last = _last_held(found, n, bodies, kind)
            if last > n:
                _, b0, _, o0, _, t0, *_ = change
                _, _, b1, _, o1, _, t1, _ = found[last]
                result += [*found[done:n], (kind, b0, b1, o0, o1, t0, t1, None)]
                done = last + 1
    return result + list(found[done:])


def _last_held(found: Sequence[Change], n: int, bodies: Bodies, kind: str) -> int:
    """The change with which the side of this kind has all that the other inserted at conflict `n`; else `n`."""
    base, body, inserting = bodies
    _, b0, b1, s0, s1, i0, i1, _ = found[n]
    if kind == THEIRS:
        body, inserting, s0, s1, i0, i1 = inserting, body, i0, i1, s0, s1
    end = s0 + i1 - i0 - (b1 - b0)
    if end <= s1 or line_count(base, (b0, b1)) != line_count(body, (s0, s1)):
        return n
    if not inserting.endswith(base[b0:b1], i0, i1) or not same_text(inserting, (i0, i0 + end - s0), body, (s0, end)):
        return n
    last = n
    while s1 < end:
        last += 1
        if last == len(found) or found[last][0] != kind:
            return n
        s1 = found[last][4] if kind == OURS else found[last][6]
    return last


def _stretches(found: Sequence[Change], joints: Sequence[Range]) -> Iterator[tuple[int, int]]:
    """Where runs of changes start and end, of which a joint reaches over what did not change between two of them."""
    first, last = 0, -1
    for start, end in joints:
        below = _first_below(found, 2, start)
        if below > last:
            if _gap_within(found, first, last):
                yield first, last + 1
            first = last = below
            while first and found[first - 1][2] == found[first][1]:
                first -= 1
        last = max(last, _first_below(found, 2, end))
        while last + 1 < len(found) and found[last + 1][1] == found[last][2]:
            last += 1
    if _gap_within(found, first, last):
        yield first, last + 1


def _first_below(spans: Sequence[tuple[Any, ...]], field: int, place: int) -> int:
    """The first of the hunks or changes whose field (a start or an end) is not above a place.

    A search by halves of its own: that of the standard library is a shared library in many builds, and what it costs to
    load is more than a few searches do.
    """
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) >> 1
        if spans[middle][field] < place:
            low = middle + 1
        else:
            high = middle
    return low


def _gap_within(found: Sequence[Change], first: int, last: int) -> bool:
    """Whether anything that did not change stands between the changes from the first to the last."""
    return any(found[n][2] < found[n + 1][1] for n in range(first, last))


def _better(stretch: list[Change], bodies: Bodies, scripts: Scripts, touching: bool) -> list[Change]:
    """A stretch as the other scripts have it, where that leaves fewer conflicts."""
    _, b, end, o, _, t, *_ = stretch[0]
    end = stretch[-1][2]
    ours, theirs = (script[_first_below(script, 0, b) : _first_below(script, 0, end + 1)] for script in scripts)
    other = changes(bodies, ours, theirs, touching=touching, at=(b, o, t))
    return other if _conflicts(other) < _conflicts(stretch) and not _doubles(other, bodies) else stretch


def _doubles(found: Sequence[Change], bodies: Bodies) -> bool:
    """Whether both sides bring in one line, each at a place of its own: what they clash over would stand twice."""
    _, ours, theirs = bodies
    our_lines = {line for kind, _, _, o0, o1, *_ in found if kind == OURS for line in ours[o0:o1].split(b"\n")}
    return any(
        line in our_lines and not weak_lines(line + b"\n")
        for kind, *_, t0, t1, _ in found
        if kind == THEIRS
        for line in theirs[t0:t1].split(b"\n")
    )


def _conflicts(found: Sequence[Change]) -> int:
    return sum(change[0] == CONFLICT for change in found)


def joined_up(a: bytes, b: bytes, hunks: list[Hunk], conflicts: Sequence[Change]) -> tuple[list[Hunk], list[Range]]:
    """The script with its pure hunks at ``conflicts`` moved up to join the hunk above, where that is as true a script.

    Args:
        a: The base.
        b: The side.
        hunks: A canonical script from ``a`` to ``b``.
        conflicts: Changes, in order; a joint is tried where one of both hunks meets one of them.

    Returns:
        the script, and the base ranges that the joints reach over.
    """
    result: list[Hunk] = []
    joints: list[Range] = []
    chain: list[Hunk] = []  # the hunks that are joined in the last one of the result
    done = 0  # the hunks that are in the result
    for k in [k for k, (a0, a1, b0, b1) in enumerate(hunks) if k and (a0 == a1 or b0 == b1)]:
        hunk = hunks[k]
        joint = _joint(a, b, hunks[k - 1] if k > done else result[-1], hunk)
        if joint and k > done:
            chain = [hunks[k - 1]]
        if joint and any(_meets(part, conflicts) for part in (hunk, *chain)):
            joints.append((joint[0], hunk[1]))
            result[-1:] = [joint] if k == done else [*result[-1:], *hunks[done : k - 1], joint]
            chain.append(hunk)
            done = k + 1
    return (result + hunks[done:], joints) if joints else (hunks, [])


def _meets(hunk: Hunk, conflicts: Sequence[Change]) -> bool:
    """Whether the base range of a hunk touches that of one of the conflicts."""
    at = _first_below(conflicts, 2, hunk[0])
    return at < len(conflicts) and conflicts[at][1] <= hunk[1]


def _joint(a: bytes, b: bytes, above: Hunk, hunk: Hunk) -> Hunk | None:
    """Both hunks, the lower one pure, as one; the gap now below it. None where that is no script from a to b."""
    a0, a1, _, b1 = hunk
    text, start, end = (b, above[3], b1) if a0 == a1 else (a, above[1], a1)
    gap = a0 - above[1]
    last = end - gap
    if text[start] != text[last] or not same_text(text, (start, start + gap), text, (last, end)):
        return None
    if not ends_terminated(text, (start, last)):
        return None
    return (above[0], above[1], above[2], last) if text is b else (above[0], last, above[2], above[3])
