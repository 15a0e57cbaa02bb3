"""Words replaced in their places: what is such an edit, what is not, and that merges of them are merges by words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import diff3
from mergepub.merge.inplace import changes_in_place, edited_lines, merged_in_place, replaced_words
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, WORDS
from mergepub.merge.words import merge_words
from tests.merge.support import check_regions, check_swapped

BASE = b"The quick brown fox jumps over the lazy dog, and the dog does not mind it.\n"
LONG = b"".join(b"Sentence %d of a paragraph that nobody ever edits. " % n for n in range(60)) + b"\n"


def edits(old: bytes, new: bytes) -> list[tuple[bytes, bytes]] | None:
    """The words replaced and the words that stand there now."""
    found = replaced_words(old, new, OURS)
    return None if found is None else [(old[start:end], word) for start, end, _, word in found]


def test_a_word_that_gave_way_to_another_is_found_with_all_of_its_letters_and_signs() -> None:
    assert edits(BASE, BASE.replace(b"quick", b"quiet")) == [(b"quick", b"quiet")]
    assert edits(BASE, BASE.replace(b"dog,", b"dog;")) == [(b"dog,", b"dog;")]
    assert edits(BASE, BASE.replace(b"fox", "Füchsin".encode())) == [(b"fox", "Füchsin".encode())]
    assert edits(BASE, BASE.replace(b"The", b"A").replace(b"it.", b"this!")) == [(b"The", b"A"), (b"it.", b"this!")]


def test_words_at_either_end_of_a_line_end_there() -> None:
    text = b"first line of the text\nsecond line of the text\nthird line of the text"
    assert edits(text, text.replace(b"second", b"middle")) == [(b"second", b"middle")]
    assert edits(text, text.replace(b"text\nthird", b"book\nthird")) == [(b"text", b"book")]
    assert edits(text, text.replace(b"third line of the text", b"third line of the book")) == [(b"text", b"book")]
    assert edits(b"one", b"two") == [(b"one", b"two")]


def test_two_long_words_in_a_row_are_no_replacement_of_one() -> None:
    assert edits(b"on counterrevolutionaries here", b"of counterrevolutionarily here") is None


def test_one_letter_far_from_the_start_is_found() -> None:
    for n in range(10, 60):
        assert edits(LONG, LONG.replace(b" %d " % n, b" %d " % (n + 100))) == [(b"%d" % n, b"%d" % (n + 100))]
        assert edits(LONG, LONG.replace(b" %d of a" % n, b" %d of A" % n)) == [(b"a", b"A")]


def test_words_far_apart_are_found() -> None:
    text = LONG * 3
    new = text.replace(b"Sentence 1 ", b"Line 1 ").replace(b"Sentence 59 ", b"Line 59 ")
    assert edits(text, new) == [(b"Sentence", b"Line")] * 6


@pytest.mark.parametrize(
    "new",
    [
        BASE.replace(b"quick ", b""),
        BASE.replace(b"quick", b"very quick"),
        BASE.replace(b"quick brown", b"slow red"),
        BASE.replace(b"quick brown fox jumps", b"slow brown fox jumped"),
        BASE.replace(b"quick", b"quick "),
        BASE.replace(b"quick ", b"quick\t"),
        BASE.replace(b"quick ", b"quick\n"),
        BASE.replace(b"quick brown", b"quick\nred").replace(b"it.\n", b"it."),
        BASE.rstrip(b"\n"),
        BASE.replace(b" it.", b""),
        BASE.replace(b" it.", b" it. Never"),
        b"  " + BASE,
        b"Quite another text\n",
    ],
    ids=[
        "a word less",
        "a word more",
        "two words in a row",
        "two words too near",
        "a blank more",
        "a tab",
        "a line more",
        "a line break moved",
        "no newline at the end",
        "the last word gone",
        "a last word more",
        "an indentation",
        "another text",
    ],
)
def test_every_other_edit_is_left_alone(new: bytes) -> None:
    assert edits(BASE, new) is None
    assert edits(new, BASE) is None


def test_edits_of_words_come_to_a_script_on_lines_in_which_neighbours_are_one_hunk() -> None:
    text = b"title\n\n" + BASE + BASE + b"\n" + BASE
    found = replaced_words(text, text.replace(b"quick", b"slow").replace(b"lazy", b"weary"), OURS)
    assert found is not None
    first, n = len(b"title\n\n"), len(BASE)
    assert edited_lines(text, found) == [
        (first, first + 2 * n, first, first + 2 * n),
        (first + 2 * n + 1, first + 3 * n + 1, first + 2 * n + 1, first + 3 * n + 1),
    ]
    assert edited_lines(text[:-1], found)[-1] == (first + 2 * n + 1, len(text) - 1, first + 2 * n + 1, len(text) - 1)


def test_lines_edited_by_one_side_are_its_own_and_those_edited_by_both_merge_by_words() -> None:
    texts = [b"%d. " % n + BASE for n in range(5)]
    base = b"\n".join(texts)
    ours = base.replace(b"0. The quick", b"0. The slow").replace(b"2. The quick", b"2. The slow")
    ours = ours.replace(b"3. The quick", b"3. The new").replace(b"4. The", b"4. Our")
    theirs = base.replace(b"2. " + BASE, b"2. " + BASE.replace(b"lazy", b"weary")).replace(b"1. The", b"1. A")
    theirs = theirs.replace(b"3. The quick", b"3. The old").replace(b"4. The", b"4. Our")
    found = changes_in_place((base, ours, theirs), touching=False)
    assert found is not None
    assert [change[0] for change in found] == [OURS, THEIRS, WORDS, CONFLICT, BOTH]
    merged = diff3(base, ours, theirs, granularity="word")
    assert merged.conflicts == 1
    assert b"2. The slow brown fox jumps over the weary dog" in merged.body


def test_one_side_without_an_edit_is_nothing_to_merge() -> None:
    assert changes_in_place((BASE, BASE, BASE.replace(b"fox", b"cat")), touching=False) is None
    assert changes_in_place((BASE, BASE.replace(b"fox", b"cat"), BASE), touching=False) is None
    assert merged_in_place(BASE, BASE.replace(b"fox", b"cat"), BASE + BASE) is None


def test_a_word_that_both_replaced_alike_is_one_edit_and_unlike_a_conflict() -> None:
    ours, theirs = BASE.replace(b"fox", b"cat"), BASE.replace(b"fox", b"cat").replace(b"not mind", b"ever mind")
    assert merged_in_place(BASE, ours, theirs) == theirs
    assert merged_in_place(BASE, theirs, ours) == theirs
    assert merged_in_place(BASE, ours, BASE.replace(b"fox", b"hen")) is None


def test_a_word_stands_between_two_edits_of_different_sides() -> None:
    base = b"alpha, -- beta, and so on and so on to the end of it\n"
    a, b = base.replace(b"alpha,", b"gamma,"), base.replace(b"beta,", b"delta,")
    assert merged_in_place(base, a, b) is None
    assert merged_in_place(base, b, a) is None
    both = base.replace(b"beta,", b"delta,").replace(b"the end", b"an end")
    assert merged_in_place(base, both, b) == both
    both = base.replace(b"alpha,", b"gamma,").replace(b"the end", b"an end")
    assert merged_in_place(base, both, b) is None
    far = b"0123456789012345 " + base
    assert merged_in_place(far, b"9" + far[1:], b"9" + far[1:].replace(b"the", b"an")) == b"9" + far[1:].replace(
        b"the", b"an"
    )


WORDS_OF_A_TEXT = [
    word.encode() for word in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "|", "-", "ü", "東京")
]


@st.composite
def edited_in_place(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """A text of words that all differ, and two edits of it that put other words in the places of some."""
    words = [b"%s%d" % (draw(st.sampled_from(WORDS_OF_A_TEXT)), n) for n in range(draw(st.integers(3, 30)))]
    spaces = [draw(st.sampled_from([b" ", b" ", b" ", b"  ", b"\n", b"\n\n", b" | "])) for _ in words]

    def edit(side: bytes) -> bytes:
        edited = list(words)
        for at in draw(st.sets(st.integers(0, len(words) - 1), min_size=1, max_size=3)):
            edited[at] = b"%s%d" % (draw(st.sampled_from([b"both", b"new", b"|", side])), at)
        return b"".join(part for pair in zip(edited, spaces, strict=True) for part in pair)

    return b"".join(part for pair in zip(words, spaces, strict=True) for part in pair), edit(b"ours"), edit(b"theirs")


@settings(max_examples=500)
@given(edited_in_place())
def test_a_merge_in_place_is_what_the_merge_by_words_makes_of_the_same_texts(
    bodies: tuple[bytes, bytes, bytes],
) -> None:
    base, ours, theirs = bodies
    text = merged_in_place(base, ours, theirs)
    assert text == merged_in_place(base, theirs, ours)
    if text is not None:
        assert text == merge_words(base, ours, theirs)


@settings(max_examples=300)
@given(edited_in_place())
def test_merges_of_texts_edited_in_place_cover_their_bodies_and_know_no_sides(
    bodies: tuple[bytes, bytes, bytes],
) -> None:
    base, ours, theirs = bodies
    merged = diff3(base, ours, theirs, granularity="word")
    check_regions(merged, base, ours, theirs)
    check_swapped(merged, diff3(base, theirs, ours, granularity="word"))


@given(edited_in_place())
def test_the_edits_of_words_make_one_text_of_the_other(bodies: tuple[bytes, bytes, bytes]) -> None:
    base, ours, _ = bodies
    found = replaced_words(base, ours, OURS)
    if found is not None:
        made, at = [], 0
        for start, end, _, new in found:
            made += [base[at:start], new]
            at = end
        assert b"".join(made) + base[at:] == ours
