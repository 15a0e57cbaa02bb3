"""Scripts of equal length: where a conflict may be no more than the place at which a hunk happens to stand.

A canonical script puts every pure hunk as far down as it goes. Often the same hunk could as well stand one gap higher,
joined with the hunk above it: a paragraph and its blank line may be taken as inserted before or after the next blank
line. Where two sides clash, the higher place is tried too, and stands where it leaves fewer conflicts; everywhere else
the canonical place stands, so that the same insertion made by both sides keeps meeting itself.
"""

from __future__ import annotations

from mergepub.merge.lines import ends_terminated, same_text
from mergepub.merge.regions import CONFLICT, OURS, THEIRS, UNCHANGED, Region, regions
from mergepub.merge.weak import weak_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mergepub.merge.lines import Range
    from mergepub.merge.regions import Hunk

    Bodies = tuple[bytes, bytes, bytes]
    Scripts = tuple[list[Hunk], list[Hunk]]


def without_ties(found: list[Region], bodies: Bodies, scripts: Scripts, *, touching: bool) -> list[Region]:
    """The regions, without those conflicts that a higher place of a hunk dissolves.

    Args:
        found: The regions of a merge.
        bodies: Base, ours and theirs.
        scripts: The canonical scripts from base to ours and to theirs, of which ``found`` was made.
        touching: As in :func:`mergepub.merge.regions.regions`.
    """
    places = [region.base for region in found if region.kind == CONFLICT]
    ours, our_joints = joined_up(bodies[0], bodies[1], scripts[0], places)
    theirs, their_joints = joined_up(bodies[0], bodies[2], scripts[1], places)
    joints = sorted(our_joints + their_joints)
    if not joints:
        return found
    result: list[Region] = []
    for stretch in _stretches(found, joints):
        if len(stretch) > 1 and any(region.kind == UNCHANGED for region in stretch):
            result += _better(stretch, bodies, (ours, theirs), touching)
        else:
            result += stretch
    return result


def _stretches(found: list[Region], joints: list[Range]) -> Iterator[list[Region]]:
    """The regions cut at every unchanged one that no joint reaches over, each of these a stretch of its own."""
    stretch: list[Region] = []
    reach, following = 0, iter([*joints, (found[-1].base[1] + 1, 0)])
    start, end = next(following)
    for region in found:
        while start <= region.base[0]:
            reach = max(reach, end)
            start, end = next(following)
        if region.kind != UNCHANGED or region.base[0] < reach:
            stretch.append(region)
            continue
        yield stretch
        yield [region]
        stretch = []
    yield stretch


def _better(stretch: list[Region], bodies: Bodies, scripts: Scripts, touching: bool) -> list[Region]:
    """A stretch as the other scripts have it, where that leaves fewer conflicts."""
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

    first, end = stretch[0], stretch[-1].base[1]
    at = (first.base[0], first.ours[0], first.theirs[0])
    ours, theirs = (script[bisect_left(script, at[:1]) : bisect_left(script, (end + 1,))] for script in scripts)
    other = regions(*bodies, ours, theirs, touching=touching, at=at, end=end)
    return other if _conflicts(other) < _conflicts(stretch) and not _doubles(other, bodies) else stretch


def _doubles(found: list[Region], bodies: Bodies) -> bool:
    """Whether both sides bring in one line, each at a place of its own: what they clash over would stand twice."""
    _, ours, theirs = bodies
    our_lines = {line for region in found if region.kind == OURS for line in ours[slice(*region.ours)].split(b"\n")}
    return any(
        line in our_lines and not weak_lines(line + b"\n")
        for region in found
        if region.kind == THEIRS
        for line in theirs[slice(*region.theirs)].split(b"\n")
    )


def _conflicts(found: list[Region]) -> int:
    return sum(region.kind == CONFLICT for region in found)


def joined_up(a: bytes, b: bytes, hunks: Sequence[Hunk], places: Sequence[Range]) -> tuple[list[Hunk], list[Range]]:
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
    for hunk in hunks:
        joint = _joint(a, b, result[-1], hunk) if result else None
        if joint and any(_meets(part, places, ends) for part in (hunk, *chain)):
            joints.append((joint[0], hunk[1]))
            result[-1] = joint
            chain.append(hunk)
        else:
            result.append(hunk)
            chain = [hunk]
    return result, joints


def _meets(hunk: Hunk, places: Sequence[Range], ends: Sequence[int]) -> bool:
    """Whether the base range of a hunk touches one of the places, which end at `ends`."""
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

    at = bisect_left(ends, hunk[0])
    return at < len(places) and places[at][0] <= hunk[1]


def _joint(a: bytes, b: bytes, above: Hunk, hunk: Hunk) -> Hunk | None:
    """Both hunks as one, the gap between them now below it; None where that is no script from ``a`` to ``b``."""
    a0, a1, b0, b1 = hunk
    if a0 == a1:
        text, start, end = b, above[3], b1
    elif b0 == b1:
        text, start, end = a, above[1], a1
    else:
        return None
    gap = a0 - above[1]
    last = end - gap
    if text[start] != text[last] or not same_text(text, (start, start + gap), text, (last, end)):
        return None
    if not ends_terminated(text, (start, last)):
        return None
    return (above[0], above[1], above[2], last) if text is b else (above[0], last, above[2], above[3])
