"""The canonical place of a hunk: pure insertions and deletions slide down as far as they go.

The same text inserted by two writers can stand at several places of a script with equal right (one blank line more
among many). When every script puts it at the last of them, the same insertion always stands at the same point of the
base.
"""

from __future__ import annotations

from mergepub.merge.lines import common_prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Hunk = tuple[int, int, int, int]

_FEW = 16  # hunks; of these, all are looked at sooner than chosen


def canonical(a: bytes, b: bytes, hunks: Iterable[Hunk]) -> list[Hunk]:
    """Slide every pure hunk down, join hunks that touch, until nothing moves.

    Works from the last hunk up: a hunk that reaches the next one joins it and, while the joint is pure, slides on. Most
    hunks are neither pure nor touch the next; to pass by these halves the time.

    Args:
        a: the old body.
        b: the new body.
        hunks: ordered hunks of byte offsets at line boundaries; they may touch.

    Returns:
        the canonical script: ordered, never touching, everything between hunks equal.
    """
    hunks = list(hunks)
    loose: Sequence[int] = range(len(hunks)) if len(hunks) < _FEW else _loose(hunks)
    if not loose:
        return hunks
    view_a, view_b = memoryview(a), memoryview(b)
    below: list[Hunk] = []
    done = len(hunks)
    for k in reversed(loose):
        below += hunks[done - 1 : k : -1]
        hunk, done = hunks[k], k
        while True:
            limit = below[-1][0] if below else len(a)
            a0, a1, b0, b1 = hunk
            shift = 0
            if a0 == a1:
                shift = _room(b, view_b, b0, b1, limit - a1)
            elif b0 == b1:
                shift = _room(a, view_a, a0, a1, limit - a1)
            if not below or a1 + shift < limit:
                below.append((a0 + shift, a1 + shift, b0 + shift, b1 + shift))
                break
            _, a1, _, b1 = below.pop()
            hunk = (a0 + shift, a1, b0 + shift, b1)  # joined with the one below, looked at again
    below.reverse()
    return hunks[:done] + below


def _loose(hunks: list[Hunk]) -> list[int]:
    """Which of the hunks are pure or touch the next."""
    next_starts = [start for start, _, _, _ in hunks[1:]] + [-1]
    return [
        k
        for k, ((a0, a1, b0, b1), next_start) in enumerate(zip(hunks, next_starts, strict=True))
        if a0 == a1 or b0 == b1 or a1 == next_start
    ]


def _room(text: bytes, view: memoryview, start: int, end: int, gap: int) -> int:
    """How many bytes of whole lines the range `start:end` of `text` can move down within the `gap` bytes after it."""
    if not gap or text[start] != text[end]:
        return 0
    return max(0, text.rfind(b"\n", start, start + common_prefix(text, start, view, end, gap)) + 1 - start)
