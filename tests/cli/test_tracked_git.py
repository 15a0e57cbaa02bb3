"""Fresh clones: what a file was made from is told by the commits that pushes recorded; on real git repositories."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Result, Runner

GUIDE = "/docs/guide.md"
PUSH = ("push", "docs/guide.md", "--prefix", "/")
LINES = b"".join(b"line %d\n" % n for n in range(10))


def git(*arguments: str, cwd: Path | str = ".") -> str:
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=cwd, env={**os.environ, **quiet}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(body: bytes, cwd: Path | str = ".") -> str:
    file = Path(cwd) / "docs/guide.md"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(body)
    git("add", "docs", cwd=cwd)
    git("commit", "-q", "-m", "edit", cwd=cwd)
    return git("rev-parse", "HEAD", cwd=cwd)


@pytest.fixture
def origin(scratch: Path, monkeypatch) -> Path:
    """A repository with one commit, in which the working directory is; the store is beside it."""
    monkeypatch.setenv("MERGEPUB_STORE", str(scratch / "store.sqlite"))
    Path("origin").mkdir()
    monkeypatch.chdir("origin")
    git("init", "-q", "-b", "main")
    commit(LINES)
    return scratch / "origin"


@pytest.fixture
def clone(origin: Path, scratch: Path, monkeypatch):
    """Go into a fresh clone of the origin, as a pipeline does."""

    def go(*options: str) -> Path:
        place = scratch / f"clone-{len(list(scratch.glob('clone-*')))}"
        git("clone", "-q", *options, f"file://{origin}", str(place))
        monkeypatch.chdir(place)
        return place

    return go


def sources(mergepub: Runner) -> list[str | None]:
    rows = json.loads(mergepub("versions", GUIDE, "--json").out)["result"]["versions"]
    return [row.get("source") for row in rows]


def head(mergepub: Runner) -> bytes:
    return mergepub("fetch", GUIDE, "--body-only").out


def others(mergepub: Runner, old: bytes, new: bytes) -> None:
    shown = json.loads(mergepub("fetch", GUIDE, "--json").out)["result"]
    body = shown["body"].encode().replace(old, new)
    assert mergepub("publish", GUIDE, "--expected-version", str(shown["version"]), stdin=body).status == 0


def no_base(result: Result) -> None:
    assert result.status == 3
    assert "nothing tells which version your file was made from" in result.err
    assert "next: mergepub publish /docs/guide.md docs/guide.md" in result.err


def test_a_push_records_the_commit_that_holds_the_bytes(origin: Path, mergepub: Runner):
    assert mergepub(*PUSH).status == 0
    first = git("rev-parse", "HEAD")
    second = commit(LINES.replace(b"line 1\n", b"LINE 1\n"))
    assert mergepub("push", "docs/guide.md").status == 0
    assert sources(mergepub) == [second, first]
    assert git("status", "--porcelain") == "", "git sees nothing of it"


def test_what_is_not_committed_has_no_source(origin: Path, mergepub: Runner):
    Path("docs/guide.md").write_bytes(b"not committed\n")
    assert mergepub(*PUSH).status == 0
    assert sources(mergepub) == [None]


def test_a_fresh_clone_merges_from_what_was_pushed_last(origin: Path, clone, mergepub: Runner):
    mergepub(*PUSH)
    others(mergepub, b"line 8\n", b"LINE 8\n")
    commit(LINES.replace(b"line 1\n", b"LINE 1\n"))
    clone()
    result = mergepub(*PUSH)
    assert result.out.startswith(b"merged  docs/guide.md  /docs/guide.md/v3\n")
    merged = LINES.replace(b"line 1\n", b"LINE 1\n").replace(b"line 8\n", b"LINE 8\n")
    assert head(mergepub) == Path("docs/guide.md").read_bytes() == merged


def test_clone_after_clone_nothing_is_put_in_twice(origin: Path, clone, mergepub: Runner, monkeypatch):
    """The file in git never gets what others published, so every push is merged; its own text never doubles."""
    mergepub(*PUSH)
    body, wanted = LINES, LINES
    for n in (1, 3, 5):
        others(mergepub, b"line %d\n" % (n + 3), b"LINE %d\n" % (n + 3))
        wanted = head(mergepub).replace(b"line %d\n" % n, b"line %d\nnew %d\n" % (n, n))
        body = body.replace(b"line %d\n" % n, b"line %d\nnew %d\n" % (n, n))
        commit(body, cwd=origin)
        clone()
        assert mergepub(*PUSH, "--no-update").status == 0
        assert head(mergepub) == wanted


def test_an_unchanged_clone_publishes_nothing(origin: Path, clone, mergepub: Runner):
    mergepub(*PUSH)
    others(mergepub, b"line 8\n", b"LINE 8\n")
    clone()
    result = mergepub(*PUSH)
    assert (result.status, result.out[:9]) == (0, b"unchanged")
    assert "the head is version 2; next: mergepub pull docs/guide.md" in result.err
    assert len(sources(mergepub)) == 2


def test_the_newest_commit_in_the_history_of_this_branch_counts(origin: Path, clone, mergepub: Runner):
    mergepub(*PUSH)
    git("checkout", "-q", "-b", "side")
    commit(LINES.replace(b"line 5\n", b"side 5\n"))
    mergepub("push", "docs/guide.md")
    git("checkout", "-q", "main")
    commit(LINES.replace(b"line 1\n", b"LINE 1\n"))
    clone("--branch", "main")
    assert mergepub(*PUSH).status == 0
    assert head(mergepub) == LINES.replace(b"line 1\n", b"LINE 1\n").replace(b"line 5\n", b"side 5\n")


def test_without_a_recorded_commit_there_is_no_base(origin: Path, clone, mergepub: Runner):
    mergepub("publish", GUIDE, "--expected-version", "0", stdin=LINES)
    commit(LINES.replace(b"line 1\n", b"LINE 1\n"))
    clone()
    no_base(mergepub(*PUSH))
    [row] = json.loads(mergepub(*PUSH, "--json").out)["error"]["files"]
    assert (row["reason"], row["current-version"]) == ("no-base", 1)
    no_base(mergepub(*PUSH, "--dry-run"))
    assert head(mergepub) == LINES
    assert not Path(".mergepub/files").exists(), "nothing is remembered of what was refused"


def test_the_command_that_is_named_works(origin: Path, clone, mergepub: Runner):
    mergepub("publish", GUIDE, "--expected-version", "0", stdin=LINES)
    others(mergepub, b"line 8\n", b"LINE 8\n")
    commit(LINES.replace(b"line 1\n", b"LINE 1\n"))
    clone()
    named = mergepub(*PUSH).err.rpartition("next: mergepub ")[2].partition(",")[0].split()
    assert mergepub(*[{"N": "1"}.get(word, word) for word in named]).status == 0
    assert b"LINE 1\n" in head(mergepub)
    assert b"LINE 8\n" in head(mergepub)


def test_a_shallow_clone_cannot_tell(origin: Path, clone, mergepub: Runner):
    mergepub(*PUSH)
    others(mergepub, b"line 8\n", b"LINE 8\n")
    commit(LINES.replace(b"line 1\n", b"LINE 1\n"))
    clone("--depth", "1")
    no_base(mergepub(*PUSH))
    git("fetch", "-q", "--unshallow")
    assert mergepub(*PUSH).out.startswith(b"merged")


def test_a_source_that_is_no_commit_of_this_repository_is_passed_over(origin: Path, clone, mergepub: Runner):
    from mergepub.documents import Version
    from mergepub.stores import open_store

    mergepub(*PUSH)
    store = open_store(os.environ["MERGEPUB_STORE"])
    for version, source in enumerate(("--exec=touch /tmp/x", "no such commit", "HEAD~99", "0" * 40), 1):
        store.publish(GUIDE, LINES + b"v%d\n" % version, Version(version), source=source)
    store.close()
    commit(LINES.replace(b"line 1\n", b"LINE 1\n"))
    clone()
    assert mergepub(*PUSH).status == 0
    assert head(mergepub) == LINES.replace(b"line 1\n", b"LINE 1\n") + b"v4\n"


def test_a_file_that_was_renamed_in_git_has_no_base(origin: Path, clone, mergepub: Runner):
    mergepub(*PUSH)
    others(mergepub, b"line 8\n", b"LINE 8\n")
    git("mv", "docs", "texts")
    git("commit", "-q", "-m", "rename")
    clone()
    Path("docs").symlink_to("texts")
    result = mergepub(*PUSH)
    assert (result.status, b"conflicted" in result.out) == (3, True)
