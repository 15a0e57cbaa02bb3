"""The weak rule: when matched blank lines hold hunks apart, and when they do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import diff3, scripts
from mergepub.merge.dense import dense_hunks
from mergepub.merge.myers import edit_script
from mergepub.merge.scripts import canonical, weak_lines, without_weak_matches


def block(name: str, lines: int) -> bytes:
    return b"".join(b"%s, line %d of a paragraph\n" % (name.encode(), n) for n in range(lines))


@pytest.mark.parametrize("separator", [b"\n", b"}\n", b"  --\n", b"| - |\n", b"\r\n", b"\t\n"])
def test_a_weak_line_between_two_rewritten_blocks_does_not_cut_the_region(separator: bytes) -> None:
    a = b"top stays\n" + block("old first", 3) + separator + block("old second", 3) + b"bottom stays\n"
    b = b"top stays\n" + block("new first", 4) + separator + block("new second", 3) + b"bottom stays\n"
    top, bottom = len(b"top stays\n"), len(b"bottom stays\n")
    assert edit_script(a, b) == [(top, len(a) - bottom, top, len(b) - bottom)]
    assert len(edit_script(a, b, weak_rule=False)) == 2


def test_an_insertion_of_the_other_side_does_not_slip_into_a_rewritten_region() -> None:
    base = b"top\n" + block("first", 3) + b"\n" + block("second", 3) + b"bottom\n"
    ours = b"top\n" + block("rewritten", 5) + b"\n" + block("anew", 4) + b"bottom\n"
    theirs = base.replace(b"\n\n", b"\n\na new paragraph of theirs\n\n")
    assert diff3(base, ours, theirs).conflicts == 1


def test_an_ordinary_line_between_rewritten_blocks_keeps_them_apart() -> None:
    a = block("old first", 9) + b"kept here\n" + block("old second", 9)
    b = block("new first", 9) + b"kept here\n" + block("new second", 9)
    assert len(edit_script(a, b)) == 2


def test_paragraphs_rewritten_by_different_sides_merge_over_the_paragraph_between() -> None:
    base = block("first", 4) + b"\n" + block("second", 1) + b"\n" + block("third", 4)
    ours, theirs = base.replace(b"first", b"ours"), base.replace(b"third", b"theirs")
    merged = diff3(base, ours, theirs)
    assert merged.conflicts == 0
    assert merged.body == ours.replace(b"third", b"theirs")


def test_paragraphs_of_one_line_edited_each_stay_hunks_of_their_own() -> None:
    a = b"\n".join(b"paragraph %d as it was\n" % n for n in range(30))
    b = b"\n".join(b"paragraph %d as it is\n" % n for n in range(30))
    assert len(edit_script(a, b)) == 30


def test_long_runs_of_blank_lines_are_kept_between_rewritten_blocks() -> None:
    a = block("old first", 50) + b"\n" * 200 + block("old second", 50)
    b = block("new first", 50) + b"\n" * 200 + block("new second", 50)
    assert len(edit_script(a, b)) == 2
    rules = (b"-" * 500 + b"\n") * 12
    assert len(edit_script(a.replace(b"\n" * 200, rules), b.replace(b"\n" * 200, rules))) == 2


def test_small_edits_inside_a_rewritten_region_are_part_of_it() -> None:
    a = block("old", 8) + b"\n" + b"one line\n" + b"\n" + block("older", 8)
    b = block("new", 8) + b"\n" + b"another\n" + b"\n" + block("newer", 8)
    assert edit_script(a, b) == [(0, len(a), 0, len(b))]


def test_a_whole_paragraph_inserted_below_a_rewritten_one_stays_an_insertion() -> None:
    a = block("old", 6) + b"\n" + block("kept", 2)
    b = block("new", 6) + b"\n" + block("inserted", 6) + b"\n" + block("kept", 2)
    assert len(edit_script(a, b)) == 2


@settings(max_examples=200)
@given(st.randoms(), st.sampled_from([0.05, 0.2, 0.6]), st.sampled_from([b"", b"unterminated"]))
def test_what_unlike_texts_keep_of_their_blank_lines_is_the_same_told_by_lines_or_by_bytes(
    random: Any, blanks: float, end: bytes
) -> None:
    def lines(name: bytes) -> bytes:
        parts = [b"\n" if random.random() < blanks else b"%s %d\n" % (name, n) for n in range(random.randrange(80))]
        return b"".join(parts)

    a, b = lines(b"old") + end, lines(b"new") + end.upper()
    box = 0, len(a), 0, len(b)
    by_bytes = without_weak_matches(a, b, canonical(a, b, dense_hunks(a, b, box)))
    assert dense_hunks(a, b, box, weak_rule=True) == by_bytes


def test_a_blank_line_at_the_end_of_unlike_texts_counts_for_no_rewritten_line_above_it() -> None:
    a, b = b"old 0\n\nold 2\n\n", b"new 0\nnew 1\n\nnew 3\n\n"
    assert dense_hunks(a, b, (0, len(a), 0, len(b)), weak_rule=True) == [(0, 6, 0, 12), (7, 13, 13, 19)]


@settings(max_examples=200)
@given(st.randoms(), st.sampled_from([0, 30, 300]))
def test_of_large_rewritten_blocks_no_more_lines_are_counted_than_weigh_anything(random: Any, large: int) -> None:
    a, b = [], []
    for n in range(random.randrange(2, 6)):
        a += [block(f"old {n}", random.randrange(12)), b"\n" * random.randrange(3), b"kept\n" * random.randrange(2)]
        b += [block(f"new {n}", random.randrange(12)), *a[-2:]]
    old, new = b"".join(a), b"".join(b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripts, "_LARGE", large)
        by_some = edit_script(old, new)
        patch.setattr(scripts, "_LARGE", len(old))
        assert edit_script(old, new) == by_some


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"\n", 1),
        (b"\n\n", 2),
        (b" \t});\n", 1),
        (b"a\n", 0),
        (b"\n7\n\n", 0),
        ("ä\n".encode(), 0),
        (b"\n" * 32, 32),
        (b"\n" * 33, 0),
        (b"====\n----\n", 2),
        (b"a long line of text\n", 0),
    ],
)
def test_weak_lines_are_blank_or_punctuation_alone(text: bytes, lines: int) -> None:
    assert weak_lines(text) == lines


@given(st.lists(st.sampled_from([b"\n", b"}\n", b"first words\n", b"second words\n"]), max_size=30), st.randoms())
def test_the_rule_only_joins_hunks_and_is_the_same_for_both_directions(lines: list[bytes], random: object) -> None:
    other = [line if random.random() < 0.5 else b"%d other words\n" % n for n, line in enumerate(lines)]  # type: ignore[attr-defined]  # a random.Random
    a, b = b"".join(lines), b"".join(other)
    exact = edit_script(a, b, weak_rule=False)
    joined = without_weak_matches(a, b, exact)
    starts, ends = {h[::2] for h in exact}, {h[1::2] for h in exact}
    assert all(h[::2] in starts and h[1::2] in ends for h in joined)
    swapped = without_weak_matches(b, a, [(h[2], h[3], h[0], h[1]) for h in exact])
    assert swapped == [(h[2], h[3], h[0], h[1]) for h in joined]
