"""Comparing long byte strings at C speed, without copies; nothing here knows what a hunk is.

`bytes.startswith` takes any buffer and a start offset, so a memoryview slice on its right makes it a `memcmp` of any
part of one body with any part of another. Sizes grow by fours until one fails; then a binary search finds the byte.
"""

from __future__ import annotations

_WORD = 256  # bytes compared first, and as one integer last


def common_prefix(a: bytes, i: int, view_b: memoryview, j: int, limit: int) -> int:
    """Count the equal bytes of `a` from `i` on and of `view_b` from `j` on, `limit` at most.

    The ranges must lie inside both: `i + limit <= len(a)` and `j + limit <= len(view_b)`.
    """
    step, end = _WORD, i + limit
    ahead = j - i
    while i + step <= end and a.startswith(view_b[i + ahead : i + ahead + step], i):
        i += step
        step *= 4
    if i + step > end:
        step = end - i
        if a.startswith(view_b[i + ahead : end + ahead], i):
            return limit
    while step > _WORD:
        half = step >> 1
        if a.startswith(view_b[i + ahead : i + ahead + half], i):
            i += half
            step -= half
        else:
            step = half
    differing = int.from_bytes(a[i : i + step], "little") ^ int.from_bytes(
        view_b[i + ahead : i + ahead + step], "little"
    )
    # The lowest bit that differs lies in the first byte that differs.
    return i + ((differing & -differing).bit_length() - 1 >> 3) - end + limit
