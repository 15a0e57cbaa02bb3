"""Scripts told anew: both sides replaced a line by the same one, and the script of one does not say so.

A new section is put above an old one, and the old one's line "Unreleased" gives way to a date. The new section has such
a line too, so that a shortest script may well say that the old section's became the new one's, and that a section with
a date was inserted below. It is as short as the true one, and nothing in the two texts tells them apart. But where the
other side replaced just that line by just that date, the true one is seen: the way from the base over the other side is
no longer than the direct one, and tells their common edit as the other side's script does.
"""

from __future__ import annotations

from mergepub.merge.myers import edit_script
from mergepub.merge.regions import CONFLICT, brought_in_twice, changes
from mergepub.merge.scripts import canonical, weak_lines, without_ties, without_weak_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mergepub.merge.regions import Change, Hunk

    Bodies = tuple[bytes, bytes, bytes]
    Scripts = tuple[list[Hunk], list[Hunk]]


def retold(found: list[Change], bodies: Bodies, scripts: Scripts) -> list[Change]:
    """The changes of a merge; where a line stands in them twice that both sides brought in, by a script that avoids it.

    Args:
        found: The changes of a merge.
        bodies: Base, ours and theirs.
        scripts: The canonical scripts from base to ours and to theirs, of which ``found`` was made.
    """
    before = _faults(found, bodies)
    if not before[1]:
        return found
    others = [_merged(bodies, other) for other in _others(bodies, scripts)]
    better = [other for other in others if _faults(other, bodies)[1] < before[1] and _conflicts(other) <= before[0]]
    return better[0] if len(better) == 1 else found  # of two, neither side's would be the right one to take


def _faults(found: Sequence[Change], bodies: Bodies) -> tuple[int, int]:
    """Conflicts, and lines that both sides brought in, one of them for another line, and that prove something."""
    twice = brought_in_twice(found, bodies[1], bodies[2])
    return _conflicts(found), sum(not weak_lines(line + b"\n") for line in twice)


def _conflicts(found: Sequence[Change]) -> int:
    return sum(change[0] == CONFLICT for change in found)


def _merged(bodies: Bodies, scripts: Scripts) -> list[Change]:
    found = changes(bodies, *scripts)
    return without_ties(found, bodies, scripts, touching=False) if _conflicts(found) else found


def _others(bodies: Bodies, scripts: Scripts) -> Iterator[Scripts]:
    """The scripts with one of them told by way of the other side, where it is then no longer than it was."""
    base, ours, theirs = bodies
    our_script, their_script = scripts
    over_theirs = _by_way_of(base, theirs, ours, their_script)
    if _no_longer(base, ours, over_theirs, our_script):
        yield over_theirs, their_script
    over_ours = _by_way_of(base, ours, theirs, our_script)
    if _no_longer(base, theirs, over_ours, their_script):
        yield our_script, over_ours


def _no_longer(a: bytes, b: bytes, script: list[Hunk], than: list[Hunk]) -> bool:
    return script != than and _length(a, b, script) <= _length(a, b, than)


def _length(a: bytes, b: bytes, script: Sequence[Hunk]) -> int:
    """The lines that a script deletes and inserts."""
    return sum(a.count(b"\n", a0, a1) + b.count(b"\n", b0, b1) for a0, a1, b0, b1 in script)


def _by_way_of(base: bytes, middle: bytes, end: bytes, first: Sequence[Hunk]) -> list[Hunk]:
    """The script from the base to an end that keeps what the `first`, to the middle, and one from there keep.

    What the middle alone has edited is in neither, and found again.
    """
    hunks: list[Hunk] = []
    for a0, a1, b0, b1 in composed(first, edit_script(middle, end), (len(base), len(middle), len(end))):
        within = edit_script(base[a0:a1], end[b0:b1], weak_rule=False)
        hunks += [(a0 + x0, a0 + x1, b0 + y0, b0 + y1) for x0, x1, y0, y1 in within]
    return without_weak_matches(base, end, canonical(base, end, hunks))


def composed(first: Sequence[Hunk], second: Sequence[Hunk], sizes: tuple[int, int, int]) -> list[Hunk]:
    """One script for two in a row.

    Args:
        first: A script from a text to a middle one; ordered, never touching.
        second: A script from the middle one to the last.
        sizes: The lengths of the three texts.
    """
    kept, kept_next = list(_kept(first, *sizes[:2])), list(_kept(second, *sizes[1:]))
    hunks: list[Hunk] = []
    i = j = a = b = 0
    while i < len(kept) and j < len(kept_next):
        (start, middle, n), (next_middle, next_start, m) = kept[i], kept_next[j]
        low, high = max(middle, next_middle), min(middle + n, next_middle + m)
        if low < high:
            x, y = start + low - middle, next_start + low - next_middle
            if x > a or y > b:
                hunks.append((a, x, b, y))
            a, b = x + high - low, y + high - low
        if middle + n < next_middle + m:
            i += 1
        else:
            j += 1
    return [*hunks, (a, sizes[0], b, sizes[2])] if (a, b) != (sizes[0], sizes[2]) else hunks


def _kept(script: Sequence[Hunk], size_a: int, size_b: int) -> Iterator[tuple[int, int, int]]:
    """What a script keeps: where it stands in both texts, and how long it is."""
    a = b = 0
    for a0, a1, _, b1 in [*script, (size_a, size_a, size_b, size_b)]:
        if a < a0:
            yield a, b, a0 - a
        a, b = a1, b1
