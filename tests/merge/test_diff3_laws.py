"""Laws of every merge, on random bodies; and what the engine may not cost."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.merge import diff3
from mergepub.merge.lines import converted_ending, dominant_ending
from mergepub.merge.myers import edit_script
from mergepub.merge.regions import CONFLICT
from mergepub.merge.scripts import joined_up
from tests.merge.support import check_marked, check_regions, check_swapped, lines

if TYPE_CHECKING:
    from mergepub.merge.regions import Change

ANY = st.binary(max_size=40)
LINE = st.sampled_from([b"a", b"b", b"c", b"", b"=======", b"<<<<<<< x", b">>>>>>>", b"d\r", b"\xff\xfe e"])
BODY = st.builds(
    lambda parts, ended: b"\n".join(parts) + ended, st.lists(LINE, max_size=9), st.sampled_from([b"\n", b""])
)
OPTIONS = st.fixed_dictionaries(
    {
        "adjacent": st.sampled_from(["clean", "conflict"]),
        "style": st.sampled_from(["merge", "diff3", "zdiff3"]),
        "granularity": st.sampled_from(["line", "word"]),
    }
)


@given(ANY, ANY, OPTIONS)
def test_a_side_that_changed_nothing_gives_way_whatever_the_bytes(body: bytes, edit: bytes, options: Any) -> None:
    assert diff3(body, edit, body, **options).body == edit
    assert diff3(body, body, edit, **options).body == edit
    assert diff3(body, edit, edit, **options).body == edit


@settings(max_examples=400)
@given(BODY, BODY, BODY, OPTIONS)
def test_every_merge_covers_its_bodies_is_symmetric_and_reads_back(
    base: bytes, ours: bytes, theirs: bytes, options: Any
) -> None:
    merged = diff3(base, ours, theirs, **options)
    check_regions(merged, base, ours, theirs)
    check_swapped(merged, diff3(base, theirs, ours, **options))
    assert merged.conflicts == sum(region.kind == "conflict" for region in merged.regions)
    if converted_ending(base, ours, theirs):
        return
    if merged.conflicts:
        check_marked(merged, ours, theirs, dominant_ending(base, ours, theirs))
    elif options["granularity"] == "line":
        assert set(lines(merged.body)) <= set(lines(ours) + lines(theirs))


@settings(max_examples=300)
@given(BODY, BODY, BODY)
def test_a_converted_document_merges_as_its_plain_form_does(base: bytes, ours: bytes, theirs: bytes) -> None:
    base, ours, theirs = (body.replace(b"\r", b"") for body in (base, ours, theirs))
    crlf = ours.replace(b"\n", b"\r\n")
    if b"\n" not in base or b"\n" not in ours or ours in (base, theirs) or theirs == base:
        return
    merged, plain = diff3(base, crlf, theirs), diff3(base, ours, theirs)
    assert merged.conflicts == plain.conflicts
    assert merged.body.replace(b"\r\n", b"\n") == plain.body
    assert merged.body.count(b"\r\n") == merged.body.count(b"\n")
    check_regions(merged, base, crlf, theirs)


def conflict(start: int, end: int) -> Change:
    return CONFLICT, start, end, 0, 0, 0, 0, None


@settings(max_examples=300)
@given(BODY, BODY)
def test_a_script_whose_hunks_are_joined_higher_still_makes_the_side_of_the_base(base: bytes, side: bytes) -> None:
    script, joints = joined_up(base, side, edit_script(base, side), [conflict(0, len(base))])
    at, made = 0, b""
    for a0, a1, b0, b1 in script:
        assert at < a0 or at == 0
        made += base[at:a0] + side[b0:b1]
        at = a1
    assert made + base[at:] == side
    assert len(script) + len(joints) == len(edit_script(base, side))


def test_a_deletion_joins_the_deletion_above_it_at_a_clash_alone() -> None:
    base, side = b"1\n\n2\n\n3\n", b"\n3\n"
    script = [(0, 2, 0, 0), (3, 6, 1, 1)]
    assert joined_up(base, side, script, [conflict(0, 1)]) == ([(0, 5, 0, 0)], [(0, 6)])
    assert joined_up(base, side, script, [conflict(7, 8)]) == (script, [])


def test_an_insertion_whose_last_line_only_ends_like_the_gap_stays_where_it_is() -> None:
    script = [(0, 2, 0, 2), (4, 4, 4, 7)]
    assert joined_up(b"1\nx\n2\n", b"0\nx\nax\n2\n", script, [conflict(0, 6)]) == (script, [])


@pytest.mark.parametrize("heavy", ["re", "typing", "dataclasses", "enum", "difflib", "collections", "merge3"])
def test_the_engine_imports_nothing_heavy(heavy: str) -> None:
    code = f"import sys; from mergepub.merge import diff3; diff3(b'a', b'b', b'c'); print({heavy!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=False, env={"PYTHONPATH": "."})
    assert done.stdout == b"False\n", done.stderr
