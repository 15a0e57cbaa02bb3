"""Two edit scripts against one base become regions: what is unchanged, whose change it is, what conflicts.

A region is a kind and three byte ranges, at line boundaries, into the bodies as given; the regions of a merge follow
each other and cover all three bodies. No text is copied here. The whole policy of what conflicts stands in two
predicates, :func:`hunks_overlap` and :func:`insertion_fits`; how a conflict looks is no question of this module.
"""

from __future__ import annotations

from mergepub.merge.lines import Range, ends_terminated, line_count, same_text

UNCHANGED = "unchanged"
OURS = "ours"
THEIRS = "theirs"
BOTH = "both"
CONFLICT = "conflict"
WORDS = "words"

Hunk = tuple[int, int, int, int]
"""Base start, base end, side start, side end: byte offsets; this base range became this range of the side."""

_APART, _ONE_COPY, _CLASH = 0, 1, 2
_AT_ONCE = 8192  # bytes that are searched for one byte in the time that it takes to look at a region


class Region:
    """What becomes of one range of the base.

    Attributes: ``kind`` one of UNCHANGED, OURS (ours' change stands), THEIRS, BOTH (both made the same change),
    CONFLICT, WORDS (settled word by word); ``base``, ``ours``, ``theirs`` half-open byte ranges into the bodies;
    ``text`` the result of WORDS, None in every other kind.
    """

    __slots__ = ("base", "kind", "ours", "text", "theirs")

    def __init__(self, kind: str, base: Range, ours: Range, theirs: Range, text: bytes | None = None) -> None:
        self.kind = kind
        self.base = base
        self.ours = ours
        self.theirs = theirs
        self.text = text

    def _values(self) -> tuple[str, Range, Range, Range, bytes | None]:
        return self.kind, self.base, self.ours, self.theirs, self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Region) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"Region{self._values()!r}"


def hunks_overlap(h: Hunk, k: Hunk, *, touching: bool) -> bool:
    """Whether a hunk of one side and a hunk of the other change the same place of the base.

    They do where they change a common base line, insert at one point, or one inserts strictly inside what the other
    replaces. With ``touching`` (git's stricter reading) hunks that merely touch do so too.
    """
    low, high = max(h[0], k[0]), min(h[1], k[1])
    if touching or low != high:
        return low <= high
    return h[:2] == k[:2] or k[0] < low < k[1] or h[0] < low < h[1]


def insertion_fits(base: bytes, insertion: Hunk, hunk: Hunk, body: bytes) -> bool:
    """Whether an insertion that touches the other side's ``hunk`` (new text in ``body``) keeps its place beside it.

    Only where the hunk replaces n lines by exactly n is it sure that the line at which the insertion stood is still
    there, edited; a hunk that grows or shrinks may have put its own text at that very place. Nor does it fit beside an
    unterminated last line: nothing may follow that, and text alone cannot tell it from the same line inserted above it.
    """
    lines = line_count(base, hunk[:2])
    if lines != line_count(body, hunk[2:]):
        return False
    if insertion[0] == hunk[1] or lines == 1:
        return ends_terminated(body, hunk[2:]) and ends_terminated(base, hunk[:2])
    return True


def regions(
    base: bytes,
    ours: bytes,
    theirs: bytes,
    ours_script: list[Hunk],
    theirs_script: list[Hunk],
    *,
    touching: bool = False,
    at: tuple[int, int, int] = (0, 0, 0),
    end: int | None = None,
) -> list[Region]:
    """The regions of a merge, in base order.

    Args:
        base: The common ancestor.
        ours: Our body.
        theirs: Their body.
        ours_script: Canonical edit script from base to ours: hunks ascend, never touch, gaps are byte-equal.
        theirs_script: The same from base to theirs.
        touching: Hunks that merely touch conflict too (git's verdicts).
        at: Where in base, ours and theirs to begin, for a part of a merge whose hunks alone the scripts hold.
        end: Where in the base to end; None is its end.
    """
    walk = _Walk(base, ours, theirs, touching)
    walk.at = at
    i = j = 0
    while i < len(ours_script) and j < len(theirs_script):
        h, k = ours_script[i], theirs_script[j]
        # Most hunks concern nobody: two comparisons here spare them a call.
        relation = _APART if h[1] < k[0] or k[1] < h[0] else walk.relation(h, k)
        if relation != _APART:
            i_end, j_end, clash = walk.group_from(ours_script, i, theirs_script, j, relation)
            walk.take_group(ours_script[i:i_end], theirs_script[j:j_end], clash=clash)
            i, j = i_end, j_end
        elif h < k:
            walk.take_ours(h)
            i += 1
        else:
            walk.take_theirs(k)
            j += 1
    for h in ours_script[i:]:
        walk.take_ours(h)
    for k in theirs_script[j:]:
        walk.take_theirs(k)
    walk.skip_to(len(base) if end is None else end)
    return walk.found


class _Walk:
    """One walk over both scripts: groups hunks that concern each other, and writes down what becomes of each group."""

    def __init__(self, base: bytes, ours: bytes, theirs: bytes, touching: bool) -> None:
        self.base = base
        self.ours = ours
        self.theirs = theirs
        self.touching = touching
        self.found: list[Region] = []
        self.at = (0, 0, 0)

    def group_from(self, ours: list[Hunk], i: int, theirs: list[Hunk], j: int, relation: int) -> tuple[int, int, bool]:
        """Where the group that starts with the related hunks i and j ends on each side, and whether its hunks clash.

        Hunks of one side never touch, so only the last hunk of a group can concern the next one of the other side, and
        it does not where it ends above that one.
        """
        h, k, worst = ours[i], theirs[j], relation
        i, j = i + 1, j + 1
        while True:
            if i < len(ours) and ours[i][0] <= k[1] and (relation := self.relation(ours[i], k)) != _APART:
                h = ours[i]
                i += 1
            elif j < len(theirs) and theirs[j][0] <= h[1] and (relation := self.relation(h, theirs[j])) != _APART:
                k = theirs[j]
                j += 1
            else:
                return i, j, worst == _CLASH
            worst = max(worst, relation)

    def relation(self, h: Hunk, k: Hunk) -> int:
        """What a hunk of ours and a hunk of theirs are to each other that touch or overlap; others are apart."""
        if h[0] == k[0] and h[1] == k[1] and same_text(self.ours, h[2:], self.theirs, k[2:]):
            return _ONE_COPY
        if hunks_overlap(h, k, touching=self.touching):
            return _CLASH
        if h[0] == h[1]:
            return self._beside(h, self.ours, k, self.theirs)
        return self._beside(k, self.theirs, h, self.ours) if k[0] == k[1] else _APART

    def _beside(self, insertion: Hunk, inserting: bytes, hunk: Hunk, body: bytes) -> int:
        if not insertion_fits(self.base, insertion, hunk, body):
            return _CLASH
        return _ONE_COPY if _already_holds(insertion, inserting, hunk, body) else _APART

    def take_ours(self, hunk: Hunk) -> None:
        """Write down a hunk that concerns none of theirs."""
        b0, b1, _, o1 = hunk
        b, _, t = self.at
        self._take(OURS, b0, (b1, o1, t + b1 - b))

    def take_theirs(self, hunk: Hunk) -> None:
        """Write down a hunk that concerns none of ours."""
        b0, b1, _, t1 = hunk
        b, o, _ = self.at
        self._take(THEIRS, b0, (b1, o + b1 - b, t1))

    def take_group(self, ours: list[Hunk], theirs: list[Hunk], *, clash: bool) -> None:
        """Write down hunks that concern each other."""
        start, theirs_start = ours[0][0], theirs[0][0]
        start = min(start, theirs_start)
        _, end, _, o1 = ours[-1]
        _, theirs_end, _, t1 = theirs[-1]
        # After its last hunk a side's text is the base's, shifted by what its hunks added so far.
        if end < theirs_end:
            o1, end = o1 + theirs_end - end, theirs_end
        else:
            t1 += end - theirs_end
        b, o, t = self.at
        gap = start - b
        kind = self._kind((start, end), (o + gap, o1), (t + gap, t1), ours, clash=clash)
        self._take(kind, start, (end, o1, t1))

    def _kind(self, base: Range, ours: Range, theirs: Range, our_hunks: list[Hunk], *, clash: bool) -> str:
        old, new, other = base[1] - base[0], ours[1] - ours[0], theirs[1] - theirs[0]
        if new == other and same_text(self.ours, ours, self.theirs, theirs):
            return BOTH
        if not clash:  # insertions that the other side's one replacing hunk already holds
            return OURS if any(h[0] < h[1] for h in our_hunks) else THEIRS
        if old == new and same_text(self.base, base, self.ours, ours):
            return THEIRS
        return OURS if old == other and same_text(self.base, base, self.theirs, theirs) else CONFLICT

    def _take(self, kind: str, start: int, end: tuple[int, int, int]) -> None:
        """Write down a region of this kind that begins at `start` in the base and ends at `end` in all three."""
        self.skip_to(start)
        b, o, t = self.at
        self.at = b1, o1, t1 = end
        self.found.append(Region(kind, (b, b1), (o, o1), (t, t1)))

    def skip_to(self, position: int) -> None:
        """Write down that nothing changed up to this position of the base."""
        b, o, t = self.at
        n = position - b
        if n:
            self.at = at = (position, o + n, t + n)
            self.found.append(Region(UNCHANGED, (b, position), (o, at[1]), (t, at[2])))


def _already_holds(insertion: Hunk, inserting: bytes, hunk: Hunk, body: bytes) -> bool:
    """Whether the hunk's new text begins (or, below it, ends) with just the lines that the other side inserts there."""
    added, (start, end) = insertion[2:], hunk[2:]
    length = added[1] - added[0]
    if length > end - start:
        return False
    if insertion[0] == hunk[0]:
        return same_text(inserting, added, body, (start, start + length))
    return ends_terminated(body, (start, end - length)) and same_text(inserting, added, body, (end - length, end))


def anywhere(text: bytes, found: list[Region], base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Whether a text without a line break stands anywhere in the three bodies, of which ``found`` are the regions.

    What did not change is looked at once, in the base, where the changes are few: they are most of a merge of a large
    document, and its whole cost is then not much more than reading it.
    """
    if holds(base, text, 0, len(base)):
        return True
    if len(found) * _AT_ONCE > len(ours) + len(theirs):
        return holds(ours, text, 0, len(ours)) or holds(theirs, text, 0, len(theirs))
    return any(
        holds(ours, text, *region.ours) or holds(theirs, text, *region.theirs)
        for region in found
        if region.kind != UNCHANGED
    )


def holds(body: bytes, text: bytes, start: int, end: int) -> bool:
    """Whether a range of a body holds `text`. One byte is found six times as fast as more: the first goes ahead."""
    at = body.find(text[:1], start, end)
    return at >= 0 and (len(text) == 1 or body.find(text, at, end) >= 0)
