"""Lines edited in their places: the short way to their hunks ends where the long way does."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import anchors, dense
from mergepub.merge.dense import Numbered, dense_hunks, hunks_in_order, split_lines

Hunk = tuple[int, int, int, int]


def text(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def in_order(a: Sequence[bytes], b: Sequence[bytes], above: int = 0, below: int | None = None) -> list[Hunk] | None:
    """The short way from the lines of `a` (from `above` to `below`) to those of `b`."""
    body, side = text(a), text(b)
    known, lines = Numbered(body, 0, len(body)), split_lines(side, 0, len(side))
    ids_b, at_b = [known.numbers.get(line) for line in lines], list(accumulate(map(len, lines), initial=0))
    return hunks_in_order(known, ids_b, at_b, (len(text(a[:above])), len(text(a[:below])), 0, len(side)))


def long_way(a: Sequence[bytes], b: Sequence[bytes], above: int) -> list[Hunk]:
    start, body, side = len(text(a[:above])), text(a), text(b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "hunks_in_order", lambda *_: None)
        return dense_hunks(body, side, (start, len(body), 0, len(side)))


@settings(max_examples=400)
@given(
    st.randoms(use_true_random=False), st.sampled_from([0.1, 0.4, 0.8]), st.integers(0, 5), st.sampled_from([0.1, 0.5])
)
def test_lines_edited_in_their_places_have_the_same_hunks_in_the_short_way(
    chance: random.Random, blanks: float, above: int, edits: float
) -> None:
    a = [b"" if chance.random() < blanks else b"line %d" % n for n in range(40)]
    b: list[bytes] = []
    for n, line in enumerate(a[above:]):
        others = [[], [b"new %d" % n], [b"", line], [line, b""], [line, b"", b"new %d" % n]]
        b += chance.choice(others) if chance.random() < edits else [line]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "_EXACT", 0)
        patch.setattr(dense, "_NEAR", 1)
        found = in_order(a, b, above) if set(a[above:]) & set(b) - {b""} else None
        assert found is None or found == long_way(a, b, above)


def test_the_short_way_is_not_taken_where_lines_moved_or_stand_twice_or_elsewhere() -> None:
    lines = [b"line %d" % n for n in range(200)]
    assert in_order(lines, lines) == []
    assert in_order(lines, [*lines[100:], *lines[:100]]) is None
    assert in_order([*lines, b"x", b"x"], [*lines, b"x"]) is None
    assert in_order(lines, [*lines, b"line 199"]) is None
    assert in_order(lines, lines, above=1) is None
    assert in_order(lines, lines, below=199) is None


def test_the_short_way_is_not_taken_where_blank_lines_changed_close_together() -> None:
    lines = [b"line %d" % n for n in range(200)]
    a, b = lines.copy(), lines.copy()
    a.insert(10, b"")
    b.insert(70, b"")
    assert in_order(a, b) is None
    b.insert(170, b"")
    assert in_order(a, b) == long_way(a, b, 0)


@pytest.mark.parametrize("line", [90, 100])
def test_of_blank_lines_added_last_the_ones_below_are_matched(line: int) -> None:
    lines = [b"line %d" % n for n in range(100)]
    a = [*lines[:10], b"", b"", *lines[10:line], b"", *lines[line:]]
    b = [*lines[:10], b"", *lines[10:line], b"", b"", *lines[line:]]
    hunks = in_order(a, b)
    assert hunks == long_way(a, b, 0)
    upper, lower = len(text(a[:11])), len(text(b[: line + 1]))
    assert hunks == [(upper, upper + 1, upper, upper), (lower + 1, lower + 1, lower, lower + 1)]
