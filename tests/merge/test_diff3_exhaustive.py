"""All merges of small bodies: what must hold for every merge holds for each of them."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from mergepub.merge import diff3
from tests.merge.support import check_marked, check_regions, check_swapped, lines, small_bodies

BODIES = list(small_bodies(3))


@pytest.mark.parametrize("adjacent", ["clean", "conflict"])
def test_every_merge_of_up_to_three_lines_over_two_letters_keeps_every_promise(adjacent: str) -> None:
    for base, ours in product(BODIES, repeat=2):
        for theirs in BODIES if adjacent == "clean" else BODIES[::3]:
            merged = diff3(base, ours, theirs, adjacent=adjacent)
            check_regions(merged, base, ours, theirs)
            check_swapped(merged, diff3(base, theirs, ours, adjacent=adjacent))
            if merged.conflicts:
                check_marked(merged, ours, theirs)
            else:
                assert set(lines(merged.body)) <= set(lines(ours) + lines(theirs))


def test_the_laws_hold_for_every_pair_of_small_bodies() -> None:
    for one, other in product(BODIES, repeat=2):
        assert diff3(one, other, one).body == other
        assert diff3(one, one, other).body == other
        assert diff3(one, other, other).body == other


def test_the_other_styles_show_the_same_conflicts_around_the_base() -> None:
    for base, ours, theirs in product(BODIES[::2], repeat=3):
        merged = diff3(base, ours, theirs)
        whole = diff3(base, ours, theirs, style="diff3")
        trimmed = diff3(base, ours, theirs, style="zdiff3")
        check_regions(whole, base, ours, theirs)
        assert trimmed.regions == merged.regions
        assert whole.conflicts == trimmed.conflicts == merged.conflicts


def test_a_favour_gives_lines_of_that_side_alone_wherever_the_sides_conflict() -> None:
    for base, ours, theirs in product(BODIES[::2], repeat=3):
        conflicts = diff3(base, ours, theirs).conflicts
        for favour in ("ours", "theirs", "union"):
            merged = diff3(base, ours, theirs, favour=favour)
            assert (merged.conflicts, merged.settled) == (0, conflicts)
            assert merged.unterminated == ()
            joined = {line + b"\n" for line in lines(ours) + lines(theirs)}  # a union may have to end a line
            assert set(lines(merged.body)) <= set(lines(ours) + lines(theirs)) | joined


def test_a_clean_result_of_texts_without_repeated_lines_never_changes_when_it_is_merged_again() -> None:
    letters = [b"a\n", b"b\n", b"c\n", b"x\n"]
    bodies = [b"".join(chosen) for n in range(4) for chosen in permutations(letters, n)]
    for base in (b"", b"a\n", b"a\nb\n", b"a\nb\nc\n"):
        for ours, theirs in product(bodies, repeat=2):
            merged = diff3(base, ours, theirs)
            if merged.conflicts or merged.body in (ours, theirs):
                continue
            for again in (ours, theirs, merged.body):
                twice = diff3(base, merged.body, again)
                assert twice.conflicts or twice.body == merged.body, (base, ours, theirs, again)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged", "twice"),
    [
        # Merged, "b a" reads as "b put before a": that theirs' second a is already in it cannot be seen.
        (b"a\n", b"b\n", b"a\na\n", b"b\na\n", b"b\na\na\n"),
        # The one a of the merge is taken for the base's, so that the a's of ours read as new ones.
        (b"a\n", b"a\na\n", b"b\n", b"b\na\n", b"b\na\na\n"),
    ],
)
def test_repeated_lines_are_where_text_alone_cannot_tell_that_a_side_is_already_in(
    base: bytes, ours: bytes, theirs: bytes, merged: bytes, twice: bytes
) -> None:
    assert diff3(base, ours, theirs).body == merged
    repeated = theirs if theirs.count(b"a") > 1 else ours
    assert diff3(base, merged, repeated).body == twice
    assert diff3(base, merged, merged).body == merged
