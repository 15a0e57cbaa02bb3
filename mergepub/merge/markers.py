r"""Conflict markers, written and read: a marked body from conflicts, and the conflicts back from a marked body.

A marker line is exactly N >= 7 of ``<``, ``|``, ``=`` or ``>``, then a space or the line's end (``\n``, ``\r\n``,
the body's end). Which text stands in a conflict is decided elsewhere; whether there *is* a conflict is never found out
here by searching a merge's output.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

START, BASE, MIDDLE, END = b"<", b"|", b"=", b">"
SMALLEST = 7
"""Fewer characters than this are never a marker."""

_SEVEN = tuple(char * SMALLEST for char in (START, BASE, MIDDLE, END))


def marker_line(char: bytes, size: int, label: bytes, ending: bytes) -> bytes:
    """One marker line with its label, if it has any, and its line ending."""
    return char * size + (b" " + label if label else b"") + ending


def marker_of(line: bytes) -> tuple[bytes, int] | None:
    """The character and size of a marker line (with or without its ending); None for any other line."""
    if not line.startswith(_SEVEN):
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


class Text:
    """A piece outside every conflict: ``line`` (from 1) where it starts, ``text`` its bytes."""

    __slots__ = ("line", "text")

    def __init__(self, line: int, text: bytes) -> None:
        self.line = line
        self.text = text


class Conflict:
    """A conflict read back from a marked body.

    Attributes: ``line`` (from 1) of its start marker; ``start`` and ``end`` the byte range of the block, markers
    included; ``text`` those bytes; ``ours``, ``theirs`` and ``base`` (None without a base section) the bytes between
    the markers; ``labels`` of ours, base and theirs.
    """

    __slots__ = ("base", "end", "labels", "line", "ours", "start", "text", "theirs")

    def __init__(self, body: bytes, line: int, marks: list[tuple[int, int]]) -> None:
        start, *between, end = marks
        middle, base = between[-1], between[0] if len(between) > 1 else None
        self.line = line
        self.start, self.end = start[0], end[1]
        self.text = body[self.start : self.end]
        self.ours = body[start[1] : (base or middle)[0]]
        self.base = body[base[1] : middle[0]] if base else None
        self.theirs = body[middle[1] : end[0]]
        self.labels = tuple(_label(body, mark) for mark in (start, base, end))


def _label(body: bytes, mark: tuple[int, int] | None) -> bytes:
    return body[slice(*mark)].rstrip(b"\r\n").partition(b" ")[2] if mark else b""


def parse(marked: bytes, marker_size: int = SMALLEST) -> list[Text | Conflict]:
    """The pieces of a marked body, in order; the inverse of rendering a merge.

    An unterminated side comes back with the newline that its marker needed. A block that is not complete is text.

    Args:
        marked: The marked body.
        marker_size: The size of its markers, as ``Merged.marker_size`` gives it.
    """
    pieces: list[Text | Conflict] = []
    line, at = 1, 0
    for conflict in _blocks(marked, marker_size):
        if conflict.start > at:
            pieces.append(Text(line, marked[at : conflict.start]))
        pieces.append(conflict)
        at, line = conflict.end, conflict.line + conflict.text.count(b"\n")
    return [*pieces, Text(line, marked[at:])] if at < len(marked) else pieces


def conflict_blocks(body: bytes) -> list[Conflict]:
    """Every complete block of a body, of whatever marker size: start, separator and end of one size, in order."""
    return list(_blocks(body, None))


def find_conflict_block(body: bytes, known: Iterable[bytes] = ()) -> int | None:
    """The line (from 1) of the first complete conflict block; None where there is none.

    Args:
        body: The body to search.
        known: Bodies whose own blocks do not count (the base, theirs): a text *about* conflicts may hold one.
    """
    blocks = conflict_blocks(body)
    if not blocks:
        return None
    there = {block.text.rstrip(b"\r\n") for other in known for block in conflict_blocks(other)}
    return next((block.line for block in blocks if block.text.rstrip(b"\r\n") not in there), None)


def _blocks(body: bytes, size: int | None) -> Iterator[Conflict]:
    """Complete blocks in order of their end markers, of one size or of every size."""
    opened: dict[int, tuple[int, list[tuple[int, int]]]] = {}
    stages: dict[int, bytes] = {}
    for line, start, end in _lines_from(body, body.find(START * SMALLEST)):
        marker = marker_of(body[start:end])
        if marker is None or size not in (None, marker[1]):
            continue
        char, found = marker
        if char == START and stages.get(found, START) == START:
            opened[found], stages[found] = (line, [(start, end)]), START
        elif found in opened and char in _FOLLOWS[stages[found]]:
            opened[found][1].append((start, end))
            stages[found] = char
            if char == END:
                yield Conflict(body, *opened.pop(found))
                del stages[found]


_FOLLOWS = {START: (BASE, MIDDLE), BASE: (MIDDLE,), MIDDLE: (END,)}


def _lines_from(body: bytes, position: int) -> Iterator[tuple[int, int, int]]:
    """Number (from 1), start and end of every line from the one that holds ``position``; none when it is negative."""
    if position < 0:
        return
    start = body.rfind(b"\n", 0, position) + 1
    line = body.count(b"\n", 0, start) + 1
    while start < len(body):
        end = body.find(b"\n", start) + 1 or len(body)
        yield line, start, end
        line, start = line + 1, end
