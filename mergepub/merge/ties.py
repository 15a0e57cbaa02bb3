"""Scripts of equal length: where a conflict may be no more than the way in which a script happens to tell an edit.

A canonical script puts every pure hunk as far down as it goes. Often the same hunk could as well stand one gap higher,
joined with the hunk above it: a paragraph and its blank line may be taken as inserted before or after the next blank
line. Where two sides clash, the higher place is tried too, and stands where it leaves fewer conflicts; everywhere else
the canonical place stands, so that the same insertion made by both sides keeps meeting itself.

Nor is it always an insertion that a script says where lines were inserted. Of a new section above an edited one, a
shortest script may match the headings' underlines and say that the heading was replaced and the rest inserted below.
Where the other side inserts just these lines there, they are one insertion, whatever the script says
(:func:`inserted_by_both`).
"""

from __future__ import annotations

from mergepub.merge.lines import ends_terminated, line_count, same_text
from mergepub.merge.regions import CONFLICT, OURS, THEIRS, changes
from mergepub.merge.weak import weak_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mergepub.merge.lines import Range
    from mergepub.merge.regions import Change, Hunk

    Bodies = tuple[bytes, bytes, bytes]
    Scripts = tuple[list[Hunk], list[Hunk]]


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
    places = [change[1:3] for change in found if change[0] == CONFLICT]
    ours, our_joints = joined_up(bodies[0], bodies[1], scripts[0], places)
    theirs, their_joints = joined_up(bodies[0], bodies[2], scripts[1], places)
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
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

    ends = [change[2] for change in found]
    first, last = 0, -1
    for start, end in joints:
        below = bisect_left(ends, start)
        if below > last:
            if _gap_within(found, first, last):
                yield first, last + 1
            first = last = below
            while first and found[first - 1][2] == found[first][1]:
                first -= 1
        last = max(last, bisect_left(ends, end))
        while last + 1 < len(found) and found[last + 1][1] == found[last][2]:
            last += 1
    if _gap_within(found, first, last):
        yield first, last + 1


def _gap_within(found: Sequence[Change], first: int, last: int) -> bool:
    """Whether anything that did not change stands between the changes from the first to the last."""
    return any(found[n][2] < found[n + 1][1] for n in range(first, last))


def _better(stretch: list[Change], bodies: Bodies, scripts: Scripts, touching: bool) -> list[Change]:
    """A stretch as the other scripts have it, where that leaves fewer conflicts."""
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

    _, b, end, o, _, t, *_ = stretch[0]
    end = stretch[-1][2]
    ours, theirs = (script[bisect_left(script, (b,)) : bisect_left(script, (end + 1,))] for script in scripts)
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


def joined_up(a: bytes, b: bytes, hunks: list[Hunk], places: Sequence[Range]) -> tuple[list[Hunk], list[Range]]:
    """The script with its pure hunks at ``places`` moved up to join the hunk above, where that is as true a script.

    Args:
        a: The base.
        b: The side.
        hunks: A canonical script from ``a`` to ``b``.
        places: Base ranges, in order; a joint is tried where one of both hunks meets one of them.

    Returns:
        the script, and the base ranges that the joints reach over.
    """
    ends = [end for _, end in places]
    result: list[Hunk] = []
    joints: list[Range] = []
    chain: list[Hunk] = []  # the hunks that are joined in the last one of the result
    done = 0  # the hunks that are in the result
    for k in [k for k, (a0, a1, b0, b1) in enumerate(hunks) if k and (a0 == a1 or b0 == b1)]:
        hunk = hunks[k]
        if k > done:
            chain = [hunks[k - 1]]
        joint = _joint(a, b, hunks[k - 1] if k > done else result[-1], hunk)
        if joint and any(_meets(part, places, ends) for part in (hunk, *chain)):
            joints.append((joint[0], hunk[1]))
            result[-1:] = [joint] if k == done else [*result[-1:], *hunks[done : k - 1], joint]
            chain.append(hunk)
            done = k + 1
    return (result + hunks[done:], joints) if joints else (hunks, [])


def _meets(hunk: Hunk, places: Sequence[Range], ends: Sequence[int]) -> bool:
    """Whether the base range of a hunk touches one of the places, which end at `ends`."""
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

    at = bisect_left(ends, hunk[0])
    return at < len(places) and places[at][0] <= hunk[1]


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
