"""Hunks of a stretch of two bodies that differ too much for a walk on bytes: lines are split and matched."""

from __future__ import annotations

from _bisect import bisect_left
from _operator import eq, ne
from itertools import accumulate, compress, count, repeat

from mergepub.merge.anchors import matched_in_order, matched_lines
from mergepub.merge.weak import without_weak_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Hunk = tuple[int, int, int, int]
    KeptLines = dict[str, "Numbered"]

_BLANK = b"\n"


class Numbered:
    """The lines of a part of a body, as texts and as numbers from 1.

    Numbers, because all later steps together touch every line a dozen times, and 5,000 of them fit into the processor's
    nearer memory where 5,000 lines do not.

    Attributes: ``lines`` the texts; ``numbers`` the number of each text; ``start`` where in the body the first of them
    stands; ``blank`` the number of the blank line, 0 where there is none. All else is worked out when it is first asked
    for: texts that are quite unlike, or edited in their places, need only some of it.
    """

    __slots__ = ("_blanks", "_ids", "_repeated", "_starts", "blank", "lines", "numbers", "start")

    def __init__(self, body: bytes, start: int, end: int) -> None:
        self.lines = split_lines(body, start, end)
        self.numbers = dict(zip(self.lines, range(1, len(self.lines) + 1), strict=True))
        self.blank = self.numbers.get(_BLANK, 0)
        self.start = start
        self._ids: list[int] | None = None
        self._starts: list[int] | None = None
        self._blanks: list[int] | None = None
        self._repeated: set[int] | None = None

    @property
    def ids(self) -> list[int]:
        """The lines as numbers."""
        if self._ids is None:
            self._ids = list(map(self.numbers.__getitem__, self.lines))
        return self._ids

    @property
    def starts(self) -> list[int]:
        """Where the lines start, and where the last one ends."""
        if self._starts is None:
            self._starts = _starts(self.lines, self.start)
        return self._starts

    @property
    def blanks(self) -> list[int]:
        """Which lines, from 1, are blank."""
        if self._blanks is None:
            self._blanks = list(compress(count(1), map(eq, self.lines, repeat(_BLANK))))
        return self._blanks

    @property
    def repeated(self) -> set[int]:
        """The numbers of the texts, but for the blank one, that stand more than once."""
        if self._repeated is None:
            blank_too_many = len(self.blanks) - (self.blank > 0)
            if len(self.numbers) + blank_too_many == len(self.lines):
                self._repeated = set()
            else:  # the number of a text is that of its last line
                self._repeated = set(compress(self.ids, map(ne, self.ids, count(1)))) - {self.blank}
        return self._repeated


def split_lines(text: bytes, start: int, end: int) -> list[bytes]:
    r"""The lines of `text[start:end]`, each with its newline; the last may be unterminated.

    `splitlines` breaks at every ``\r`` too: it is used where there is none that no newline follows. It is as quick as
    `split`, and no newline needs to be counted to every length or taken off again.
    """
    above = 0
    if (end - start) * 2 >= len(text):  # the lines left over are soon dropped; a copy of the text costs more
        above, text = text.count(b"\n", 0, start), text if end == len(text) else text[:end]
    else:
        text = text[start:end]
    if b"\r" not in text or text.count(b"\r") == text.count(b"\r\n"):
        lines = text.splitlines(keepends=True)
    else:
        lines = [line + b"\n" for line in text.split(b"\n")]
        lines[-1:] = filter(None, [lines[-1][:-1]])
    return lines[above:] if above else lines


def dense_hunks(
    a: bytes,
    b: bytes,
    box: tuple[int, int, int, int],
    kept: KeptLines | None = None,
    *,
    at_least: int = 0,
    weak_rule: bool = False,
) -> list[Hunk]:
    """The hunks between `a[a0:a1]` and `b[b0:b1]` of a `box` `(a0, a1, b0, b1)` of line boundaries.

    Args:
        a: the old body.
        b: the new body.
        box: what of them is compared.
        kept: where the lines of `a` are kept; None keeps nothing.
        at_least: a number of lines; where no run of so many lines of `a` is in `b` at all, in whatever order, nothing
            is matched and the whole box is one hunk. That tells a hopeless window at a quarter of the price.
        weak_rule: Whether the rule of `mergepub.merge.weak` will be applied to the hunks of the whole bodies. Where
            blank lines are all that both share, it is applied here, to a third of the price.
    """
    a0, a1, b0, b1 = box
    known, above, below = _numbered(a, a0, a1, kept)
    lines_b = split_lines(b, b0, b1)
    ids_b = list(map(known.numbers.get, lines_b))
    if at_least and bytes(map(set(ids_b).__contains__, known.ids[above:below])).find(b"\1" * at_least) < 0:
        return [box]
    if weak_rule and not at_least and not any(map(known.blank.__ne__, filter(None, ids_b))):
        blanks = known.blanks[bisect_left(known.blanks, above + 1) : bisect_left(known.blanks, below + 1)]
        rows = [number - above - 1 for number in blanks]
        columns = list(compress(count(), ids_b))
        return _unlike_hunks(known.lines[above:below], lines_b, (rows, columns), box)
    in_order = matched_in_order(known, ids_b, above, below)
    first = 1 if in_order else -above  # the number of the first line of `a`
    rows, columns = in_order or matched_lines(known.ids[above:below], ids_b, known.blank)
    rows.append(below + first)
    columns.append(len(lines_b))
    at_a, at_b = known.starts, _starts(lines_b, b0)
    hunks: list[Hunk] = []
    i0, j0 = above, 0
    for row, j in zip(rows, columns, strict=True):
        i = row - first
        if i != i0 or j != j0:
            hunks.append((at_a[i0], at_a[i], at_b[j0], at_b[j]))
        i0, j0 = i + 1, j + 1
    return hunks


def _unlike_hunks(
    lines_a: list[bytes], lines_b: list[bytes], blanks: tuple[list[int], list[int]], box: tuple[int, int, int, int]
) -> list[Hunk]:
    """The hunks of two texts that share nothing but these blank lines, without those that change outweighs.

    The first blank line belongs to the first, and so on, until one side has no more: no hunk could slide from there,
    and what is rewritten is counted in lines, without looking at any text again.
    """
    end_a, end_b = len(lines_a), len(lines_b)
    hunks: list[Hunk] = []
    sizes: list[int] = []
    gaps: list[int] = []
    i0 = j0 = run = 0
    for i, j in [*zip(*blanks, strict=False), (end_a, end_b)]:
        old, new = i - i0, j - j0
        if old or new:
            hunks.append((i0, i, j0, j))
            sizes.append((old if old > new else new) if old and new else 0)
            gaps.append(run)
            run = 0
        run += 1
        i0, j0 = i + 1, j + 1
    if sizes and sizes[-1]:  # counted like the others, by newlines: the last lines may have none
        i0, i1, j0, j1 = hunks[-1]
        sizes[-1] = max(sum(line.endswith(b"\n") for line in part) for part in (lines_a[i0:i1], lines_b[j0:j1]))
    kept = without_weak_runs(hunks, sizes, gaps[1:])
    at_a = _places(lines_a, [n for i0, i1, _, _ in kept for n in (i0, i1)], box[:2])
    at_b = _places(lines_b, [n for _, _, j0, j1 in kept for n in (j0, j1)], box[2:])
    return list(zip(at_a[::2], at_a[1::2], at_b[::2], at_b[1::2], strict=True))


def _places(lines: list[bytes], numbers: Iterable[int], span: tuple[int, int]) -> list[int]:
    """Where the lines of these numbers start, which ascend, in a text that stands there in its body."""
    at, end = span
    done = 0
    places: list[int] = []
    for n in numbers:
        at = at + sum(map(len, lines[done:n])) if n < len(lines) else end
        done = n
        places.append(at)
    return places


def _numbered(a: bytes, start: int, end: int, kept: KeptLines | None) -> tuple[Numbered, int, int]:
    """Numbered lines among which those of `a[start:end]` are, and the indices at which these begin and end.

    A range of half of the body or more is cut out of all of it, whose lines are kept: to split, hash and number them
    again for the other side of a merge was an eighth of its time where half of the lines differ.
    """
    if kept is None or (end - start) * 2 < len(a):
        known = Numbered(a, start, end)
        return known, 0, len(known.ids)
    if "a" not in kept:
        kept["a"] = Numbered(a, 0, len(a))
    known = kept["a"]
    above = a.count(b"\n", 0, start)
    return known, above, len(known.ids) if end == len(a) else above + a.count(b"\n", start, end)


def _starts(lines: list[bytes], start: int) -> list[int]:
    """Where the lines of a range start, and where the last one ends."""
    return list(accumulate(map(len, lines), initial=start))
