"""Edit scripts between two bodies of lines. Pure: bytes in, offsets out."""

from __future__ import annotations

from mergepub.merge.slide import canonical
from mergepub.merge.windows import hunks_between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mergepub.merge.windows import KeptLines

    Hunk = tuple[int, int, int, int]


def edit_scripts(base: bytes, ours: bytes, theirs: bytes) -> tuple[list[Hunk], list[Hunk]]:
    """The edit scripts from `base` to `ours` and to `theirs`, as :func:`edit_script` finds each.

    What is split of the base for one of them is kept for the other.
    """
    kept: KeptLines = {}
    return edit_script(base, ours, kept=kept), edit_script(base, theirs, kept=kept)


def edit_script(a: bytes, b: bytes, *, weak_rule: bool = True, kept: KeptLines | None = None) -> list[Hunk]:
    r"""The hunks that make `b` of `a`, in canonical form.

    Args:
        a: the old body; lines end at `\n` alone, the last may be unterminated and then differs from a terminated one.
        b: the new body.
        weak_rule: give up matches of weak lines alone between changed blocks (see `mergepub.merge.weak`).
        kept: where the lines of `a`, once split, are kept for another script from the same body.

    Returns:
        hunks `(a0, a1, b0, b1)` of byte offsets at line boundaries: `a[a0:a1]` is replaced by `b[b0:b1]`; ordered,
        never touching, all between them equal; pure insertions and deletions stand as far down as they can.
    """
    hunks = canonical(a, b, hunks_between(a, b, kept))
    if weak_rule and len(hunks) > 1:
        from mergepub.merge.weak import without_weak_matches  # noqa: PLC0415  # most scripts are one hunk

        hunks = without_weak_matches(a, b, hunks)
    return hunks
