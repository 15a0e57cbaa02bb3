"""Merges that hold no side: the same bytes, conflicts and refusals as of whole bodies, or None."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.errors import BinaryBodyError, InputError
from mergepub.merge import diff3, sparse
from mergepub.merge.myers import hunks_between
from mergepub.merge.sparse import edits_of, merge_edits, merge_parts
from tests.merge.support import lines

if TYPE_CHECKING:
    from mergepub.merge.sparse import Edit, Outcome

Lines = list[bytes]

LINE = 64  # bytes; small, so that small texts have parts that settle nothing
UNLIKE = [b"line %d of a text in which all lines differ\n" % n for n in range(8_000)]


def in_parts(body: bytes, size: int = 1000) -> Iterator[bytes]:
    return iter([body[at : at + size] for at in range(0, len(body), size)])


def edits(base: bytes, side: bytes, size: int = 1000, line: int = LINE) -> list[Edit] | None:
    return edits_of(base, in_parts(side, size), line=line)


def script(base: bytes, side: bytes) -> list[Edit]:
    """The edits as the walk over whole bodies finds them."""
    return [(a0, a1, side[b0:b1]) for a0, a1, b0, b1 in hunks_between(base, side, weak_rule=True)]


def merged(base: bytes, ours: bytes, theirs: bytes, **how: Any) -> Outcome | None:
    return merge_parts(base, in_parts(ours), in_parts(theirs), **how)


def assert_same(outcome: Outcome, base: bytes, ours: bytes, theirs: bytes, **how: Any) -> None:
    whole = diff3(base, ours, theirs, **how)
    assert b"".join(outcome.pieces) == whole.body
    assert (outcome.conflicts, outcome.settled) == (whole.conflicts, whole.settled)
    assert outcome.unterminated == whole.unterminated


def replaced(text: Lines, *numbers: int, by: bytes = b"edited %d\n") -> bytes:
    new = list(text)
    for number in numbers:
        new[number] = by % number
    return b"".join(new)


# ── any bodies ──────────────────────────────────────────────────────────────────────────────────────────────────────


def some_text(chance: random.Random) -> Lines:
    """Lines that differ, lines of few kinds, lines that come again and again, or stretches of each."""
    size = chance.randrange(5, 4_000)
    kind = chance.randrange(4)
    if kind == 0:
        return [b"%d %d\n" % (n, chance.randrange(9)) for n in range(size)]
    if kind == 1:
        return chance.choices([b"a\n", b"b\n", b"\n", b"-" * chance.randrange(40) + b"\n"], k=size)
    if kind == 2:
        period = [b"%d\n" % chance.randrange(50) for _ in range(chance.randrange(1, 60))]
        return [period[n % len(period)] for n in range(size)]
    text: Lines = []
    while len(text) < size:
        text += [b"%d\n" % chance.randrange(10**6) for _ in range(chance.randrange(300))]
        text += [chance.choice([b"\n", b"z\n", b"as above\n"])] * chance.randrange(400)
    return text


def edited(chance: random.Random, text: Lines, times: int) -> Lines:
    text = list(text)
    for _ in range(times):
        at, few, many = chance.randrange(len(text) + 1), chance.randrange(4), chance.randrange(120)
        kind = chance.randrange(6)
        if kind == 0:
            text[at:at] = [b"new %d\n" % chance.randrange(99)] * few
        elif kind == 1:
            text[at : at + few] = []
        elif kind == 2:
            text[at : at + 1] = [b"instead %d\n" % chance.randrange(99)]
        elif kind == 3:
            text[at:at] = text[at : at + few * 9]
        elif kind == 4:
            text[at : at + many : 2] = [b"every other %d\n" % n for n in range(len(text[at : at + many : 2]))]
        else:
            text[at : at + chance.choice([0, many])] = [b"section %d\n" % n for n in range(chance.choice([0, many]))]
    return text


def some_bodies(chance: random.Random) -> tuple[bytes, bytes, bytes]:
    base = some_text(chance)
    times = chance.randrange(1, 4)
    ours, theirs = edited(chance, base, times), edited(chance, base, times)
    if chance.random() < 0.3:  # the same places
        seed = chance.random()
        ours = edited(random.Random(seed), base, times)
        theirs = [line.replace(b"new", b"NEW").replace(b"ins", b"INS") for line in edited(random.Random(seed), base, 2)]
    bodies = [b"".join(text) for text in (base, ours, theirs)]
    if chance.random() < 0.1:
        bodies = [body.replace(b"\n", b"\r\n") for body in bodies]
    if chance.random() < 0.2:
        which = chance.randrange(3)
        change = chance.choice(
            [
                lambda body: body[:-1],
                lambda body: body.replace(b"\n", b"\r\n"),
                lambda body: body + chance.choice([b"\0", b"<<<<<<< x\n", b"=======\n", b"\r\n"]),
            ]
        )
        bodies[which] = change(bodies[which])
    if chance.random() < 0.05:
        bodies = [b"<<<<<<< x\n" + body for body in bodies]
    base_body, our_body, their_body = bodies
    return base_body, our_body, their_body


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_edits_of_any_side_are_those_of_the_whole_body(seed: int):
    chance = random.Random(seed)
    base, ours, _ = some_bodies(chance)
    found = edits(base, ours, chance.choice([100, 1000, 7777]), chance.choice([16, 64, 2048]))
    assert found is None or found == script(base, ours)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 1 << 32))
def test_any_merge_is_that_of_the_whole_bodies(seed: int):
    chance = random.Random(seed)
    base, ours, theirs = some_bodies(chance)
    how = {
        "adjacent": chance.choice(["clean", "conflict"]),
        "style": chance.choice(["merge", "diff3", "zdiff3"]),
        "favour": chance.choice([None, None, "ours", "theirs", "union"]),
        "union_first": chance.choice(["ours", "theirs"]),
        "marker_size": chance.choice([7, 7, 9]),
    }
    our_edits, their_edits = edits(base, ours), edits(base, theirs)
    if our_edits is None or their_edits is None:
        return
    outcome = merge_edits(base, our_edits, their_edits, context=chance.choice([16, 64, 600, 1024]), **how)
    if outcome is not None:
        assert_same(outcome, base, ours, theirs, **how)


# ── the walk ────────────────────────────────────────────────────────────────────────────────────────────────────────

BASE = b"".join(UNLIKE)
SIDES = {
    "nothing": UNLIKE,
    "a line replaced": [*UNLIKE[:4000], b"instead\n", *UNLIKE[4001:]],
    "a line inserted": [*UNLIKE[:4000], b"more\n", *UNLIKE[4000:]],
    "a line deleted": [*UNLIKE[:4000], *UNLIKE[4001:]],
    "lines replaced": [*UNLIKE[:4000], b"one\n", b"two\n", b"three\n", *UNLIKE[4003:]],
    "lines replaced, and others below": [*UNLIKE[:400], b"1\n", b"2\n", *UNLIKE[402:480], b"3\n", *UNLIKE[482:]],
    "a section inserted": [*UNLIKE[:4000], *(b"section %d\n" % n for n in range(900)), *UNLIKE[4000:]],
    "a section deleted": [*UNLIKE[:4000], *UNLIKE[4900:]],
    "a section rewritten": [*UNLIKE[:4000], *(b"section %d\n" % n for n in range(90)), *UNLIKE[4050:]],
    "a long section rewritten": [*UNLIKE[:3000], *(b"section %d\n" % n for n in range(900)), *UNLIKE[3900:]],
    "the first line": [b"instead\n", *UNLIKE[1:]],
    "the last line": [*UNLIKE[:-1], b"instead\n"],
    "the last newline": [*UNLIKE[:-1], UNLIKE[-1][:-1]],
    "lines at the end": [*UNLIKE, b"more\n", b"and more\n"],
    "all but the start deleted": UNLIKE[:4000],
    "all but the start and a part of a line deleted": [*UNLIKE[:40], b"line 40"],
    "all but a part of a line deleted": [*UNLIKE[:4000], b"line 40"],
    "many lines replaced at the end": [*UNLIKE[:-40], *(b"the end %d\n" % n for n in range(40))],
}


@pytest.mark.parametrize("size", [100, 4096, 65_536, 1 << 20])
@pytest.mark.parametrize("name", SIDES)
def test_every_kind_of_edit_is_found_in_parts_of_any_size(name: str, size: int):
    side = b"".join(SIDES[name])
    assert edits(BASE, side, size) == script(BASE, side)


def test_an_unterminated_last_line_of_the_base_is_another_line_once_it_ends():
    base = BASE[:-1]
    assert edits(base, BASE) == script(base, BASE)
    assert edits(base, BASE + b"more\n") == script(base, BASE + b"more\n")


@pytest.mark.parametrize("base", [b"", b"a\n", b"a"])
@pytest.mark.parametrize("side", [b"", b"a\n", b"a", b"b\n", b"a\nb"])
def test_edits_of_next_to_nothing_are_found(base: bytes, side: bytes):
    assert edits(base, side) == script(base, side)


def test_what_equals_the_base_is_not_kept():
    side = replaced(UNLIKE, 10, 3000, 7000)
    held = 0

    def parts() -> Iterator[bytes]:
        nonlocal held
        for part in in_parts(side):
            held = max(held, len(walk.text))
            yield part

    walk = sparse._Side(BASE, parts(), LINE)
    while walk.to_difference():
        assert walk.past_difference()
    assert walk.edits == script(BASE, side)
    assert held < 20_000


def test_a_search_that_may_end_otherwise_beyond_the_text_at_hand_reads_on():
    period = [b"%d is a line that comes again\n" % (n % 9) for n in range(700)]
    text = [*UNLIKE[:50], *period, *UNLIKE[50:]]
    side = [*text[:60], b"one\n", b"two\n", *text[62:]]
    base, ours = b"".join(text), b"".join(side)
    assert edits(base, ours) == script(base, ours)


def test_lines_that_come_again_forever_are_left_to_the_whole_body(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse, "_MOST", 10_000)
    text = [b"%d is a line that comes again\n" % (n % 9) for n in range(2_000)]
    side = [*text[:60], b"one\n", b"two\n", *text[62:]]
    assert edits(b"".join(text), b"".join(side)) is None


def test_long_lines_near_an_edit_of_more_than_one_are_left_to_the_whole_body():
    text = [*UNLIKE[:100], b"a long line " * 100 + b"\n", *UNLIKE[100:]]
    assert edits(b"".join(text), replaced(text, 98, 99)) is None
    assert edits(b"".join(text), replaced(text, 99)) == script(b"".join(text), replaced(text, 99))


def test_a_line_longer_than_all_that_is_at_hand_is_left_to_the_whole_body():
    section = [b"section %d\n" % n for n in range(50)]
    text = [*UNLIKE[:900], b"no end " * 60_000 + b"\n", *UNLIKE[900:]]
    side = [*text[:3], *section, *text[3:]]
    assert edits(b"".join(text), b"".join(side), 100_000) is None


def test_a_line_without_end_below_a_rewritten_section_is_left_to_the_whole_body(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse, "REACH", 0)
    text = [*UNLIKE[:1200], b"no end " * 60_000 + b"\n", *UNLIKE[1200:]]
    side = [*text[:850], *(b"section %d\n" % n for n in range(50)), *text[900:]]
    assert edits(b"".join(text), b"".join(side), 100_000) is None


def test_a_side_in_another_order_is_left_to_the_whole_body():
    text = [b"%d in an order of its own\n" % n for n in range(30_000)]
    side = list(text)
    random.Random(1).shuffle(side)
    assert edits(b"".join(text), b"".join(side)) is None


def test_a_line_that_began_in_an_earlier_part_is_seen_from_its_start():
    side = BASE.replace(b"4000 of a text in which all lines differ", b"4000 of a text in which all lines differ!")
    for size in range(100, 150):
        assert edits(BASE, side, size) == script(BASE, side)


def test_a_side_with_many_edits_is_left_to_the_whole_body():
    assert edits(BASE, replaced(UNLIKE, *range(0, 8_000, 40))) is None
    assert edits(BASE, replaced(UNLIKE, *range(0, 8_000, 400))) is not None


# ── the merge ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SIDES)
def test_every_kind_of_edit_merges_with_edits_elsewhere_and_beside_it(name: str):
    ours = b"".join(SIDES[name])
    for numbers in ([100, 7000], [3999], [4001], [4000], [410, 470], [0], [7999], [2990, 3950]):
        theirs = replaced(UNLIKE, *numbers, by=b"theirs %d\n")
        for adjacent in ("clean", "conflict"):
            for one, other in ((ours, theirs), (theirs, ours)):
                outcome = merged(BASE, one, other, adjacent=adjacent)
                assert outcome is not None
                assert_same(outcome, BASE, one, other, adjacent=adjacent)


def test_a_side_that_changed_nothing_and_sides_that_are_the_same_need_no_merge_whatever_the_bytes():
    base = BASE + b"\0\n"
    side = replaced(UNLIKE, 5) + b"\0\n"
    for ours, theirs in ((base, base), (side, base), (base, side), (side, side)):
        outcome = merged(base, ours, theirs)
        assert outcome is not None
        assert_same(outcome, base, ours, theirs)


@pytest.mark.parametrize("where", range(3))
def test_a_nul_byte_is_left_to_the_whole_bodies_which_refuse_it(where: int):
    bodies = [BASE, replaced(UNLIKE, 5), replaced(UNLIKE, 7000)]
    for at in (0, 7990) if where else (0,):
        marked = list(bodies)
        marked[where] = replaced(lines(bodies[where]), at, by=b"\0 %d\n")
        if where == 0:
            marked = [b"\0\n" + body for body in bodies]
        base, ours, theirs = marked
        assert merged(base, ours, theirs) is None
        with pytest.raises(BinaryBodyError):
            diff3(base, ours, theirs)


def test_a_wrong_option_is_refused_where_nothing_needs_a_merge_too():
    for theirs in (BASE, replaced(UNLIKE, 7000)):
        with pytest.raises(InputError, match="control"):
            merged(BASE, replaced(UNLIKE, 5), theirs, labels=("a\nb", "b", "c"))


def test_a_deletion_that_may_stand_far_below_is_left_to_the_whole_bodies():
    text = [*UNLIKE[:500], *[b"again\n"] * 2_000, *UNLIKE[500:]]
    base, ours = b"".join(text), b"".join([*text[:600], *text[601:]])
    theirs = replaced(text, 2_500)
    found, other = script(base, ours), edits(base, theirs)
    assert other is not None
    assert merge_edits(base, [(at := len(b"".join(text[:600])), at + 6, b"")], other) is None
    assert found[0][0] != at


@pytest.mark.parametrize("text", [b"a\n", b"b\na\n"])
def test_an_insertion_that_may_stand_far_above_is_left_to_the_whole_bodies(text: bytes):
    above = [*UNLIKE[:500], *[text] * 1_500]
    base = b"".join([*above, *UNLIKE[500:]])
    at = len(b"".join(above))
    their_edits = [(0, len(UNLIKE[0]), b"theirs\n")]
    assert merge_edits(base, [(at, at, text)], their_edits) is None
    assert merge_edits(base, [(at - len(text), at, b"")], their_edits) is None
    assert merge_edits(base, [(at, at, b"c\n")], their_edits) is not None


def test_a_script_that_would_be_another_in_the_part_alone_is_left_to_the_whole_bodies():
    start, end = len(b"".join(UNLIKE[:100])), len(b"".join(UNLIKE[:103]))
    as_one = [(start, end, b"one\n" + UNLIKE[101] + b"three\n")]
    theirs = [(start, len(b"".join(UNLIKE[:101])), b"theirs\n")]
    assert merge_edits(BASE, as_one, theirs) is None


@pytest.mark.parametrize("apart", range(1, 40))
def test_edits_at_any_distance_from_a_conflict_are_merged_once(apart: int):
    for ours, theirs in (
        ([4000, 4000 + apart], [4000]),
        ([4000 - apart, 4000], [4000]),
        ([4000], [4000, 4000 + apart]),
    ):
        bodies = BASE, replaced(UNLIKE, *ours), replaced(UNLIKE, *theirs, by=b"theirs %d\n")
        outcome = merged(*bodies)
        assert outcome is not None
        assert_same(outcome, *bodies)


def test_weak_lines_between_rewritten_ones_are_given_up_as_in_the_whole_bodies():
    rules = [b"-" * 60 + b"\n"] * 8
    text = [
        *UNLIKE[:100],
        *[b"a%d\n" % n for n in range(20)],
        *rules,
        *[b"b%d\n" % n for n in range(20)],
        *UNLIKE[100:],
    ]
    new = [*UNLIKE[:100], *[b"c%d\n" % n for n in range(20)], *rules, *[b"d%d\n" % n for n in range(20)], *UNLIKE[100:]]
    base, ours, theirs = b"".join(text), b"".join(new), replaced(text, 124)
    assert diff3(base, ours, theirs).conflicts == 1
    outcome = merged(base, ours, theirs)
    assert outcome is not None
    assert_same(outcome, base, ours, theirs)


def test_endings_that_a_side_converted_in_a_few_lines_are_no_converted_document():
    above = b"x" * 1500 + b"\n"
    base, ours, theirs = above + b"a\n", above + b"a\r\n", above + b"b\n"
    at, end = len(above), len(base)
    assert merge_edits(base, [(at, end, b"a\r\n")], [(at, end, b"b\n")]) is None
    assert diff3(base, ours, theirs).conflicts == 1


def test_converted_endings_of_the_whole_document_are_seen_where_all_of_it_was_edited():
    base, ours, theirs = b"a\nb\nc\n", b"a\r\nb\r\nc\r\n", b"a\nB\nc\n"
    outcome = merged(base, ours, theirs)
    assert outcome is not None
    assert_same(outcome, base, ours, theirs)
    assert b"".join(outcome.pieces) == b"a\r\nB\r\nc\r\n"


CLASH = (BASE, replaced(UNLIKE, 4000), replaced(UNLIKE, 4000, by=b"theirs %d\n"))


@pytest.mark.parametrize("style", ["merge", "diff3", "zdiff3"])
@pytest.mark.parametrize("favour", [None, "ours", "theirs", "union"])
def test_a_conflict_is_shown_or_settled_as_in_the_whole_bodies(style: str, favour: str | None):
    how = {"style": style, "favour": favour, "labels": ("here", "then", "there"), "marker_size": 9}
    outcome = merged(*CLASH, **how)
    assert outcome is not None
    assert_same(outcome, *CLASH, **how)
    assert outcome.conflicts + outcome.settled == 1


def test_a_conflict_of_unterminated_last_lines_names_the_sides():
    base, ours, theirs = (body + b"last" for body in (BASE, BASE + b"our ", BASE + b"their "))
    outcome = merged(base, ours, theirs)
    assert outcome is not None
    assert_same(outcome, base, ours, theirs)
    assert outcome.unterminated == ("ours", "theirs")


@pytest.mark.parametrize("text", [b"<<<<<<< a text\n", b"some <<<<<<<\n"])
def test_text_like_a_marker_anywhere_is_left_to_the_whole_bodies_where_a_conflict_is_shown(text: bytes):
    base, ours, theirs = (text + body for body in CLASH)
    assert merged(base, ours, theirs) is None
    outcome = merged(base, text + replaced(UNLIKE, 9), theirs)
    assert outcome is not None
    assert_same(outcome, base, text + replaced(UNLIKE, 9), theirs)


def test_text_like_a_marker_within_a_conflict_is_left_to_the_whole_bodies():
    base, ours, theirs = CLASH
    assert merged(base, ours.replace(b"edited 4000\n", b"=======\n"), theirs) is None


def test_crlf_endings_of_all_lines_are_those_of_markers_and_mixed_ones_are_left_to_the_whole_bodies():
    base, ours, theirs = (body.replace(b"\n", b"\r\n") for body in CLASH)
    outcome = merged(base, ours, theirs)
    assert outcome is not None
    assert_same(outcome, base, ours, theirs)
    assert b"=======\r\n" in b"".join(outcome.pieces)
    assert merged(b"\n" + base, b"\n" + ours, b"\n" + theirs) is None
    assert merged(base, ours + b"more\n", theirs) is None


def test_what_both_inserted_is_told_from_the_text_below_it_however_long():
    section = [b"section %d\n" % n for n in range(400)]
    ours = b"".join([*UNLIKE[:4000], *section, *UNLIKE[4000:]])
    theirs = b"".join([*UNLIKE[:4000], *section[:300], b"theirs\n", *section[300:], *UNLIKE[4000:]])
    outcome = merged(BASE, ours, theirs, adjacent="conflict")
    assert outcome is not None
    assert_same(outcome, BASE, ours, theirs, adjacent="conflict")
    assert merged(BASE, ours, theirs) is None


@pytest.mark.parametrize("more", [(), (190,)], ids=["nothing else", "another edit"])
def test_what_one_side_inserted_is_found_in_the_text_of_the_other_however_far_it_goes(more: tuple[int, ...]):
    text = [b"---\n" if n in (*range(100, 140, 5), *more) else line for n, line in enumerate(UNLIKE)]
    theirs = b"".join(text)
    ours = b"".join([*UNLIKE[:100], *text[100:200], *UNLIKE[100:]])
    outcome = merged(BASE, ours, theirs)
    assert outcome is not None
    assert_same(outcome, BASE, ours, theirs)


def test_lines_that_both_brought_in_are_left_to_the_whole_bodies_unless_they_prove_nothing():
    def merged_with(our_text: bytes, their_text: bytes) -> Outcome | None:
        ours, theirs = replaced(UNLIKE, 100, by=b"%d\n" + our_text), replaced(UNLIKE, 7000, by=b"%d\n" + their_text)
        return merged(BASE, ours, theirs)

    assert merged_with(b"the same\n", b"the same\n") is None
    assert merged_with(b"---\n\n", b"---\n\n") is not None
    outcome = merged(BASE, replaced(UNLIKE, 100, 900), replaced(UNLIKE, 900, 7000))
    assert outcome is not None
    assert_same(outcome, BASE, replaced(UNLIKE, 100, 900), replaced(UNLIKE, 900, 7000))
