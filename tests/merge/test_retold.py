"""Scripts told anew: a line that both sides put in the place of another is one edit, wherever a script has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import diff3
from mergepub.merge.myers import edit_script, edit_scripts
from mergepub.merge.regions import OURS, THEIRS, brought_in_twice, changes
from mergepub.merge.retold import composed
from tests.merge.support import check_regions, check_swapped

if TYPE_CHECKING:
    from mergepub.merge.regions import Change

NEWS = b"News\n\nVersion 1\n---------\n\nUnreleased\n\n- the first thing\n- the second thing\n"
RELEASED = NEWS.replace(b"Unreleased", b"Released in May")
SECTION = b"Version 2\n---------\n\nUnreleased\n\n- the third thing\n\n"
NEXT = RELEASED.replace(b"Version 1", SECTION + b"Version 1")


def merged(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """The clean merge, the same one from both sides, its regions checked."""
    result = diff3(base, ours, theirs)
    check_regions(result, base, ours, theirs)
    check_swapped(result, diff3(base, theirs, ours))
    assert not result.conflicts
    return result.body


def test_a_line_that_both_replaced_alike_is_replaced_once_though_the_other_script_has_it_elsewhere() -> None:
    """The direct script has the old section's "Unreleased" in the new section, and the date in text inserted below."""
    direct = changes((NEWS, NEXT, RELEASED), *edit_scripts(NEWS, NEXT, RELEASED))
    assert brought_in_twice(direct, NEXT, RELEASED) == {b"Released in May"}
    assert merged(NEWS, NEXT, RELEASED) == NEXT


def test_it_is_not_looked_for_where_git_gives_the_verdict() -> None:
    result = diff3(NEWS, NEXT, RELEASED, adjacent="conflict")
    assert result.conflicts == 0
    assert result.body.count(b"Released in May") == 2


def test_it_is_not_looked_for_among_very_many_changes() -> None:
    for lines, times in ((40, 1), (80, 2)):
        old, new = (b"".join(b"\n%d %s\n" % (n, side) for n in range(lines)) for side in (b"old", b"new"))
        assert merged(NEWS + old, NEXT + old, RELEASED + new).count(b"Released in May") == times


def test_what_both_inserted_at_places_of_their_own_may_be_meant_to_stand_twice() -> None:
    base = b"one\n\ntwo\n\nthree\n"
    text = merged(base, b"see also\n" + base, base + b"see also\n")
    assert text == b"see also\n" + base + b"see also\n"


def test_lines_are_brought_in_twice_where_one_side_replaced_others_by_them() -> None:
    found: list[Change] = [(OURS, 0, 2, 0, 7, 0, 2, None), (THEIRS, 4, 6, 9, 11, 4, 11, None)]
    assert brought_in_twice(found, b"one\n\nx\n", b"....one\n\ny\n") == {b"one"}
    inserted: list[Change] = [(OURS, 0, 0, 0, 4, 0, 0, None), (THEIRS, 4, 4, 8, 8, 4, 8, None)]
    assert brought_in_twice(inserted, b"one\n", b"....one\n") == set()
    assert brought_in_twice([found[0], inserted[1]], b"one\n\nx\n", b"....one\n") == {b"one"}
    assert brought_in_twice([inserted[0], found[1]], b"one\n", b"....one\n\ny\n") == {b"one"}


def test_a_line_that_proves_nothing_may_stand_twice() -> None:
    assert merged(b"\nold\n\n", b"\n--\n\n", b"old\n\n--\n\n") == b"--\n\n--\n\n"


def test_two_lines_that_became_alike_stay_so_where_every_other_script_is_longer() -> None:
    base = b"one\ntwo\nthree\nfour\n"
    assert merged(base, b"same\ntwo\nthree\nfour\n", b"one\ntwo\nthree\nsame\n") == b"same\ntwo\nthree\nsame\n"
    result = diff3(b"c\ne\n\n\n", b"c\na\n\n", b"a\n\nd\ne\ne\n")
    assert result.body == b"a\n\nd\na\n<<<<<<< ours\n\n=======\ne\n>>>>>>> theirs\n"


def test_a_script_told_anew_is_not_taken_where_it_would_conflict() -> None:
    base, ours, theirs = b"old\n\n", b"old\n\nold\nend\n", b"\nnew\n\nold\nend\n"
    assert merged(base, ours, theirs) == b"\nnew\n\nold\nend\nold\nend\n"


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"--\n"]), max_size=9).map(b"".join)
TEXTS = st.builds(lambda text, end: text + end, LINES, st.sampled_from([b"", b"", b"z"]))


@given(TEXTS, TEXTS, TEXTS)
def test_two_scripts_in_a_row_are_one(first: bytes, middle: bytes, last: bytes) -> None:
    sizes = len(first), len(middle), len(last)
    hunks = composed(edit_script(first, middle), edit_script(middle, last), sizes)
    made, at = [], 0
    for a0, a1, b0, b1 in hunks:
        made += [first[at:a0], last[b0:b1]]
        assert not made[:-2] or a0 > at
        at = a1
    assert b"".join(made) + first[at:] == last


@settings(max_examples=500)
@given(LINES, LINES, LINES, st.data())
def test_merges_of_texts_that_share_edits_cover_their_bodies_and_know_no_sides(
    above: bytes, below: bytes, shared: bytes, data: st.DataObject
) -> None:
    base, theirs = above + b"old\n" + below, above + b"new\n" + below
    cut = data.draw(st.integers(0, theirs.count(b"\n")))
    lines = theirs.splitlines(keepends=True)
    ours = b"".join([*lines[:cut], shared, *lines[cut:]])
    result = diff3(base, ours, theirs)
    check_regions(result, base, ours, theirs)
    check_swapped(result, diff3(base, theirs, ours))
