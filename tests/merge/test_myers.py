"""Promises of edit_script: it applies, is equal between hunks, canonical, and shortest where it is small."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge.myers import edit_script

LINES = st.lists(
    st.sampled_from(
        [b"", b"a", b"b", b"}", b"\r", b"a\r", b"some words", b"other words", b"\x00\xff\xfe", b"\xe2\x80\xa8"]
    ),
    max_size=14,
)
BODIES = st.builds(
    lambda lines, end: b"".join(line + b"\n" for line in lines) + end,
    LINES,
    st.sampled_from([b"", b"", b"a", b"\r", b"\xff"]),
)


def lines_of(body: bytes) -> list[bytes]:
    lines = body.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def assert_script(a: bytes, b: bytes, hunks: list[tuple[int, int, int, int]]) -> None:
    """The script applies, stands at line boundaries, is ordered, never touches, and is canonical."""
    p = q = 0
    for n, (a0, a1, b0, b1) in enumerate(hunks):
        assert a[p:a0] == b[q:b0]
        assert a0 <= a1
        assert b0 <= b1
        assert a1 > a0 or b1 > b0
        assert n == 0 or a0 > p
        for body, at in ((a, a0), (a, a1), (b, b0), (b, b1)):
            assert at in (0, len(body)) or body[at - 1] == 10
        p, q = a1, b1
    assert a[p:] == b[q:]
    for a0, a1, b0, b1 in hunks:
        if a0 == a1:
            assert not slides(b, b0, b1, a[a1:])
        elif b0 == b1:
            assert not slides(a, a0, a1, b[b1:])


def slides(text: bytes, start: int, end: int, after: bytes) -> bool:
    """Whether the line after a pure hunk could trade places with its first line."""
    first = lines_of(text[start:end])[0]
    following = lines_of(after)[:1]
    return following == [first] and lines_of(text[end:])[:1] == following


def distance(a: list[bytes], b: list[bytes]) -> int:
    """Lines deleted plus lines inserted by a shortest script, by the textbook table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], diagonal if x == y else 1 + min(row[j], row[j - 1])
    return row[-1]


def cost(a: bytes, b: bytes, hunks: list[tuple[int, int, int, int]]) -> int:
    return sum(len(lines_of(a[a0:a1])) + len(lines_of(b[b0:b1])) for a0, a1, b0, b1 in hunks)


@settings(max_examples=600, deadline=None)
@given(BODIES, BODIES, st.booleans())
def test_a_script_applies_is_canonical_and_stands_at_line_boundaries(a: bytes, b: bytes, weak: bool) -> None:
    assert_script(a, b, edit_script(a, b, weak_rule=weak))


@settings(max_examples=600, deadline=None)
@given(BODIES, BODIES)
def test_a_small_script_is_shortest_when_the_weak_rule_is_off(a: bytes, b: bytes) -> None:
    assert cost(a, b, edit_script(a, b, weak_rule=False)) == distance(lines_of(a), lines_of(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (b"", b""),
        (b"", b"x"),
        (b"x", b""),
        (b"x\n", b"x"),
        (b"x", b"x\n"),
        (b"\n", b""),
        (b"a\nx", b"b\nx"),
        (b"x\n", b"y\nx\n"),
    ],
)
def test_edges_of_bodies_are_lines_too(a: bytes, b: bytes) -> None:
    hunks = edit_script(a, b)
    assert_script(a, b, hunks)
    assert cost(a, b, hunks) == distance(lines_of(a), lines_of(b))


def test_twenty_thousand_unlike_lines_are_one_hunk() -> None:
    a = b"".join(b"old line %d\n" % n for n in range(20_000))
    b = b"".join(b"new line %d\n" % n for n in range(20_000))
    assert edit_script(a, b) == [(0, len(a), 0, len(b))]


def test_an_insertion_among_equal_lines_stands_at_their_end() -> None:
    assert edit_script(b"a\n\n\n\nb\n", b"a\n\n\n\n\nb\n") == [(5, 5, 5, 6)]
    assert edit_script(b"\n" * 5, b"\n" * 7) == [(5, 5, 5, 7)]
