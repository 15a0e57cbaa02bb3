"""Edit scripts between two bodies of lines. Pure: bytes in, offsets out."""

from __future__ import annotations

from mergepub.merge.slide import canonical
from mergepub.merge.windows import hunks_between

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
        hunks `(a0, a1, b0, b1)` of byte offsets at line boundaries: `a[a0:a1]` is replaced by `b[b0:b1]`; ordered,
        never touching, all between them equal; pure insertions and deletions stand as far down as they can.
    """
    hunks = canonical(a, b, hunks_between(a, b))
    if weak_rule and len(hunks) > 1:
        from mergepub.merge.weak import without_weak_matches  # noqa: PLC0415  # most scripts are one hunk

        hunks = without_weak_matches(a, b, hunks)
    return hunks
