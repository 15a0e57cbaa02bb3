"""The merge3 library behind ``diff3()``: its matching, our changes, rendering and laws.

merge3 is an optional extra. It is there to prove that the engine can be swapped, and for whoever trusts it more. By
design it conflicts on adjacent edits, and it does not slide insertions to a canonical place.
"""

from __future__ import annotations

from itertools import accumulate

from mergepub.errors import InputError
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mergepub.merge.regions import Change


def merge3_changes(base: bytes, ours: bytes, theirs: bytes) -> list[Change]:
    """The changes of a merge as merge3 finds them.

    Raises:
        InputError: The library is not installed.
    """
    try:
        from merge3 import Merge3  # noqa: PLC0415 - an extra, imported when it is asked for
    except ImportError as error:
        raise InputError(
            'The engine merge3 is not installed; install it with: pip install "mergepub[merge3]"'
        ) from error
    base_lines, our_lines, their_lines = lines = [_lines(body) for body in (base, ours, theirs)]
    b, o, t = ([0, *accumulate(map(len, side))] for side in lines)
    found: list[Change] = []
    b0 = o0 = t0 = 0
    for b1, b2, o1, o2, t1, t2 in Merge3(base_lines, our_lines, their_lines).find_sync_regions():
        if b0 < b1 or o0 < o1 or t0 < t1:
            spans = b[b0], b[b1], o[o0], o[o1], t[t0], t[t1]
            found.append(
                (_kind(base[spans[0] : spans[1]], ours[spans[2] : spans[3]], theirs[slice(*spans[4:])]), *spans, None)
            )
        b0, o0, t0 = b2, o2, t2
    return found


def _kind(base: bytes, ours: bytes, theirs: bytes) -> str:
    if ours == theirs:
        return BOTH
    if theirs == base:
        return OURS
    return THEIRS if ours == base else CONFLICT


def _lines(body: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in body.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
