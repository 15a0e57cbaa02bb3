"""The walk on bytes: spans, snakes, short searches, sections and windows, and that its work stays bounded."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import myers
from mergepub.merge.dense import dense_hunks, split_lines
from mergepub.merge.lines import common_prefix
from mergepub.merge.myers import COMMIT, edit_script, hunks_between, one_block, one_line, search, snake

LONG = b"".join(b"a line that both sides have, number %d\n" % n for n in range(60))


def assert_applies(a: bytes, b: bytes, hunks: list[tuple[int, int, int, int]]) -> None:
    p = q = 0
    for a0, a1, b0, b1 in hunks:
        assert a[p:a0] == b[q:b0]
        p, q = a1, b1
    assert a[p:] == b[q:]


def block_at(a: bytes, b: bytes) -> tuple[int, int] | None:
    return one_block(a, 0, b, memoryview(b), 0)


@given(st.binary(max_size=5), st.integers(0, 700), st.binary(max_size=20), st.integers(0, 9), st.integers(0, 9))
def test_common_prefix_counts_equal_bytes(unit: bytes, times: int, tail: bytes, i: int, j: int) -> None:
    a, b = b"x" * i + unit * times + tail, b"y" * j + unit * times + b"end"
    limit = min(len(a) - i, len(b) - j)
    n = common_prefix(a, i, memoryview(b), j, limit)
    assert a[i : i + n] == b[j : j + n]
    assert n == limit or a[i + n] != b[j + n]


@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 255, 320, 1343, 1344, 5000, 5439, 5440, 9999])
def test_common_prefix_finds_the_byte_that_differs_wherever_it_stands(at: int) -> None:
    a = bytes(10_000)
    b = a[:at] + b"\x80" + a[at + 1 :]
    assert common_prefix(a, 0, memoryview(b), 0, 10_000) == at


@pytest.mark.parametrize("at", [0, 87_381, 349_524, 349_525, 349_526, 1_000_000, 1_398_101, 1_999_999])
def test_common_prefix_finds_the_byte_that_differs_far_ahead(at: int) -> None:
    a = bytes(2_000_000)
    b = a[:at] + b"\x80" + a[at + 1 :]
    assert common_prefix(a, 0, memoryview(b), 0, 2_000_000) == at


@pytest.mark.parametrize(
    ("a", "b", "n"),
    [
        (b"x\ny\n", b"x\nz\n", 2),
        (b"x\ny", b"x\ny", 3),
        (b"x\ny", b"x\ny\n", 2),
        (b"xy\n", b"xz\n", 0),
        (b"", b"", 0),
        (b"x", b"x\n", 0),
    ],
)
def test_a_snake_is_made_of_whole_lines(a: bytes, b: bytes, n: int) -> None:
    assert snake(a, 0, b, memoryview(b), 0) == n


@pytest.mark.parametrize(("old", "new"), [(b"", b"in\n"), (b"out\n", b""), (b"out\n", b"in\n")])
def test_one_line_edits_are_told_by_the_long_snake_below(old: bytes, new: bytes) -> None:
    a, b = old + LONG, new + LONG + b"more\n"
    assert one_line(a, 0, b, memoryview(b), 0) == (len(old), len(new), len(LONG))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (b"no end", LONG),
        (LONG, b"no end"),
        (b"a\nb\n" + LONG, b"c\n" + LONG),
        (b"a\n" + b"z" * 2000, b"b\n" + b"z" * 1999 + b"y\n"),
    ],
)
def test_other_edits_are_not_mistaken_for_one_line(a: bytes, b: bytes) -> None:
    assert one_line(a, 0, b, memoryview(b), 0) is None


def test_a_search_ends_at_the_first_long_snake_and_is_shortest_before_it() -> None:
    a, b = b"1\n2\n3\n4\n" + LONG, b"2\nx\n4\ny\n" + LONG
    found = search(a, b, memoryview(b), 0, 0)
    assert found is not None
    hunks, x, y = found
    assert hunks == [(0, 2, 0, 0), (4, 6, 2, 4), (8, 8, 6, 8)]
    assert (x, y) == (len(a), len(b))


def test_a_search_gives_up_where_many_edits_are_needed() -> None:
    a = b"".join(b"old %d\n" % n for n in range(40))
    b = b"".join(b"new %d\n" % n for n in range(40))
    assert search(a, b, memoryview(b), 0, 0) is None


def test_the_nearer_end_of_a_moved_section_is_taken() -> None:
    section = b"".join(b"line %d of the section that moves\n" % n for n in range(50))
    assert block_at(section + LONG + section, LONG + section) == (len(section), 0)
    assert block_at(LONG + section, section + LONG + section) == (0, len(section))
    short, long = b"short\n" * 40, section * 2
    a, b = short + long + LONG, long + short + LONG
    assert block_at(a + LONG, b + LONG) == (len(short), 0)
    assert block_at(b + LONG, a + LONG) == (0, len(short))


def test_a_section_must_end_where_a_line_does_and_leave_enough_below() -> None:
    assert block_at(b"new " + LONG, LONG) is None
    assert block_at(LONG, b"new " + LONG) is None
    assert block_at(b"a\n", LONG) is None


def test_a_long_common_beginning_of_unlike_lines_is_no_section() -> None:
    long = b"p" * 3 * COMMIT
    assert block_at(long + b"1\n" + long + b"2\n", long + b"3\n" + long + b"4\n") is None


def test_lines_of_a_window_keep_an_unterminated_end_apart() -> None:
    assert split_lines(b"a\n\nb", 0, 4) == [b"a\n", b"\n", b"b"]
    assert split_lines(b"a\n\n", 0, 3) == [b"a\n", b"\n"]
    assert dense_hunks(b"k\nx", b"k\nx\n", (0, 3, 0, 4)) == [(2, 3, 2, 4)]
    assert dense_hunks(b"k\nx", b"j\nx", (0, 3, 0, 3)) == [(0, 2, 0, 2)]


def test_lines_of_a_window_end_at_newlines_alone_whatever_carriage_returns_there_are() -> None:
    assert split_lines(b"a\r\nb\r\n", 0, 6) == [b"a\r\n", b"b\r\n"]
    assert split_lines(b"a\rb\r\n\rc", 0, 8) == [b"a\rb\r\n", b"\rc"]
    assert split_lines(b"\r\n\r\r\n", 0, 5) == [b"\r\n", b"\r\r\n"]


def test_the_search_is_tried_once_for_every_settled_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is bounded: every search settles a long snake or a window, so there are few of them."""
    tries = []

    def counted(*args: Any, **how: Any) -> Any:
        tries.append(args)
        return search(*args, **how)

    monkeypatch.setattr(myers, "search", counted)
    chance = random.Random(11)
    a = b"".join(b"%d\n" % chance.randrange(3) for _ in range(40_000))
    b = b"".join(b"%d\n" % chance.randrange(3) for _ in range(40_000))
    assert_applies(a, b, hunks_between(a, b))
    assert len(tries) <= (len(a) + len(b)) // COMMIT


def test_windows_grow_until_one_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def counted(a: bytes, b: bytes, box: tuple[int, int, int, int], kept: Any, **how: Any) -> Any:
        sizes.append(box[1] - box[0])
        return dense_hunks(a, b, box, kept, **how)

    monkeypatch.setattr("mergepub.merge.dense.dense_hunks", counted)
    monkeypatch.setattr(myers, "REACH", 0)
    a = b"".join(b"old line %d\n" % n for n in range(4_000)) + LONG * 300
    b = b"".join(b"new line %d\n" % n for n in range(4_000)) + LONG * 300
    assert edit_script(a, b) == [(0, len(a) - 300 * len(LONG), 0, len(b) - 300 * len(LONG))]
    assert sizes[0] < 25_000
    assert len(sizes) == 2


HUGE = 1 << 24


def rewritten_region() -> tuple[bytes, bytes]:
    lines = [b"line %d of a huge document, the same on both sides\n" % n for n in range(50_000)]
    return b"".join(lines), b"".join(lines[:20_000] + [b"new %d\n" % n for n in range(2_000)] + lines[22_000:])


def shuffled(unlike: int) -> tuple[bytes, bytes]:
    lines = [b"line %d\n" % (n % unlike) for n in range(20_000)]
    other = lines.copy()
    random.Random(1).shuffle(other)
    return b"".join(lines), b"".join(other)


def blank_lines_with_edits() -> tuple[bytes, bytes]:
    half = HUGE // 2
    return b"\n" * HUGE, b"\n" * half + b"edit\n" + b"\n" * 1000 + b"more\n" + b"\n" * (half + 7)


ADVERSARIES = {
    "periods of 7 and 8 lines": lambda: (b"1\n2\n3\n4\n5\n6\n7\n" * 3000, b"1\n2\n3\n4\n5\n6\n7\n8\n" * 3000),
    "all lines equal": lambda: (b"same\n" * 50_000, b"same\n" * 70_000),
    "one line against two in turn": lambda: (b"a\n" * 20_000, b"a\nb\n" * 15_000),
    "reversed": lambda: (LONG * 3, b"\n".join(reversed((LONG * 3).split(b"\n")))),
    "shuffled unique lines": lambda: shuffled(20_000),
    "shuffled repeated lines": lambda: shuffled(300),
    "a rewritten region in a huge body": rewritten_region,
    "a single line of 16 MiB": lambda: (b"x" * HUGE, b"x" * (HUGE - 1) + b"y"),
    "a line of 16 MiB among others": lambda: (b"a\n" + b"x" * HUGE + b"\nb\n", b"c\n" + b"x" * HUGE + b"\nd\n"),
    "16 MiB of blank lines": blank_lines_with_edits,
    "every byte a line ending but none of ours": lambda: (b"\r\x0b\x0c\x85" * 5000, b"\r\x0b\x0c\x85" * 5001),
    "unlike long lines with one long beginning": lambda: (
        b"".join(b"p" * 40_000 + b"%d\n" % n for n in range(50)),
        b"".join(b"p" * 40_000 + b"%d\n" % n for n in range(25, 75)),
    ),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_hostile_bodies_give_a_script_that_applies(name: str) -> None:
    a, b = ADVERSARIES[name]()
    assert_applies(a, b, edit_script(a, b))
    assert_applies(b, a, edit_script(b, a))


def test_edits_in_a_huge_body_of_blank_lines_are_found_where_they_are() -> None:
    a, b = blank_lines_with_edits()
    assert edit_script(a, b)[0] == (HUGE // 2, HUGE // 2, HUGE // 2, HUGE // 2 + 5)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 399), st.sampled_from([b"", b"new line\n", b"\n", b"two\nlines\n"])), max_size=30)
)
def test_scattered_edits_of_a_long_body_cost_no_more_lines_than_were_edited(edits: list[tuple[int, bytes]]) -> None:
    lines = [b"line %d of the old body, which is long enough\n" % n for n in range(400)]
    edited = lines.copy()
    for at, text in edits:
        edited[at] = text
    a, b = b"".join(lines), b"".join(edited)
    hunks = edit_script(a, b, weak_rule=False)
    assert_applies(a, b, hunks)
    assert sum(a.count(b"\n", h[0], h[1]) for h in hunks) == len({at for at, _ in edits})
