"""The verbs that look back: ``diff``, ``log``, and ``revert``, which goes back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

DOC = "/docs/guide.md"


def test_diff_without_versions_is_what_the_newest_changed(guide: bytes, mergepub: Runner) -> None:
    expected = b"--- a/docs/guide.md\tv1\n+++ b/docs/guide.md\tv2\n@@ -1,4 +1,4 @@\n-one\n+ONE\n two\n three\n four\n"
    for versions in ((), ("v1",), ("1", "2"), ("v1", "v2")):
        result = mergepub("diff", DOC, *versions)
        assert (result.status, result.out, result.err) == (0, expected, "")
    assert mergepub("diff", DOC, "v2", "v1").out == expected.replace(b"-one\n+ONE", b"-ONE\n+one").replace(
        b"v1\n+++ b/docs/guide.md\tv2", b"v2\n+++ b/docs/guide.md\tv1"
    )
    assert mergepub("diff", DOC, "v2", "v2").out == b""


def test_what_diff_prints_is_taken_by_patch_and_by_git_apply(guide: bytes, mergepub: Runner) -> None:
    text = mergepub("diff", DOC).out
    file = Path("docs/guide.md")
    file.parent.mkdir()
    for command in (["patch", "-s", "-p1"], ["git", "apply"]):
        file.write_bytes(guide.replace(b"ONE", b"one"))
        subprocess.run(command, input=text, check=True)
        assert file.read_bytes() == guide


def test_diff_in_json_holds_the_same_text(guide: bytes, mergepub: Runner) -> None:
    text = mergepub("diff", DOC).out.decode()
    answer = json.loads(mergepub("diff", DOC, "--json").out)
    facts = {"status": "ok", "path": DOC, "from": 1, "to": 2, "unchanged": False, "diff": text}
    assert answer["result"] == facts


@pytest.mark.parametrize(
    ("arguments", "status"),
    [((DOC, "v9"), 4), (("/none",), 4), ((DOC, "x"), 2), ((DOC, "v0"), 2), (("guide.md",), 2), ((DOC, "vv1"), 2)],
)
def test_a_diff_of_what_there_is_not(guide: bytes, mergepub: Runner, arguments: tuple[str, ...], status: int) -> None:
    result = mergepub("diff", *arguments)
    assert (result.status, result.out) == (status, b"")


def test_the_only_version_has_none_to_compare_with(mergepub: Runner) -> None:
    mergepub("publish", "/a", "--expected-version", "0", stdin=b"x\n")
    result = mergepub("diff", "/a")
    assert result.status == 2
    assert "one version" in result.err


def test_log_tells_each_version_newest_first(guide: bytes, mergepub: Runner) -> None:
    merge = ("--expected-version", "1", "--on-conflict", "merge", "-m", "Say five")
    assert mergepub("publish", DOC, *merge, stdin=b"one\ntwo\nthree\nfour\nFIVE\n").status == 0
    assert mergepub("delete", DOC, "--expected-version", "3").status == 0
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines())
        for block in mergepub("log", DOC).out.decode().split("\n\n")
    ]
    assert [list(block) for block in blocks] == [
        ["version", "modified", "author", "deleted"],
        ["version", "modified", "author", "message", "merged-from"],
        ["version", "modified", "author"],
        ["version", "modified", "author"],
    ]
    assert [block["version"] for block in blocks] == ["4", "3", "2", "1"]
    assert (blocks[1]["message"], blocks[1]["merged-from"]) == ("Say five", "base v1, theirs v2")
    assert mergepub("log", DOC, "--limit", "1").out.count(b"version: ") == 1
    rows = json.loads(mergepub("log", DOC, "--json").out)["result"]["versions"]
    assert [row["version"] for row in rows] == [4, 3, 2, 1]
    assert rows[1]["merged-from"] | {"digest": ""} == {"base": 1, "theirs": 2, "digest": ""}


def test_revert_publishes_and_prints_the_block(guide: bytes, mergepub: Runner) -> None:
    result = mergepub("revert", DOC, "v2")
    assert (result.status, result.out, result.err) == (0, b"status: ok\nversion: 3\n", "")
    assert mergepub("fetch", DOC, "--body-only").out == guide.replace(b"ONE", b"one")


def test_a_revert_that_overlaps_says_how_to_go_on(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("publish", DOC, "--expected-version", "2", stdin=guide.replace(b"ONE", b"eins")).status == 0
    result = mergepub("revert", DOC, "2", "-o", "marked.md")
    assert result.status == 3
    assert result.out == (b"status: conflict\nyour-version: 2\ncurrent-version: 3\nmergeable: false\nconflicts: 1\n")
    assert result.err.splitlines()[-1] == f"next: mergepub publish {DOC} marked.md --expected-version 3"
    assert Path("marked.md").read_bytes().startswith(b"<<<<<<< v3\neins\n=======\none\n>>>>>>> v1\n")
    style = mergepub("revert", DOC, "2", "--style", "diff3").out
    assert b"||||||| v2\nONE\n" in style
    assert json.loads(mergepub("revert", DOC, "2", "--json").out)["error"]["code"] == 3


@pytest.mark.parametrize(("version", "status"), [("v1", 2), ("v9", 4), ("x", 2)])
def test_what_cannot_be_reverted(guide: bytes, mergepub: Runner, version: str, status: int) -> None:
    result = mergepub("revert", DOC, version)
    assert (result.status, result.out) == (status, b"")
    assert "hint: " in result.err


class TestOfATrackedFile:
    """``diff FILE``, with --theirs and --merged."""

    @pytest.fixture(autouse=True)
    def tracked(self, guide: bytes, mergepub: Runner) -> None:
        """guide.md was made from version 2; line five was changed here, line three there (version 3)."""
        assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
        Path("guide.md").write_bytes(guide.replace(b"five", b"FIVE"))
        theirs = guide.replace(b"three", b"THREE")
        assert mergepub("publish", DOC, "--expected-version", "2", stdin=theirs).status == 0

    def test_base_against_here(self, mergepub: Runner) -> None:
        assert mergepub("diff", "guide.md").out == (
            b"--- a/guide.md\tbase v2\n+++ b/guide.md\there\n@@ -2,4 +2,4 @@\n two\n three\n four\n-five\n+FIVE\n"
        )

    def test_base_against_theirs(self, mergepub: Runner) -> None:
        out = mergepub("diff", "guide.md", "--theirs").out
        assert out.startswith(b"--- a/guide.md\tbase v2\n+++ b/guide.md\tv3\n")
        assert out.endswith(b" two\n-three\n+THREE\n four\n five\n")

    def test_here_against_the_merge_which_patch_makes_of_the_file(self, guide: bytes, mergepub: Runner) -> None:
        result = mergepub("diff", "guide.md", "--merged")
        assert (result.status, result.err) == (0, "")
        subprocess.run(["patch", "-s", "-p1"], input=result.out, check=True)
        assert Path("guide.md").read_bytes() == guide.replace(b"five", b"FIVE").replace(b"three", b"THREE")
        assert mergepub("status", "guide.md", "--json").status == 0

    def test_an_overlap_is_shown_with_its_markers_and_said(self, guide: bytes, mergepub: Runner) -> None:
        Path("guide.md").write_bytes(guide.replace(b"three", b"drei"))
        result = mergepub("diff", "guide.md", "--merged")
        assert b"+<<<<<<< ours\n drei\n+=======\n+THREE\n+>>>>>>> theirs\n" in result.out
        assert (result.status, result.err) == (0, "your edits overlap with theirs in 1 marked place\n")

    def test_json_names_both_sides(self, mergepub: Runner) -> None:
        facts = json.loads(mergepub("diff", "guide.md", "--theirs", "--json").out)["result"]
        assert {key: facts[key] for key in ("file", "path", "from", "to", "unchanged")} == {
            "file": "guide.md",
            "path": DOC,
            "from": "base v2",
            "to": "v3",
            "unchanged": False,
        }

    def test_a_deleted_document_is_a_conflict_with_the_next_command(self, mergepub: Runner) -> None:
        assert mergepub("delete", DOC, "--expected-version", "3").status == 0
        result = mergepub("diff", "guide.md", "--theirs")
        assert (result.status, b"reason: deleted" in result.out) == (3, True)
        assert mergepub("diff", "guide.md").status == 0

    def test_nothing_is_written(self, mergepub: Runner) -> None:
        before = {name: name.read_bytes() for name in Path().rglob("*") if name.is_file()}
        for flags in ((), ("--theirs",), ("--merged",)):
            assert mergepub("diff", "guide.md", *flags).status == 0
        after = {name: name.read_bytes() for name in Path().rglob("*") if name.is_file()}
        assert {name for name in after if "sqlite" not in name.name} == {
            name for name in before if "sqlite" not in name.name
        }
        assert all(after[name] == before[name] for name in before if "sqlite" not in name.name)

    @pytest.mark.parametrize(
        "arguments", [("untracked.md",), ("none.md",), ("guide.md", "v1"), (DOC, "--theirs"), (DOC, "v1", "--merged")]
    )
    def test_what_cannot_be_compared(self, mergepub: Runner, arguments: tuple[str, ...]) -> None:
        Path("untracked.md").write_bytes(b"x\n")
        result = mergepub("diff", *arguments)
        assert (result.status, result.out) == (2, b"")
        assert "hint: " in result.err
