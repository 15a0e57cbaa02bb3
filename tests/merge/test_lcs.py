"""Longest common subsequences and ascending runs against the textbook table."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import anchors, lcs
from mergepub.merge.anchors import increasing, matched_lines
from mergepub.merge.lcs import common_pairs, dense_pairs, sparse_pairs

SMALL = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=24)


def table_length(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        diagonal = 0
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], diagonal + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def numbered(a: Sequence[bytes], b: Sequence[bytes]) -> tuple[list[int], list[int], int]:
    """Both as numbers from 1, the same for the same text, and the number of the blank line."""
    numbers = {line: n for n, line in enumerate(dict.fromkeys([*a, *b]), 1)}
    return [numbers[line] for line in a], [numbers[line] for line in b], numbers.get(b"", 0)


def places_in(b: Sequence[bytes]) -> dict[bytes, list[int]]:
    return {line: [j for j, other in enumerate(b) if other == line] for line in b}


def assert_common(a: Sequence[bytes], b: Sequence[bytes], pairs: Sequence[tuple[int, int]]) -> None:
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))


@settings(max_examples=300)
@given(SMALL, SMALL, st.sampled_from([0, 3, 20_000]))
def test_hunt_szymanski_is_as_long_as_the_table_whatever_the_blocks(a: list[bytes], b: list[bytes], block: int) -> None:
    places = places_in(b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lcs, "_BLOCK", block)
        pairs = sparse_pairs([places.get(line, ()) for line in a])
    assert_common(a, b, pairs)
    assert len(pairs) == table_length(a, b)


@settings(max_examples=300)
@given(SMALL, SMALL)
def test_rows_of_bits_are_as_long_as_the_table(a: list[bytes], b: list[bytes]) -> None:
    pairs = dense_pairs(a, len(b), places_in(b))
    assert_common(a, b, pairs)
    assert len(pairs) == table_length(a, b)


def test_rows_of_bits_are_exact_over_many_blocks_and_with_masks_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lcs, "_MASK_BUDGET", 0)
    chance = random.Random(5)
    a, b = ([b"%d" % chance.randrange(40) for _ in range(700)] for _ in range(2))
    places = places_in(b)
    pairs = dense_pairs(a, len(b), places)
    assert_common(a, b, pairs)
    assert len(pairs) == table_length(a, b) == len(sparse_pairs([places.get(line, ()) for line in a]))


@settings(max_examples=300)
@given(SMALL, SMALL)
def test_small_problems_are_matched_exactly(a: list[bytes], b: list[bytes]) -> None:
    rows, columns = matched_lines(*numbered(a, b))
    pairs = list(zip(rows, columns, strict=True))
    assert_common(a, b, pairs)
    assert len(pairs) == table_length(a, b) == len(common_pairs(a, b))


@settings(max_examples=200)
@given(st.permutations(range(18)))
def test_an_ascending_run_is_a_longest_one(places: list[int]) -> None:
    ends: list[int] = []
    for place in places:
        n = bisect_left(ends, place)
        ends[n : n + 1] = [place]
    run = [places[k] for k in increasing(places)]
    assert run == sorted(run)
    assert len(run) == len(ends)


def test_no_places_have_an_empty_run() -> None:
    assert increasing([]) == []


@settings(max_examples=200)
@given(st.data())
def test_between_anchors_a_large_problem_still_gives_a_common_subsequence(data: st.DataObject) -> None:
    words = [b"unique line %d" % n for n in range(12)] + [b"", b"x", b"common words"] * 4
    a = data.draw(st.permutations(words))
    b = data.draw(st.permutations(words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "_EXACT", 0)
        rows, columns = matched_lines(*numbered(a, b))
    assert_common(a, b, list(zip(rows, columns, strict=True)))
    assert rows


def test_huge_problems_without_an_anchor_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "_EXACT", 10)
    monkeypatch.setattr(anchors, "_PIECE", 16)
    chance = random.Random(2)
    a = [chance.choice([b"one", b"two", b"three"]) for _ in range(100)]
    b = [line if chance.random() < 0.8 else b"two" for line in a] + [b"three", b"one"]
    rows, columns = matched_lines(*numbered(a, b))
    assert_common(a, b, list(zip(rows, columns, strict=True)))
    assert len(rows) > 60


def test_anchors_that_uncover_one_another_are_followed_a_few_levels_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line of this staircase stands twice, so each anchor makes the next line unique in what remains."""
    looked_at = []
    repeated = anchors._repeated
    monkeypatch.setattr(anchors, "_repeated", lambda lines: looked_at.append(len(lines)) or repeated(lines))
    a: list[bytes] = []
    b: list[bytes] = []
    for n in range(2000):
        a += [b"line %d" % n, b"mm" if n % 2 else b"nn", b"line %d" % (n - 1)]
        b += [b"line %d" % n, b"nn" if n % 2 else b"mm", b"line %d" % (n - 1)]
    rows, columns = matched_lines(*numbered(a, b))
    assert_common(a, b, list(zip(rows, columns, strict=True)))
    assert len(rows) >= 4000
    assert sum(looked_at) <= 9 * (len(a) + len(b))


def test_nothing_in_common_matches_nothing() -> None:
    assert matched_lines([1, 2], [3, 0, None]) == ([], [])
    assert matched_lines([], []) == ([], [])
