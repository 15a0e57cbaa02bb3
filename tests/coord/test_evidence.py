"""What is captured with a report: the private commit, the transcript, the documents; what is missing is named."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from mergepub.checkout import Base, Checkout, Clash, Record
from mergepub.coord import gitcommit, transcript
from mergepub.coord.evidence import Evidences
from mergepub.coord.records import CaptureError, Evidence, Report, Run
from mergepub.coord.transcript import Ring
from mergepub.documents import digest_of
from tests.coord.living import wait_for

WHO = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(folder: Path, *arguments: str) -> str:
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", "-C", str(folder), *WHO, *arguments], env=own, capture_output=True, check=True)
    return done.stdout.decode().rstrip("\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A work tree with everything that a work tree can be in: committed, staged, edited, new, ignored, deleted."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "work")
    for name in ("kept", "edited", "staged", "gone"):
        (folder / name).write_text(f"{name}\n")
    (folder / ".gitignore").write_text("ignored\nignored.md\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "edited").write_text("edited twice\n")
    (folder / "staged").write_text("staged once\n")
    git(folder, "add", "staged")
    (folder / "staged").write_text("staged twice\n")
    (folder / "gone").unlink()
    (folder / "new").write_text("new\n")
    (folder / "ignored").write_text("secret\n")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Evidences:
    (tmp_path / "evidence").mkdir()
    return Evidences(tmp_path / "evidence")


def capture(
    store: Evidences, checkout: Path, transcript: str = "", documents: Sequence[str] = (), seconds: float = 60
) -> Evidence:
    run = Run("run-1", "w", "Ann <ann@example.org>", "a task", str(checkout), transcript)
    return store.capture(run, Report("report-1", "run-1", "success", "done"), documents, time.monotonic() + seconds)


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of the work tree and of the repository but its objects and our ref."""
    names = [name for name in sorted(folder.rglob("*")) if name.is_file()]
    mine = (".git/objects/", ".git/refs/mergepub/")
    kept = [name for name in names if not str(name.relative_to(folder)).startswith(mine)]
    # Whoever reads a shared index, as git status does too, marks it as still in use by its time.
    times = {name: 0 if name.name.startswith("sharedindex.") else name.stat().st_mtime_ns for name in kept}
    return {str(name.relative_to(folder)): (name.read_bytes(), times[name]) for name in kept}


def track(checkout: Path, file: str, document: str, *, in_conflict: bool = False) -> None:
    base = Base(3, "i", digest_of(b"base\n"))
    clash = Clash(base.digest, base, base.digest, 7, 1) if in_conflict else None
    Checkout(str(checkout)).save(Record(file, "sqlite:///s", document, base, clash=clash), b"base\n")


def lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def says(evidence: Evidence, words: str) -> bool:
    return any(words in sentence for sentence in evidence.unresolved)


# ── the commit ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_commit_holds_the_work_tree_as_it_stands_on_top_of_head(store: Evidences, checkout: Path) -> None:
    made = capture(store, checkout)
    names = git(checkout, "ls-tree", "-r", "--name-only", made.commit).split("\n")
    assert names == [".gitignore", "edited", "kept", "new", "staged"]
    assert git(checkout, "show", f"{made.commit}:staged") == "staged twice"
    assert git(checkout, "rev-parse", f"{made.commit}^") == git(checkout, "rev-parse", "HEAD")
    assert made.provenance["git"]["head"] == git(checkout, "rev-parse", "HEAD")
    assert made.provenance["git"]["branch"] == "work"
    assert "Task: a task" in git(checkout, "show", "-s", "--format=%B", made.commit)


def test_a_change_in_the_very_moment_of_the_users_last_add_is_seen(store: Evidences, checkout: Path) -> None:
    for name, value in (("core.trustctime", "false"), ("core.checkStat", "minimal")):
        git(checkout, "config", name, value)
    moment = (checkout / "kept").stat().st_mtime_ns - 3_600_000_000_000
    for content in ("one!\n", "two!\n"):
        (checkout / "kept").write_text(content)
        os.utime(checkout / "kept", ns=(moment, moment))
        if content == "one!\n":
            git(checkout, "add", "kept")
            os.utime(checkout / ".git" / "index", ns=(moment, moment))
    made = capture(store, checkout)
    assert git(checkout, "show", f"{made.commit}:kept") == "two!"


@pytest.mark.parametrize("setting", ["user.unused", "core.splitIndex", "core.untrackedCache", "feature.manyFiles"])
def test_nothing_of_the_users_is_touched(store: Evidences, checkout: Path, setting: str) -> None:
    git(checkout, "config", setting, "true")
    (checkout / "second").touch()
    git(checkout, "add", "second")
    hooks = checkout / ".git" / "hooks"
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch {checkout}/hooked\n")
        hook.chmod(0o755)
    before = snapshot(checkout), git(checkout, "status", "--porcelain=v2")
    before = snapshot(checkout), before[1]
    made = capture(store, checkout)
    assert made.commit
    assert snapshot(checkout) == before[0]
    assert git(checkout, "for-each-ref", "refs/heads", "refs/tags", "--format=%(refname)") == "refs/heads/work"
    assert git(checkout, "for-each-ref", "refs/mergepub", "--format=%(objectname)") == made.commit


def test_the_commit_survives_a_garbage_collection_until_it_is_released(store: Evidences, checkout: Path) -> None:
    made = capture(store, checkout)
    git(checkout, "gc", "-q", "--prune=now")
    assert git(checkout, "cat-file", "-t", made.commit) == "commit"
    store.release(made.ref)
    assert git(checkout, "for-each-ref", "refs/mergepub") == ""
    assert store.refs() == []
    store.release(made.ref)


def test_a_repeated_capture_replaces_the_first(store: Evidences, checkout: Path) -> None:
    first = capture(store, checkout)
    (checkout / "new").write_text("newer\n")
    second = capture(store, checkout)
    assert (first.ref, store.refs()) == (second.ref, [second.ref])
    assert git(checkout, "show", f"{second.commit}:new") == "newer"
    assert git(checkout, "for-each-ref", "refs/mergepub", "--format=%(objectname)") == second.commit


def test_git_variables_of_our_own_environment_lead_nowhere(
    store: Evidences, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    made = capture(store, checkout)
    assert git(checkout, "cat-file", "-t", made.commit) == "commit"


def test_before_the_first_commit_there_is_one_without_a_parent(store: Evidences, tmp_path: Path) -> None:
    folder = tmp_path / "fresh"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "file").write_text("x\n")
    made = capture(store, folder)
    assert git(folder, "rev-list", "--count", made.commit) == "1"
    assert not (folder / ".git" / "index").exists()


def test_a_linked_work_tree_is_committed_for_itself(store: Evidences, checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    (tmp_path / "linked" / "there").write_text("x\n")
    made = capture(store, tmp_path / "linked")
    assert "there" in git(checkout, "ls-tree", "--name-only", made.commit).split("\n")
    store.release(made.ref)
    assert git(checkout, "for-each-ref", "refs/mergepub") == ""


def test_a_merge_in_conflict_is_committed_as_it_stands(store: Evidences, checkout: Path) -> None:
    git(checkout, "checkout", "-q", "-f", "-b", "side")
    (checkout / "kept").write_text("side\n")
    git(checkout, "commit", "-q", "-a", "-m", "side")
    git(checkout, "checkout", "-q", "-f", "work")
    (checkout / "kept").write_text("work\n")
    git(checkout, "commit", "-q", "-a", "-m", "work")
    with pytest.raises(subprocess.CalledProcessError):
        git(checkout, "merge", "-q", "side")
    before = git(checkout, "status", "--porcelain")
    made = capture(store, checkout)
    assert "<<<<<<<" in git(checkout, "show", f"{made.commit}:kept")
    assert git(checkout, "status", "--porcelain") == before


def test_an_edited_document_is_committed_even_where_git_ignores_it(store: Evidences, checkout: Path) -> None:
    (checkout / "ignored.md").write_text("doc\n")
    track(checkout, "ignored.md", "/docs/ignored.md")
    made = capture(store, checkout, documents=["/docs/ignored.md"])
    assert git(checkout, "show", f"{made.commit}:ignored.md") == "doc"
    assert "ignored" not in git(checkout, "ls-tree", "--name-only", made.commit).split("\n")


def test_names_that_git_would_take_for_patterns_are_only_names(
    store: Evidences, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitcommit, "LARGEST", 100)
    (checkout / ":(glob)*").write_text("odd\n")
    (checkout / "a\nb").write_text("odd\n")
    (checkout / "[ab]*").write_bytes(b"x" * 101)
    (checkout / "a*").write_text("small\n")
    made = capture(store, checkout)
    names = git(checkout, "ls-tree", "-z", "--name-only", made.commit).split("\0")
    assert {":(glob)*", "a\nb", "a*"} <= set(names)
    assert "[ab]*" not in names
    assert says(made, "are not in the commit: [ab]*")


def test_a_repository_inside_is_named_and_keeps_nothing_else_from_the_commit(store: Evidences, checkout: Path) -> None:
    (checkout / "a nested").mkdir()
    git(checkout / "a nested", "init", "-q")
    (checkout / "a nested" / "inside").touch()
    made = capture(store, checkout)
    assert "new" in git(checkout, "ls-tree", "--name-only", made.commit).split("\n")
    assert says(made, "repositories inside this one are not in the commit: a nested/")


def test_what_git_cannot_add_is_named(store: Evidences, checkout: Path) -> None:
    git(checkout, "config", "filter.bad.clean", "false")
    git(checkout, "config", "filter.bad.required", "true")
    (checkout / ".gitattributes").write_text("new filter=bad\n")
    made = capture(store, checkout)
    assert made.commit
    assert says(made, "the commit may lack changes")


def test_a_checkout_without_git_is_named_as_missing(store: Evidences, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    made = capture(store, tmp_path / "plain")
    assert made.commit == ""
    assert says(made, "there is no Git commit of the checkout")


def test_a_machine_without_git_is_named(store: Evidences, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    made = capture(store, checkout)
    assert (made.commit, says(made, "git cannot be started")) == ("", True)


def test_a_git_that_takes_too_long_is_ended_with_its_children_and_named(
    store: Evidences, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    slow = tmp_path / "bin" / "git"
    slow.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {tmp_path}/pid\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    made = capture(store, checkout, seconds=3)
    assert says(made, "git rev-parse took too long")
    told = tmp_path / "pid"  # on a machine that is very busy it was ended before it had any
    wait_for(lambda: not (told.exists() and told.read_text() and lives(int(told.read_text()))), "git's child lives on")


def test_a_capture_that_fails_leaves_nothing_on_a_full_disk(
    store: Evidences, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Ring(str(tmp_path / "ring"))
    ring.write(b"x" * 100_000)
    ring.close()

    def full(source: str, to: int) -> None:
        os.write(to, b"x" * 5000)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(transcript, "copy", full)
        with pytest.raises(CaptureError, match="No space left on device"):
            capture(store, checkout, str(tmp_path / "ring"))
    assert list((tmp_path / "evidence").iterdir()) == []
    assert git(checkout, "for-each-ref", "refs/mergepub") == ""
    assert capture(store, checkout, str(tmp_path / "ring")).transcript_bytes == 100_000


# ── the transcript ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_transcript_is_copied_and_where_it_is_cut_that_is_named(store: Evidences, tmp_path: Path) -> None:
    ring = Ring(str(tmp_path / "ring"))
    ring.write(b"hello\r\n")
    made = capture(store, tmp_path, str(tmp_path / "ring"))
    assert Path(made.transcript).read_bytes() == b"hello\r\n"
    assert (made.transcript_bytes, made.transcript_truncated) == (7, False)
    assert stat.S_IMODE(Path(made.transcript).stat().st_mode) == 0o600
    for _ in range(17):
        ring.write(b"x" * (1 << 20))
    ring.close()
    made = capture(store, tmp_path, str(tmp_path / "ring"))
    assert (made.transcript_bytes, made.transcript_truncated) == (1 << 24, True)
    assert Path(made.transcript).stat().st_size == 1 << 24
    assert says(made, f"{7 + (1 << 20)} before them are not")


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read"), (b"junk", "is damaged"), ("link", "cannot be read")]
)
def test_a_transcript_that_is_missing_is_named(
    store: Evidences, tmp_path: Path, content: bytes | str | None, words: str
) -> None:
    if content == "link":
        (tmp_path / "ring").symlink_to("/etc/passwd")
    elif isinstance(content, bytes):
        (tmp_path / "ring").write_bytes(content)
    made = capture(store, tmp_path, str(tmp_path / "ring"))
    assert made.transcript == ""
    assert says(made, words)
    assert not (tmp_path / "evidence" / made.ref / "transcript").exists()


def test_a_run_without_a_transcript_is_named(store: Evidences, tmp_path: Path) -> None:
    assert says(capture(store, tmp_path), "there is no transcript")


# ── the documents, and the whole ────────────────────────────────────────────────────────────────────────────────────


def test_edited_documents_are_described_and_what_is_open_is_named(store: Evidences, tmp_path: Path) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_text("edited\n")
    track(tmp_path, "a.md", "/a")
    track(tmp_path, "b.md", "/b", in_conflict=True)
    track(tmp_path, "c.md", "/c")
    made = capture(store, tmp_path, documents=["/a", "/b"])
    assert made.documents == ("/a", "/b")
    assert [each["path"] for each in made.provenance["documents"]] == ["/a", "/b"]
    assert made.provenance["documents"][0] == {
        "path": "/a", "file": "a.md", "base_version": 3, "bytes": 7, "digest": digest_of(b"edited\n")
    }  # fmt: skip
    assert says(made, "not published yet: /a, /b")
    assert says(made, "/b is in conflict")
    assert says(made, "nothing was verified")


def test_the_origin_is_told(store: Evidences, tmp_path: Path) -> None:
    made = capture(store, tmp_path)
    assert made.provenance["run_id"] == "run-1"
    assert made.provenance["member"] == "Ann <ann@example.org>"
    assert made.provenance["checkout"] == str(tmp_path)
    json.dumps(made.provenance)


def test_a_place_that_cannot_be_written_is_a_capture_that_failed(store: Evidences, tmp_path: Path) -> None:
    (tmp_path / "evidence").rmdir()
    (tmp_path / "evidence").write_text("in the way")
    with pytest.raises(CaptureError, match="cannot be written"):
        capture(store, tmp_path)


def test_a_full_disk_is_a_capture_that_failed(
    store: Evidences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Ring(str(tmp_path / "ring"))
    ring.write(b"hello")
    ring.close()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CaptureError, match="No space left"):
        capture(store, tmp_path, str(tmp_path / "ring"))


def test_a_repetition_while_the_first_is_still_at_it_is_refused(
    store: Evidences, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []
    real = gitcommit.find

    def find(folder: str, deadline: float) -> gitcommit.Tree:
        with pytest.raises(CaptureError) as caught:
            capture(store, tmp_path)
        refused.append(str(caught.value))
        return real(folder, deadline)

    monkeypatch.setattr(gitcommit, "find", find)
    assert capture(store, tmp_path).ref
    assert refused == ["an earlier attempt is still under way"]
    monkeypatch.setattr(gitcommit, "find", real)
    assert capture(store, tmp_path).ref


def test_a_checkout_that_is_gone_is_named(store: Evidences, tmp_path: Path) -> None:
    made = capture(store, tmp_path / "gone")
    assert (made.commit, says(made, "there is no Git commit")) == ("", True)
