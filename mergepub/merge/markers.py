"""Conflict markers read back: the conflicts that stand in a marked body.

What a marker line is stands with what writes it, in :mod:`mergepub.merge.render`. Whether a merge *has* a conflict is
never found out here by searching its output.
"""

from __future__ import annotations

from mergepub.merge.render import BASE, END, MIDDLE, SMALLEST, START, free_size, marker_line, marker_of, sizes_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "BASE",
    "END",
    "MIDDLE",
    "SMALLEST",
    "START",
    "Conflict",
    "Text",
    "conflict_blocks",
    "find_conflict_block",
    "free_size",
    "marker_line",
    "marker_of",
    "parse",
    "sizes_in",
]


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
