"""Tracked files on the command line: what is remembered, refused, merged, written back, and told next."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub import calm
from mergepub.errors import UnavailableError
from tests.cli.conftest import present

if TYPE_CHECKING:
    from tests.cli.conftest import Result, Runner

GUIDE = "/docs/guide.md"
FIRST = b"one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def here(mergepub: Runner, scratch: Path) -> Path:
    """``guide.md``, tracked in a document at version 1."""
    assert mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST).status == 0
    assert mergepub("fetch", GUIDE, "-o", "guide.md").status == 0
    return Path("guide.md")


@pytest.fixture
def others(mergepub: Runner):
    """Publish somebody else's edit of the head."""

    def publish(old: bytes, new: bytes) -> None:
        head = json.loads(mergepub("fetch", GUIDE, "--json").out)["result"]
        body = head["body"].encode().replace(old, new)
        assert mergepub("publish", GUIDE, "--expected-version", str(head["version"]), stdin=body).status == 0

    return publish


def edit(file: Path, old: bytes, new: bytes) -> None:
    file.write_bytes(file.read_bytes().replace(old, new))


def record() -> dict:
    [place] = Path().glob(".mergepub/files/*/record.json")
    return json.loads(place.read_bytes())


def head(mergepub: Runner) -> bytes:
    return mergepub("fetch", GUIDE, "--body-only").out


def refused(result: Result, *words: str, status: int = 3) -> None:
    assert (result.status, result.out) == (status, b"")
    for word in words:
        assert word in result.err


# ── where it is remembered ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("marks", "root"),
    [
        ([".mergepub/", "a/mergepub.toml", "a/b/.git/"], "."),
        (["mergepub.toml", "a/b/.git/"], "."),
        (["mergepub.toml", "a/mergepub.toml", "a/b/.git"], "a"),
        ([".git/", "a/.git"], "a"),
        ([], "a/b/c"),
    ],
    ids=str,
)
def test_the_directory_lives_at_the_nearest_mark_of_the_strongest_kind(marks, root, mergepub: Runner, scratch: Path):
    Path("a/b/c").mkdir(parents=True)
    for mark in marks:
        Path(mark).mkdir() if mark.endswith("/") else Path(mark).touch()
    mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST)
    assert mergepub("fetch", GUIDE, "-o", "a/b/c/guide.md").status == 0
    assert [str(place.parent) for place in Path().rglob(".mergepub")] == [root]
    assert (Path(root) / ".mergepub/.gitignore").read_bytes() == b"*\n"


def test_a_record_names_store_path_incarnation_version_and_digest(here: Path, mergepub: Runner):
    shown = json.loads(mergepub("fetch", GUIDE, "--json").out)["result"]
    base = record()["base"]
    assert (record()["file"], record()["path"]) == ("guide.md", GUIDE)
    assert record()["store"] == f"sqlite:///{Path('store.sqlite').absolute()}"
    assert (base["version"], base["incarnation"], base["digest"]) == (1, shown["incarnation"], shown["digest"])
    [bytes_of_base] = Path().glob(f".mergepub/files/*/{base['digest']}")
    assert bytes_of_base.read_bytes() == FIRST


def test_fetching_without_a_file_or_into_a_pipe_remembers_nothing(guide: bytes, mergepub: Runner):
    mergepub("fetch", GUIDE)
    mergepub("fetch", GUIDE, "-o", "/dev/null")
    mergepub("publish", GUIDE, "--expected-version", "2", stdin=b"x\n")
    assert not Path(".mergepub").exists()


# ── fetch -o ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_with_edits_is_not_replaced_but_by_force_which_keeps_them(here: Path, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    result = mergepub("fetch", GUIDE, "-o", "guide.md")
    refused(result, "guide.md was edited since version 1", "mergepub pull guide.md", "--force")
    assert b"FIVE" in here.read_bytes()
    result = mergepub("fetch", GUIDE, "-o", "guide.md", "--force")
    assert result.status == 0
    assert here.read_bytes() == FIRST
    place = result.err.partition(" in ")[2].strip()
    assert b"FIVE" in Path(place).read_bytes()


def test_a_file_that_is_not_tracked_is_replaced_only_where_it_holds_the_same(guide: bytes, mergepub: Runner):
    Path("mine.md").write_bytes(b"mine\n")
    refused(mergepub("fetch", GUIDE, "-o", "mine.md"), "mine.md is not tracked, and holds other bytes")
    assert Path("mine.md").read_bytes() == b"mine\n"
    Path("same.md").write_bytes(guide)
    assert mergepub("fetch", GUIDE, "-o", "same.md").status == 0
    assert mergepub("fetch", GUIDE, "-o", "mine.md", "--force").status == 0
    assert [kept.read_bytes() for kept in Path().glob(".mergepub/kept/*")] == [b"mine\n"]


def test_an_unedited_file_is_replaced_by_any_version(here: Path, others, mergepub: Runner):
    others(b"one", b"ONE")
    assert mergepub("fetch", GUIDE, "-o", "guide.md").status == 0
    assert here.read_bytes().startswith(b"ONE")
    assert mergepub("fetch", f"{GUIDE}/v1", "-o", "guide.md").status == 0
    assert (here.read_bytes(), record()["base"]["version"]) == (FIRST, 1)


def test_mode_and_link_are_kept_over_pull_and_push(here: Path, others, mergepub: Runner):
    here.chmod(0o640)
    Path("link.md").symlink_to("guide.md")
    others(b"one", b"ONE")
    assert mergepub("pull", "link.md").status == 0
    edit(here, b"five", b"FIVE")
    others(b"two", b"TWO")
    assert mergepub("push", "link.md").status == 0
    assert Path("link.md").is_symlink()
    assert here.read_bytes() == b"ONE\nTWO\nthree\nfour\nFIVE\n"
    assert stat.S_IMODE(here.stat().st_mode) == 0o640


# ── publish ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_publish_needs_no_version_for_a_tracked_file(here: Path, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    assert mergepub("publish", GUIDE, "guide.md").out == b"status: ok\nversion: 2\n"
    edit(here, b"four", b"FOUR")
    assert mergepub("publish", GUIDE, "guide.md", "--expected-version", "2").out == b"status: ok\nversion: 3\n"


def test_without_a_record_the_version_is_missing(here: Path, mergepub: Runner):
    for path, file in ((GUIDE, "other.md"), ("/docs/other.md", "guide.md")):
        Path("other.md").write_bytes(b"x\n")
        refused(mergepub("publish", path, file), "--expected-version 0", status=2)
    refused(mergepub("publish", GUIDE, "guide.md", "--store", "other.sqlite"), "--expected-version 0", status=2)


def test_a_version_that_the_file_was_not_made_from_is_refused(here: Path, others, mergepub: Runner):
    """Repeating a stale file at the version that the conflict named is how the other writer's paragraph dies."""
    edit(here, b"five", b"FIVE")
    others(b"one", b"ONE")
    result = mergepub("publish", GUIDE, "guide.md", "--expected-version", "2")
    refused(result, "made from version 1", "mergepub pull guide.md", "mergepub resolve", "--rebase-on", status=2)
    assert head(mergepub) == b"ONE\ntwo\nthree\nfour\nfive\n"
    result = mergepub("publish", GUIDE, "guide.md", "--expected-version", "2", "--rebase-on")
    assert result.out == b"status: ok\nversion: 3\n"
    assert (head(mergepub), record()["base"]["version"]) == (b"one\ntwo\nthree\nfour\nFIVE\n", 3)


def test_after_a_merged_publish_the_file_is_never_sent_as_it_is(here: Path, others, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    others(b"one", b"ONE")
    assert b"merged: true" in mergepub("publish", GUIDE, "guide.md", "--on-conflict", "merge").out
    assert here.read_bytes() == b"one\ntwo\nthree\nfour\nFIVE\n"
    base = record()["base"]
    assert (base["version"], base["contained"]) == (3, True)
    edit(here, b"three", b"THREE")
    for version in ("3", None):
        option = [] if version is None else ["--expected-version", version]
        result = mergepub("publish", GUIDE, "guide.md", *option)
        assert b"merged: true\nbase-version: " in result.out
        assert head(mergepub) == b"ONE\ntwo\nTHREE\nfour\nFIVE\n"
    others(b"two", b"TWO")
    edit(here, b"four", b"FOUR")
    assert b"your-version: 4\ncurrent-version: 5" in mergepub("publish", GUIDE, "guide.md").out
    assert mergepub("pull", "guide.md").status == 0
    assert here.read_bytes() == b"ONE\nTWO\nTHREE\nFOUR\nFIVE\n"


def test_update_writes_the_merged_body_back(here: Path, others, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    others(b"one", b"ONE")
    assert mergepub("publish", GUIDE, "guide.md", "--on-conflict", "merge", "--update").status == 0
    assert here.read_bytes() == b"ONE\ntwo\nthree\nfour\nFIVE\n"
    base = record()["base"]
    assert (base["version"], base["contained"]) == (3, False)
    refused(mergepub("publish", "/x", "--expected-version", "0", "--update", stdin=b"x\n"), "-o FILE", status=2)


def test_a_publish_that_fails_leaves_file_and_base_alone(here: Path, others, mergepub: Runner):
    edit(here, b"one", b"eins")
    others(b"one", b"ONE")
    before = record()
    result = mergepub("publish", GUIDE, "guide.md")
    assert result.status == 3
    assert result.err.endswith(f"next: mergepub publish {GUIDE} guide.md --on-conflict merge\n")
    result = mergepub("publish", GUIDE, "guide.md", "--on-conflict", "merge")
    assert result.status == 3
    assert result.err.endswith("next: mergepub resolve guide.md\n")
    assert (here.read_bytes(), record()) == (b"eins\ntwo\nthree\nfour\nfive\n", before)


# ── conflict ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def conflicted(here: Path, others, mergepub: Runner) -> Path:
    """``guide.md`` in conflict with version 2 on its first line; both sides have edits elsewhere too."""
    here.write_bytes(b"eins\ntwo\nthree\nfour\nFIVE\n")
    others(b"one\ntwo\nthree\n", b"ONE\ntwo\nTHREE\n")
    assert mergepub("pull", "guide.md").status == 3
    assert here.read_bytes() == (b"<<<<<<< ours\neins\n=======\nONE\n>>>>>>> theirs\ntwo\nTHREE\nfour\nFIVE\n")
    return here


def test_a_file_in_conflict_is_refused_by_all_but_resolve(conflicted: Path, mergepub: Runner):
    before = record()
    assert before["base"]["version"] == 1
    for call in (["publish", GUIDE, "guide.md"], ["publish", GUIDE, "guide.md", "--expected-version", "2"],
                 ["publish", GUIDE, "guide.md", "--expected-version", "2", "--rebase-on"]):  # fmt: skip
        refused(mergepub(*call), "in conflict with version 2", "line 1", "mergepub resolve guide.md")
    for verb in ("pull", "push"):
        result = mergepub(verb, "guide.md")
        assert result.status == 3
        assert "line 1 starts a conflict block" in result.err
    assert record() == before


def test_mending_the_file_alone_ends_no_conflict(conflicted: Path, mergepub: Runner):
    conflicted.write_bytes(b"both\ntwo\nTHREE\nfour\nFIVE\n")
    result = mergepub("push", "guide.md")
    assert result.status == 3
    assert "never resolved" in result.err
    assert mergepub("resolve", "guide.md", "--mark-resolved").out == b"status: ok\nversion: 3\n"
    assert head(mergepub) == b"both\ntwo\nTHREE\nfour\nFIVE\n"


def test_a_leftover_block_is_refused_with_its_line(conflicted: Path, mergepub: Runner):
    conflicted.write_bytes(b"new\n" + conflicted.read_bytes())
    refused(mergepub("resolve", "guide.md", "--mark-resolved"), "line 2 of guide.md")
    conflicted.write_bytes(b"both\n>>>>>>> theirs\ntwo\nTHREE\nfour\nFIVE\n")
    refused(mergepub("resolve", "guide.md", "--mark-resolved"), "line 2 of guide.md")
    assert record()["clash"]


def test_ours_as_it_was_is_refused_unless_it_is_meant(conflicted: Path, mergepub: Runner):
    conflicted.write_bytes(b"eins\ntwo\nthree\nfour\nFIVE\n")
    refused(mergepub("resolve", "guide.md", "--mark-resolved"), "would revert what others published", "--ours")
    conflicted.write_bytes(b"eins, zwei\ntwo\nthree\nfour\nFIVE\n")
    refused(mergepub("resolve", "guide.md", "--mark-resolved"), "would revert what others published", "--ours")
    assert mergepub("resolve", "guide.md", "--mark-resolved", "--ours").status == 0
    assert head(mergepub) == b"eins, zwei\ntwo\nthree\nfour\nFIVE\n"


@pytest.mark.parametrize(
    ("favour", "first"), [("ours", b"eins\n"), ("theirs", b"ONE\n"), ("union", b"ONE\neins\n")], ids=str
)
def test_favours_settle_for_scripts(favour, first, conflicted: Path, mergepub: Runner):
    assert mergepub("resolve", "guide.md", f"--{favour}").out == b"status: ok\nversion: 3\n"
    assert conflicted.read_bytes() == head(mergepub) == first + b"two\nTHREE\nfour\nFIVE\n"
    assert record()["clash"] is None


def test_a_favour_keeps_what_was_mended_by_hand(conflicted: Path, mergepub: Runner):
    edit(conflicted, b"FIVE", b"FIVE!")
    assert mergepub("resolve", "guide.md", "--theirs").status == 0
    assert head(mergepub) == b"ONE\ntwo\nTHREE\nfour\nFIVE!\n"


def test_resolving_goes_on_where_the_head_moved_on(conflicted: Path, others, mergepub: Runner):
    others(b"four", b"FOUR")
    result = mergepub("resolve", "guide.md", "--union")
    assert result.out == b"status: ok\nversion: 4\nmerged: true\nbase-version: 2\ntheir-version: 3\n"
    assert conflicted.read_bytes() == head(mergepub) == b"ONE\neins\ntwo\nTHREE\nFOUR\nFIVE\n"


def test_a_newer_conflict_is_marked_anew(conflicted: Path, others, mergepub: Runner):
    others(b"five", b"fuenf")
    result = mergepub("resolve", "guide.md", "--union")
    assert result.status == 3
    assert b"your-version: 2\ncurrent-version: 3\n" in result.out
    assert conflicted.read_bytes().endswith(b"<<<<<<< ours\nFIVE\n=======\nfuenf\n>>>>>>> theirs\n")
    assert mergepub("resolve", "guide.md", "--theirs").status == 0
    assert head(mergepub) == b"ONE\neins\ntwo\nTHREE\nfour\nfuenf\n"


def test_force_ends_a_conflict_and_keeps_all_of_it(conflicted: Path, mergepub: Runner):
    marked = conflicted.read_bytes()
    refused(mergepub("fetch", GUIDE, "-o", "guide.md"), "in conflict")
    assert mergepub("fetch", GUIDE, "-o", "guide.md", "--force").status == 0
    kept = {file.read_bytes() for file in Path().glob(".mergepub/kept/*")}
    assert kept == {marked, b"eins\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nTHREE\nfour\nfive\n"}
    assert mergepub("status").out.startswith(b"unchanged")


def test_a_marked_body_written_to_the_file_is_a_conflict_too(here: Path, others, mergepub: Runner):
    edit(here, b"one", b"eins")
    others(b"one", b"ONE")
    result = mergepub("publish", GUIDE, "guide.md", "--on-conflict", "merge", "-o", "guide.md")
    assert result.status == 3
    assert result.out.endswith(b"conflicts: 1\n")
    assert result.err.endswith("next: mergepub resolve guide.md\n")
    refused(mergepub("publish", GUIDE, "guide.md"), "in conflict")
    assert mergepub("resolve", "guide.md", "--union").status == 0


def test_a_marked_body_of_standard_input_is_one_too(here: Path, others, mergepub: Runner):
    others(b"one", b"ONE")
    body = FIRST.replace(b"one", b"eins")
    into = ["publish", GUIDE, "--expected-version", "1", "--on-conflict", "merge", "-o", "guide.md"]
    assert mergepub(*into, stdin=body).status == 3
    assert record()["clash"]
    assert mergepub("resolve", "guide.md", "--union").status == 0
    assert head(mergepub) == b"ONE\neins\ntwo\nthree\nfour\nfive\n"
    edit(here, b"five", b"FIVE")
    refused(mergepub(*into, stdin=body), "edited since version 3")
    assert b"FIVE" in here.read_bytes()


def test_a_candidate_written_to_the_file_is_like_a_pull(here: Path, others, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    others(b"one", b"ONE")
    assert mergepub("publish", GUIDE, "guide.md", "--on-conflict", "candidate", "-o", "guide.md").status == 3
    assert here.read_bytes() == b"ONE\ntwo\nthree\nfour\nFIVE\n"
    assert mergepub("publish", GUIDE, "guide.md").out == b"status: ok\nversion: 3\n"


@pytest.mark.parametrize(
    "call",
    [
        ("push", "guide.md"),
        ("publish", GUIDE, "guide.md"),
        ("publish", GUIDE, "../elsewhere.md", "--expected-version", "1"),
        ("publish", GUIDE, "guide.md", "--queue"),
    ],
    ids=["push", "publish", "publish untracked", "queue"],
)
def test_a_file_that_an_editor_has_emptied_to_write_it_is_not_published_empty(call, here: Path, mergepub, monkeypatch):
    file = Path("../elsewhere.md") if "../elsewhere.md" in call else here
    file.write_bytes(b"")
    monkeypatch.setattr(calm, "MOMENT", 10**15)
    monkeypatch.setattr(calm, "sleep", lambda _: file.write_bytes(b"saved\n"))
    assert mergepub(*call).status == 0
    assert mergepub("sync").status == 0
    assert mergepub("versions", GUIDE).out.count(b"\n") == 2
    assert mergepub("fetch", GUIDE, "--body-only").out == b"saved\n"


# ── pull ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_versions_of_a_file_are_looked_for_at_its_document(here: Path, mergepub: Runner):
    for versions in ("v1", "v1 v2"):
        result = mergepub("diff", "guide.md", *versions.split())
        refused(result, f"guide.md is a file\nhint: name the document: mergepub diff {GUIDE} {versions}", status=2)
    Path("other.md").touch()
    assert "mergepub diff PATH v1" in mergepub("diff", "other.md", "v1").err


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_an_error_of_one_file_names_it_once(verb, here: Path, mergepub: Runner):
    here.unlink()
    told = mergepub(verb, "guide.md").err
    assert told.startswith(f"guide.md is gone, and {GUIDE} is tracked in it\nnext: ")


def test_a_resolve_of_no_conflict_says_what_there_is_to_do(here: Path, others, mergepub: Runner):
    said = mergepub("resolve", "guide.md").err
    assert said == "mergepub: guide.md is in no conflict: nothing to resolve\n"
    here.write_bytes(FIRST.replace(b"one", b"ONE"))
    others(b"five", b"FIVE")
    merged = "mergepub: guide.md merged without overlap: nothing to resolve\nnext: mergepub push guide.md\n"
    assert mergepub("resolve", "guide.md").err == merged
    assert mergepub("resolve", "guide.md").err.endswith(
        "in no conflict: nothing to resolve\nnext: mergepub push guide.md\n"
    )


@pytest.mark.parametrize("verb", ["pull", "status"])
def test_where_nothing_is_tracked_it_is_said_what_to_do(verb, mergepub: Runner):
    told = "mergepub: nothing is tracked here\nnext: mergepub fetch PATH -o FILE\n"
    result = mergepub(verb)
    assert (result.status, result.out, result.err) == (0, b"", told)
    assert json.loads(mergepub(verb, "--json").out)["result"] == {"files": []}
    assert present() == []


def test_pull_merges_the_head_into_every_tracked_file(here: Path, others, mergepub: Runner):
    mergepub("fetch", GUIDE, "-o", "second.md")
    edit(here, b"five", b"FIVE")
    others(b"one", b"ONE")
    result = mergepub("pull")
    assert (result.status, result.err) == (0, "")
    assert result.out == b"merged   guide.md   /docs/guide.md/v2\nupdated  second.md  /docs/guide.md/v2\n"
    assert here.read_bytes() == b"ONE\ntwo\nthree\nfour\nFIVE\n"
    assert mergepub("pull", "guide.md").out == b"unchanged  guide.md  /docs/guide.md/v2\n"
    assert mergepub("push", "guide.md").out.startswith(b"published  guide.md  /docs/guide.md/v3\n1 published, 0 merged")


def test_pull_says_what_became_of_the_document(here: Path, others, mergepub: Runner):
    mergepub("delete", GUIDE, "--expected-version", "1")
    result = mergepub("pull", "guide.md", "--json")
    assert result.status == 3
    [row] = json.loads(result.out)["error"]["files"]
    assert (row["result"], row["reason"]) == ("conflict", "deleted")
    mergepub("publish", GUIDE, "--expected-version", "0", stdin=b"new\n")
    assert "created anew" in mergepub("pull", "guide.md").err
    assert here.read_bytes() == FIRST


def test_a_file_that_is_gone_comes_back_by_fetch(here: Path, mergepub: Runner):
    here.unlink()
    assert "next: bring it back: mergepub fetch /docs/guide.md -o guide.md" in mergepub("pull", "guide.md").err
    assert mergepub("status").out.startswith(b"missing here")
    assert mergepub("fetch", GUIDE, "-o", "guide.md").status == 0
    assert here.read_bytes() == FIRST


# ── push ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_push_merges_and_writes_back(here: Path, others, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    others(b"one", b"ONE")
    result = mergepub("push", "guide.md")
    assert result.out == (
        b"merged  guide.md  /docs/guide.md/v3\n0 published, 1 merged, 0 unchanged, 0 conflicted, 0 failed\n"
    )
    assert here.read_bytes() == head(mergepub) == b"ONE\ntwo\nthree\nfour\nFIVE\n"


def test_an_unchanged_file_is_left_alone_with_a_hint(here: Path, others, mergepub: Runner):
    others(b"one", b"ONE")
    result = mergepub("push", "guide.md")
    assert (result.status, here.read_bytes()) == (0, FIRST)
    assert result.out.startswith(b"unchanged  guide.md")
    assert "the head is version 2; next: mergepub pull guide.md" in result.err


def test_push_creates_documents_below_a_prefix(scratch: Path, mergepub: Runner):
    Path("deep").mkdir()
    Path("deep/new.md").write_bytes(b"new\n")
    refused(mergepub("push", "deep/new.md"), "--prefix", status=2)
    result = mergepub("push", "deep/new.md", "--prefix", "/docs")
    assert result.out.startswith(b"published  deep/new.md  /docs/deep/new.md/v1\n")
    edit(Path("deep/new.md"), b"new", b"newer")
    assert mergepub("push", "deep/new.md").out.startswith(b"published  deep/new.md  /docs/deep/new.md/v2\n")


def test_a_document_that_exists_is_not_overwritten_by_a_file_of_unknown_origin(guide: bytes, mergepub: Runner):
    Path("docs").mkdir()
    Path("docs/guide.md").write_bytes(b"mine\n")
    result = mergepub("push", "docs/guide.md", "--prefix", "/", "--json")
    assert result.status == 3
    [row] = json.loads(result.out)["error"]["files"]
    assert (row["reason"], row["current-version"]) == ("no-base", 2)
    assert "next: mergepub publish /docs/guide.md docs/guide.md" in result.err
    Path("docs/guide.md").write_bytes(guide)
    assert mergepub("push", "docs/guide.md", "--prefix", "/").out.startswith(b"unchanged")


def test_one_conflict_parks_its_document_and_the_rest_goes_on(here: Path, others, mergepub: Runner):
    edit(here, b"one", b"eins")
    others(b"one", b"ONE")
    Path("new.md").write_bytes(b"new\n")
    result = mergepub("push", "guide.md", "new.md", "--prefix", "/docs")
    assert result.status == 3
    assert result.out.endswith(b"1 published, 0 merged, 0 unchanged, 1 conflicted, 0 failed\n")
    assert here.read_bytes() == b"eins\ntwo\nthree\nfour\nfive\n"
    assert mergepub("fetch", "/docs/new.md", "--body-only").out == b"new\n"
    assert mergepub("resolve", "guide.md", "--union").status == 0
    assert head(mergepub) == b"ONE\neins\ntwo\nthree\nfour\nfive\n"


def everything() -> dict[str, tuple[bytes, int]]:
    files = (file for file in Path().rglob("*") if file.is_file() and not file.name.startswith("store.sqlite"))
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def test_a_dry_run_says_what_would_happen_and_writes_nothing(here: Path, others, mergepub: Runner):
    Path("new.md").write_bytes(b"new\n")
    mergepub("fetch", GUIDE, "-o", "other.md")
    edit(here, b"five", b"FIVE")
    edit(Path("other.md"), b"one", b"eins")
    others(b"one", b"ONE")
    before = everything()
    result = mergepub("push", "guide.md", "other.md", "new.md", "--prefix", "/docs", "--dry-run")
    assert result.out == (
        b"merged      guide.md  /docs/guide.md/v3\n"
        b"conflicted  other.md  /docs/guide.md\n"
        b"published   new.md    /docs/new.md/v1\n"
        b"dry run, nothing was written: 1 published, 1 merged, 0 unchanged, 1 conflicted, 0 failed\n"
    )
    assert everything() == before
    assert mergepub("fetch", GUIDE, "--json").out.count(b'"version": 2') == 1
    assert mergepub("push", "new.md", "--prefix", "/docs", "--dry-run", "--json").status == 0
    os.chdir(Path("/"))


@pytest.mark.parametrize(
    ("edit_here", "edit_there", "options", "code"),
    [
        ((b"one", b"1"), (b"five", b"5"), [], 0),
        ((b"one", b"1"), (b"five", b"5"), ["--on-conflict", "fail"], 3),
        ((b"one", b"1"), (b"five", b"5"), ["--no-update"], 0),
        ((b"one", b"1"), (b"one", b"uno"), [], 3),
        ((b"one", b"1"), (b"one", b"uno"), ["--on-conflict", "fail"], 3),
        ((b"one", b"1"), (b"one", b"uno"), ["--ours"], 0),
        ((b"one", b"1"), (b"one", b"uno"), ["--theirs"], 0),
        ((b"one", b"1"), (b"one", b"1"), [], 0),
        ((b"one", b"<<<<<<< a\n=======\n>>>>>>> b"), (b"five", b"5"), [], 2),
        ((b"one", b"<<<<<<< a\n=======\n>>>>>>> b"), (b"five", b"5"), ["--allow-markers"], 0),
    ],
)
def test_a_dry_run_says_of_a_file_what_the_push_then_does(  # noqa: PLR0917 - what differs
    edit_here, edit_there, options, code, here: Path, others, mergepub: Runner
):
    edit(here, *edit_here)
    others(*edit_there)
    results = [mergepub("push", "guide.md", "--json", *options, *more) for more in (["--dry-run"], [])]
    assert [result.status for result in results] == [code, code]
    told = []
    for result in results:
        envelope = json.loads(result.out)
        [file] = (envelope.get("result") or envelope["error"])["files"]
        told.append({key: file.get(key) for key in ("result", "version", "updated", "reason", "conflicts", "line")})
    assert told[0] == told[1]


def test_a_dry_run_makes_no_directory(scratch: Path, mergepub: Runner):
    Path("new.md").write_bytes(b"new\n")
    mergepub("publish", "/x", "--expected-version", "0", stdin=b"x\n")
    assert mergepub("push", "new.md", "--prefix", "/docs", "--dry-run").status == 0
    assert not Path(".mergepub").exists()


# ── editors that are older than their file ──────────────────────────────────────────────────────────────────────────


def test_an_old_editor_is_noticed(here: Path, others, mergepub: Runner):
    buffer = here.read_bytes()
    others(b"one", b"ONE")
    others(b"three", b"THREE")
    mergepub("pull", "guide.md")
    here.write_bytes(buffer.replace(b"five", b"FIVE"))
    for call in (["publish", GUIDE, "guide.md"], ["push", "guide.md"], ["pull", "guide.md"]):
        result = mergepub(*call)
        assert result.status == 3
        assert "undoes everything that was last brought into it" in result.err
        assert "--stale" in result.err
    assert head(mergepub) == b"ONE\ntwo\nTHREE\nfour\nfive\n"
    assert mergepub("push", "guide.md", "--stale").status == 0
    assert here.read_bytes() == head(mergepub) == b"ONE\ntwo\nTHREE\nfour\nFIVE\n"


def test_undoing_it_can_be_meant(here: Path, others, mergepub: Runner):
    others(b"one", b"ONE")
    mergepub("pull", "guide.md")
    here.write_bytes(FIRST)
    assert mergepub("publish", GUIDE, "guide.md").status == 3
    assert mergepub("publish", GUIDE, "guide.md", "--allow-revert").out == b"status: ok\nversion: 3\n"
    edit(here, b"five", b"FIVE")
    assert mergepub("publish", GUIDE, "guide.md").status == 0, "said once is enough"


def test_undoing_some_of_it_is_a_warning(here: Path, others, mergepub: Runner):
    others(b"one", b"ONE")
    others(b"five", b"FIVE")
    mergepub("pull", "guide.md")
    edit(here, b"FIVE", b"five")
    result = mergepub("publish", GUIDE, "guide.md")
    assert result.status == 0
    assert "undoes text that was brought into it last, at line 5" in result.err


def test_an_editor_may_be_older_than_several_pulls(here: Path, others, mergepub: Runner):
    buffer = here.read_bytes()
    for old, new in ((b"one", b"ONE"), (b"ONE", b"ONE!"), (b"three", b"THREE")):
        others(old, new)
        mergepub("pull", "guide.md")
    here.write_bytes(buffer.replace(b"five", b"FIVE"))
    assert mergepub("push", "guide.md").status == 3
    assert mergepub("push", "guide.md", "--stale").status == 0
    assert head(mergepub) == b"ONE!\ntwo\nTHREE\nfour\nFIVE\n"


# ── status, mv, lock ────────────────────────────────────────────────────────────────────────────────────────────────


def test_status_says_how_each_file_stands(here: Path, others, mergepub: Runner):
    for name in ("edited", "both", "clash", "newer"):
        mergepub("fetch", GUIDE, "-o", f"{name}.md")
    assert mergepub("status", "guide.md").out == b"unchanged  guide.md  /docs/guide.md/v1\n"
    edit(Path("edited.md"), b"one", b"eins")
    assert mergepub("status", "edited.md").out.startswith(b"edited here")
    edit(Path("both.md"), b"five", b"FIVE")
    Path("clash.md").write_bytes(FIRST.replace(b"one", b"uno"))
    others(b"one", b"ONE")
    mergepub("pull", "clash.md")
    before = everything()
    result = mergepub("status")
    assert (result.status, result.err) == (0, "")
    assert [line.split("  ")[0] for line in result.out.decode().splitlines()] == [
        "edited here, newer there: merges",
        "in conflict at line 1",
        "edited here, newer there: would conflict",
        "newer there",
        "newer there",
    ]
    assert mergepub("status", "--exit-code").status == 3
    assert mergepub("status", "guide.md", "--exit-code").status == 0
    rows = json.loads(mergepub("status", "--json").out)["result"]["files"]
    assert {row["file"]: (row["state"], row.get("mergeable")) for row in rows} == {
        "both.md": ("both", True),
        "clash.md": ("conflict", None),
        "edited.md": ("both", False),
        "guide.md": ("newer", None),
        "newer.md": ("newer", None),
    }
    assert everything() == before


def test_status_without_a_store_says_what_is_known_here(here: Path, mergepub: Runner, monkeypatch):
    from mergepub.stores.sqlite import SqliteStore

    def unreachable(*_: object, **__: object) -> None:
        raise UnavailableError("the store is away")

    edit(here, b"five", b"FIVE")
    monkeypatch.setattr(SqliteStore, "versions", unreachable)
    result = mergepub("status")
    assert (result.status, result.out[:11]) == (4, b"edited here")
    assert "the store is away; what is newer there is not known" in result.err


def test_status_says_when_there_is_no_such_document_any_more(here: Path, mergepub: Runner):
    for side in Path().glob("store.sqlite*"):
        side.unlink()
    assert mergepub("status").out.startswith(b"not found there")


def test_mv_keeps_tracking(here: Path, others, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    Path("sub").mkdir()
    assert mergepub("mv", "guide.md", "sub").status == 0
    assert not here.exists()
    others(b"one", b"ONE")
    assert mergepub("push", "sub/guide.md").status == 0
    assert Path("sub/guide.md").read_bytes() == b"ONE\ntwo\nthree\nfour\nFIVE\n"
    Path("there.md").write_bytes(b"there\n")
    refused(mergepub("mv", "sub/guide.md", "there.md"), "exists already", status=2)
    refused(mergepub("mv", "there.md", "x.md"), "not tracked", status=2)
    assert Path("there.md").read_bytes() == b"there\n"


def test_a_lock_that_is_held_is_waited_for_and_its_holder_named(here: Path, mergepub: Runner, monkeypatch):
    from mergepub.checkout import home

    monkeypatch.setattr(home.Checkout.locked.__wrapped__, "__defaults__", (0.2,))
    edit(here, b"five", b"FIVE")
    with Path(".mergepub/lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(b"4711\n")
        lock.flush()
        refused(mergepub("publish", GUIDE, "guide.md"), "another mergepub (pid 4711)")
        assert mergepub("status").status == 0
    assert mergepub("publish", GUIDE, "guide.md").status == 0


def test_a_damaged_record_is_told_and_got_rid_of_by_force(here: Path, mergepub: Runner):
    [place] = Path().glob(".mergepub/files/*/record.json")
    place.write_bytes(b"{")
    edit(here, b"five", b"FIVE")
    refused(mergepub("publish", GUIDE, "guide.md"), "is damaged", "--force")
    assert mergepub("fetch", GUIDE, "-o", "guide.md", "--force").status == 0
    assert [b"FIVE" in kept.read_bytes() for kept in Path().glob(".mergepub/kept/*")] == [True]
    assert mergepub("push", "guide.md").status == 0
