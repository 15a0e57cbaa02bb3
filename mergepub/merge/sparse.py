"""Merges of huge bodies of which little was edited: a side is read past once, and only its edits are kept.

The same walk as in ``myers.py``, with the same steps, but the side comes in parts and whatever equals the base is
dropped at once. Two lists of edits are then merged where they come near each other, by ``diff3()`` of the few lines
around them; everywhere else the edits simply stand. The outcome is that of ``diff3()`` on the whole bodies, byte for
byte. Where that is not certain (an edit so large that its end is not seen, one that may stand far from where it was
found, a line that both sides brought in, a text that reads as a marker), the answer is None, and the caller merges the
whole bodies.

Pure, like the rest of the engine: who calls reads the sides.
"""

from __future__ import annotations

from mergepub.merge import diff3
from mergepub.merge.lines import LF, common_prefix, converted_ending, uniform_ending
from mergepub.merge.markers import SMALLEST, START
from mergepub.merge.myers import (
    COMMIT,
    DEEPEST,
    GROWTH,
    REACH,
    WINDOW,
    hunks_between,
    one_block,
    one_line,
    search,
    window,
)
from mergepub.merge.regions import holds
from mergepub.merge.scripts import canonical, weak_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from mergepub.merge import Merged

    Hunk = tuple[int, int, int, int]
    Step = tuple[list[Hunk], int, int]
    Edit = tuple[int, int, bytes]
    """Base start and base end of a hunk, byte offsets at line boundaries, and the text that the side has there."""
    Cluster = tuple[list[Edit], list[Edit]]

_LINE = 2048  # bytes; a line of twice as many, where an edit is looked for, is left to the merge of whole bodies
_CONTEXT = 1024  # bytes looked at beside an edit
_NEAR = 512  # bytes; edits that have fewer between them may become one (see `scripts.py`)
_MOST = 1 << 20  # bytes of a side at hand; where these do not settle an edit, more would not
_APART = 24 << 10  # bytes between places that were edited; where there are fewer, whole bodies are merged sooner,
_FIRST = 1 << 19  # but that many bytes may hold more of them


class Outcome:
    """A merge without its bodies.

    Attributes: ``pieces`` the merged bytes, unjoined; ``conflicts`` the number of those shown; ``settled`` the number
    of those that a favour settled; ``unterminated`` the sides whose text in a shown conflict has no newline at its end;
    ``marker_size`` the number of characters of the markers, 0 where nothing was merged.
    """

    __slots__ = ("conflicts", "marker_size", "pieces", "settled", "unterminated")

    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.conflicts = 0
        self.settled = 0
        self.marker_size = 0
        self.unterminated: tuple[str, ...] = ()

    def add(self, merged: Merged) -> None:
        """Append the merge of a part."""
        self.pieces += merged.pieces
        self.conflicts += merged.conflicts
        self.settled += merged.settled
        self.unterminated += merged.unterminated
        self.marker_size = max(self.marker_size, merged.marker_size)


def merge_parts(base: bytes, ours: Iterator[bytes], theirs: Iterator[bytes], **how: Any) -> Outcome | None:
    """Merge two sides that are read in parts; None where that needs the whole bodies.

    Args:
        base: What both sides were made from.
        ours: The parts of our body, of any sizes, none of them empty.
        theirs: Those of theirs.
        how: As :func:`merge_edits` takes it.

    Raises:
        InputError: An option has a value it cannot have.
    """
    our_edits = edits_of(base, ours)
    their_edits = None if our_edits is None else edits_of(base, theirs)
    return None if our_edits is None or their_edits is None else merge_edits(base, our_edits, their_edits, **how)


def edits_of(base: bytes, parts: Iterator[bytes], *, line: int = _LINE) -> list[Edit] | None:
    """The edits that make a side of `base`; None where they are too many, or the whole side is needed to find them.

    Args:
        base: The body that was edited.
        parts: The parts of the side, of any sizes, none of them empty.
        line: Half the longest line near an edit.
    """
    side = _Side(base, parts, line)
    places = 0
    while side.to_difference():
        places += 1
        if not side.past_difference() or places * _APART > side.x + _FIRST:
            return None
    return side.edits


class _Side:
    """A walk along the base and a side.

    Attributes: ``edits`` found so far; ``x`` and ``y`` the point of the walk, in the base and in ``text``, which is
    what is at hand of the side; ``whole`` whether the side ends with it.
    """

    __slots__ = ("_base", "_line", "_parts", "_region", "edits", "text", "whole", "x", "y")

    def __init__(self, base: bytes, parts: Iterator[bytes], line: int) -> None:
        self.edits: list[Edit] = []
        self.text = b""
        self.x = self.y = 0
        self.whole = False
        self._base = base
        self._parts = parts
        self._line = line
        # No walk between two settled points goes further on a side, where all lines are shorter than two blocks.
        self._region = (DEEPEST + 1) * (2 * line + COMMIT)

    def to_difference(self) -> bool:
        """Go to the start of the next line that differs; False where there is none."""
        base = self._base
        while self.y < len(self.text) or self._more():
            rest = memoryview(self.text)[self.y :]
            if not base.startswith(rest, self.x):
                limit = min(len(base) - self.x, len(rest))
                equal = common_prefix(base, self.x, rest, 0, limit)
                self.x += equal
                self.y += equal
                break
            self.x += len(rest)
            self.y = len(self.text)
        else:
            if self.x == len(base):
                return False
        start = base.rfind(LF, 0, self.x) + 1
        above = self.x - start
        if above > self.y:  # the line began in what is no longer at hand; it is the base's
            self.text = base[start : self.x - self.y] + self.text
            self.y = above
        self.x, self.y = start, self.y - above
        return True

    def past_difference(self) -> bool:
        """Go past the edit at this point, and keep it; False where no step of the walk finds its end."""
        if self.x == len(self._base) or self.y == len(self.text):  # of which the latter is true of the end alone
            self._keep_rest()
            return True
        step = self._step()
        if step is None:
            return False
        hunks, self.x, self.y = step
        self.edits += [(a0, a1, self.text[b0:b1]) for a0, a1, b0, b1 in hunks]
        return True

    def _keep_rest(self) -> None:
        rest = [self.text[self.y :], *self._parts]
        self.edits.append((self.x, len(self._base), b"".join(rest)))
        self.x, self.y, self.text, self.whole = len(self._base), 0, b"", True

    def _step(self) -> Step | None:
        for size in (2 * self._line, self._region):  # less is at hand at the end of nearly every part
            self._at_least(size)
            edit = one_line(self._base, self.x, self.text, memoryview(self.text), self.y)
            if edit:
                below_a, below_b, n = edit
                return [(self.x, below_a, self.y, below_b)], below_a + n, below_b + n
        return self._searched()

    def _searched(self) -> Step | None:
        """What the search finds, once nothing beyond the text at hand can have it find anything else."""
        if not (self.whole or (self._short_lines(self._base, self.x) and self._short_lines(self.text, self.y))):
            return None
        while True:
            found = search(self._base, self.text, memoryview(self.text), self.x, self.y)
            if found is None:
                return self._section()
            if self.whole or self._is_settled(found):
                return found
            if len(self.text) > _MOST:
                return None
            self._more()

    def _is_settled(self, found: Step) -> bool:
        """Whether the search would find the same if more of the side were at hand.

        It takes the longest way on. Either all of them end within the text, or one goes on and no other can: the last
        bytes of the text stand once only where another could be.
        """
        _, x, y = found
        last = self.text.rfind(LF) + 1
        if y + self._region < last:
            return True
        if y != last or x == len(self._base):
            return False
        tail, place = self.text[y - COMMIT : y], x - COMMIT
        nearby = max(0, place - self._region), x + self._region
        return self._base.find(tail, *nearby) == place == self._base.rfind(tail, *nearby)

    def _section(self) -> Step | None:
        """A whole section inserted or deleted."""
        self._at_least(REACH + self._region)
        if not self.whole and self.text.rfind(LF) < self.y + REACH + COMMIT:
            return None
        point = one_block(self._base, self.x, self.text, memoryview(self.text), self.y)
        return ([(self.x, point[0], self.y, point[1])], *point) if point else self._dense()

    def _dense(self) -> Step | None:
        """What is found in a window of lines, which has to be at hand."""
        size = WINDOW
        while self.whole or size <= WINDOW * GROWTH:
            self._at_least(size + self._region)
            if not self.whole and self.text.find(LF, self.y + size - 1, len(self.text) - 1) < 0:
                return None
            found = window(self._base, self.text, self.x, self.y, size, {}, weak_rule=True)
            if found:
                return found
            size *= GROWTH
        return None

    def _short_lines(self, text: bytes, at: int) -> bool:
        """Whether no line of the region from there on is as long as two blocks: every block holds a line's end."""
        blocks = range(at, min(at + self._region, len(text) - self._line), self._line)
        return all(text.find(LF, block, block + self._line) >= 0 for block in blocks)

    def _at_least(self, size: int) -> None:
        while len(self.text) - self.y < size and self._more():
            pass

    def _more(self) -> bool:
        """Read on; False at the end of the side."""
        part = next(self._parts, b"")
        if not part:
            self.whole = True
            return False
        self.text = self.text[self.y :] + part
        self.y = 0
        return True


def merge_edits(
    base: bytes, ours: Sequence[Edit], theirs: Sequence[Edit], *, context: int = _CONTEXT, **how: Any
) -> Outcome | None:
    """Merge two lists of edits of one base; None where that needs the whole bodies.

    Args:
        base: The body that was edited.
        ours: Our edits, in order, as :func:`edits_of` gives them.
        theirs: Theirs.
        context: Bytes of the base, in whole lines, that are looked at above and below an edit.
        how: Keyword arguments of :func:`~mergepub.merge.diff3`, but for ``granularity`` and ``engine``: a merge
            by words looks at whole bodies, and so do other engines.

    Raises:
        InputError: An option has a value it cannot have.
    """
    diff3(b"", b"", b"", **how)  # a wrong option is wrong where nothing needs a merge, too
    merge = _Merge(base, context, how)
    if not ours or not theirs or ours == theirs:
        merge.apply(ours or theirs)
    elif b"\0" in base or _in_any(b"\0", ours, theirs):
        return None
    elif how.get("adjacent") != "conflict" and _share_lines(ours, theirs):
        return None  # of several scripts one may tell better what both did; that is decided over all changes
    elif not merge.joins(list(_clusters(ours, theirs, context))):
        return None
    merge.copy_until(len(base))
    outcome = merge.outcome
    if outcome.conflicts or outcome.settled:
        as_given = outcome.marker_size == how.get("marker_size", SMALLEST)
        return outcome if as_given and _look_alike(base, ours, theirs) else None
    return outcome


def _in_any(text: bytes, ours: Iterable[Edit], theirs: Iterable[Edit]) -> bool:
    return any(text in new for edits in (ours, theirs) for _, _, new in edits)


def _share_lines(ours: Iterable[Edit], theirs: Iterable[Edit]) -> bool:
    """Whether both sides brought in a line that proves something, other than by the same edit."""
    our_edits, their_edits = set(ours), set(theirs)
    our_lines, their_lines = (
        {line for _, _, text in edits for line in text.split(LF)}
        for edits in (our_edits - their_edits, their_edits - our_edits)
    )
    return any(not weak_lines(line + LF) for line in our_lines & their_lines)


def _clusters(ours: Iterable[Edit], theirs: Iterable[Edit], context: int) -> Iterator[Cluster]:
    """Our edits and theirs in order, those together that may concern each other.

    Text that is inserted may be found again below, in as many bytes as it has. A pure edit may be told of any place to
    which it could slide; around it the whole context counts.
    """
    tagged = [(edit, False) for edit in ours] + [(edit, True) for edit in theirs]
    cluster: Cluster = ([], [])
    below = -_NEAR
    for edit, is_theirs in sorted(tagged):
        a0, a1, text = edit
        room = _room(edit, context)
        if a0 - room >= below + _NEAR and any(cluster):
            yield cluster
            cluster = ([], [])
        below = max(below, a1 + len(text) + room) + a1 - a0
        cluster[is_theirs].append(edit)
    yield cluster


def _room(edit: Edit, context: int) -> int:
    """The bytes beside an edit that count: all of the context where it inserts or deletes, and does not replace."""
    a0, a1, text = edit
    return 0 if a0 < a1 and text else context


class _Part:
    """A part of the base around the edits of a cluster, in whole lines, and of each side the same part.

    Attributes: ``start`` and ``end`` of the part in the base; ``top`` and ``bottom`` whether these are the base's own;
    ``text`` of the base there.
    """

    __slots__ = ("bottom", "end", "start", "text", "top")

    def __init__(self, base: bytes, edits: Sequence[Edit], bounds: tuple[int, int], context: int) -> None:
        above, below = bounds
        first, last = min(edit[0] for edit in edits), max(edit[1] for edit in edits)
        self.start = above if first - context <= above else base.find(LF, first - context, first) + 1 or first
        limit = min(below, max(edit[1] + len(edit[2]) for edit in edits) + context)
        self.end = limit if limit == len(base) else base.rfind(LF, last, limit) + 1 or last
        self.top, self.bottom = self.start == 0, self.end == len(base)
        self.text = base[self.start : self.end]

    def side(self, edits: Iterable[Edit]) -> tuple[bytes, list[Hunk]]:
        """The part of the side that these edits make, and its script."""
        pieces: list[bytes] = []
        hunks: list[Hunk] = []
        at = size = 0
        for a0, a1, text in edits:
            start, end = a0 - self.start, a1 - self.start
            size += start - at
            hunks.append((start, end, size, size + len(text)))
            pieces += (self.text[at:start], text)
            at, size = end, size + len(text)
        return b"".join([*pieces, self.text[at:]]), hunks

    def holds(self, side: bytes, hunks: list[Hunk]) -> bool:
        """Whether the script stands within the part in every canonical or equal form, a line apart from its ends.

        A pure hunk slides down until a line stops it, and may be tried higher up (``scripts.py``).
        """
        moved = canonical(self.text, side, hunks)
        if not self.bottom and moved[-1][1] == len(self.text):
            return False
        a0, a1, b0, b1 = moved[0]
        if self.top or (a0 < a1 and b0 < b1):
            return True
        return not (side[:b1] if a0 == a1 else self.text[:a1]).endswith(self.text[:a0])

    def is_script(self, side: bytes, hunks: list[Hunk]) -> bool:
        """Whether these hunks are found in the part alone, too."""
        return hunks_between(self.text, side, weak_rule=True) == hunks


class _Merge:
    """A merge that is written down from the top of the base to its end.

    Attributes: ``outcome`` so far; ``done`` where in the base it ends.
    """

    __slots__ = ("_base", "_context", "_how", "done", "outcome")

    def __init__(self, base: bytes, context: int, how: dict[str, Any]) -> None:
        self.outcome = Outcome()
        self.done = 0
        self._base = base
        self._context = context
        self._how = how

    def joins(self, clusters: Sequence[Cluster]) -> bool:
        """Write down these clusters; False where one needs the whole bodies."""
        starts = [
            min(edit[0] - _room(edit, self._context) for half in cluster for edit in half) for cluster in clusters
        ]
        return all(map(self._joined, clusters, [*starts[1:], len(self._base)]))

    def _joined(self, cluster: Cluster, below: int) -> bool:
        edits = [*cluster[0], *cluster[1]]
        bounds = self.done, below
        if all(cluster):
            return self._merged(_Part(self._base, edits, bounds, self._context), cluster)
        if any(_room(edit, self._context) for edit in edits):
            part = _Part(self._base, edits, bounds, self._context)
            if not part.holds(*part.side(edits)):
                return False
        self.apply(edits)
        return True

    def _merged(self, part: _Part, cluster: Cluster) -> bool:
        sides = [part.side(edits) for edits in cluster]
        ours, theirs = (side for side, _ in sides)
        if not all(part.is_script(*side) and part.holds(*side) for side in sides):
            return False
        if not (part.top and part.bottom) and converted_ending(part.text, ours, theirs):
            return False  # what a side did to these few lines it did not do to all
        self.copy_until(part.start)
        self.outcome.add(diff3(part.text, ours, theirs, **self._how))
        self.done = part.end
        return True

    def apply(self, edits: Iterable[Edit]) -> None:
        """Write down these edits."""
        for a0, a1, text in edits:
            self.copy_until(a0)
            self.outcome.pieces.append(text)
            self.done = a1

    def copy_until(self, end: int) -> None:
        """Write down the base up to there."""
        if self.done < end:
            self.outcome.pieces.append(memoryview(self._base)[self.done : end])
            self.done = end


def _look_alike(base: bytes, ours: Iterable[Edit], theirs: Iterable[Edit]) -> bool:
    """Whether markers look the same wherever they stand: all line endings are alike, and no text reads as a marker."""
    ending = uniform_ending(base)
    texts = [text for edits in (ours, theirs) for _, _, text in edits]
    return (
        ending is not None
        and all(LF not in text or uniform_ending(text) == ending for text in texts)
        and not any(holds(text, START * SMALLEST, 0, len(text)) for text in (base, *texts))
    )
