r"""Two bodies as a unified diff, the form that ``patch`` takes. Pure: bytes in, lines out.

Lines end at ``\n`` alone, as everywhere in the engine; what differs is told by :mod:`mergepub.merge.myers`.
"""

from __future__ import annotations

from mergepub.merge.lines import Range, line_count
from mergepub.merge.myers import edit_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Hunk = tuple[int, int, int, int]

CONTEXT = 3
_UNTERMINATED = b"\n\\ No newline at end of file\n"


def unified(a: bytes, b: bytes, names: tuple[bytes, bytes], *, context: int = CONTEXT) -> Iterator[bytes]:
    r"""The lines of the diff that makes ``b`` of ``a``, each with its end; none where they are equal.

    Args:
        a: the old body.
        b: the new body.
        names: what the two header lines call them.
        context: how many equal lines are shown around a change.
    """
    if a == b:
        return
    old, new = names
    if b"\0" in a or b"\0" in b:
        yield b"Binary files %s and %s differ\n" % names
        return
    yield b"--- %s\n" % old
    yield b"+++ %s\n" % new
    at, a_lines, b_lines = 0, 0, 0  # up to here in a, so many lines are passed in each body
    b_at = 0
    for group in _groups(a, edit_script(a, b), context):
        a_span, b_span = _spans(a, group, context)
        a_lines += line_count(a, (at, a_span[0]))
        b_lines += line_count(b, (b_at, b_span[0]))
        at, b_at = a_span[0], b_span[0]
        yield b"@@ -%s +%s @@\n" % (_range(a_lines, line_count(a, a_span)), _range(b_lines, line_count(b, b_span)))
        yield from _body(a, b, group, a_span)


def _groups(a: bytes, script: Iterable[Hunk], context: int) -> Iterator[list[Hunk]]:
    """Hunks that share their context, together."""
    group: list[Hunk] = []
    for hunk in script:
        if group and line_count(a, (group[-1][1], hunk[0])) > 2 * context:
            yield group
            group = []
        group.append(hunk)
    yield group


def _spans(a: bytes, group: list[Hunk], context: int) -> tuple[Range, Range]:
    """What a group covers of both bodies, its context included."""
    a0, _, b0, _ = group[0]
    _, a1, _, b1 = group[-1]
    start, end = _lines_before(a, a0, context), _lines_after(a, a1, context)
    return (start, end), (b0 - (a0 - start), b1 + (end - a1))


def _lines_before(a: bytes, at: int, count: int) -> int:
    for _ in range(count):
        if at == 0:
            break
        at = a.rfind(b"\n", 0, at - 1) + 1
    return at


def _lines_after(a: bytes, at: int, count: int) -> int:
    for _ in range(count):
        newline = a.find(b"\n", at)
        if newline < 0:
            return len(a)
        at = newline + 1
    return at


def _range(before: int, count: int) -> bytes:
    """Start and length as ``patch`` reads them: an empty range is named by the line before it."""
    start = before + (count > 0)
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)


def _body(a: bytes, b: bytes, group: list[Hunk], a_span: Range) -> Iterator[bytes]:
    at = a_span[0]
    for a0, a1, b0, b1 in group:
        yield from _marked(b" ", a[at:a0])
        yield from _marked(b"-", a[a0:a1])
        yield from _marked(b"+", b[b0:b1])
        at = a1
    yield from _marked(b" ", a[at : a_span[1]])


def _marked(mark: bytes, text: bytes) -> Iterator[bytes]:
    """Every line of ``text`` with its mark before it."""
    *lines, rest = text.split(b"\n")
    for line in lines:
        yield mark + line + b"\n"
    if rest:
        yield mark + rest + _UNTERMINATED
