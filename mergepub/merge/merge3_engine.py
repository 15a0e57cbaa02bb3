"""The merge3 library behind ``diff3()``: its matching, our regions, rendering and laws.

merge3 is an optional extra. It is there to prove that the engine can be swapped, and for whoever trusts it more. By
design it conflicts on adjacent edits, and it does not slide insertions to a canonical place.
"""

from __future__ import annotations

from itertools import accumulate

from mergepub.errors import InputError
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, UNCHANGED, Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mergepub.merge.lines import Range

    Triple = tuple[int, int, int]


def merge3_regions(base: bytes, ours: bytes, theirs: bytes) -> list[Region]:
    """The regions of a merge as merge3 finds them.

    Raises:
        InputError: The library is not installed.
    """
    try:
        from merge3 import Merge3  # noqa: PLC0415 - an extra, imported when it is asked for
    except ImportError as error:
        raise InputError(
            'The engine merge3 is not installed; install it with: pip install "mergepub[merge3]"'
        ) from error
    bodies = (base, ours, theirs)
    base_lines, our_lines, their_lines = lines = [_lines(body) for body in bodies]
    starts = [[0, *accumulate(map(len, side))] for side in lines]
    found: list[Region] = []
    done = (0, 0, 0)
    for b0, b1, o0, o1, t0, t1 in Merge3(base_lines, our_lines, their_lines).find_sync_regions():
        changed = _spans(starts, done, (b0, o0, t0))
        done = (b1, o1, t1)
        found += (Region(_kind(bodies, changed), *changed), Region(UNCHANGED, *_spans(starts, (b0, o0, t0), done)))
    return [region for region in found if any(start < end for start, end in (region.base, region.ours, region.theirs))]


def _spans(starts: list[list[int]], first: Triple, last: Triple) -> tuple[Range, Range, Range]:
    base, ours, theirs = ((side[i], side[j]) for side, i, j in zip(starts, first, last, strict=True))
    return base, ours, theirs


def _kind(bodies: tuple[bytes, bytes, bytes], spans: tuple[Range, Range, Range]) -> str:
    base, ours, theirs = (body[start:end] for body, (start, end) in zip(bodies, spans, strict=True))
    if ours == theirs:
        return BOTH
    if theirs == base:
        return OURS
    return THEIRS if ours == base else CONFLICT


def _lines(body: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in body.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
