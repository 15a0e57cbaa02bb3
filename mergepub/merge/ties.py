"""Scripts of equal length: where a conflict may be no more than the place at which a hunk happens to stand.

A canonical script puts every pure hunk as far down as it goes. Often the same hunk could as well stand one gap higher,
joined with the hunk above it: a paragraph and its blank line may be taken as inserted before or after the next blank
line. Where two sides clash, the higher place is tried too, for the hunks of that conflict alone; everywhere else the
canonical place stands, so that the same insertion made by both sides keeps meeting itself.
"""

from __future__ import annotations

from mergepub.merge.lines import ends_terminated, same_text
from mergepub.merge.slide import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mergepub.merge.lines import Range
    from mergepub.merge.regions import Hunk


def joined_up(a: bytes, b: bytes, hunks: Sequence[Hunk], places: Sequence[Range]) -> list[Hunk]:
    """The script with its pure hunks at ``places`` moved up to join the hunk above, where that is as true a script.

    Args:
        a: The base.
        b: The side.
        hunks: A canonical script from ``a`` to ``b``.
        places: Base ranges, in order; a joint is tried where one of both hunks meets one of them.
    """
    result: list[Hunk] = []
    near = False
    for hunk, meets in zip(hunks, _meeting(hunks, places), strict=True):
        joint = _joint(a, b, result[-1], hunk) if result and (meets or near) else None
        near = meets or (near and joint is not None)
        if joint is None:
            result.append(hunk)
        else:
            result[-1] = joint
    return canonical(a, b, result)


def _meeting(hunks: Sequence[Hunk], places: Sequence[Range]) -> list[bool]:
    """For each hunk whether its base range touches one of the places."""
    meets, i = [], 0
    for start, end, _, _ in hunks:
        while i < len(places) and places[i][1] < start:
            i += 1
        meets.append(i < len(places) and places[i][0] <= end)
    return meets


def _joint(a: bytes, b: bytes, above: Hunk, hunk: Hunk) -> Hunk | None:
    """Both hunks as one, the gap between them now below it; None where that is no script from ``a`` to ``b``."""
    gap = hunk[0] - above[1]
    if hunk[0] == hunk[1]:
        text, start, end = b, above[3], hunk[3]
    elif hunk[2] == hunk[3]:
        text, start, end = a, above[1], hunk[1]
    else:
        return None
    last = end - gap
    if not (same_text(text, (start, start + gap), text, (last, end)) and ends_terminated(text, (start, last))):
        return None
    return (above[0], above[1], above[2], last) if text is b else (above[0], last, above[2], above[3])
