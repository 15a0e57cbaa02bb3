r"""Changes become bytes: three styles, three favours, marker lines and their size, line endings.

A marker line is exactly N >= 7 of ``<``, ``|``, ``=`` or ``>``, then a space or the line's end (``\n``, ``\r\n``,
the body's end); :mod:`mergepub.merge.markers` reads them back. Nothing here decides what conflicts. Styles ``merge``
and ``zdiff3`` first take lines that both sides agree on out of a conflict, at both its ends (:func:`trimmed`);
``diff3`` shows conflicts whole.
"""

from __future__ import annotations

from mergepub.merge.lines import LF, Range, common_head, common_tail, dominant_ending, ends_terminated, with_ending
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, anywhere, holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mergepub.merge.regions import Change

    Pieces = list[bytes | memoryview]

STYLES = ("merge", "diff3", "zdiff3")
FAVOURS = ("ours", "theirs", "union")
START, BASE, MIDDLE, END = b"<", b"|", b"=", b">"
SMALLEST = 7
"""Fewer characters than this are never a marker."""

_MARKERS = tuple(char * SMALLEST for char in (START, BASE, MIDDLE, END))
_NEWLINE = LF[0]
_SMALL = 4096  # bytes of a conflict whose parts are joined at once
_COPIED = 512  # bytes; a view of so few costs more than they do


def trimmed(found: list[Change], ours: bytes, theirs: bytes) -> list[Change]:
    """The changes with agreed lines out of every conflict at both ends; these become BOTH with an empty base range.

    A few bytes at either end tell of most conflicts that neither the first nor the last lines agree. First lines that
    do begin with the same eight bytes, or end within them. Last lines that do have the same byte before their newline:
    another one, if they are blank, else one letter that has the same before it (a full stop ends most lines).
    """
    agreeing = [
        k
        for k, (kind, _, _, o0, o1, t0, t1, _) in enumerate(found)
        if kind == CONFLICT
        and o0 < o1
        and t0 < t1
        and (
            (ours[o0] == theirs[t0] and (ours[o0 : o0 + 8] == theirs[t0 : t0 + 8] or LF in ours[o0 : o0 + 8]))
            or not o0  # elsewhere a newline stands above, even of a text of one byte
            or not t0
            or (ours[o1 - 2] == theirs[t1 - 2] and (ours[o1 - 2] == _NEWLINE or ours[o1 - 3] == theirs[t1 - 3]))
        )
    ]
    if not agreeing:
        return found
    result: list[Change] = []
    done = 0
    for k in agreeing:
        result += found[done:k]
        result += _trimmed(found[k], ours, theirs)
        done = k + 1
    return result + found[done:]


def _trimmed(conflict: Change, ours: bytes, theirs: bytes) -> list[Change]:
    _, b0, b1, o0, o1, t0, t1, _ = conflict
    head = common_head(ours, (o0, o1), theirs, (t0, t1))
    tail = common_tail(ours, (o0 + head, o1), theirs, (t0 + head, t1))
    if not head and not tail:
        return [conflict]
    parts: list[Change] = [(CONFLICT, b0, b1, o0 + head, o1 - tail, t0 + head, t1 - tail, None)]
    if head:
        parts.insert(0, (BOTH, b0, b0, o0, o0 + head, t0, t0 + head, None))
    if tail:
        parts.append((BOTH, b1, b1, o1 - tail, o1, t1 - tail, t1, None))
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
        self.pieces: Pieces = []
        self.conflicts = 0
        self.settled = 0
        self.marker_size = marker_size
        self.unterminated: tuple[str, ...] = ()


def render(found: Sequence[Change], base: bytes, ours: bytes, theirs: bytes, how: Rendering) -> Rendered:
    """The merged body in pieces, from its changes."""
    renderer = _Renderer(base, ours, theirs, how)
    conflicts = [change for change in found if change[0] == CONFLICT]
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
    renderer.write(found, result.pieces, renderer.favoured if how.favour else renderer.marked)
    return result


class _Renderer:
    """The bodies, and how each kind of region is written."""

    def __init__(self, base: bytes, ours: bytes, theirs: bytes, how: Rendering) -> None:
        self.base = base
        self.ours = ours
        self.theirs = theirs
        self.how = how
        self.plain = how.ending is None and how.style == "merge"
        self.ending = b""
        self.markers = (b"", b"", b"", b"")

    def set_ending(self, found: Sequence[Change]) -> None:
        """Find the line ending of markers, and of what stands before one; once for all conflicts."""
        bodies = self.base, self.ours, self.theirs
        self.ending = self.how.ending or (dominant_ending(*bodies) if anywhere(b"\r", found, *bodies) else LF)

    def set_markers(self, size: int) -> None:
        """Make the four marker lines."""
        labelled = zip((START, BASE, MIDDLE, END), (*self.how.labels[:2], b"", self.how.labels[2]), strict=True)
        start, base, middle, end = (marker_line(char, size, label, self.ending) for char, label in labelled)
        self.markers = (start, base, middle, end)

    def write(self, found: Sequence[Change], pieces: Pieces, conflict: Callable[[Change, Pieces], None]) -> None:
        """Append the text of the merge to `pieces`; what did not change stands in one piece with a change beside it.

        `conflict` appends what stands in the place of a conflict. Most are small ones to be marked, in the plain style
        and not at the end of a body: these are written here, to half the price.
        """
        ours, theirs = self.ours, self.theirs
        first, _, middle, last = self.markers
        plain = self.plain and conflict == self.marked
        ours_end, theirs_end = len(ours), len(theirs)
        side, start, its_kind = ours, 0, OURS  # what is still to be written: of this body, from there on
        copied = _COPIED if self.how.ending is None else -1
        for change in found:
            kind, _, _, o0, o1, t0, t1, text = change
            if kind in (its_kind, BOTH):
                continue
            end = o0 if its_kind == OURS else t0
            if start < end:
                pieces.append(side[start:end] if end - start <= copied else self._text(side, start, end))
            if kind == THEIRS:
                side, start, its_kind = theirs, t0, THEIRS
                continue
            side, start, its_kind = ours, o0 if kind == OURS else o1, OURS
            if kind == CONFLICT:
                if plain and o1 - o0 + t1 - t0 <= _SMALL and o1 < ours_end and t1 < theirs_end:
                    pieces.append(b"".join((first, ours[o0:o1], middle, theirs[t0:t1], last)))
                else:
                    conflict(change, pieces)
            elif text is not None:
                pieces.append(self._text(text, 0, len(text)))
        if start < len(side):
            pieces.append(self._text(side, start, len(side)))

    def _text(self, body: bytes, start: int, end: int) -> bytes | memoryview:
        """A part of a body with the endings wanted; small ones copied."""
        if self.how.ending is not None:
            return with_ending(body[start:end], self.how.ending)
        if end - start <= _COPIED or end - start == len(body):
            return body[start:end]
        return memoryview(body)[start:end]

    def favoured(self, conflict: Change, pieces: Pieces) -> None:
        """Append the sides of a conflict that the favour lets stand."""
        _, _, _, o0, o1, t0, t1, _ = conflict
        ours, theirs = self._text(self.ours, o0, o1), self._text(self.theirs, t0, t1)
        if self.how.favour != "union":
            pieces.append(ours if self.how.favour == "ours" else theirs)
            return
        first, second = (ours, theirs) if self.how.union_first == "ours" else (theirs, ours)
        glued = second and bytes(first[-1:]) not in (b"", b"\n")
        pieces += [first, self.ending, second] if glued else [first, second]

    def marked(self, conflict: Change, pieces: Pieces) -> None:
        """Append a conflict with its markers; a few small parts are written quicker as one."""
        _, b0, b1, o0, o1, t0, t1, _ = conflict
        start, base, middle, end = self.markers
        small = b1 - b0 + o1 - o0 + t1 - t0 <= _SMALL
        parts = [start, self._section(self.ours, o0, o1), middle, self._section(self.theirs, t0, t1), end]
        if self.how.style != "merge":
            parts[2:2] = [base, self._section(self.base, b0, b1)]
        pieces += [b"".join(parts)] if small else parts

    def _section(self, body: bytes, start: int, end: int) -> bytes | memoryview:
        """A text shown in a conflict, ended so that a marker can follow."""
        text = self._text(body, start, end)
        if end == len(body) and not ends_terminated(body, (start, end)):
            return bytes(text) + self.ending
        return text

    def _shown(self, conflict: Change) -> list[tuple[str, bytes, Range]]:
        """Side, body and range of every text that the style shows in a conflict."""
        base = [] if self.how.style == "merge" else [("base", self.base, conflict[1:3])]
        return [("ours", self.ours, conflict[3:5]), *base, ("theirs", self.theirs, conflict[5:7])]

    def unterminated(self, conflict: Change) -> Iterator[str]:
        """The shown sides whose text has no newline at its end."""
        for side, body, span in self._shown(conflict):
            if not ends_terminated(body, span):
                yield side

    def free_marker_size(self, found: Sequence[Change], conflicts: Sequence[Change]) -> int:
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
            pieces: Pieces = []
            self.write(found, pieces, lambda _, pieces: pieces.append(LF))
            outside = b"".join(pieces)
            taken |= sizes_in(outside, 0, len(outside), (START,))
        return free_size(taken, self.how.marker_size)

    def _sizes_inside(self, conflicts: Sequence[Change], chars: list[bytes]) -> set[int]:
        """The sizes of all lines in conflicts, as they will be written, that read as markers of these characters."""
        shown = [self._section(body, *span) for conflict in conflicts for _, body, span in self._shown(conflict)]
        inside = b"".join(shown)
        return sizes_in(inside, 0, len(inside), chars)


def marker_line(char: bytes, size: int, label: bytes, ending: bytes) -> bytes:
    """One marker line with its label, if it has any, and its line ending."""
    return char * size + (b" " + label if label else b"") + ending


def marker_of(line: bytes) -> tuple[bytes, int] | None:
    """The character and size of a marker line (with or without its ending); None for any other line."""
    if not line.startswith(_MARKERS):
        return None
    char = line[:1]
    rest = line.lstrip(char)
    if not rest or rest.startswith((b" ", b"\n", b"\r\n")):
        return char, len(line) - len(rest)
    return None


def sizes_in(text: bytes, start: int, end: int, chars: Iterable[bytes] = (START, BASE, MIDDLE, END)) -> set[int]:
    """The sizes of all lines of a range that read as markers of the given characters.

    Found by searching for the seven characters, from the first of them on: most text has none, and one byte is found
    six times as fast as seven.
    """
    found = set()
    for char in chars:
        at = text.find(char, start, end)
        if at >= 0:
            at = text.find(char * SMALLEST, at, end)
        while at >= 0:
            line_end = text.find(b"\n", at, end)
            line_end = end if line_end < 0 else line_end + 1
            if at == start or text[at - 1 : at] == b"\n":
                marker = marker_of(text[at:line_end])
                if marker:
                    found.add(marker[1])
            at = text.find(char * SMALLEST, line_end, end)
    return found


def free_size(taken: set[int], smallest: int = SMALLEST) -> int:
    """The smallest size from ``smallest`` up that no line of the text already has."""
    while smallest in taken:
        smallest += 1
    return smallest
