"""Comparing long byte strings at C speed, without copies; nothing here knows what a hunk is.

`bytes.startswith` takes any buffer and a start offset, so a memoryview slice on its right makes it a `memcmp` of any
part of one body with any part of another. Sizes grow by fours until one fails; then a binary search finds the byte.
"""

from __future__ import annotations

_FIRST_STEP = 64


def common_prefix(a: bytes, i: int, view_b: memoryview, j: int, limit: int) -> int:
    """Count the equal bytes of `a` from `i` on and of `view_b` from `j` on, `limit` at most.

    The ranges must lie inside both: `i + limit <= len(a)` and `j + limit <= len(view_b)`.
    """
    done, step = 0, _FIRST_STEP
    while done < limit:
        step = min(step, limit - done)
        if not a.startswith(view_b[j + done : j + done + step], i + done):
            break
        done += step
        step *= 4
    else:
        return limit
    while step > 1:
        half = step >> 1
        if a.startswith(view_b[j + done : j + done + half], i + done):
            done += half
            step -= half
        else:
            step = half
    return done


def common_suffix(a: bytes, i: int, view_b: memoryview, j: int, limit: int) -> int:
    """Count the equal bytes of `a` before `i` and of `view_b` before `j`, `limit` at most.

    The ranges must lie inside both: `limit <= i <= len(a)` and `limit <= j <= len(view_b)`.
    """
    done, step = 0, _FIRST_STEP
    while done < limit:
        step = min(step, limit - done)
        if not a.endswith(view_b[j - done - step : j - done], 0, i - done):
            break
        done += step
        step *= 4
    else:
        return limit
    while step > 1:
        half = step >> 1
        if a.endswith(view_b[j - done - half : j - done], 0, i - done):
            done += half
            step -= half
        else:
            step = half
    return done
