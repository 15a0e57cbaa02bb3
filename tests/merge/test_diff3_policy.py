"""What conflicts and what does not, a sentence each; and what the result looks like."""

from __future__ import annotations

import pytest
from mergepub.errors import BinaryBodyError, InputError
from mergepub.merge import Merged, diff3
from mergepub.merge.lines import converted_ending
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, UNCHANGED, Region, changes, hunks_overlap


def text(*lines: str) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


ABC = text("a", "b", "c")


def kinds(merged: Merged) -> list[str]:
    return [region.kind for region in merged.regions]


def clean(base: bytes, ours: bytes, theirs: bytes, **options: str) -> bytes:
    """The body of a merge that is clean in both directions."""
    merged, other = diff3(base, ours, theirs, **options), diff3(base, theirs, ours, **options)
    assert (merged.conflicts, other.conflicts) == (0, 0)
    assert other.body == merged.body
    return merged.body


def conflicts(base: bytes, ours: bytes, theirs: bytes, **options: str) -> int:
    merged, other = diff3(base, ours, theirs, **options), diff3(base, theirs, ours, **options)
    assert merged.conflicts == other.conflicts
    return merged.conflicts


def test_changes_of_a_common_base_line_conflict() -> None:
    assert conflicts(ABC, text("a", "o", "c"), text("a", "t", "c")) == 1


def test_a_line_deleted_by_one_side_and_edited_by_the_other_conflicts() -> None:
    assert conflicts(ABC, text("a", "c"), text("a", "t", "c")) == 1


def test_the_same_change_on_both_sides_is_clean() -> None:
    assert clean(ABC, text("a", "x", "c", "d"), text("a", "x", "c")) == text("a", "x", "c", "d")


def test_the_same_insertion_at_one_point_merges_to_one_copy() -> None:
    assert clean(ABC, text("a", "n", "b", "c", "o"), text("a", "n", "b", "c")) == text("a", "n", "b", "c", "o")


def test_the_same_insertion_among_equal_lines_merges_to_one_copy_wherever_it_was_made() -> None:
    base = text("a", "", "", "b")
    assert clean(base, text("A", "", "", "", "b"), text("a", "", "", "", "b")) == text("A", "", "", "", "b")


def test_different_insertions_at_one_point_conflict() -> None:
    assert conflicts(ABC, text("a", "o", "b", "c"), text("a", "t", "b", "c")) == 1


def test_replaced_ranges_that_merely_touch_are_clean_each_a_region_of_its_own() -> None:
    assert clean(ABC, text("o", "b", "c"), text("a", "t", "c")) == text("o", "t", "c")
    assert kinds(diff3(ABC, text("o", "b", "c"), text("a", "t", "c"))) == [OURS, THEIRS, UNCHANGED]


def test_a_deletion_beside_an_edit_is_clean() -> None:
    assert clean(ABC, text("b", "c"), text("a", "t", "c")) == text("t", "c")


@pytest.mark.parametrize(
    ("ours", "merged"),
    [(text("a", "n", "b", "c"), text("a", "n", "t", "c")), (text("a", "b", "n", "c"), text("a", "t", "n", "c"))],
    ids=["above", "below"],
)
def test_an_insertion_beside_a_line_that_the_other_side_edited_in_place_is_clean(ours: bytes, merged: bytes) -> None:
    assert clean(ABC, ours, text("a", "t", "c")) == merged


def test_insertions_above_and_below_an_edited_line_are_clean() -> None:
    assert clean(ABC, text("a", "m", "b", "n", "c"), text("a", "t", "c")) == text("a", "m", "t", "n", "c")


@pytest.mark.parametrize("theirs", [text("a", "c"), text("a", "t", "u", "c")], ids=["deletes", "grows"])
@pytest.mark.parametrize("ours", [text("a", "n", "b", "c"), text("a", "b", "n", "c")], ids=["above", "below"])
def test_an_insertion_beside_a_line_that_the_other_side_deletes_or_grows_conflicts(ours: bytes, theirs: bytes) -> None:
    assert conflicts(ABC, ours, theirs) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (text("a", "t", "b", "c", "d"), text("a", "t", "u", "d"), text("a", "t", "u", "d")),
        (text("a", "b", "c", "u", "d"), text("a", "t", "u", "d"), text("a", "t", "u", "d")),
    ],
    ids=["above", "below"],
)
def test_an_insertion_that_the_touching_edit_already_holds_at_that_end_stays_one_copy(
    ours: bytes, theirs: bytes, merged: bytes
) -> None:
    assert clean(text("a", "b", "c", "d"), ours, theirs) == merged


def test_an_edit_that_grows_and_holds_the_insertion_conflicts_with_it() -> None:
    assert conflicts(ABC, text("a", "n", "b", "c"), text("a", "n", "t", "c")) == 1
    assert conflicts(ABC, text("a", "b", "n", "c"), text("a", "t", "n", "c")) == 1


def test_an_edit_that_holds_the_insertion_as_part_of_a_longer_line_does_not_hold_it() -> None:
    assert clean(ABC, text("a", "b", "n", "c"), text("a", "not n", "c")) == text("a", "not n", "n", "c")


def test_an_insertion_longer_than_the_touching_edit_is_not_held_by_it() -> None:
    assert clean(ABC, text("a", "b", "t", "u", "c"), text("a", "t", "c")) == text("a", "t", "t", "u", "c")


def test_an_insertion_strictly_inside_a_replaced_range_conflicts() -> None:
    assert conflicts(text("a", "b", "c", "d"), text("a", "b", "n", "c", "d"), text("a", "t", "u", "d")) == 1


def test_an_insertion_held_by_an_edit_that_conflicts_elsewhere_becomes_agreed_text_of_the_conflict() -> None:
    base = text("a", "b", "c", "d")
    merged = diff3(base, text("a", "t", "b", "o", "d"), text("a", "t", "u", "d"))
    assert merged.body == text("a", "t", "<<<<<<< ours", "b", "o", "=======", "u", ">>>>>>> theirs", "d")


def test_nothing_follows_a_last_line_whose_newline_the_other_side_dropped() -> None:
    assert conflicts(b"a\nb\n", b"a\nb\nn\n", b"a\nt") == 1


def test_an_edit_that_drops_the_last_newline_is_clean_beside_an_edit_above() -> None:
    assert clean(b"a\nb\n", b"o\nb\n", b"a\nt") == b"o\nt"


def test_hunks_that_chain_over_each_other_are_one_conflict() -> None:
    base = text("1", "2", "3", "4", "5")
    merged = diff3(base, text("a", "b", "3", "d", "5"), text("1", "x", "y", "z", "5"))
    assert kinds(merged) == [OURS, CONFLICT, UNCHANGED] or kinds(merged) == [CONFLICT, UNCHANGED]
    assert merged.conflicts == 1
    chain = diff3(base, text("a", "b", "3", "d", "e"), text("1", "x", "y", "z", "5"))
    assert kinds(chain) == [CONFLICT]


def test_a_conflict_of_chained_hunks_whose_sides_come_to_the_same_text_is_clean() -> None:
    base = text("x", "k", "y")
    region = Region(BOTH, (0, 6), (0, 4), (0, 4))
    merged = diff3(base, text("p", "q"), text("p", "q"))
    assert merged.regions == [region]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (text("o", "b", "c"), text("a", "t", "c")),
        (text("a", "n", "b", "c"), text("a", "t", "c")),
        (text("b", "c"), text("a", "t", "c")),
    ],
    ids=["edits", "insertion", "deletion"],
)
def test_touching_hunks_conflict_when_adjacent_is_conflict(ours: bytes, theirs: bytes) -> None:
    clean(ABC, ours, theirs)
    assert conflicts(ABC, ours, theirs, adjacent="conflict") == 1


def test_the_same_change_is_clean_when_adjacent_is_conflict() -> None:
    assert clean(ABC, text("a", "x", "c", "d"), text("a", "x", "c"), adjacent="conflict") == text("a", "x", "c", "d")


def test_an_insertion_that_could_stand_higher_does_not_conflict_with_one_that_cannot() -> None:
    base = text("- one", "", "- two", "", "end")
    ours = text("- one", "+ one more", "", "", "- two", "", "end")
    theirs = text("- one", "", "== a new section", "its text", "", "- two", "", "end")
    assert clean(base, ours, theirs) == text(
        "- one", "+ one more", "", "", "== a new section", "its text", "", "- two", "", "end"
    )


def test_a_line_inserted_beside_an_edited_one_stands_though_the_next_line_of_the_other_side_is_the_same() -> None:
    base = text("first", "", "last")
    assert clean(base, text("", "first", "", "last"), text("FIRST", "", "last")) == text("", "FIRST", "", "last")


def test_an_insertion_keeps_its_place_where_a_higher_one_would_let_a_line_stand_twice() -> None:
    base = text("first", "", "last")
    ours = text("FIRST", "", "a new paragraph", "", "last")
    theirs = text("first", "", "a new paragraph", "and more", "", "last")
    assert diff3(base, ours, theirs).body == text(
        "FIRST", "", "a new paragraph", "<<<<<<< ours", "=======", "and more", ">>>>>>> theirs", "", "last"
    )
    assert clean(base, ours, theirs.replace(b"a new", b"another")) == text(
        "FIRST", "", "a new paragraph", "", "another paragraph", "and more", "", "last"
    )


def test_a_nul_byte_is_refused_only_where_a_real_merge_is_needed() -> None:
    assert diff3(b"a\0\n", b"b\0\n", b"a\0\n").body == b"b\0\n"
    assert diff3(b"a\0\n", b"a\0\n", b"b\0\n").body == b"b\0\n"
    assert diff3(b"a\n", b"b\0\n", b"b\0\n").body == b"b\0\n"
    for bodies in ((b"a\0", b"b", b"c"), (b"a", b"b\0", b"c"), (b"a", b"b", b"c\0")):
        with pytest.raises(BinaryBodyError, match="NUL") as refusal:
            diff3(*bodies)
        assert (refusal.value.reason, refusal.value.exit_status) == ("binary", 3)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("adjacent", "maybe"),
        ("granularity", "letter"),
        ("style", "diff4"),
        ("favour", "base"),
        ("union_first", "base"),
        ("engine", "diff"),
    ],
)
def test_an_option_with_an_unknown_value_is_refused_naming_those_it_can_have(option: str, value: str) -> None:
    with pytest.raises(InputError, match=f"^{option} cannot be '{value}'; choose one of '"):
        diff3(b"", b"", b"", **{option: value})


def test_a_marker_size_below_seven_is_refused() -> None:
    with pytest.raises(InputError, match="marker size of 7 or more"):
        diff3(b"", b"", b"", marker_size=6)


@pytest.mark.parametrize("label", ["two\nlines", "\x1b[31m", b"\x7f", "tab\t"])
def test_a_label_with_a_control_byte_is_refused_even_where_no_marker_is_needed(label: str | bytes) -> None:
    with pytest.raises(InputError, match="control byte"):
        diff3(b"", b"", b"", labels=("ours", "base", label))


def test_labels_that_cannot_be_written_or_are_not_three_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be written in UTF-8"):
        diff3(b"", b"", b"", labels=("ours", "base", "\ud800"))
    with pytest.raises(InputError, match="three labels"):
        diff3(b"", b"", b"", labels=("ours", "theirs"))


def test_labels_are_written_as_given_and_an_empty_one_leaves_the_marker_bare() -> None:
    merged = diff3(b"b\n", b"o\n", b"t\n", style="diff3", labels=("für", "", b"\xff raw"))
    assert merged.body == "<<<<<<< für\no\n|||||||\nb\n=======\nt\n>>>>>>> ".encode() + b"\xff raw\n"


def test_agreed_lines_leave_a_conflict_at_both_ends_except_in_diff3_style() -> None:
    base, ours, theirs = text("v"), text("s", "o", "e"), text("s", "t", "e")
    assert kinds(diff3(base, ours, theirs)) == [BOTH, CONFLICT, BOTH]
    assert diff3(base, ours, theirs, style="zdiff3").body == text(
        "s", "<<<<<<< ours", "o", "||||||| base", "v", "=======", "t", ">>>>>>> theirs", "e"
    )
    assert kinds(diff3(base, ours, theirs, style="diff3")) == [CONFLICT]


def test_a_union_puts_the_first_side_first_and_glues_nothing_to_an_unterminated_line() -> None:
    assert diff3(b"b\n", b"o\n", b"t\n", favour="union", union_first="theirs").body == b"t\no\n"
    assert diff3(b"a\r\nb", b"a\r\no", b"a\r\nt", favour="union").body == b"a\r\no\r\nt"
    assert diff3(b"b\n", b"", b"t", favour="union", union_first="theirs").body == b"t"


def test_a_settled_merge_says_how_many_conflicts_its_favour_settled() -> None:
    base = text("1", "2", "3", "4", "5")
    ours, theirs = text("o", "2", "3", "4", "o"), text("t", "2", "3", "4", "t")
    merged = diff3(base, ours, theirs, favour="theirs")
    assert (merged.conflicts, merged.settled, merged.body) == (0, 2, theirs)
    assert repr(merged).startswith("Merged(conflicts=0, settled=2, regions=[Region('conflict', ")


def test_the_sides_of_a_conflict_without_a_final_newline_are_named() -> None:
    assert diff3(b"a\nb", b"a\no\n", b"a\nt").unterminated == ("theirs",)
    assert diff3(b"a\nb", b"a\no", b"a\nt\n", style="diff3").unterminated == ("ours", "base")
    assert diff3(b"a\nb", b"o\nb", b"a\nt").unterminated == ()


def test_pieces_are_the_body_unjoined() -> None:
    merged = diff3(ABC, text("o", "b", "c"), text("t", "b", "c"))
    assert b"".join(merged.pieces) == merged.body
    assert merged.body is merged.body


class TestMarkerSize:
    def test_text_that_reads_as_a_start_marker_outside_a_conflict_makes_markers_longer(self) -> None:
        base, ours, theirs = (text("<<<<<<< old", "x", "=======", letter) for letter in "bot")
        merged = diff3(base, ours, theirs)
        assert merged.marker_size == 8
        assert merged.body == text(
            "<<<<<<< old", "x", "=======", "<<<<<<<< ours", "o", "========", "t", ">>>>>>>> theirs"
        )

    @pytest.mark.parametrize("line", ["=======", "||||||| x", ">>>>>>>", "<<<<<<<\r"])
    def test_text_that_reads_as_any_marker_inside_a_conflict_makes_markers_longer(self, line: str) -> None:
        assert diff3(text("b"), text("o", line), text("t", "u")).marker_size == 8

    @pytest.mark.parametrize("line", [b"=======\r", b">>>>>>>\r", b"<<<<<<<\r"])
    def test_a_line_that_reads_as_a_marker_only_once_it_has_its_ending_makes_markers_longer(self, line: bytes) -> None:
        assert diff3(b"b\n", b"o\n", line).marker_size == 8
        assert diff3(b"b\r\n", b"o\r\n", line).marker_size == 7
        assert diff3(b"b\r\n", b"o\n", b"t\r\n" + line + b"\r\n").marker_size == 8

    def test_a_line_that_reads_as_a_start_marker_only_once_converted_makes_markers_longer(self) -> None:
        theirs = b"<<<<<<<\r\r\n1\r\n2\r\nt\r\n"
        assert diff3(b"1\r\n2\r\nb\r\n", b"1\n2\no\n", theirs).marker_size == 8

    def test_a_base_section_that_is_not_shown_takes_no_size(self) -> None:
        assert diff3(text("=======", "b"), text("o"), text("t")).marker_size == 7
        assert diff3(text("=======", "b"), text("o"), text("t"), style="diff3").marker_size == 8

    def test_the_smallest_free_size_is_taken_from_the_wanted_one_up(self) -> None:
        base, ours, theirs = (text("<<<<<<<", "<<<<<<<<<", "k", letter) for letter in "bot")
        assert diff3(base, ours, theirs).marker_size == 8
        assert diff3(base, ours, theirs, marker_size=9).marker_size == 10

    def test_long_underlines_and_other_lookalikes_keep_seven(self) -> None:
        looks = text("==============================", "<<<<<<<x", "a <<<<<<<", "<<<<<<")
        assert diff3(looks + b"b\n", looks + b"o\n" + looks, looks + b"t\n").marker_size == 7

    def test_a_lookalike_that_their_side_alone_brings_counts_too(self) -> None:
        base = text("1", "2", "3", "4", "5")
        merged = diff3(base, text("1", "2", "3", "4", "o"), text("1", "<<<<<<<", "3", "4", "t"))
        assert merged.marker_size == 8

    def test_a_clean_merge_never_needs_another_size(self) -> None:
        base = text("<<<<<<<", "2", "3")
        assert diff3(base, text("<<<<<<<", "2", "o"), text("<<<<<<<", "t", "3")).marker_size == 7


class TestLineEndings:
    def test_markers_take_the_ending_that_dominates_the_bodies(self) -> None:
        assert diff3(b"a\r\nb\r\n", b"a\r\no\r\n", b"a\r\nt\r\n").body == (
            b"a\r\n<<<<<<< ours\r\no\r\n=======\r\nt\r\n>>>>>>> theirs\r\n"
        )
        assert diff3(b"a\r\nb\n", b"a\r\no\n", b"a\r\nt\n").body.startswith(b"a\r\n<<<<<<< ours\no\n")

    @pytest.mark.parametrize(("old", "new"), [(b"\n", b"\r\n"), (b"\r\n", b"\n")], ids=["to CRLF", "to LF"])
    def test_a_side_that_converted_every_ending_merges_with_edits_of_the_other(self, old: bytes, new: bytes) -> None:
        base = old.join((b"a", b"b", b"c", b"d", b""))
        ours = new.join((b"a", b"o", b"c", b"d", b""))
        theirs = old.join((b"a", b"b", b"c", b"t", b""))
        assert clean(base, ours, theirs) == new.join((b"a", b"o", b"c", b"t", b""))

    def test_a_conflict_in_a_converted_document_is_of_the_edited_lines_alone_and_has_the_new_ending(self) -> None:
        merged = diff3(b"a\nb\nc\n", b"a\r\no\r\nc\r\n", b"a\nt\nc\n")
        assert merged.body == b"a\r\n<<<<<<< ours\r\no\r\n=======\r\nt\r\n>>>>>>> theirs\r\nc\r\n"
        assert [(r.kind, r.base, r.ours, r.theirs) for r in merged.regions] == [
            (UNCHANGED, (0, 2), (0, 3), (0, 2)),
            (CONFLICT, (2, 4), (3, 6), (2, 4)),
            (UNCHANGED, (4, 6), (6, 9), (4, 6)),
        ]

    def test_both_sides_converting_alike_counts_as_one(self) -> None:
        assert clean(b"a\nb\nc\n", b"o\r\nb\r\nc\r\n", b"a\r\nb\r\nt\r\n") == b"o\r\nb\r\nt\r\n"

    def test_an_unterminated_last_line_stays_so_in_a_converted_document(self) -> None:
        assert clean(b"a\nb\nc", b"a\r\nb\r\nc", b"t\nb\nc") == b"t\r\nb\r\nc"

    def test_a_side_of_mixed_endings_takes_the_ending_the_other_converted_to(self) -> None:
        assert clean(b"a\nb\nc\nd\n", b"a\r\nb\r\nc\r\nd\r\n", b"a\nb\r\nc\nt\n") == b"a\r\nb\r\nc\r\nt\r\n"

    @pytest.mark.parametrize(
        ("base", "ours"),
        [(b"a\r\nb\n", b"a\nb\n"), (b"a\nb\n", b"a\r\nb\n"), (b"a", b"a\r\nb\r\n"), (b"a\n", b"b\r")],
        ids=["mixed base", "mixed side", "base without a terminated line", "side without a terminated line"],
    )
    def test_in_anything_less_than_a_whole_conversion_endings_are_part_of_the_line(
        self, base: bytes, ours: bytes
    ) -> None:
        assert converted_ending(base, ours, base) is None
        assert converted_ending(base, base, ours) is None
        merged = diff3(base, ours, b"t\n" + base)
        assert merged.conflicts or merged.body == b"t\n" + ours

    def test_a_lone_carriage_return_before_a_converted_ending_is_text(self) -> None:
        assert clean(b"a\nb\nc\n", b"a\r\r\nb\r\nc\r\n", b"a\nb\nt\n") == b"a\r\r\nb\r\nt\r\n"


def test_regions_are_values() -> None:
    region = Region(OURS, (0, 1), (0, 2), (0, 1))
    assert region == Region(OURS, (0, 1), (0, 2), (0, 1))
    assert region != Region(OURS, (0, 1), (0, 2), (0, 2))
    assert region != "ours"
    assert len({region, Region(OURS, (0, 1), (0, 2), (0, 1))}) == 1


def test_a_clash_in_which_one_side_comes_to_the_bases_text_is_the_other_sides_change() -> None:
    script = [(0, 2, 0, 2)]
    assert [kind for kind, *_ in changes((b"a\n", b"a\n", b"b\n"), script, script)] == [THEIRS]
    assert [kind for kind, *_ in changes((b"a\n", b"b\n", b"a\n"), script, script)] == [OURS]
    assert [kind for kind, *_ in changes((b"a\n", b"b\n", b"c\n"), script, script)] == [CONFLICT]


def test_a_joint_that_begins_inside_a_conflict_leaves_the_insertion_just_above_it_alone() -> None:
    base, theirs = b"1\n2\n3\n\n5\n", b"T1\nT2\nT3\n\n5\n"
    merged = diff3(base, b"new\n1\n2\nO3\n\nmore\n\n5\n", theirs)
    assert merged.conflicts == 1
    assert merged.body.startswith(b"new\n<<<<<<< ours\n1\n2\nO3\n=======\nT1\n")


def test_conflicts_that_a_higher_place_dissolves_are_dissolved_one_by_one() -> None:
    between = b"kept one\nkept two\n"
    base, ours, theirs = b"a\n\n\n", b"\n\n\n", b"a\nc\n\n\n"
    assert clean(base, ours, theirs) == b"\nc\n\n\n"
    merged = clean(base + between + base, ours + between + ours, theirs + between + theirs)
    assert merged == b"\nc\n\n\n" + between + b"\nc\n\n\n"


def test_an_insertion_beside_an_edited_unterminated_last_line_conflicts() -> None:
    assert diff3(b"l1\nl2", b"l1\nnew\nl2", b"l1\nL2").conflicts == 1
    assert diff3(b"l1\nl2", b"l1\nnew\nl2", b"l1\nL2\n").conflicts == 1
    assert diff3(b"l1\nl2\n", b"l1\nnew\nl2\n", b"l1\nL2").conflicts == 1
    assert diff3(b"b", b"a", b"a\nb").conflicts == 1


def test_an_insertion_above_several_edited_lines_does_not_stand_beside_their_unterminated_last_one() -> None:
    assert diff3(b"l1\nl2\nl3", b"l1\nnew\nl2\nl3", b"l1\nL2\nL3").body == b"l1\nnew\nL2\nL3"


class TestLargeBodies:
    """Where edits are few, what did not change is looked at once, in the base: nothing may be missed by that."""

    BASE = b"".join(b"line %d of a long document\n" % n for n in range(8_000))

    def changed(self, number: int, text: bytes) -> bytes:
        return self.BASE.replace(b"line %d of a long document\n" % number, text)

    @pytest.mark.parametrize(("ours", "theirs"), [(b"a \0 b\n", b"t\n"), (b"o\n", b"a \0 b\n")])
    def test_a_nul_byte_far_down_in_one_changed_line_is_refused(self, ours: bytes, theirs: bytes) -> None:
        side = "ours" if b"\0" in ours else "theirs"
        with pytest.raises(BinaryBodyError, match=f"The {side} body holds a NUL"):
            diff3(self.BASE, self.changed(3_000, ours), self.changed(6_000, theirs))

    def test_a_start_marker_in_a_changed_line_outside_conflicts_makes_markers_longer(self) -> None:
        ours = self.changed(10, b"o\n").replace(b"line 5000 of a long document\n", b"<<<<<<< text\n")
        assert diff3(self.BASE, ours, self.changed(10, b"t\n")).marker_size == 8
        theirs = self.changed(10, b"t\n").replace(b"line 5000 of a long document\n", b"<<<<<<< text\n")
        assert diff3(self.BASE, self.changed(10, b"o\n"), theirs).marker_size == 8

    def test_markers_take_the_ending_of_most_lines_when_only_changed_ones_have_a_carriage_return(self) -> None:
        merged = diff3(self.BASE, self.changed(10, b"o\r\n"), self.changed(10, b"t\n"))
        assert b"\n<<<<<<< ours\no\r\n=======\nt\n>>>>>>> theirs\n" in merged.body

    def test_a_long_text_that_both_put_at_one_place_stands_there_once(self) -> None:
        text = b"".join(b"new text, line %d\n" % n for n in range(400))
        ours, theirs = self.changed(10, text), self.changed(10, text)
        merged = diff3(self.BASE, ours.replace(b"line 7 ", b"line seven "), theirs.replace(b"line 7999", b"the last"))
        assert merged.conflicts == 0
        assert merged.body.count(b"new text, line 5\n") == 1


@pytest.mark.parametrize(
    ("other", "overlaps", "touches"),
    [
        ((4, 6, 4, 8), True, True),
        ((8, 9, 8, 9), False, True),
        ((8, 8, 8, 9), False, True),
        ((9, 9, 9, 10), False, False),
        ((5, 5, 5, 9), True, True),
        ((0, 2, 0, 0), False, True),
        ((0, 1, 0, 0), False, False),
    ],
)
def test_hunks_overlap_where_they_change_a_common_line_and_under_gits_verdicts_where_they_touch(
    other: tuple[int, int, int, int], overlaps: bool, touches: bool
) -> None:
    hunk = (2, 8, 2, 8)
    for pair in ((hunk, other), (other, hunk)):
        assert hunks_overlap(*pair, touching=False) == overlaps
        assert hunks_overlap(*pair, touching=True) == touches
