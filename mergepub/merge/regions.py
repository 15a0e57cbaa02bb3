"""Two edit scripts against one base become changes: whose each is, what conflicts, and which bytes of each body it is.

A change is a flat tuple: thousands of them are made in the merge of a much edited document, and an object with three
ranges in it costs six times as much. What stands between two changes did not change; nothing is written down for it.
Whoever asks for regions gets values that cover all three bodies (:func:`covering`). No text is copied here. The whole
policy of what conflicts stands in two predicates, :func:`hunks_overlap` and :func:`insertion_fits`; how a conflict
looks is no question of this module.
"""

from __future__ import annotations

from mergepub.merge.lines import LF, Range, ends_terminated, line_count, same_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Change = tuple[str, int, int, int, int, int, int, bytes | None]

UNCHANGED = "unchanged"
OURS = "ours"
THEIRS = "theirs"
BOTH = "both"
CONFLICT = "conflict"
WORDS = "words"

Hunk = tuple[int, int, int, int]
"""Base start, base end, side start, side end: byte offsets; this base range became this range of the side."""

_APART, _ONE_COPY, _CLASH = 0, 1, 3  # the worse of two has the bits of both
_AT_ONCE = 16384  # bytes that are searched for one byte in the time that it takes to look at a change
_SECTION = 1 << 16  # bytes
_FAR = 1 << 62  # behind every body
_END: Hunk = (_FAR, _FAR, 0, 0)


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


def covering(found: Sequence[Change], sizes: tuple[int, int, int]) -> list[Region]:
    """The changes of a merge as regions, and what did not change between them: together all of the three bodies.

    Args:
        found: The changes, in order.
        sizes: The lengths of base, ours and theirs.
    """
    result: list[Region] = []
    b = o = t = 0
    for kind, b0, b1, o0, o1, t0, t1, text in found:
        if b < b0:
            result.append(Region(UNCHANGED, (b, b0), (o, o0), (t, t0)))
        result.append(Region(kind, (b0, b1), (o0, o1), (t0, t1), text))
        b, o, t = b1, o1, t1
    if b < sizes[0]:
        result.append(Region(UNCHANGED, (b, sizes[0]), (o, sizes[1]), (t, sizes[2])))
    return result


def hunks_overlap(h: Hunk, k: Hunk, *, touching: bool) -> bool:
    """Whether a hunk of one side and a hunk of the other change the same place of the base.

    They do where they change a common base line, insert at one point, or one inserts strictly inside what the other
    replaces. With ``touching`` (git's stricter reading) hunks that merely touch do so too.
    """
    if touching:
        return h[0] <= k[1] and k[0] <= h[1]
    return (h[0] < k[1] and k[0] < h[1]) or h[:2] == k[:2]


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


def changes(
    bodies: tuple[bytes, bytes, bytes],
    our_script: Sequence[Hunk],
    their_script: Sequence[Hunk],
    *,
    touching: bool = False,
    at: tuple[int, int, int] = (0, 0, 0),
) -> list[Change]:
    """The changes of a merge, in base order: hunks that concern each other together, every other alone.

    Args:
        bodies: The common ancestor, our body, their body.
        our_script: Canonical edit script from base to ours: hunks ascend, never touch, gaps are byte-equal.
        their_script: The same from base to theirs.
        touching: Hunks that merely touch conflict too (git's verdicts).
        at: Places in base, ours and theirs that belong together, at or above the first hunks.
    """
    pair = _Pair(bodies, touching)
    found: list[Change] = []
    # Where a side's text is the base's, it stands so many bytes further down.
    our_shift, their_shift = at[1] - at[0], at[2] - at[0]
    ours, theirs = [*our_script, _END], [*their_script, _END]
    i = j = 0
    while True:
        h0, h1, o0, o1 = h = ours[i]
        k0, k1, t0, t1 = k = theirs[j]
        if h0 == k0 == _FAR:
            return found
        relation = _APART if h1 < k0 or k1 < h0 else pair.relation(h, k)
        if relation != _APART:
            group = i
            i, j = i + 1, j + 1
            b0 = h0 if h0 < k0 else k0
            if ours[i][0] <= k1 or theirs[j][0] <= h1:
                i, j, relation = pair.more(ours, i, theirs, j, relation)
                _, h1, _, o1 = ours[i - 1]
                _, k1, _, t1 = theirs[j - 1]
            b1 = h1 if h1 > k1 else k1
            o0, t0 = b0 + our_shift, b0 + their_shift
            our_shift, their_shift = o1 - h1, t1 - k1
            o1, t1 = b1 + our_shift, b1 + their_shift
            kind = CONFLICT
            if relation != _CLASH or o1 - o0 == t1 - t0 or b1 - b0 in (o1 - o0, t1 - t0):  # else no two can be the same
                kind = pair.kind((b0, b1, o0, o1, t0, t1), ours[group:i], relation)
            found.append((kind, b0, b1, o0, o1, t0, t1, None))
        elif h < k:
            found.append((OURS, h0, h1, o0, o1, h0 + their_shift, h1 + their_shift, None))
            our_shift = o1 - h1
            i += 1
        else:
            found.append((THEIRS, k0, k1, k0 + our_shift, k1 + our_shift, t0, t1, None))
            their_shift = t1 - k1
            j += 1


class _Pair:
    """What hunks of two sides are to each other."""

    __slots__ = ("base", "ours", "theirs", "touching")

    def __init__(self, bodies: tuple[bytes, bytes, bytes], touching: bool) -> None:
        self.base, self.ours, self.theirs = bodies
        self.touching = touching

    def relation(self, h: Hunk, k: Hunk) -> int:
        """What a hunk of ours and a hunk of theirs are to each other that touch or overlap; others are apart."""
        h0, h1, o0, o1 = h
        k0, k1, t0, t1 = k
        if h0 == k0 and h1 == k1 and o1 - o0 == t1 - t0 and same_text(self.ours, (o0, o1), self.theirs, (t0, t1)):
            return _ONE_COPY
        if self.touching or (h0 < k1 and k0 < h1):  # the commonest of what hunks_overlap tells
            return _CLASH
        if hunks_overlap(h, k, touching=self.touching):
            return _CLASH
        if h[0] == h[1]:
            return self._beside(h, self.ours, k, self.theirs)
        return self._beside(k, self.theirs, h, self.ours) if k[0] == k[1] else _APART

    def _beside(self, insertion: Hunk, inserting: bytes, hunk: Hunk, body: bytes) -> int:
        if not insertion_fits(self.base, insertion, hunk, body):
            return _CLASH
        return _ONE_COPY if _already_holds(insertion, inserting, hunk, body) else _APART

    def more(self, ours: Sequence[Hunk], i: int, theirs: Sequence[Hunk], j: int, relation: int) -> tuple[int, int, int]:
        """Where the group of hunks ends on each side that is known up to the hunks before i and j; its worst relation.

        Hunks of one side never touch, so only the last hunk of a group can concern the next one of the other side, and
        it does not where it ends above that one.
        """
        worst = relation
        while True:
            if ours[i][0] <= theirs[j - 1][1] and (relation := self.relation(ours[i], theirs[j - 1])) != _APART:
                i += 1
            elif theirs[j][0] <= ours[i - 1][1] and (relation := self.relation(ours[i - 1], theirs[j])) != _APART:
                j += 1
            else:
                return i, j, worst
            worst |= relation

    def kind(self, spans: tuple[int, int, int, int, int, int], our_hunks: Sequence[Hunk], relation: int) -> str:
        """What becomes of a group of hunks that covers these ranges of base, ours and theirs."""
        b0, b1, o0, o1, t0, t1 = spans
        old, new, other = b1 - b0, o1 - o0, t1 - t0
        if new == other and same_text(self.ours, (o0, o1), self.theirs, (t0, t1)):
            return BOTH
        if relation == _ONE_COPY:  # insertions that the other side's one replacing hunk already holds
            return OURS if any(h[0] < h[1] for h in our_hunks) else THEIRS
        if old == new and same_text(self.base, (b0, b1), self.ours, (o0, o1)):
            return THEIRS
        return OURS if old == other and same_text(self.base, (b0, b1), self.theirs, (t0, t1)) else CONFLICT


def _already_holds(insertion: Hunk, inserting: bytes, hunk: Hunk, body: bytes) -> bool:
    """Whether the hunk's new text begins (or, below it, ends) with just the lines that the other side inserts there."""
    added, (start, end) = insertion[2:], hunk[2:]
    length = added[1] - added[0]
    if length > end - start:
        return False
    if insertion[0] == hunk[0]:
        return same_text(inserting, added, body, (start, start + length))
    return ends_terminated(body, (start, end - length)) and same_text(inserting, added, body, (end - length, end))


def brought_in_twice(found: Sequence[Change], ours: bytes, theirs: bytes) -> set[bytes]:
    """The lines, without newline and none of them blank, that both sides brought in, each at a place of its own.

    One of the two put them in the place of others: what both merely inserted may be meant to stand twice. Changes that
    are longer than any section are passed by.
    """
    our_lines: set[bytes] = set()
    their_lines: set[bytes] = set()
    our_replacing: set[bytes] = set()
    their_replacing: set[bytes] = set()
    for kind, b0, b1, o0, o1, t0, t1, _ in found:
        if kind == OURS and o1 - o0 <= _SECTION:
            (our_lines if b0 == b1 else our_replacing).update(ours[o0:o1].split(LF))
        elif kind == THEIRS and t1 - t0 <= _SECTION:
            (their_lines if b0 == b1 else their_replacing).update(theirs[t0:t1].split(LF))
    twice = our_replacing & their_replacing | our_replacing & their_lines | our_lines & their_replacing
    twice.discard(b"")
    return twice


def anywhere(text: bytes, found: Sequence[Change], base: bytes, ours: bytes, theirs: bytes) -> bool:
    """Whether a text without a line break stands anywhere in the three bodies, of which ``found`` are the changes.

    What did not change is looked at once, in the base, where the changes are few: they are most of a merge of a large
    document, and its whole cost is then not much more than reading it.
    """
    if holds(base, text, 0, len(base)):
        return True
    if len(found) * _AT_ONCE > len(ours) + len(theirs):
        return holds(ours, text, 0, len(ours)) or holds(theirs, text, 0, len(theirs))
    return any(holds(ours, text, change[3], change[4]) or holds(theirs, text, change[5], change[6]) for change in found)


def holds(body: bytes, text: bytes, start: int, end: int) -> bool:
    """Whether a range of a body holds `text`.

    One byte is found many times as fast as more: the first goes ahead. More are found twice as fast from the end.
    """
    at = body.find(text[:1], start, end)
    return at >= 0 and (len(text) == 1 or body.rfind(text, at, end) >= 0)
