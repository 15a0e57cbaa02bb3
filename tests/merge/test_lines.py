"""Lines are measured without splitting a body."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.merge.lines import (
    common_head,
    common_tail,
    dominant_ending,
    ends_terminated,
    line_count,
    offset_before_plain,
    plain,
    same_text,
    uniform_ending,
    with_ending,
)
from tests.merge.support import lines

BODIES = st.binary(max_size=12).map(lambda seed: bytes(b"ab\n\n\r"[byte % 5] for byte in seed))


def whole(body: bytes) -> tuple[int, int]:
    return 0, len(body)


@given(BODIES)
def test_lines_end_at_newlines_only_and_an_unterminated_last_one_counts(body: bytes) -> None:
    assert line_count(body, whole(body)) == len(lines(body))
    assert ends_terminated(body, whole(body)) == (not body or body.endswith(b"\n"))


@given(BODIES, BODIES, BODIES)
def test_common_ends_are_the_whole_lines_that_both_share(first: bytes, second: bytes, before: bytes) -> None:
    a, b = lines(first), lines(second)
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    tail = next((i for i, (x, y) in enumerate(zip(a[::-1], b[::-1], strict=False)) if x != y), min(len(a), len(b)))
    shifted = before + b"\n" + second
    span = (len(before) + 1, len(shifted))
    assert common_head(first, whole(first), shifted, span) == len(b"".join(a[:head]))
    assert common_tail(first, whole(first), shifted, span) == len(b"".join(a[len(a) - tail :]))
    assert same_text(first, whole(first), shifted, span) == (first == second)


@pytest.mark.parametrize("size", [1 << 14, (1 << 14) + 1, 100_000])
def test_common_heads_longer_than_a_chunk_end_at_the_last_common_line(size: int) -> None:
    same = b"0123456\n" * (size // 8)
    assert common_head(same + b"x", (0, len(same) + 1), same + b"y", (0, len(same) + 1)) == len(same)
    assert common_head(same, whole(same), same, whole(same)) == len(same)
    assert common_tail(b"x\n" + same, (0, len(same) + 2), b"y\n" + same, (0, len(same) + 2)) == len(same)


def test_the_ending_of_most_lines_dominates() -> None:
    assert dominant_ending(b"", b"a") == b"\n"
    assert dominant_ending(b"a\r\n", b"b\n") == b"\n"
    assert dominant_ending(b"a\r\n", b"b\r\n", b"c\n") == b"\r\n"
    assert dominant_ending(b"a\r", b"b\r\r") == b"\n"


def test_an_ending_is_uniform_where_all_terminated_lines_have_it() -> None:
    assert [uniform_ending(body) for body in (b"", b"a", b"a\r", b"a\nb", b"a\r\nb", b"a\r\nb\n", b"a\rb\n")] == [
        None,
        None,
        None,
        b"\n",
        b"\r\n",
        None,
        b"\n",
    ]


@given(BODIES, st.data())
def test_an_offset_of_the_plain_text_is_found_in_the_body_as_given(body: bytes, data: st.DataObject) -> None:
    starts = [0]
    for line in lines(plain(body)):
        starts.append(starts[-1] + len(line))
    first, last = sorted(data.draw(st.lists(st.sampled_from(starts), min_size=2, max_size=2)))
    start = offset_before_plain(body, 0, first)
    end = offset_before_plain(body, start, last - first)
    assert plain(body[:start]) == plain(body)[:first]
    assert plain(body[start:end]) == plain(body)[first:last]
    assert plain(body[end:]) == plain(body)[last:]


@given(BODIES, st.sampled_from([b"\n", b"\r\n"]))
def test_a_converted_text_has_one_ending_and_the_same_lines(body: bytes, ending: bytes) -> None:
    converted = with_ending(body, ending)
    assert converted.count(b"\n") == body.count(b"\n")
    assert plain(converted) == (plain(body) if ending == b"\r\n" else plain(plain(body)))
    assert ends_terminated(converted, whole(converted)) == ends_terminated(body, whole(body))
    if ending == b"\r\n":
        assert uniform_ending(converted) in (None, b"\r\n")
