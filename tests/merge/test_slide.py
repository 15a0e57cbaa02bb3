"""The canonical place of hunks: slid down, joined where they touch, until nothing moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mergepub.merge.myers import edit_script
from mergepub.merge.scripts import canonical


def test_a_pure_insertion_slides_over_every_line_that_it_could_trade_places_with() -> None:
    assert canonical(b"a\nb\na\nc\n", b"a\nb\na\nb\na\nc\n", [(0, 0, 0, 4)]) == [(6, 6, 6, 10)]


def test_a_pure_deletion_slides_too() -> None:
    assert canonical(b"x\n\n\n\ny\n", b"x\n\ny\n", [(2, 4, 2, 2)]) == [(3, 5, 3, 3)]


def test_hunks_that_touch_after_sliding_are_joined_and_slide_on() -> None:
    a, b = b"\n" * 4 + b"end\n", b"\n" * 6 + b"end\n"
    assert canonical(a, b, [(0, 0, 0, 1), (2, 2, 3, 4)]) == [(4, 4, 4, 6)]


def test_a_pure_hunk_that_reaches_a_replacement_becomes_part_of_it() -> None:
    a, b = b"\n\nold\nz\n", b"\n\n\nnew\nz\n"
    assert canonical(a, b, [(0, 0, 0, 1), (2, 6, 3, 7)]) == [(2, 6, 2, 7)]


def test_hunks_that_touch_from_the_start_are_joined() -> None:
    assert canonical(b"a\nb\n", b"x\ny\n", [(0, 2, 0, 2), (2, 4, 2, 4)]) == [(0, 4, 0, 4)]


def test_hunks_that_touch_are_joined_among_many_others_too() -> None:
    a, b = (b"".join(b"%s\n%s\nsame %d\n" % (name, name, n) for n in range(20)) for name in (b"old", b"new"))
    hunks = edit_script(a, b)
    start, end = hunks[12][:2]
    cut = [(start, start + 4, start, start + 4), (start + 4, end, start + 4, end)]
    assert canonical(a, b, [*hunks[:12], *cut, *hunks[13:]]) == hunks


def test_a_hunk_never_slides_into_an_unterminated_line() -> None:
    assert canonical(b"a\nx", b"a\na\nx", [(0, 0, 0, 2)]) == [(2, 2, 2, 4)]
    assert canonical(b"a", b"a\na", [(0, 0, 0, 2)]) == [(0, 0, 0, 2)]


def test_nothing_stays_nothing() -> None:
    assert canonical(b"a\n", b"a\n", []) == []


@given(st.integers(0, 6), st.integers(0, 6), st.sampled_from([b"\n", b"p\n\n", b"p\nq\n"]))
def test_the_same_insertion_found_at_any_of_its_places_ends_at_one(before: int, after: int, unit: bytes) -> None:
    a, b = unit * (before + after) + b"end\n", unit * (before + 1 + after) + b"end\n"
    at = before * len(unit)
    assert canonical(a, b, [(at, at, at, at + len(unit))]) == edit_script(a, b)
