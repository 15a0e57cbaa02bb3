"""Pushing folders: which files are meant, what is refused before anything is written, what a pipeline gets."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import SCRIPT, present
from tests.stores.http_service import HttpService

if TYPE_CHECKING:
    from tests.cli.conftest import Runner


def tree(**files: str) -> None:
    for name, text in files.items():
        write(name.replace("__", "/").replace("_md", ".md"), text)


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def documents(mergepub: Runner) -> list[str]:
    answer = json.loads(mergepub("list", "--json").out)
    return [row["path"] for row in answer.get("result", {"documents": []})["documents"]]


def everything() -> dict[str, tuple[bytes, int]]:
    files = (file for file in Path().rglob("*") if file.is_file())
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


# ── which files ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_maps_below_the_prefix_by_the_paths_in_it(mergepub: Runner):
    tree(site__index_md="i\n", site__deep__er__page_md="p\n", other_md="o\n")
    write("site/.hidden.md", "h\n")
    result = mergepub("push", "site", "--prefix", "/docs")
    assert result.status == 0
    assert result.out == (
        b"published  site/deep/er/page.md  /docs/deep/er/page.md/v1\n"
        b"published  site/index.md         /docs/index.md/v1\n"
        b"2 published, 0 merged, 0 unchanged, 0 conflicted, 0 failed\n"
    )
    assert documents(mergepub) == ["/docs/deep/er/page.md", "/docs/index.md"]


def test_a_second_push_of_a_folder_needs_no_prefix_and_names_what_changed_alone(mergepub: Runner):
    tree(site__a_md="a\n", site__b_md="b\n")
    mergepub("push", "site", "--prefix", "/")
    write("site/b.md", "B\n")
    write("site/new.md", "n\n")
    result = mergepub("push", "site")
    assert result.out == (
        b"published  site/b.md  /b.md/v2\n1 published, 0 merged, 1 unchanged, 0 conflicted, 0 failed\n"
    )
    left_out = "1 file is not tracked and left out; --prefix says where it goes\nnext: mergepub push site --prefix /\n"
    assert result.err == left_out


@pytest.mark.parametrize(
    ("tracked", "options", "again"),
    [
        ([], [], "mergepub push 'my site' --prefix /docs"),
        (["/notes/a.md"], ["--dry-run"], "mergepub push 'my site' --prefix /notes --dry-run"),
        (["/notes/a.md", "/other/b.md"], [], "mergepub push 'my site' --prefix /docs"),
        (["/renamed.md"], [], "mergepub push 'my site' --prefix /docs"),
    ],
    ids=["nothing tracked", "one prefix", "two prefixes", "none of them"],
)
def test_the_hint_for_files_without_a_prefix_is_a_command_that_publishes_them(
    tracked, options, again, mergepub: Runner
):
    for name in ("a.md", "b.md", "c.md"):
        write(f"my site/{name}", f"{name}\n")
    for name, path in zip(("a.md", "b.md"), tracked, strict=False):
        mergepub("publish", path, f"my site/{name}", "--expected-version", "0")
        mergepub("fetch", path, "-o", f"my site/{name}", "--force")
    result = mergepub("push", "my site", *options)
    assert result.err.splitlines()[-1] == f"next: {again}"
    assert mergepub(*shlex.split(again)[1:]).status == 0


def test_the_hint_keeps_what_changed_since(mergepub: Runner):
    git("init", "-q")
    tree(site__a_md="a\n")
    for _ in range(2):
        git("add", "site")
        git("commit", "-qm", "Write")
        write("site/b.md", "b\n")
    result = mergepub("push", "site", "--changed-since", "HEAD~1")
    assert result.err.splitlines()[-1] == "next: mergepub push site --prefix /docs --changed-since 'HEAD~1'"


def test_a_push_of_a_folder_leaves_out_the_configuration_the_store_and_what_holds_a_token(
    mergepub: Runner, monkeypatch: pytest.MonkeyPatch
):
    made = mergepub("token", "create", "--name", "ana", "--allow", "publish:/**").out
    assert made.startswith(b"mergepub_")
    Path("ana.token").write_bytes(made)
    Path("windows.token").write_bytes(made.strip() + b"\r\n")
    Path("long.md").write_bytes(made + b"And more.\n")
    write("other.token", "given by a service of others\n")
    write("mergepub.toml", "[push]\njobs = 2\n")
    write("sub/mergepub.toml", "")
    write("sub/mergepub.toml.md", "How to configure it\n")
    monkeypatch.setenv("MERGEPUB_TOKEN_FILE", "other.token")
    reader = sqlite3.connect("store.sqlite")  # while somebody has it open, there are files beside it
    reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
    assert {"store.sqlite", "store.sqlite-wal"} <= set(present())
    result = mergepub("push", ".", "--prefix", "/")
    reader.close()
    assert (result.status, result.err) == (0, "")
    assert documents(mergepub) == ["/long.md", "/sub/mergepub.toml.md"]


def test_a_push_of_a_folder_leaves_out_every_store_and_what_sqlite_keeps_beside_it(mergepub: Runner):
    for name in ("service.sqlite", "store.sqlite"):
        mergepub("publish", "/a.md", "--expected-version", "0", "--store", name, stdin=b"a\n")
    for name in ("service.sqlite-wal", "service.sqlite-shm", "service.sqlite-journal", "notes-wal"):
        Path(name).touch()
    other = sqlite3.connect("other.sqlite")
    other.execute("CREATE TABLE somebodys (thing)")
    other.close()
    Path("page.md").write_bytes(b"SQLite format 3\0" + b"-" * 496)
    assert mergepub("push", ".", "--prefix", "/").status == 0
    assert documents(mergepub) == ["/a.md", "/notes-wal", "/other.sqlite", "/page.md"]
    assert mergepub("push", "service.sqlite", "--prefix", "/").status == 0
    named = mergepub("push", "store.sqlite", "--prefix", "/")
    refused(named, "store.sqlite is a file of the store that it would be published to\nhint: leave it out")


def test_a_new_file_elsewhere_is_pushed_by_the_hint(scratch: Path, mergepub: Runner):
    write("../my notes/a.md", "a\n")
    Path("here").mkdir()
    for prefix, meant in (("/notes", "/notes"), (None, "/docs")):
        result = mergepub("push", "../my notes/a.md", *(("--prefix", prefix) if prefix else ()))
        hint = result.err.splitlines()[-1]
        again = f"cd '{scratch.parent}/my notes' && mergepub push a.md --prefix {meant}"
        assert hint.startswith(f"hint: if it is new: {again}; if it was made from version N: ")
    Path("b.md").touch()
    assert "hint: if it is new: mergepub push b.md --prefix /docs; " in mergepub("push", "b.md").err


def test_the_configuration_is_published_where_it_is_named_or_a_rule_takes_it_in(mergepub: Runner):
    write("mergepub.toml", "[push]\njobs = 2\n")
    write("site/mergepub.toml", "")
    write("site/.mergepubignore", "!mergepub.toml\n")
    assert mergepub("push", "mergepub.toml", "--prefix", "/named").status == 0
    assert mergepub("push", ".", "--prefix", "/").status == 0
    assert documents(mergepub) == ["/named/mergepub.toml", "/site/mergepub.toml"]


def test_what_mergepubignore_names_is_left_out_unless_it_is_named(mergepub: Runner):
    tree(a_md="a\n", drafts__b_md="b\n", c_md="c\n")
    write(".mergepubignore", "drafts/\nc.md\n")
    assert mergepub("push", ".", "--prefix", "/").out.startswith(b"published  a.md  /a.md/v1\n1 published")
    assert mergepub("push", ".", "c.md", "--prefix", "/").out.startswith(b"published  c.md  /c.md/v1\n1 published")


def test_the_folders_of_two_checkouts_are_pushed_in_one_call(mergepub: Runner):
    tree(one__a_md="a\n", two__b_md="b\n")
    Path("one/.mergepub").mkdir()
    Path("two/.mergepub").mkdir()
    assert mergepub("push", "one", "two", "--prefix", "/").status == 0
    assert mergepub("status", "one/a.md", "two/b.md").out.count(b"unchanged") == 2


# ── what is refused before anything is written ──────────────────────────────────────────────────────────────────────


def refused(result, *said: str, status: int = 2) -> None:
    assert (result.status, result.out) == (status, b"")
    for text in said:
        assert text in result.err


def test_two_spellings_of_one_name_are_one_document_and_refused(mergepub: Runner):
    for form in ("NFC", "NFD"):
        write(f"site/{unicodedata.normalize(form, 'é')}.md", "e\n")
    write("site/a.md", "a\n")
    refused(mergepub("push", "site", "--prefix", "/docs"), "are both /docs/é.md; nothing was published")
    assert documents(mergepub) == []
    assert not Path(".mergepub").exists()


def test_a_decomposed_name_alone_becomes_the_composed_path(mergepub: Runner):
    write(f"site/{unicodedata.normalize('NFD', 'é')}.md", "e\n")
    assert mergepub("push", "site", "--prefix", "/").status == 0
    assert documents(mergepub) == ["/é.md"]


def test_overlapping_folders_that_say_two_paths_for_one_file_are_refused(mergepub: Runner):
    tree(site__sub__a_md="a\n")
    refused(mergepub("push", "site", "site/sub", "--prefix", "/"), "named twice, as /sub/a.md and as /a.md")
    refused(mergepub("push", "site", "site/sub/a.md", "--prefix", "/"), "named twice")
    assert mergepub("push", "site", "site", "--prefix", "/").out.startswith(b"published")
    assert mergepub("push", "site", "site/sub", "--prefix", "/").out.startswith(b"0 published, 0 merged, 1 unchanged")


def test_a_new_file_is_no_second_file_of_a_tracked_document(mergepub: Runner):
    tree(site__a_md="a\n", copy__a_md="other\n")
    mergepub("push", "site", "--prefix", "/")
    refused(mergepub("push", "site", "copy", "--prefix", "/"), "site/a.md and copy/a.md are both /a.md")


@pytest.mark.parametrize("name", ["v3", "new\nline.md", os.fsdecode(b"\xff.md"), "x" * 250])
def test_a_name_that_no_document_can_have_is_refused_with_the_file(name: str, mergepub: Runner):
    write("site/a.md", "a\n")
    folders = "/".join(["d" * 200] * 4) if len(name) > 200 else ""
    write(str(Path("site", folders, name)), "x\n")
    result = mergepub("push", "site", "--prefix", "/docs")
    refused(result, "can be no document", ".mergepubignore")
    assert documents(mergepub) == []


def test_a_missing_file_or_a_bad_prefix_stops_all(mergepub: Runner):
    write("site/a.md", "a\n")
    refused(mergepub("push", "site", "gone.md", "--prefix", "/"), "there is no file gone.md", status=4)
    refused(mergepub("push", "site", "--prefix", "docs"), "must start with /")
    assert documents(mergepub) == []


# ── dry runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_of_a_folder_says_what_the_push_then_does_and_writes_nothing(mergepub: Runner):
    tree(site__a_md="one\ntwo\nthree\nfour\nfive\n", site__b_md="one\ntwo\n", site__c_md="c\n")
    mergepub("push", "site", "--prefix", "/")
    mergepub("publish", "/a.md", "--expected-version", "1", stdin=b"ONE\ntwo\nthree\nfour\nfive\n")
    mergepub("publish", "/b.md", "--expected-version", "1", stdin=b"ONE\ntwo\n")
    tree(site__a_md="one\ntwo\nthree\nfour\nFIVE\n", site__b_md="eins\ntwo\n", site__new_md="n\n")
    before = everything()
    dry = mergepub("push", "site", "--prefix", "/", "--dry-run")
    assert everything() == before
    real = mergepub("push", "site", "--prefix", "/")
    assert dry.out == real.out.replace(b"1 published, 1", b"dry run, nothing was written: 1 published, 1")
    assert dry.status == real.status == 3


def test_a_dry_run_makes_no_store(mergepub: Runner):
    write("site/a.md", "a\n")
    assert b"1 published" in mergepub("push", "site", "--prefix", "/", "--dry-run").out
    assert present() == ["site"]


def test_a_link_that_leads_out_of_the_folder_publishes_nobodys_private_file(mergepub: Runner):
    write("private.txt", "secret\n")
    tree(site__a_md="a\n")
    Path("site/mergepub.toml").touch()
    Path("site/notes.md").symlink_to("../private.txt")
    result = mergepub("push", "site", "--prefix", "/")
    assert (result.status, documents(mergepub)) == (0, ["/a.md"])
    assert "site/notes.md is a link to a file elsewhere, so it is left out" in result.err
    assert mergepub("push", "private.txt", "site/a.md", "--prefix", "/named").status == 0


# ── what changed ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_changed_since_pushes_what_git_says_changed(mergepub: Runner):
    tree(site__a_md="a\n", site__b_md="b\n", site__c_md="c\n")
    git("init", "-q", "-b", "main")
    git("add", "site")
    git("commit", "-qm", "one")
    write("site/a.md", "A\n")
    git("commit", "-qam", "two")
    write("site/b.md", "B\n")
    Path("site/c.md").unlink()
    assert mergepub("push", "site", "--prefix", "/", "--changed-since", "HEAD~1").status == 0
    assert documents(mergepub) == ["/a.md", "/b.md"]
    assert mergepub("push", "site", "--prefix", "/", "--changed-since", "HEAD").out.startswith(b"0 published, 0")


def test_changed_since_an_unknown_revision_or_outside_git_is_refused(mergepub: Runner):
    write("site/a.md", "a\n")
    refused(mergepub("push", "site", "--prefix", "/", "--changed-since", "HEAD"), "in no git work tree")
    git("init", "-q")
    for revision in ("HEAD~9", "--output=stolen", "nowhere"):
        refused(mergepub("push", "site", "--prefix", "/", f"--changed-since={revision}"), "does not know the revision")
    assert present() == [".git", "site"]


@pytest.mark.parametrize("digits", [40, 64])
def test_since_the_commit_before_a_new_branch_everything_changed(digits, mergepub: Runner):
    git("init", "-q")
    tree(site__a_md="a\n", site__b_md="b\n")
    git("add", "site")
    git("commit", "-qm", "One")
    since = ("--changed-since", "0" * digits)
    assert b"2 published" in mergepub("push", "site", "--prefix", "/", *since).out
    refused(mergepub("push", "site", "--changed-since", "0" * (digits - 1)), "git does not know the revision")


def test_what_a_hook_of_git_is_told_of_its_repository_misleads_nobody(mergepub: Runner, monkeypatch):
    tree(site__a_md="a\n", site__b_md="b\n")
    git("init", "-q", "-b", "main")
    git("add", "site")
    git("commit", "-qm", "one")
    git("worktree", "add", "-q", "beside")
    monkeypatch.chdir("beside")
    monkeypatch.setenv("MERGEPUB_STORE", "../store.sqlite")
    write("site/a.md", "A\n")
    git("commit", "-qam", "two")
    monkeypatch.setenv("GIT_DIR", "../.git/worktrees/beside")
    monkeypatch.setenv("GIT_INDEX_FILE", "../.git/worktrees/beside/index")
    assert mergepub("push", "site", "--prefix", "/", "--changed-since", "HEAD~1").status == 0
    assert documents(mergepub) == ["/a.md"]
    [row] = json.loads(mergepub("versions", "/a.md", "--json").out)["result"]["versions"]
    assert len(row["source"]) == 40


def test_a_dry_run_writes_nothing_to_the_repository_either(mergepub: Runner):
    tree(site__a_md="a\n")
    git("init", "-q", "-b", "main")
    git("add", "site")
    git("commit", "-qm", "one")
    os.utime("site/a.md", (1, 1))  # git would note in its index that the file is the same all the same
    before = everything()
    assert mergepub("push", "site", "--prefix", "/", "--changed-since", "HEAD", "--dry-run").status == 0
    assert everything() == before


def test_a_new_file_that_looks_like_a_tracked_one_which_is_gone_is_told(mergepub: Runner):
    tree(site__a_md="a\nb\nc\n", site__b_md="other\n")
    assert mergepub("push", "site", "--prefix", "/").status == 0
    Path("site/a.md").rename("site/new.md")
    for options in ([], ["--prefix", "/", "--dry-run"]):
        told = mergepub("push", "site", *options).err
        assert "site/new.md looks like site/a.md, which was /a.md and is gone" in told
        assert "mergepub mv site/a.md site/new.md" in told
    assert mergepub("mv", "site/a.md", "site/new.md").status == 0
    assert "looks like" not in mergepub("push", "site").err


# ── pipelines ───────────────────────────────────────────────────────────────────────────────────────────────────────


def conflicted_site(mergepub: Runner, *names: str) -> None:
    for name in names:
        write(f"site/{name}", "one\ntwo\nthree\nfour\nfive\n")
    mergepub("push", "site", "--prefix", "/")
    for name in names:
        mergepub("publish", f"/{name}", "--expected-version", "1", stdin=b"zero\none\ntwo\nthree\nFOUR\nfive\n")
        write(f"site/{name}", "one\ntwo\nthree\nvier\nfive\n")


def test_a_conflict_stops_no_other_file_and_ends_with_3(mergepub: Runner):
    conflicted_site(mergepub, "b.md")
    tree(site__a_md="a\n", site__c_md="c\n")
    result = mergepub("push", "site", "--prefix", "/")
    assert result.status == 3
    assert result.out.endswith(b"2 published, 0 merged, 0 unchanged, 1 conflicted, 0 failed\n")
    assert Path("site/b.md").read_text() == "one\ntwo\nthree\nvier\nfive\n"
    assert result.err.endswith("next: mergepub resolve site/b.md\n")


def test_annotations_name_file_and_line_and_are_escaped(mergepub: Runner, monkeypatch):
    name = "50%,x:y.md"
    conflicted_site(mergepub, name)
    for extra in ([], ["--dry-run"]):
        result = mergepub("push", "site", "--format", "github", *extra)
        (line,) = (line for line in result.out.decode().splitlines() if line.startswith("::"))
        where = "::error file=site/50%25%2Cx%3Ay.md,line=4,title=mergepub::"
        assert line.startswith(f"{where}site/50%25,x:y.md: your edits overlap")
        assert line.endswith("%0Anext: mergepub resolve site/50%25,x:y.md")
    top = str(Path.cwd())
    monkeypatch.setenv("GITHUB_WORKSPACE", top)
    monkeypatch.chdir("site")
    assert (
        b"::error file=site/50%25%2Cx"
        in mergepub("push", ".", "--store", f"{top}/store.sqlite", "--format", "github").out
    )


def test_annotations_are_for_what_was_not_published_alone(mergepub: Runner):
    write("site/a.md", "a\n")
    assert b"::" not in mergepub("push", "site", "--prefix", "/", "--format", "github").out
    assert mergepub("push", "site", "--format", "github", "--json").status == 2


def test_json_names_every_file_and_the_summary(mergepub: Runner):
    conflicted_site(mergepub, "b.md")
    write("site/a.md", "a\n")
    answer = json.loads(mergepub("push", "site", "--prefix", "/", "--json").out)
    assert [(row["file"], row["result"]) for row in answer["error"]["files"]] == [
        ("site/a.md", "published"),
        ("site/b.md", "conflicted"),
    ]
    assert answer["error"]["summary"] == {"published": 1, "merged": 0, "unchanged": 0, "conflicted": 1, "failed": 0}


@pytest.mark.parametrize("jobs", ["1", "8"])
def test_many_files_are_told_in_their_order_whatever_the_jobs(jobs: str, mergepub: Runner):
    for number in range(260):
        write(f"site/{number:03}.md", f"{number}\n")
    result = mergepub("push", "site", "--prefix", "/", "--jobs", jobs)
    assert result.status == 0
    rows = result.out.decode().splitlines()
    assert [row.split()[1] for row in rows[:-1]] == [f"site/{number:03}.md" for number in range(260)]
    assert rows[-1].startswith("260 published, 0 merged")
    assert len(documents(mergepub)) == 260
    os.chdir("site")
    assert mergepub("status", "--store", "../store.sqlite").out.count(b"unchanged") == 260


def test_a_store_that_is_away_is_4_and_not_waited_for_again_and_again(tmp_path: Path, monkeypatch):
    for number in range(60):
        write(f"site/{number:03}.md", f"{number}\n")
    service = HttpService(str(tmp_path / "docs.sqlite")).start()
    command = [SCRIPT, "push", "site", "--prefix", "/", "--jobs", "2", "--store", service.url]
    try:
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    finally:
        service.remove()
    for number in range(60):
        write(f"site/{number:03}.md", f"{number} again\n")
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 4
    assert done.stdout.endswith("0 published, 0 merged, 0 unchanged, 0 conflicted, 60 failed\n")
    assert done.stderr.count("not tried, for the store cannot be reached") >= 50
