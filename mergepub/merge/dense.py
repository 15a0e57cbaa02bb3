"""Hunks of a stretch of two bodies that differ too much for a walk on bytes: lines are split and matched."""

from __future__ import annotations

from itertools import accumulate

from mergepub.merge.anchors import matched_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mergepub.merge.myers import KeptLines

    Hunk = tuple[int, int, int, int]


def split_lines(text: bytes, start: int, end: int) -> list[bytes]:
    r"""The lines of `text[start:end]`, each with its newline; the last may be unterminated.

    `splitlines` breaks at every ``\r`` too: it is used where there is none that no newline follows. It is as quick as
    `split`, and no newline needs to be counted to every length or taken off again.
    """
    part = text[start:end]
    if b"\r" not in part or part.count(b"\r") == part.count(b"\r\n"):
        return part.splitlines(keepends=True)
    lines = [line + b"\n" for line in part.split(b"\n")]
    unterminated = lines.pop()[:-1]
    return [*lines, unterminated] if unterminated else lines


def dense_hunks(
    a: bytes, b: bytes, box: tuple[int, int, int, int], kept: KeptLines | None = None, *, at_least: int = 0
) -> list[Hunk]:
    """The hunks between `a[a0:a1]` and `b[b0:b1]` of a `box` `(a0, a1, b0, b1)` of line boundaries.

    Args:
        a: the old body.
        b: the new body.
        box: what of them is compared.
        kept: where the lines of `a` are kept; None keeps nothing.
        at_least: a number of lines; where no run of so many lines of `a` is in `b` at all, in whatever order, nothing
            is matched and the whole box is one hunk. That tells a hopeless window at a quarter of the price.
    """
    a0, a1, b0, b1 = box
    numbers, ids_a, at_a = _numbered(a, a0, a1, kept)
    lines_b = split_lines(b, b0, b1)
    ids_b = list(map(numbers.get, lines_b))
    if at_least and bytes(map(set(ids_b).__contains__, ids_a)).find(b"\1" * at_least) < 0:
        return [box]
    rows, columns = matched_lines(ids_a, ids_b, numbers.get(b"\n", 0))
    rows.append(len(ids_a))
    columns.append(len(lines_b))
    at_b = _starts(lines_b, b0)
    hunks: list[Hunk] = []
    i0 = j0 = 0
    for i, j in zip(rows, columns, strict=True):
        if i != i0 or j != j0:
            hunks.append((at_a[i0], at_a[i], at_b[j0], at_b[j]))
        i0, j0 = i + 1, j + 1
    return hunks


def _numbered(a: bytes, start: int, end: int, kept: KeptLines | None) -> tuple[dict[bytes, int], list[int], list[int]]:
    """The lines of `a[start:end]` as numbers from 1: the number of each text, the lines, where they start and end.

    A range of half of the body or more is cut out of all of it, whose lines are kept: to split, hash and number them
    again for the other side of a merge was an eighth of its time where half of the lines differ. Numbers, because all
    later steps together touch every line a dozen times, and 5,000 of them fit into the processor's nearer memory where
    5,000 lines do not.
    """
    if kept is None or (end - start) * 2 < len(a):
        return _number(a, start, end)
    if "a" not in kept:
        kept["a"] = _number(a, 0, len(a))
    numbers, ids, starts = kept["a"]
    above = a.count(b"\n", 0, start)
    below = len(ids) if end == len(a) else above + a.count(b"\n", start, end)
    return numbers, ids[above:below], starts[above : below + 1]


def _number(a: bytes, start: int, end: int) -> tuple[dict[bytes, int], list[int], list[int]]:
    lines = split_lines(a, start, end)
    numbers = dict(zip(lines, range(1, len(lines) + 1), strict=True))
    return numbers, list(map(numbers.__getitem__, lines)), _starts(lines, start)


def _starts(lines: list[bytes], start: int) -> list[int]:
    """Where the lines of a range start, and where the last one ends."""
    return list(accumulate(map(len, lines), initial=start))
