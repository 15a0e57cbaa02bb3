"""Regions become bytes: three styles, three favours, marker size, line endings.

Nothing here decides what conflicts. Styles ``merge`` and ``zdiff3`` first take lines that both sides agree on out of a
conflict, at both its ends (:func:`trimmed`); ``diff3`` shows conflicts whole.
"""

from __future__ import annotations

from mergepub.merge.lines import LF, Range, common_head, common_tail, dominant_ending, ends_terminated, with_ending
from mergepub.merge.markers import BASE, END, MIDDLE, SMALLEST, START, free_size, marker_line, sizes_in
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, Region, anywhere, holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STYLES = ("merge", "diff3", "zdiff3")
FAVOURS = ("ours", "theirs", "union")
_SMALL = 4096  # bytes


def trimmed(found: Iterable[Region], ours: bytes, theirs: bytes) -> list[Region]:
    """The regions with agreed lines out of every conflict at both ends; these become BOTH with an empty base range."""
    result: list[Region] = []
    for region in found:
        if region.kind == CONFLICT and _may_agree(ours, region.ours, theirs, region.theirs):
            result += _trimmed(region, ours, theirs)
        else:
            result.append(region)
    return result


def _may_agree(ours: bytes, our_span: Range, theirs: bytes, their_span: Range) -> bool:
    """Whether two bytes allow that the first or the last lines are the same: most conflicts are told by them."""
    (o0, o1), (t0, t1) = our_span, their_span
    if o0 == o1 or t0 == t1:
        return False
    return ours[o0] == theirs[t0] or o1 - o0 == 1 or t1 - t0 == 1 or ours[o1 - 2] == theirs[t1 - 2]


def _trimmed(region: Region, ours: bytes, theirs: bytes) -> list[Region]:
    (o0, o1), (t0, t1) = region.ours, region.theirs
    head = common_head(ours, region.ours, theirs, region.theirs)
    tail = common_tail(ours, (o0 + head, o1), theirs, (t0 + head, t1))
    if not head and not tail:
        return [region]
    b0, b1 = region.base
    parts = [Region(CONFLICT, region.base, (o0 + head, o1 - tail), (t0 + head, t1 - tail))]
    if head:
        parts.insert(0, Region(BOTH, (b0, b0), (o0, o0 + head), (t0, t0 + head)))
    if tail:
        parts.append(Region(BOTH, (b1, b1), (o1 - tail, o1), (t1 - tail, t1)))
    return parts


class Rendering:
    """How a merge is to look.

    Attributes: ``style`` one of STYLES; ``favour`` one of FAVOURS, or None to show conflicts; ``union_first`` the side
    whose text a union puts first; ``labels`` of ours, base and theirs as bytes; ``marker_size`` the smallest one
    wanted; ``ending`` what every terminated line is converted to, or None to leave the text as it is.
    """

    __slots__ = ("ending", "favour", "labels", "marker_size", "style", "union_first")

    def __init__(
        self,
        *,
        style: str = "merge",
        favour: str | None = None,
        union_first: str = "ours",
        labels: tuple[bytes, bytes, bytes] = (b"ours", b"base", b"theirs"),
        marker_size: int = SMALLEST,
        ending: bytes | None = None,
    ) -> None:
        self.style = style
        self.favour = favour
        self.union_first = union_first
        self.labels = labels
        self.marker_size = marker_size
        self.ending = ending


class Rendered:
    """What rendering gives: ``pieces`` whose concatenation is the body, and what ``Merged`` says besides."""

    __slots__ = ("conflicts", "marker_size", "pieces", "settled", "unterminated")

    def __init__(self, marker_size: int) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.conflicts = 0
        self.settled = 0
        self.marker_size = marker_size
        self.unterminated: tuple[str, ...] = ()


def render(found: list[Region], base: bytes, ours: bytes, theirs: bytes, how: Rendering) -> Rendered:
    """The merged body in pieces, from regions that cover the bodies in order."""
    renderer = _Renderer(base, ours, theirs, how)
    conflicts = [region for region in found if region.kind == CONFLICT]
    if conflicts:
        renderer.set_ending(found)
    if how.favour is None and conflicts:
        result = Rendered(renderer.free_marker_size(found, conflicts))
        result.conflicts = len(conflicts)
        # Only the last conflict can reach the end of a body.
        result.unterminated = tuple(renderer.unterminated(conflicts[-1]))
    else:
        result = Rendered(how.marker_size)
        result.settled = len(conflicts)
    if conflicts:
        renderer.set_markers(result.marker_size)
    renderer.write(found, result.pieces)
    return result


class _Renderer:
    """The bodies, and how each kind of region is written."""

    def __init__(self, base: bytes, ours: bytes, theirs: bytes, how: Rendering) -> None:
        self.base = base
        self.ours = ours
        self.theirs = theirs
        self.how = how
        self.ending = b""
        self.markers = (b"", b"", b"", b"")

    def set_ending(self, found: list[Region]) -> None:
        """Find the line ending of markers, and of what stands before one; once for all conflicts."""
        bodies = self.base, self.ours, self.theirs
        self.ending = self.how.ending or (dominant_ending(*bodies) if anywhere(b"\r", found, *bodies) else LF)

    def set_markers(self, size: int) -> None:
        """Make the four marker lines."""
        labelled = zip((START, BASE, MIDDLE, END), (*self.how.labels[:2], b"", self.how.labels[2]), strict=True)
        start, base, middle, end = (marker_line(char, size, label, self.ending) for char, label in labelled)
        self.markers = (start, base, middle, end)

    def write(self, found: list[Region], pieces: list[bytes | memoryview]) -> None:
        """Append the text of all regions to `pieces`; neighbours from one side make one piece."""
        conflict = self._marked if self.how.favour is None else self._favoured
        converted, theirs_stands = self.how.ending is not None, False
        start = end = 0  # what is still to be written of the side that stands
        for region in found:
            if region.kind == CONFLICT or region.text is not None or converted:
                self._flush(pieces, theirs_stands, start, end)
                start = end = 0
                if region.kind == CONFLICT:
                    conflict(region, pieces)
                else:
                    pieces.append(self._text(*_standing(region, self.ours, self.theirs)))
                continue
            span = region.theirs if theirs_stands else region.ours
            if span[0] != end or region.kind == (OURS if theirs_stands else THEIRS):
                self._flush(pieces, theirs_stands, start, end)
                theirs_stands = region.kind == THEIRS
                start, end = region.theirs if theirs_stands else region.ours
            else:
                end = span[1]
        self._flush(pieces, theirs_stands, start, end)

    def _flush(self, pieces: list[bytes | memoryview], theirs: bool, start: int, end: int) -> None:
        if start < end:
            pieces.append(part(self.theirs if theirs else self.ours, start, end))

    def _text(self, body: bytes, span: Range) -> bytes | memoryview:
        if self.how.ending is None:
            return part(body, *span)
        return with_ending(body[slice(*span)], self.how.ending)

    def _favoured(self, region: Region, pieces: list[bytes | memoryview]) -> None:
        ours, theirs = self._text(self.ours, region.ours), self._text(self.theirs, region.theirs)
        if self.how.favour != "union":
            pieces.append(ours if self.how.favour == "ours" else theirs)
            return
        first, second = (ours, theirs) if self.how.union_first == "ours" else (theirs, ours)
        glued = second and bytes(first[-1:]) not in (b"", b"\n")
        pieces += [first, self.ending, second] if glued else [first, second]

    def _marked(self, region: Region, pieces: list[bytes | memoryview]) -> None:
        start, base, middle, end = self.markers
        pieces.append(start)
        self._section(self.ours, region.ours, pieces)
        if self.how.style != "merge":
            pieces.append(base)
            self._section(self.base, region.base, pieces)
        pieces.append(middle)
        self._section(self.theirs, region.theirs, pieces)
        pieces.append(end)

    def _section(self, body: bytes, span: Range, pieces: list[bytes | memoryview]) -> None:
        pieces.append(self._text(body, span))
        if span[1] == len(body) and not ends_terminated(body, span):
            pieces.append(self.ending)

    def _shown(self, region: Region) -> list[tuple[str, bytes, Range]]:
        """Side, body and range of every text that the style shows in a conflict."""
        base = [] if self.how.style == "merge" else [("base", self.base, region.base)]
        return [("ours", self.ours, region.ours), *base, ("theirs", self.theirs, region.theirs)]

    def unterminated(self, conflict: Region) -> Iterator[str]:
        """The shown sides whose text has no newline at its end."""
        for side, body, span in self._shown(conflict):
            if not ends_terminated(body, span):
                yield side

    def free_marker_size(self, found: list[Region], conflicts: list[Region]) -> int:
        """One size at which no marker can be mistaken for text, nor text for a marker.

        Most documents hold nothing like a marker; to see that costs one search for each, from the first conflict to
        the last, and half a millisecond less than looking at 800 conflicts one by one.
        """
        spans = zip(self._shown(conflicts[0]), self._shown(conflicts[-1]), strict=True)
        shown = [(body, first[0], last[1]) for (_, body, first), (_, _, last) in spans]
        chars = [
            c for c in (START, BASE, MIDDLE, END) if any(holds(body, c * SMALLEST, *span) for body, *span in shown)
        ]
        taken = self._sizes_inside(conflicts, chars) if chars else set()
        # Outside conflicts only a start marker can be misread.
        if anywhere(START * SMALLEST, found, self.base, self.ours, self.theirs):
            for region in found:
                if region.kind != CONFLICT:
                    text = bytes(self._text(*_standing(region, self.ours, self.theirs)))
                    taken |= sizes_in(text, 0, len(text), (START,))
        return free_size(taken, self.how.marker_size)

    def _sizes_inside(self, conflicts: list[Region], chars: list[bytes]) -> set[int]:
        """The sizes of all lines in conflicts, as they will be written, that read as markers of these characters."""
        pieces: list[bytes | memoryview] = []
        for region in conflicts:
            for _, body, span in self._shown(region):
                self._section(body, span, pieces)
        inside = b"".join(pieces)
        return sizes_in(inside, 0, len(inside), chars)


def _standing(region: Region, ours: bytes, theirs: bytes) -> tuple[bytes, Range]:
    """The body and range whose text stands in the result for a region that is no conflict."""
    if region.text is not None:
        return region.text, (0, len(region.text))
    return (theirs, region.theirs) if region.kind == THEIRS else (ours, region.ours)


def part(body: bytes, start: int, end: int) -> bytes | memoryview:
    """A part of a body: copied where it is small, which costs less than a view and is joined faster."""
    return body[start:end] if end - start <= _SMALL or end - start == len(body) else memoryview(body)[start:end]
