"""Hunks of a stretch of two bodies that differ too much for a walk on bytes: lines are split and matched."""

from __future__ import annotations

from itertools import accumulate, chain, compress, islice

from mergepub.merge.scripts import without_weak_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView, Sequence

    Hunk = tuple[int, int, int, int]
    Box = tuple[int, int, int, int]
    KeptLines = dict[str, "Numbered"]
    _Gap = tuple[int, int, int]

_BLANK = b"\n"
_SOME = 16
_NEAR = 64  # so many anchors make more possible pairs than are solved exactly at once
_FAR = 1 << 62  # behind every body


class Numbered:
    """The lines of a part of a body, as texts and as numbers.

    Numbers, because all later steps together touch every line a dozen times, and 5,000 of them fit into the processor's
    nearer memory where 5,000 lines do not. The number of a text is the place in the body where the last line with that
    text ends: it is never 0, it ascends as the lines do, and nobody has to ask where the line of a number stands.

    Attributes: ``lines`` the texts; ``start`` where in the body the first of them stands. All else is worked out when
    it is first asked for: texts that are quite unlike, or edited in their places, need only some of it.
    """

    __slots__ = ("_blanks", "_ends", "_ids", "_numbers", "_repeated", "_texts", "lines", "start")

    def __init__(self, body: bytes, start: int, end: int) -> None:
        self.lines = split_lines(body, start, end)
        self.start = start
        self._ends: list[int] | None = None
        self._numbers: dict[bytes, int] | None = None
        self._texts: dict[bytes, None] | None = None
        self._ids: list[int] | None = None
        self._blanks: list[int] | None = None
        self._repeated: set[int] | None = None

    @property
    def ends(self) -> list[int]:
        """Where the lines end."""
        if self._ends is None:
            self._ends = list(islice(accumulate(map(len, self.lines), initial=self.start), 1, None))
        return self._ends

    @property
    def numbers(self) -> dict[bytes, int]:
        """The number of each text."""
        if self._numbers is None:
            self._numbers = dict(zip(self.lines, self.ends, strict=True))
        return self._numbers

    @property
    def texts(self) -> KeysView[bytes]:
        """The texts, but for the blank one; half the price of their numbers."""
        if self._texts is None:
            self._texts = dict.fromkeys(self.lines)
            self._texts.pop(_BLANK, None)
        return self._texts.keys()

    @property
    def blank(self) -> int:
        """The number of the blank line, 0 where there is none."""
        return self.numbers.get(_BLANK, 0)

    def unlike(self, others: list[bytes]) -> bool:
        """Whether no line but the blank one is among these too; some of them tell at once of most texts that one is."""
        some = set(others[::_SOME])
        some.discard(_BLANK)
        return some.isdisjoint(self.lines) and self.texts.isdisjoint(others)

    @property
    def ids(self) -> list[int]:
        """The lines as numbers."""
        if self._ids is None:
            self._ids = list(map(self.numbers.__getitem__, self.lines))
        return self._ids

    @property
    def blanks(self) -> list[int]:
        """Which lines, from 0, are blank."""
        if self._blanks is None:
            self._blanks = _blank_lines(self.lines)
        return self._blanks

    @property
    def repeated(self) -> set[int]:
        """The numbers of the texts, but for the blank one, that stand more than once."""
        if self._repeated is None:
            blank_too_many = len(self.blanks) - (self.blank > 0)
            if len(self.numbers) + blank_too_many == len(self.lines):
                self._repeated = set()
            else:
                pairs = zip(self.ids, self.ends, strict=True)
                self._repeated = {number for number, end in pairs if number != end} - {self.blank}
        return self._repeated


def _blank_lines(lines: list[bytes]) -> list[int]:
    """Which of the lines are blank; to be led from one to the next is twice as quick as to look at each."""
    found: list[int] = []
    at = -1
    try:
        while True:
            at = lines.index(_BLANK, at + 1)
            found.append(at)
    except ValueError:
        return found


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
    box: Box,
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
        weak_rule: Whether the rule of `mergepub.merge.scripts` will be applied to the hunks of the whole bodies. Where
            blank lines are all that both share, it is applied here, to a third of the price.
    """
    a0, a1, b0, b1 = box
    known, above, below = _numbered(a, a0, a1, kept)
    lines_b = split_lines(b, b0, b1)
    if at_least and bytes(map(set(lines_b).__contains__, known.lines[above:below])).find(b"\1" * at_least) < 0:
        return [box]
    if weak_rule and not at_least and known.unlike(lines_b):
        rows = [n - above for n in known.blanks if above <= n < below]
        return _unlike_hunks(known.lines[above:below], lines_b, (rows, _blank_lines(lines_b)), box)
    ids_b = list(map(known.numbers.get, lines_b))
    at_b = list(accumulate(map(len, lines_b), initial=b0))
    hunks = hunks_in_order(known, ids_b, at_b, box)
    if hunks is None:
        from mergepub.merge.anchors import matched_lines  # noqa: PLC0415 - lines edited in their places need none

        matches = matched_lines(known.ids[above:below], ids_b, known.blank)
        hunks = _hunks_between(matches, [a0, *known.ends[above:below]], at_b)
    return hunks


def _hunks_between(matches: tuple[list[int], list[int]], at_a: list[int], at_b: list[int]) -> list[Hunk]:
    """The hunks between matched lines, which are given by index, of texts of which these lines stand there."""
    rows, columns = matches
    hunks: list[Hunk] = []
    i0 = j0 = 0
    for i, j in zip([*rows, len(at_a) - 1], [*columns, len(at_b) - 1], strict=True):
        if i != i0 or j != j0:
            hunks.append((at_a[i0], at_a[i], at_b[j0], at_b[j]))
        i0, j0 = i + 1, j + 1
    return hunks


def hunks_in_order(  # noqa: C901, PLR0912 - one pass, each test of which is made for thousands of lines
    known: Numbered, ids_b: Sequence[int | None], at_b: Sequence[int], box: Box
) -> list[Hunk] | None:
    """What `mergepub.merge.anchors` comes to as well, in half the time, where it is easily seen.

    That is so where no line that both share stands twice, but for the blank one, and none was moved: each is an anchor
    then, and its number says where it stands. Between two anchors, the first blank line of one side belongs to the
    first of the other. Only where blank lines were added or removed last, they are told from below: there
    `matched_lines` comes from the end of both.

    Args:
        known: The lines of `a`, of the box or of more.
        ids_b: Those of `b` as its numbers; None for a line that is not in `a`.
        at_b: Where these start, and where the last one ends.
        box: As for `dense_hunks`.

    Returns:
        the hunks; None where it is not so simple.
    """
    x0, a1, y0, b1 = box
    blank, ends = known.blank, known.ends
    if not any(map(blank.__ne__, filter(None, ids_b))):
        return None
    blanks = [*(ends[n] for n in known.blanks if x0 < ends[n] <= a1), _FAR]  # where those of `a` end
    k, next_blank = 0, blanks[0]  # the first of them that is not matched yet; 0 while one of `b` is waiting
    waiting: list[int] = []  # where blank lines of `b` start that stand below the last match
    hunks: list[Hunk] = []
    uneven: list[_Gap] = []
    shared = zip(filter(None, ids_b), compress(at_b, ids_b), compress(islice(at_b, 1, None), ids_b), strict=True)
    for x1, y, y1 in chain(shared, [(-1, b1, b1 - a1 - 1)]):  # at last, where both end
        if x1 != blank:
            x = x1 - y1 + y
            if next_blank <= x:
                last = k + len(waiting)
                if waiting:
                    k, x0, y0 = _pair_blanks(blanks, k, waiting, (x0, x, y0, y), hunks)
                if k < last or blanks[k] <= x:
                    while blanks[k] <= x:
                        k += 1
                    uneven.append((x, y, k))
                next_blank = blanks[k]
            if x > x0:
                hunks.append((x0, x, y0, y))
            elif x < x0:
                return None
            elif y > y0:
                hunks.append((x0, x, y0, y))
            x0, y0 = x1, y1
        elif y == y0 and next_blank == x0 + 1:
            k += 1
            x0, y0, next_blank = next_blank, y1, blanks[k]
        else:
            next_blank = 0
            waiting.append(y)
    if not known.repeated.isdisjoint(filter(None, ids_b)):
        return None
    return _last_from_below(hunks, uneven, (blanks, blank), (ids_b, at_b)) if len(uneven) > 1 else hunks


def _pair_blanks(
    blanks: Sequence[int], k: int, waiting: list[int], gap: Hunk, hunks: list[Hunk]
) -> tuple[int, int, int]:
    """Let the blank lines of a gap between two anchors belong to each other, the first to the first; add the hunks.

    Returns:
        the first of `blanks` that is not paired, and where the last pair ends.
    """
    x0, x, y0, _ = gap
    for start in waiting:
        end = blanks[k]
        if end > x:
            break
        if end != x0 + 1 or start != y0:
            hunks.append((x0, end - 1, y0, start))
        x0, y0, k = end, start + 1, k + 1
    waiting.clear()
    return k, x0, y0


def _last_from_below(
    hunks: list[Hunk],
    uneven: Sequence[_Gap],
    blank_lines: tuple[Sequence[int], int],
    side: tuple[Sequence[int | None], Sequence[int]],
) -> list[Hunk] | None:
    """The hunks, but made anew in the last gap that holds more blank lines on one side: paired there from below.

    None where the first such gap is so near that `matched_lines` would match without anchors there.
    """
    blanks, blank = blank_lines
    ids_b, at_b = side
    (_, above, _), (x, y, last) = uneven[0], uneven[-1]
    first = at_b.index(above)
    anchors = (n for n in range(first, len(ids_b)) if ids_b[n] and ids_b[n] != blank)
    if at_b[next(islice(anchors, _NEAR - 1, None), -1)] >= y:
        return None
    j = at_b.index(y) - 1
    in_b: list[int] = []
    while (end := ids_b[j]) in (None, blank):
        if end:
            in_b.insert(0, at_b[j])
        j -= 1
    x0, y0 = end or 0, at_b[j + 1]
    redone = [hunk for hunk in hunks if hunk[1] < x0]
    in_a = [end for end in blanks[:last] if end > x0]
    pairs = min(len(in_a), len(in_b))
    if pairs:
        _, x0, y0 = _pair_blanks([*in_a[-pairs:], _FAR], 0, in_b[-pairs:], (x0, x, y0, y), redone)
    if x0 != x or y0 != y:
        redone.append((x0, x, y0, y))
    return redone + [hunk for hunk in hunks if hunk[0] > x]


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
    """Where the lines of these numbers, which ascend, start in a text of that span; counted from its nearer end."""
    at, end = span
    done = 0
    places: list[int] = []
    for n in numbers:
        if n - done < len(lines) - n:
            at += sum(map(len, lines[done:n]))
        else:
            at = end - sum(map(len, lines[n:]))
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
        return known, 0, len(known.lines)
    if "a" not in kept:
        kept["a"] = Numbered(a, 0, len(a))
    known = kept["a"]
    above = a.count(b"\n", 0, start)
    return known, above, len(known.lines) if end == len(a) else above + a.count(b"\n", start, end)
