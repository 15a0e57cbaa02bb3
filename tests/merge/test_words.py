"""Word by word inside a conflict: what merges, what does not, and what becomes of white space."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import diff3
from mergepub.merge.regions import UNCHANGED, WORDS
from mergepub.merge.words import Tokens, merge_words
from tests.merge.support import check_regions

BASE = b"The quick brown fox jumps over the lazy dog.\n"


def merged(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The text when it merges word by word, in both directions alike."""
    text = merge_words(base, ours, theirs)
    assert merge_words(base, theirs, ours) == text
    return text


def test_edits_of_different_words_of_a_line_merge_where_an_unchanged_word_stands_between() -> None:
    ours, theirs = BASE.replace(b"quick", b"slow"), BASE.replace(b"dog", b"cat")
    assert merged(BASE, ours, theirs) == b"The slow brown fox jumps over the lazy cat.\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (BASE.replace(b"quick", b"slow"), BASE.replace(b"quick", b"fast")),
        (BASE.replace(b"quick", b"slow"), BASE.replace(b"brown", b"red")),
        (BASE.replace(b"quick ", b""), BASE.replace(b"brown", b"red")),
        (BASE.replace(b"quick", b"very quick"), BASE.replace(b"quick", b"quite quick")),
        (b"", BASE.replace(b"dog", b"cat")),
    ],
    ids=["the same word", "neighbours", "deletion beside", "two insertions", "line deleted"],
)
def test_edits_without_an_unchanged_word_between_stay_a_conflict(ours: bytes, theirs: bytes) -> None:
    assert merged(BASE, ours, theirs) is None


def test_the_same_edit_of_a_word_is_one_edit() -> None:
    ours, theirs = BASE.replace(b"quick", b"slow").replace(b"dog", b"cat"), BASE.replace(b"quick", b"slow")
    assert merged(BASE, ours, theirs) == ours


def test_punctuation_alone_is_no_word_that_could_stand_between() -> None:
    assert merged(b"a | b\n", b"x | b\n", b"a | y\n") is None
    assert merged(b"a | and | b\n", b"x | and | b\n", b"a | and | y\n") == b"x | and | y\n"


def test_a_phrase_that_both_sides_bring_in_at_different_places_would_stand_twice_and_conflicts() -> None:
    base = b"Start the server and open the page.\n"
    ours = b"On Linux hosts, start the server and open the page.\n"
    theirs = b"Start the server and open the page on Linux hosts, as root.\n"
    assert merged(base, base.replace(b"Start", b"On Linux hosts, start"), theirs.replace(b"on", b"On")) is None
    assert merged(base, ours, theirs.replace(b" on Linux hosts", b" soon")) is not None


def test_letters_of_every_language_stay_whole() -> None:
    base = "über die Grüße für Zoë 東京 と 大阪\n".encode()
    ours, theirs = base.replace("Grüße".encode(), "Grüsse".encode()), base.replace("大阪".encode(), "京都".encode())
    assert merged(base, ours, theirs) == "über die Grüsse für Zoë 東京 と 京都\n".encode()
    assert merged("für Zoë\n".encode(), "fur Zoë\n".encode(), "fér Zoë\n".encode()) is None


def test_white_space_inside_and_at_the_end_of_a_line_gives_way_to_text() -> None:
    base = b"one two three four\n"
    assert merged(base, b"one  two\tthree four  \n", b"one two three 4\n") == b"one  two\tthree 4  \n"
    assert merged(base, b"one   two three 4\n", b"one  two three four \n") == b"one  two three 4 \n"


def test_white_space_that_came_with_the_same_new_words_takes_the_shorter_form() -> None:
    assert merged(b"a b c d\n", b"a x  y c d\n", b"a x y c d e\n") == b"a x y c d e\n"


def test_a_change_of_leading_white_space_is_an_edit_like_any_other() -> None:
    assert merged(b"one two three\n", b"  one two three\n", b"one two 3\n") == b"  one two 3\n"
    assert merged(b"one two three\n", b"  one two three\n", b"1 two three\n") is None
    assert merged(b"one two three\n", b"  one two three\n", b"\tone two three\n") is None


def test_a_change_of_the_number_of_lines_is_an_edit_like_any_other() -> None:
    base = b"one two three four five\n"
    assert merged(base, b"one two\nthree four five\n", b"one two three four 5\n") == b"one two\nthree four 5\n"
    assert merged(base, b"one two\nthree four five\n", b"one two 3 four five\n") is None
    assert merged(b"one two\n\nthree four\n", b"one two\nthree four\n", b"1 two\n\nthree 4\n") == b"1 two\nthree 4\n"


def test_a_final_newline_is_kept_dropped_or_added_as_any_edit_is() -> None:
    assert merged(b"one two three\n", b"one two three", b"1 two three\n") == b"1 two three"
    assert merged(b"one two three", b"one two three\n", b"1 two three") == b"1 two three\n"
    assert merged(b"one two three ", b"one two three", b"1 two three ") == b"1 two three"


def test_one_conflict_among_the_words_leaves_the_whole_conflict_as_it_is() -> None:
    base = b"one two three four five\n"
    assert merged(base, b"1 two three 4 five\n", b"one two three vier fuenf\n") is None


def test_a_merge_by_words_is_a_region_of_its_own_kind_that_carries_its_text() -> None:
    base, ours = b"title\n\n" + BASE, b"title\n\n" + BASE.replace(b"quick", b"slow")
    theirs = b"title\n\n" + BASE.replace(b"dog", b"cat")
    assert diff3(base, ours, theirs).conflicts == 1
    result = diff3(base, ours, theirs, granularity="word")
    assert (result.conflicts, result.body) == (0, ours.replace(b"dog", b"cat"))
    assert [(r.kind, r.text) for r in result.regions] == [
        (UNCHANGED, None),
        (WORDS, b"The slow brown fox jumps over the lazy cat.\n"),
    ]


def test_a_conflict_that_words_cannot_settle_is_shown_as_without_them() -> None:
    base = BASE + b"\n" + BASE
    ours = BASE.replace(b"quick", b"slow") + b"\n" + BASE.replace(b"lazy", b"bored")
    theirs = BASE.replace(b"dog", b"cat") + b"\n" + BASE.replace(b"lazy", b"tired")
    result = diff3(base, ours, theirs, granularity="word")
    assert result.conflicts == 1
    assert result.body.startswith(b"The slow brown fox jumps over the lazy cat.\n\n<<<<<<< ours\n")


def test_text_that_words_brought_in_counts_for_the_marker_size() -> None:
    base = b"<<<<<<< one two three four\n\nend\n"
    ours, theirs = base.replace(b"two", b"2").replace(b"end", b"o"), base.replace(b"four", b"4").replace(b"end", b"t")
    result = diff3(base, ours, theirs, granularity="word")
    assert (result.conflicts, result.marker_size) == (1, 8)


def test_words_merge_in_a_document_whose_line_endings_were_converted() -> None:
    result = diff3(BASE, BASE.replace(b"quick", b"slow").replace(b"\n", b"\r\n"), BASE.replace(b"dog", b"cat"))
    assert result.conflicts == 1
    result = diff3(
        BASE,
        BASE.replace(b"quick", b"slow").replace(b"\n", b"\r\n"),
        BASE.replace(b"dog", b"cat"),
        granularity="word",
    )
    assert result.body == b"The slow brown fox jumps over the lazy cat.\r\n"


PARTS = st.sampled_from([b"a", b"b", b"c", b"d", b"|", b" ", b" ", b" ", b"\t", b"\n", b"\n  ", b"\r\n", b"\xc3\xa9"])
TEXT = st.lists(PARTS, max_size=14).map(b"".join)


@st.composite
def edited_twice(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A text and two edits of it, each of a few parts."""
    base = draw(st.lists(PARTS, min_size=6, max_size=16))

    def edit() -> bytes:
        parts = list(base)
        for at in draw(st.lists(st.integers(0, len(parts) - 1), max_size=2)):
            parts[at] = draw(st.sampled_from([b"", b"x", b"x y", b"  ", b"\n", b"z "]))
        return b"".join(parts)

    return b"".join(base), edit(), edit()


@settings(max_examples=600)
@given(edited_twice())
def test_every_word_of_a_merge_by_words_is_of_ours_or_theirs(bodies: tuple[bytes, bytes, bytes]) -> None:
    base, ours, theirs = bodies
    text = merged(base, ours, theirs)
    if text is not None:
        assert set(text.split()) <= set(ours.split() + theirs.split())
        assert merged(base, ours, base) == ours
        assert merged(base, base, theirs) == theirs


@settings(max_examples=300)
@given(edited_twice())
def test_merges_by_words_cover_their_bodies(bodies: tuple[bytes, bytes, bytes]) -> None:
    check_regions(diff3(*bodies, granularity="word"), *bodies)


@given(TEXT, st.data())
def test_tokens_cover_their_text_wherever_it_is_cut(text: bytes, data: st.DataObject) -> None:
    tokens = Tokens(text)
    ends = [0]
    while ends[-1] < len(tokens.keys):
        ends.append(tokens.keys.index(b"\n", ends[-1]) + 1)
    cuts = sorted(data.draw(st.sets(st.sampled_from(ends[1:-1]), max_size=4))) if len(ends) > 2 else []
    spans = list(zip([0, *cuts], [*cuts, ends[-1]], strict=True))
    assert b"".join(tokens.part(span) for span in spans) == text
