"""Regions become bytes: three styles, three favours, marker size, line endings.

Nothing here decides what conflicts. Styles ``merge`` and ``zdiff3`` first take lines that both sides agree on out of a
conflict, at both its ends (:func:`trimmed`); ``diff3`` shows conflicts whole.
"""

from __future__ import annotations

from mergepub.merge.lines import Range, common_head, common_tail, dominant_ending, ends_terminated, with_ending
from mergepub.merge.markers import BASE, END, MIDDLE, SMALLEST, START, free_size, marker_line, sizes_in
from mergepub.merge.regions import BOTH, CONFLICT, THEIRS, Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STYLES = ("merge", "diff3", "zdiff3")
FAVOURS = ("ours", "theirs", "union")


def trimmed(found: Iterable[Region], ours: bytes, theirs: bytes) -> list[Region]:
    """The regions with agreed lines out of every conflict at both ends; these become BOTH with an empty base range."""
    result: list[Region] = []
    for region in found:
        result.extend(_trimmed(region, ours, theirs) if region.kind == CONFLICT else (region,))
    return result


def _trimmed(region: Region, ours: bytes, theirs: bytes) -> Iterator[Region]:
    (b0, b1), (o0, o1), (t0, t1) = region.base, region.ours, region.theirs
    head = common_head(ours, region.ours, theirs, region.theirs)
    tail = common_tail(ours, (o0 + head, o1), theirs, (t0 + head, t1))
    if head:
        yield Region(BOTH, (b0, b0), (o0, o0 + head), (t0, t0 + head))
    yield Region(CONFLICT, region.base, (o0 + head, o1 - tail), (t0 + head, t1 - tail))
    if tail:
        yield Region(BOTH, (b1, b1), (o1 - tail, o1), (t1 - tail, t1))


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
        renderer.set_ending()
    if how.favour is None and conflicts:
        result = Rendered(renderer.free_marker_size(found))
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

    def set_ending(self) -> None:
        """Find the line ending of markers, and of what stands before one; once for all conflicts."""
        self.ending = self.how.ending or dominant_ending(self.base, self.ours, self.theirs)

    def set_markers(self, size: int) -> None:
        """Make the four marker lines."""
        labelled = zip((START, BASE, MIDDLE, END), (*self.how.labels[:2], b"", self.how.labels[2]), strict=True)
        start, base, middle, end = (marker_line(char, size, label, self.ending) for char, label in labelled)
        self.markers = (start, base, middle, end)

    def write(self, found: list[Region], pieces: list[bytes | memoryview]) -> None:
        ours, theirs = memoryview(self.ours), memoryview(self.theirs)
        conflict = self._marked if self.how.favour is None else self._favoured
        for region in found:
            if region.kind == CONFLICT:
                pieces += conflict(region)
            elif self.how.ending is not None or region.text is not None:
                pieces.append(self._text(*_standing(region, self.ours, self.theirs)))
            elif region.kind == THEIRS:
                pieces.append(theirs[slice(*region.theirs)])
            else:
                pieces.append(ours[slice(*region.ours)])

    def _text(self, body: bytes, span: Range) -> bytes | memoryview:
        part = slice(*span)
        return memoryview(body)[part] if self.how.ending is None else with_ending(body[part], self.how.ending)

    def _favoured(self, region: Region) -> list[bytes | memoryview]:
        ours, theirs = self._text(self.ours, region.ours), self._text(self.theirs, region.theirs)
        if self.how.favour != "union":
            return [ours if self.how.favour == "ours" else theirs]
        first, second = (ours, theirs) if self.how.union_first == "ours" else (theirs, ours)
        glued = second and bytes(first[-1:]) not in (b"", b"\n")
        return [first, self.ending, second] if glued else [first, second]

    def _marked(self, region: Region) -> list[bytes | memoryview]:
        start, base, middle, end = self.markers
        pieces = [start, *self._section(self.ours, region.ours)]
        if self.how.style != "merge":
            pieces += (base, *self._section(self.base, region.base))
        return [*pieces, middle, *self._section(self.theirs, region.theirs), end]

    def _section(self, body: bytes, span: Range) -> list[bytes | memoryview]:
        text = self._text(body, span)
        return [text] if ends_terminated(body, span) else [text, self.ending]

    def _shown(self, region: Region) -> list[tuple[str, bytes, Range]]:
        """Side, body and range of every text that the style shows in a conflict."""
        base = [] if self.how.style == "merge" else [("base", self.base, region.base)]
        return [("ours", self.ours, region.ours), *base, ("theirs", self.theirs, region.theirs)]

    def unterminated(self, conflict: Region) -> Iterator[str]:
        """The shown sides whose text has no newline at its end."""
        for side, body, span in self._shown(conflict):
            if not ends_terminated(body, span):
                yield side

    def free_marker_size(self, found: list[Region]) -> int:
        """One size at which no marker can be mistaken for text, nor text for a marker."""
        shown = [(body, span) for r in found if r.kind == CONFLICT for _, body, span in self._shown(r)]
        inside = b"".join([piece for body, span in shown for piece in self._section(body, span)])
        taken = sizes_in(inside, 0, len(inside))
        # Outside conflicts only a start marker can be misread, and most documents hold nothing like one.
        if START * SMALLEST in self.ours or START * SMALLEST in self.theirs:
            for region in found:
                if region.kind != CONFLICT:
                    text = bytes(self._text(*_standing(region, self.ours, self.theirs)))
                    taken |= sizes_in(text, 0, len(text), (START,))
        return free_size(taken, self.how.marker_size)


def _standing(region: Region, ours: bytes, theirs: bytes) -> tuple[bytes, Range]:
    """The body and range whose text stands in the result for a region that is no conflict."""
    if region.text is not None:
        return region.text, (0, len(region.text))
    return (theirs, region.theirs) if region.kind == THEIRS else (ours, region.ours)
