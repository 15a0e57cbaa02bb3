"""Scripts of equal length: an insertion that both sides made is one, in whatever way a script tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mergepub.merge import Merged, diff3
from mergepub.merge.regions import CONFLICT, OURS, THEIRS
from mergepub.merge.scripts import inserted_by_both
from tests.merge.support import check_regions, check_swapped

if TYPE_CHECKING:
    from mergepub.merge.regions import Change

NEWS = b"News\n\nVersion 1\n---------\n\nUnreleased\n\n- the first thing\n- the second thing\n"
SECTION = b"Version 2\n---------\n\nUnreleased\n\n- the third thing\n\n"
NEXT = NEWS.replace(b"Version 1", SECTION + b"Version 1")
RELEASED = NEXT.replace(b"Unreleased\n\n- the first", b"Released\n\n- the first")


def merged(base: bytes, ours: bytes, theirs: bytes, adjacent: str = "clean") -> Merged:
    """The merge, the same one from both sides, its regions checked."""
    result, other = diff3(base, ours, theirs, adjacent=adjacent), diff3(base, theirs, ours, adjacent=adjacent)
    check_regions(result, base, ours, theirs)
    check_swapped(result, other)
    return result


def test_a_section_that_both_sides_have_is_one_though_a_script_says_that_its_heading_was_replaced() -> None:
    """Underline and state are the same in both sections: the shortest script matches the old ones with the new."""
    result = merged(NEWS, NEXT, RELEASED)
    assert (result.conflicts, result.body) == (0, RELEASED)


def test_so_does_a_clean_merge_stay_as_it_is_when_it_is_merged_again() -> None:
    released = NEWS.replace(b"Unreleased", b"Released")
    first = merged(NEWS, NEXT, released)
    assert (first.conflicts, first.body) == (0, RELEASED)
    assert merged(NEWS, first.body, NEXT).body == RELEASED


def test_under_gits_verdicts_that_is_a_conflict() -> None:
    assert merged(NEWS, NEXT, RELEASED, adjacent="conflict").conflicts == 1


def test_a_section_of_which_the_other_side_has_another_text_stands_beside_it() -> None:
    theirs = RELEASED.replace(b"third", b"other")
    assert merged(NEWS, NEXT, theirs).body.count(b"thing\n") == 4


BASE = b"a\nb\nc\nd\n"
OUR_LINES = b"a\nx\ny\nz\nb\nc\nd\n"
"""Three lines inserted above b."""
THEIR_LINES = b"a\nx\ny\nz\nB\nc\nd\n"
"""The same lines, and b edited: said to be b replaced by x, and the rest inserted below."""
CONFLICTING = (CONFLICT, 2, 4, 2, 10, 2, 4, None)
BELOW = (4, 4, 10, 10, 4, 10, None)


def test_the_changes_of_the_side_that_has_the_inserted_lines_are_one_as_far_as_these_go() -> None:
    found = [CONFLICTING, (THEIRS, *BELOW), (THEIRS, 6, 8, 12, 14, 12, 14, None)]
    assert inserted_by_both(found, (BASE, OUR_LINES, THEIR_LINES)) == [
        (THEIRS, 2, 4, 2, 10, 2, 10, None),
        (THEIRS, 6, 8, 12, 14, 12, 14, None),
    ]


@pytest.mark.parametrize(
    ("found", "ours", "theirs"),
    [
        ([CONFLICTING], OUR_LINES, THEIR_LINES),
        ([CONFLICTING, (OURS, *BELOW)], OUR_LINES, THEIR_LINES),
        ([CONFLICTING, (THEIRS, *BELOW)], OUR_LINES, THEIR_LINES.replace(b"z", b"Z")),
        ([CONFLICTING, (THEIRS, *BELOW)], OUR_LINES.replace(b"b", b"2"), THEIR_LINES),
        ([(CONFLICT, 2, 4, 2, 10, 2, 6, None), (THEIRS, 4, 4, 10, 10, 6, 10, None)], OUR_LINES, THEIR_LINES),
    ],
    ids=["no change below", "a change of the other side", "other lines", "more than an insertion", "a hunk that grows"],
)
def test_a_conflict_in_which_that_is_not_sure_stays_one(found: list[Change], ours: bytes, theirs: bytes) -> None:
    assert inserted_by_both(found, (BASE, ours, theirs)) == found
