r"""Lines of a body, without ever splitting it: common ends of two ranges, line counts, line endings.

A line ends at ``\n`` only; ``\r\n`` keeps its ``\r``, and a lone ``\r``, a form feed or U+2028 end nothing. All
positions are byte offsets, all ranges half open and at line boundaries. What differs between two bodies is found in
:mod:`mergepub.merge.myers`; this module only measures.
"""

from __future__ import annotations

LF = b"\n"
CRLF = b"\r\n"

Range = tuple[int, int]
"""Start and end of a part of a body: byte offsets, half open."""

_NEWLINE = LF[0]
_SMALL = 4096  # bytes
_WORD = 256  # bytes compared first, and as one integer last
_MOST = 256 << 10  # bytes compared at once: what is compared again to find the byte is still near the processor


def line_count(body: bytes, span: Range) -> int:
    """The number of lines in a range; an unterminated last line counts."""
    return body.count(LF, *span) + (not ends_terminated(body, span))


def ends_terminated(body: bytes, span: Range) -> bool:
    """Whether text may follow this range on a line of its own: it is empty or ends in a newline."""
    start, end = span
    return start == end or body[end - 1] == _NEWLINE


def common_prefix(a: bytes, i: int, view_b: memoryview, j: int, limit: int) -> int:
    """Count the equal bytes of `a` from `i` on and of `view_b` from `j` on, `limit` at most.

    The ranges must lie inside both: `i + limit <= len(a)` and `j + limit <= len(view_b)`. Nothing is copied:
    `bytes.startswith` takes any buffer and a start offset, so a memoryview slice on its right makes it a `memcmp` of
    any part of one body with any part of another. Sizes grow by fours, up to a limit, until one fails; then a binary
    search finds the byte.
    """
    step, end = _WORD, i + limit
    ahead = j - i
    while i + step <= end and a.startswith(view_b[i + ahead : i + ahead + step], i):
        i += step
        if step < _MOST:
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


def same_text(a: bytes, span: Range, b: bytes, other: Range) -> bool:
    """Whether two ranges hold the same bytes; small ones are copied, which is quicker than a view of them."""
    (a0, a1), (b0, b1) = span, other
    if a1 - a0 != b1 - b0:
        return False
    if a1 - a0 <= _SMALL:
        return a[a0:a1] == b[b0:b1]
    return a.startswith(memoryview(b)[b0:b1], a0)


def common_head(a: bytes, span: Range, b: bytes, other: Range) -> int:
    """Length in bytes of the whole lines with which both ranges begin."""
    (a0, a1), (b0, b1) = span, other
    limit = min(a1 - a0, b1 - b0)
    if not limit or a[a0] != b[b0]:
        return 0
    low = common_prefix(a, a0, memoryview(b), b0, limit)
    if low == a1 - a0 == b1 - b0:
        return low
    return max(a.rfind(LF, a0, a0 + low) + 1 - a0, 0)


def common_tail(a: bytes, span: Range, b: bytes, other: Range) -> int:
    """Length in bytes of the whole lines with which both ranges end."""
    (a0, a1), (b0, b1) = span, other
    limit, done = min(a1 - a0, b1 - b0), 0
    if limit > 1 and a[a1 - 2] != b[b1 - 2]:
        return 0
    while done < limit:
        end = a1 - done
        start = max(a.rfind(LF, a0, end - 1) + 1, a0)
        b_start = b1 - (a1 - start)
        if b_start < b0 or not same_text(a, (start, end), b, (b_start, b1 - done)):
            break
        if not ends_terminated(b, (b0, b_start)):
            break
        done = a1 - start
    return done


def dominant_ending(*bodies: bytes) -> bytes:
    r"""The line ending that most terminated lines of the bodies have; ``\n`` where they are equally many."""
    crlf = sum(body.count(CRLF) for body in bodies if b"\r" in body)
    if not crlf:
        return LF
    return CRLF if crlf > sum(body.count(LF) for body in bodies) - crlf else LF


def uniform_ending(body: bytes) -> bytes | None:
    """The one ending of all terminated lines; None where there is no terminated line, or both endings occur."""
    if LF not in body:
        return None
    crlf = body.count(CRLF) if b"\r" in body else 0
    if not crlf:
        return LF
    return CRLF if crlf == body.count(LF) else None


def first_ending(body: bytes) -> bytes | None:
    """The ending of the first terminated line; None where there is none."""
    at = body.find(LF)
    if at < 0:
        return None
    return CRLF if body[at - 1 : at + 1] == CRLF else LF


def converted_ending(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The ending to which a side (or both, alike) converted the whole document; None where neither did.

    Where all lines of a body end alike, so does its first: three first lines nearly always tell, and no body is
    searched for what it does not hold (the quarter of a merge of 100,000 lines that few edits need).
    """
    first = first_ending(base)
    if first is None or not {first_ending(ours), first_ending(theirs)} - {first, None}:
        return None
    old = uniform_ending(base)
    if old is None:
        return None
    new = CRLF if old == LF else LF
    return new if new in (uniform_ending(ours), uniform_ending(theirs)) else None


def plain(text: bytes) -> bytes:
    r"""The text with every ``\r\n`` as ``\n``."""
    return text.replace(CRLF, LF)


def with_ending(text: bytes, ending: bytes) -> bytes:
    """The text with every terminated line ending in ``ending``; an unterminated last line stays so."""
    text = plain(text)
    return text if ending == LF else text.replace(LF, CRLF)


def offset_before_plain(body: bytes, start: int, length: int) -> int:
    """Where in ``body`` the range ends that begins at ``start`` and is ``length`` bytes long once made plain."""
    end, known = start + length, -1
    while end != known:
        known = end
        end = start + length + body.count(CRLF, start, known)
    return end + 1 if body[end - 1 : end + 1] == CRLF else end
