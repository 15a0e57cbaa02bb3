r"""Words replaced in their places: the commonest edit of prose, found and merged without a line or a word being split.

A word gave way to another word and the text goes on as before: such an edit is seen on the raw bytes, on the way from
one difference to the next. Where both sides of a merge made such edits alone, these say everything: which lines are
edited, and what becomes of those that both edited. Whatever else an edit may do (white space, a word more or less, a
line break, two words in a row) is left to :mod:`mergepub.merge.words`.
"""

from __future__ import annotations

from mergepub.merge.lines import common_prefix
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, WORDS, changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mergepub.merge.regions import Change, Hunk

    Edit = tuple[int, int, str, bytes]
    Bodies = tuple[bytes, bytes, bytes]

NO_WORD = bytes(byte for byte in range(128) if not chr(byte).isalnum())
"""White space and punctuation: text that is made of these bytes alone holds no word."""

_SURE = 16  # bytes that go on unchanged after a word that was replaced
_STEP = 256  # bytes compared at once
_FAR = 1024  # bytes; over longer stretches `common_prefix` is quicker


def changes_in_place(bodies: Bodies, *, touching: bool) -> list[Change] | None:
    """The changes of a merge by words; None where a side did anything else than put words in the places of others.

    Args:
        bodies: Base, ours and theirs.
        touching: As in :func:`mergepub.merge.regions.changes`.
    """
    edits = _both_replaced(*bodies)
    if not edits:
        return None
    found = changes(bodies, *(edited_lines(bodies[0], side) for side in edits), touching=touching)
    return _settled(found, bodies[0], sorted(edits[0] + edits[1]))


def merged_in_place(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The text in which the edits of both sides stand; None where they cannot, or are more than such replacements."""
    edits = _both_replaced(base, ours, theirs)
    return _merged(base, 0, len(base), sorted(edits[0] + edits[1])) if edits else None


def _both_replaced(base: bytes, ours: bytes, theirs: bytes) -> tuple[list[Edit], list[Edit]] | None:
    our_edits = replaced_words(base, ours, OURS)
    their_edits = our_edits and replaced_words(base, theirs, THEIRS)
    return (our_edits, their_edits) if our_edits and their_edits else None


def replaced_words(a: bytes, b: bytes, side: str) -> list[Edit] | None:
    """The words of `a` in whose places others stand in `b`; None where that is not the whole difference.

    Returns:
        in order, of every such word: start and end in `a`, the side as given, and the word that stands there in `b`.
    """
    if a.count(b"\n") != b.count(b"\n"):
        return None
    view_b, size_a, size_b = memoryview(b), len(a), len(b)
    far_a, far_b, number = size_a - _FAR, size_b - _FAR, int.from_bytes
    edits: list[Edit] = []
    end = x = y = 0
    while True:
        begun = x
        stop = x + _FAR if x < far_a and y < far_b else x
        while x < stop:  # as `common_prefix`, in steps that suit the distance between edited words
            if not a.startswith(b[y : y + _STEP], x):
                differing = number(a[x : x + _STEP], "big") ^ number(b[y : y + _STEP], "big")
                n = _STEP - (differing.bit_length() + 7 >> 3)
                x, y = x + n, y + n
                break
            x, y = x + _STEP, y + _STEP
        else:
            n = common_prefix(a, x, view_b, y, min(size_a - x, size_b - y))
            x, y = x + n, y + n
        if x == size_a and y == size_b:
            return edits
        start = a.rfind(b" ", end, x) + 1
        if edits and (x - begun < _SURE or start < end + 2):
            return None
        below_a, below_b = a.find(b" ", x), b.find(b" ", y)
        old = a[start : below_a if below_a >= 0 else size_a]
        new = b[start + y - x : below_b if below_b >= 0 else size_b]
        if not old.isalnum() or not new.isalnum():  # there may be a line break in it
            above = max(a.rfind(b"\n", start, x) + 1 - start, 0)
            start, old, new = start + above, old[above:].split(b"\n", 1)[0], new[above:].split(b"\n", 1)[0]
            if old.split() != [old] or new.split() != [new]:
                return None
        end = start + len(old)
        x, y = end, start + y - x + len(new)
        edits.append((start, end, side, new))


def edited_lines(a: bytes, edits: Sequence[Edit]) -> list[Hunk]:
    """The edit script on lines that the edits of words come to."""
    hunks: list[Hunk] = []
    end = shift = a0 = b0 = 0
    for p0, p1, _, new in edits:
        if p0 >= end:
            start = a.rfind(b"\n", end, p0) + 1 or end
            if start > end or not hunks:
                a0, b0 = start, start + shift
                hunks.append((0, 0, 0, 0))
            end = a.find(b"\n", p1) + 1 or len(a)
        shift += len(new) - p1 + p0
        hunks[-1] = (a0, end, b0, end + shift)
    return hunks


def _settled(found: list[Change], base: bytes, edits: Sequence[Edit]) -> list[Change]:
    """The changes, with every conflict that can be settled word by word turned into one of kind WORDS."""
    k = 0
    for n, (kind, b0, b1, o0, o1, t0, t1, _) in enumerate(found):
        if kind != CONFLICT:
            continue
        while edits[k][0] < b0:
            k += 1
        first = k
        while k < len(edits) and edits[k][0] < b1:
            k += 1
        text = _merged(base, b0, b1, edits[first:k])
        if text is not None:
            found[n] = (WORDS, b0, b1, o0, o1, t0, t1, text)
    return found


def _merged(base: bytes, start: int, end: int, edits: Sequence[Edit]) -> bytes | None:
    """A range of the base with the edits of both sides made; None where no word stands between two of them."""
    pieces: list[bytes] = []
    at, before, last = start, "", ""
    for p0, p1, side, new in edits:
        if p0 < at:  # the word that the other side replaced
            if new != pieces[-1] or (before and not pieces[-2].strip(NO_WORD)):
                return None
            last = BOTH
            continue
        gap = base[at:p0]
        if last and side != last and not gap.strip(NO_WORD):
            return None
        pieces += (gap, new)
        at, before, last = p1, last, side
    pieces.append(base[at:end])
    return b"".join(pieces)
