"""Markers are read as they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.merge import diff3
from mergepub.merge.markers import (
    Conflict,
    Text,
    conflict_blocks,
    find_conflict_block,
    free_size,
    marker_line,
    marker_of,
    parse,
    sizes_in,
)

BLOCK = b"<<<<<<< ours\no\n=======\nt\n>>>>>>> theirs\n"


@pytest.mark.parametrize("char", [b"<", b"|", b"=", b">"])
@pytest.mark.parametrize("rest", [b"", b"\n", b"\r\n", b" ", b" label\n", b" label"])
def test_seven_or_more_of_a_character_then_a_space_or_the_lines_end_is_a_marker(char: bytes, rest: bytes) -> None:
    assert marker_of(char * 7 + rest) == (char, 7)
    assert marker_of(char * 30 + rest) == (char, 30)


@pytest.mark.parametrize("line", [b"", b"<<<<<<", b" <<<<<<<", b"<<<<<<<x", b"<<<<<<<\t", b"<<<<<<<\r", b"-------\n"])
def test_any_other_line_is_no_marker(line: bytes) -> None:
    assert marker_of(line) is None


def test_a_marker_is_written_with_its_label_if_it_has_one() -> None:
    assert marker_line(b"<", 7, b"ours", b"\n") == b"<<<<<<< ours\n"
    assert marker_line(b"=", 9, b"", b"\r\n") == b"=========\r\n"


def test_sizes_are_those_of_whole_lines_inside_the_range() -> None:
    text = b"<<<<<<<\nx <<<<<<<<\n======== y\n>>>>>>>>>"
    assert sizes_in(text, 0, len(text)) == {7, 8, 9}
    assert sizes_in(text, 0, len(text), (b"<",)) == {7}
    assert sizes_in(text, 8, 20) == set()
    assert sizes_in(b"<<<<<<<x<<<<<<<\n<<<<<<<<\n", 0, 25) == {8}


def test_the_smallest_free_size_counts_up_from_the_wanted_one() -> None:
    assert [free_size(set()), free_size({7, 8}), free_size({7}, 9), free_size({9}, 9)] == [7, 9, 9, 10]


def test_a_marked_body_is_parsed_into_texts_and_conflicts_with_their_lines() -> None:
    marked = b"a\n<<<<<<< mine\no\np\n||||||| old one\nb\n=======\n>>>>>>> yours\nc\n" + BLOCK
    text, conflict, between, last = parse(marked)
    assert isinstance(text, Text)
    assert isinstance(between, Text)
    assert isinstance(conflict, Conflict)
    assert isinstance(last, Conflict)
    assert [(text.line, text.text), (between.line, between.text)] == [(1, b"a\n"), (9, b"c\n")]
    assert (conflict.line, conflict.ours, conflict.base, conflict.theirs) == (2, b"o\np\n", b"b\n", b"")
    assert conflict.labels == (b"mine", b"old one", b"yours")
    assert conflict.text == marked[conflict.start : conflict.end]
    assert (last.line, last.base, last.labels, last.text) == (10, None, (b"ours", b"", b"theirs"), BLOCK)


def test_markers_of_another_size_are_text_to_the_parser() -> None:
    assert [type(piece) for piece in parse(BLOCK, 8)] == [Text]
    longer = diff3(b"b\n", b"=======\n", b"t\n")
    (conflict,) = parse(longer.body, longer.marker_size)
    assert isinstance(conflict, Conflict)
    assert conflict.ours == b"=======\n"


@pytest.mark.parametrize(
    "body",
    [
        b"<<<<<<< a\no\n=======\nt\n",
        b"<<<<<<< a\no\n>>>>>>> b\n",
        b"=======\n<<<<<<< a\n>>>>>>> b\n",
        b"<<<<<<< a\n=======\n>>>>>>>> b\n",
        b"<<<<<<< a\n=======\n||||||| c\n",
        b"a <<<<<<<\n=======\n>>>>>>> b\n",
        b"",
    ],
)
def test_an_incomplete_block_is_text(body: bytes) -> None:
    assert find_conflict_block(body) is None
    assert [type(piece) for piece in parse(body)] == ([Text] if body else [])


def test_a_start_marker_before_the_separator_begins_the_block_anew() -> None:
    assert find_conflict_block(b"<<<<<<<\nabout markers\n" + BLOCK) == 3


def test_the_first_complete_block_of_any_size_is_found_by_its_line() -> None:
    body = b"x\ny <<<<<<<\n<<<<<<<<< a\r\no\r\n=========\r\nt\r\n>>>>>>>>> b\r\n" + BLOCK
    assert find_conflict_block(body) == 3
    assert [block.line for block in conflict_blocks(body)] == [3, 8]


def test_a_block_that_stands_in_a_known_body_does_not_count() -> None:
    body = b"how a conflict looks:\n" + BLOCK
    assert find_conflict_block(body, [b"nothing\n", b"a\n" + BLOCK]) is None
    assert find_conflict_block(body, [b"nothing\n"]) == 2
    assert find_conflict_block(body + BLOCK.replace(b"o\n", b"other\n"), [body]) == 7
    assert find_conflict_block(body, [BLOCK.rstrip(b"\n")]) is None


LOOKS = [b"a", b"b", b"", b"<<<<<<<", b"||||||| x", b"=======", b">>>>>>> y", b"<<<<<<<< z", b"========"]
LINES = st.sampled_from(LOOKS)


@given(st.lists(LINES, max_size=8), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_searching_for_blocks_agrees_with_reading_line_by_line(lines: list[bytes], ending: bytes, ended: bool) -> None:
    body = ending.join(lines) + (ending if ended else b"")
    blocks = conflict_blocks(body)
    for block in blocks:
        first, *_, last = block.text.splitlines()
        assert marker_of(first) is not None
        assert marker_of(last) is not None
        assert body.count(b"\n", 0, block.start) + 1 == block.line
    pieces = parse(body)
    assert b"".join(piece.text for piece in pieces) == body
    assert [p.start for p in pieces if isinstance(p, Conflict)] == [
        block.start for block in blocks if block.text.startswith(b"<<<<<<<") and block.text[7:8] != b"<"
    ]
