"""Every recorded three-way merge has its right answer, in every style and favour that git was asked for."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from mergepub.errors import BinaryBodyError
from mergepub.merge import diff3
from tests.merge.support import check_regions, check_swapped

CASES = json.loads((Path(__file__).parent.parent / "data" / "merge-cases.json").read_text(encoding="utf-8"))
NAMES = [case["name"] for case in CASES]
VARIANTS: dict[str, dict[str, Any]] = {
    "diff3": {"style": "diff3"},
    "zdiff3": {"style": "zdiff3"},
    "union": {"favour": "union"},
    "ours": {"favour": "ours"},
    "theirs": {"favour": "theirs"},
    "marker_size_9": {"marker_size": 9},
}


def decoded(value: str | dict[str, str]) -> bytes:
    return value.encode() if isinstance(value, str) else base64.b64decode(value["b64"])


def bodies(case: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
    return decoded(case["base"]), decoded(case["ours"]), decoded(case["theirs"])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_recorded_merge_has_its_right_answer(case: dict[str, Any]) -> None:
    want = case["expect"]
    try:
        got = diff3(*bodies(case))
    except BinaryBodyError:
        assert want["clean"] is not True
        assert any(b"\0" in body for body in bodies(case))
        return
    assert want["clean"] in (None, got.conflicts == 0)
    if want["merged"] is not None:
        assert got.body == decoded(want["merged"])
    if got.conflicts == 0 and "if_clean" in want:
        assert got.body == decoded(want["if_clean"])
    if want["conflicts"] is not None:
        assert got.conflicts == want["conflicts"]
    assert [text for text in want["must_contain"] if decoded(text) not in got.body] == []
    assert [text for text in want["must_not_contain"] if decoded(text) in got.body] == []


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", [case for case in CASES if "git_variants" in case], ids=lambda case: case["name"])
def test_a_recorded_variant_is_byte_for_byte_what_git_gives(case: dict[str, Any], variant: str) -> None:
    want = case["git_variants"][variant]
    got = diff3(*bodies(case), **VARIANTS[variant])
    assert (got.conflicts, got.body) == (want["conflicts"], decoded(want["output"]))


@pytest.mark.parametrize(
    "options", [{}, *VARIANTS.values(), {"adjacent": "conflict"}, {"granularity": "word"}], ids=str
)
def test_swapping_the_sides_of_a_recorded_merge_swaps_the_result_and_nothing_else(options: dict[str, Any]) -> None:
    for case in CASES:
        base, ours, theirs = bodies(case)
        if b"\0" in base + ours + theirs:
            continue
        merged = diff3(base, ours, theirs, **options)
        check_regions(merged, base, ours, theirs)
        if options.get("favour") is None:
            check_swapped(merged, diff3(base, theirs, ours, **options))
