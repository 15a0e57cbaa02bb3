"""Edit scripts between two bodies of lines. Pure: bytes in, offsets out."""

from __future__ import annotations

from mergepub.merge.slide import canonical
from mergepub.merge.spans import common_prefix, common_suffix

TYPE_CHECKING = False
if TYPE_CHECKING:
    Hunk = tuple[int, int, int, int]


def edit_script(a: bytes, b: bytes, *, weak_rule: bool = True) -> list[Hunk]:
    r"""The hunks that make `b` of `a`, in canonical form.

    Args:
        a: the old body; lines end at `\n` alone, the last may be unterminated and then differs from a terminated one.
        b: the new body.
        weak_rule: give up matches of weak lines alone between changed blocks (see `mergepub.merge.weak`).

    Returns:
        hunks `(a0, a1, b0, b1)` of byte offsets at line boundaries: `a[a0:a1]` is replaced by `b[b0:b1]`; ordered, never
        touching, all between them equal; pure insertions and deletions stand as far down as they can.
    """
    if a == b:
        return []
    a0, b0, a1, b1 = _trimmed(a, b)
    from mergepub.merge.dense import dense_hunks  # noqa: PLC0415  # most bodies never need it
    from mergepub.merge.weak import without_weak_matches  # noqa: PLC0415

    hunks = canonical(a, b, dense_hunks(a, b, (a0, a1, b0, b1)))
    if weak_rule and len(hunks) > 1:
        hunks = without_weak_matches(a, b, hunks)
    return hunks


def _trimmed(a: bytes, b: bytes) -> tuple[int, int, int, int]:
    """Where the first and before where the last differing lines stand: `(a0, b0, a1, b1)`."""
    view_b = memoryview(b)
    start = a.rfind(b"\n", 0, common_prefix(a, 0, view_b, 0, min(len(a), len(b)))) + 1
    rest = min(len(a), len(b)) - start
    tail = common_suffix(a, len(a), view_b, len(b), rest)
    a1, b1 = len(a) - tail, len(b) - tail
    if not ((a1 == 0 or a[a1 - 1] == 10) and (b1 == 0 or b[b1 - 1] == 10)):
        newline = a.find(b"\n", a1)
        tail = len(a) - newline - 1 if newline >= 0 else 0
    return start, start, len(a) - tail, len(b) - tail
