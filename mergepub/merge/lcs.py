"""Exact longest common subsequences of two short or repetitive sequences of lines.

Two methods with one answer in length. Hunt and Szymanski (1977) walks the pairs of equal lines and is quick where there
are few of them. Where there are many, a row of the classic table is one big integer and the whole row is computed in
four operations (Crochemore, Iliopoulos, Pinzon and Reid 2001; Hyyrö 2004). Both keep their state at the top of blocks
of lines alone and walk each block again on the way back, so memory grows with the square root of the work.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Line = bytes | int | None
    Pair = tuple[int, int]
    Chain = tuple[int, int, "Chain"] | None

_MASK_BUDGET = 32 << 20  # bytes of cached column masks
_BLOCK = 20_000  # pairs of equal lines in a block of Hunt-Szymanski, whose chains are kept in memory


def common_pairs(a: Sequence[Line], b: Sequence[Line]) -> list[Pair]:
    """The index pairs of one longest common subsequence of `a` and `b`, ascending."""
    places: dict[Line, list[int]] = {}
    for j, line in enumerate(b):
        if line in places:
            places[line].append(j)
        else:
            places[line] = [j]
    hits = [places.get(line, ()) for line in a]
    # A row of big integers costs as much as about this many pairs.
    if sum(map(len, hits)) <= len(a) * (4 + len(b) // 4000):
        return sparse_pairs(hits)
    return dense_pairs(a, len(b), places)


def sparse_pairs(hits: Sequence[Sequence[int]]) -> list[Pair]:
    """Hunt-Szymanski: `hits[i]` holds, ascending, the places in b of the line i of a.

    `ends[n]` is the smallest place in b at which a common subsequence of n + 1 lines ends. It is kept at the top of
    every block; on the way back a block is walked again, this time with the subsequences themselves.
    """
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

    ends: list[int] = []
    tops, kept = [0], [ends.copy()]
    pairs = 0
    for i, places in enumerate(hits):
        if pairs > _BLOCK:
            tops.append(i)
            kept.append(ends.copy())
            pairs = 0
        pairs += len(places)
        for j in reversed(places):
            if not ends or j > ends[-1]:
                ends.append(j)
            else:
                ends[bisect_left(ends, j)] = j
    found: list[Pair] = []
    length = len(ends)
    end = len(hits)
    for top, ends in zip(reversed(tops), reversed(kept), strict=True):
        length = _chain(hits, (top, end), ends, length, found)
        end = top
    found.reverse()
    return found


def _chain(
    hits: Sequence[Sequence[int]], block: tuple[int, int], ends: list[int], length: int, found: list[Pair]
) -> int:
    """Add to `found` the pairs, within the block, of a subsequence of `length` lines; return how many stand above."""
    from _bisect import bisect_left  # noqa: PLC0415 - a shared library in many builds, and most merges need none of it

    chains: list[Chain] = [None] * len(ends)  # the part of each subsequence within the block, as linked tuples
    for i in range(*block):
        places = hits[i]
        if found and places and places[-1] >= found[-1][1]:  # lines of b from there on are matched below the block
            places = places[: bisect_left(places, found[-1][1])]
        for j in reversed(places):
            n = bisect_left(ends, j)
            if n == len(ends):
                ends.append(j)
                chains.append((i, j, chains[n - 1] if n else None))
            elif ends[n] != j:
                ends[n] = j
                chains[n] = (i, j, chains[n - 1] if n else None)
    chain = chains[length - 1] if length else None
    while chain:
        i, j, chain = chain
        found.append((i, j))
        length -= 1
    return length


class _Masks:
    """Column masks by line: bit j is set where line j of b is that line; kept up to a budget, else made anew."""

    def __init__(self, width: int, places: dict[Line, list[int]]) -> None:
        self._size = (width + 7) // 8
        self._places = places
        self._room = max(8, _MASK_BUDGET // (self._size + 64))
        self._kept: dict[Line, int] = {}

    def row(self, line: Line) -> int:
        mask = self._kept.get(line)
        if mask is None:
            cells = bytearray(self._size)
            for j in self._places.get(line, ()):
                cells[j >> 3] |= 1 << (j & 7)
            mask = int.from_bytes(cells, "little")
            if len(self._kept) < self._room:
                self._kept[line] = mask
        return mask


def dense_pairs(a: Sequence[Line], width: int, places: dict[Line, list[int]]) -> list[Pair]:
    """Bit-parallel: `width` is the length of b, `places` where each of its lines stands.

    In the integer of a row, bit j is 0 where the subsequence of the prefixes grows with line j of b.
    """
    masks = _Masks(width, places)
    every = max(16, int(len(a) ** 0.5))
    full = (1 << width) - 1
    row, kept = full, []
    for top in range(0, len(a), every):
        row &= full
        kept.append(row)
        if top + every < len(a):
            row = _rows(a[top : top + every], row, masks)[-1]
    pairs: list[Pair] = []
    column = width
    for top in range((len(kept) - 1) * every, -1, -every):
        rows = _rows(a[top : top + every], kept.pop() & ((1 << column) - 1), masks)
        column = _trace(rows, top, column, pairs)
    pairs.reverse()
    return pairs


def _rows(lines: Sequence[Line], row: int, masks: _Masks) -> list[int]:
    """The rows of the table from `row` on, one for every line; bits above the width may be set."""
    rows = [row]
    for line in lines:
        hit = row & masks.row(line)
        row = (row + hit) | (row - hit)
        rows.append(row)
    return rows


def _trace(rows: Sequence[int], top: int, column: int, pairs: list[Pair]) -> int:
    """Walk back through the rows of the lines from `top` on, adding pairs; the column reached is returned."""
    i = len(rows) - 1
    while i and column:
        if rows[i] >> (column - 1) & 1:
            column -= 1
            continue
        i -= 1
        if rows[i] >> (column - 1) & 1:
            column -= 1
            pairs.append((top + i, column))
    return column
