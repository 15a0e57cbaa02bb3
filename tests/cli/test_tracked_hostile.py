"""Tracked files among enemies: records that came with a clone or are damaged, odd files, odd names, dead commands."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mergepub import publishing
from mergepub.checkout import disk, locate
from mergepub.checkout.disk import name_beside
from mergepub.checkout.home import key_of
from mergepub.checkout.leftovers import DAY, _swept, copies_beside

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"
FIRST = b"one\ntwo\nthree\nfour\nfive\n"
READERS = (["status"], ["push", "guide.md"], ["pull"], ["diff", "guide.md"], ["show-conflict", "guide.md"])


@pytest.fixture
def here(mergepub: Runner, scratch: Path) -> Path:
    """``guide.md``, tracked in a document at version 1 and edited."""
    assert mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST).status == 0
    assert mergepub("fetch", GUIDE, "-o", "guide.md").status == 0
    Path("guide.md").write_bytes(FIRST + b"six\n")
    return Path("guide.md")


def place_of(file: str) -> Path:
    return Path(".mergepub/files", key_of(file), "record.json")


def change(place: Path, *path: str | int, value: Any) -> None:
    """Change one field of a JSON file."""
    text = json.loads(place.read_text())
    inner = text
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    place.write_text(json.dumps(text))


# ── records that nobody here wrote ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("base", "version"), "one"),
        (("base", "version"), True),
        (("base", "digest"), "../../../../guide.md"),
        (("base", "digest"), 5),
        (("base", "contained"), 1),
        (("file",), 7),
        (("file",), "../outside.md"),
        (("file",), "/outside.md"),
        (("file",), "other.md"),
        (("store",), 7),
        (("path",), None),
        (("brought",), [3]),
        (("sent",), {"a": 1}),
        (("clash",), {"ours": 1}),
        (("more",), 1),
    ],
    ids=repr,
)
def test_a_record_that_cannot_be_is_damaged_for_every_command(path, value, here: Path, mergepub: Runner):
    change(place_of("guide.md"), *path, value=value)
    for command in READERS:
        result = mergepub(*command)
        assert (result.status, "is damaged" in result.err) == (3, True), (command, result)
    assert mergepub("fetch", GUIDE, "-o", "guide.md", "--force").status == 0


def test_a_record_of_brackets_alone_is_damaged_too(here: Path, mergepub: Runner):
    place_of("guide.md").write_bytes(b"[" * 200_000)
    for command in READERS:
        assert mergepub(*command).status == 3


def test_a_record_that_names_a_file_outside_writes_nothing_there(
    here: Path, mergepub: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A clone can bring a .mergepub that somebody made."""
    inside = tmp_path / "clone"
    inside.mkdir()
    (inside / ".mergepub").mkdir()
    monkeypatch.chdir(inside)
    victim = tmp_path / "victim.md"
    victim.write_bytes(FIRST)
    assert mergepub("fetch", GUIDE, "-o", "a.md", "--store", str(tmp_path / "store.sqlite")).status == 0
    fake = Path(".mergepub/files", key_of("../victim.md"))
    shutil.move(place_of("a.md").parent, fake)
    change(fake / "record.json", "file", value="../victim.md")
    assert (
        mergepub("publish", GUIDE, "--expected-version", "1", "--store", "../store.sqlite", stdin=b"bad\n").status == 0
    )
    assert mergepub("pull").status == 3
    assert victim.read_bytes() == FIRST


@pytest.mark.parametrize("how", ["file", "moved_from", "beside", "link"])
def test_an_intent_that_names_a_file_outside_touches_nothing_there(
    how: str, here: Path, mergepub: Runner, tmp_path: Path
):
    outside = tmp_path.parent / f"outside-{tmp_path.name}"
    outside.mkdir()
    victim = outside / "victim.md"
    victim.write_bytes(FIRST)
    Path("link").symlink_to(outside)
    far = os.path.relpath(victim)
    file = {"file": far, "link": "link/victim.md"}.get(how, "guide.md")
    record = json.loads(place_of("guide.md").read_text()) | {"file": file}
    intent = {"file": file, "after": record, "old": "", "new": "", "beside": ".mergepub-0", "moved_from": ""}
    if how == "beside":
        intent["beside"] = far
    if how == "moved_from":
        intent |= {"beside": "", "moved_from": far}
    place = Path(".mergepub/intents", f"{key_of(file)}.json")
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(intent))
    result = mergepub("push", "guide.md")
    assert (result.status, "Traceback" in result.err) == (3, False)
    assert str(place) in result.err
    assert victim.read_bytes() == FIRST
    assert here.read_bytes() == FIRST + b"six\n"


@pytest.mark.parametrize("where", ["", "files", "lock", "intents", "kept", "queue", "key"])
def test_a_link_in_the_directory_is_never_written_through(where: str, mergepub: Runner, tmp_path: Path):
    """What a clone brought, such as .mergepub/lock, may lead to any file of its user."""
    assert mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST).status == 0
    private = tmp_path.parent / f"private-{tmp_path.name}"
    private.mkdir()
    (private / "letter").write_bytes(b"dear\n")
    (private / "lock").write_bytes(b"key\n")
    place = Path(".mergepub", f"files/{key_of('guide.md')}" if where == "key" else where)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(private / "letter" if where == "lock" else private)
    refused = mergepub("fetch", GUIDE, "-o", "guide.md")
    assert (refused.status, "is a link" in refused.err) == (3, True)
    assert {each.name: each.read_bytes() for each in private.iterdir()} == {"letter": b"dear\n", "lock": b"key\n"}
    assert not Path("guide.md").exists()


def test_a_queued_publish_that_is_not_what_its_folder_says_is_damaged(here: Path, mergepub: Runner):
    assert mergepub("publish", GUIDE, "guide.md", "--queue").status == 0
    [entry] = Path(".mergepub/queue").glob("*/entry.json")
    for path, value in ((("id",), "../../docs"), (("digest",), "../../../guide.md"), (("retries",), "3")):
        before = entry.read_text()
        change(entry, *path, value=value)
        refused = mergepub("sync")
        assert (refused.status, "is missing or damaged" in refused.err) == (3, True)
        entry.write_text(before)
    assert mergepub("sync").status == 0


# ── files that are none, and places where none may be ───────────────────────────────────────────────────────────────


def test_a_pipe_is_never_waited_for(here: Path, process: Runner):
    os.mkfifo("pipe")
    result = process("push", "pipe", "--prefix", "/docs")
    assert (result.status, "no regular file" in result.err) == (2, True)
    here.unlink()
    os.mkfifo("guide.md")
    for command in (["push", "guide.md"], ["pull", "guide.md"], ["diff", "guide.md"]):
        assert process(*command).status == 2, command


def test_nothing_is_tracked_in_the_directory_itself(here: Path, mergepub: Runner):
    for command in (["fetch", GUIDE, "-o", ".mergepub/a.md"], ["mv", "guide.md", ".mergepub/a.md"]):
        refused = mergepub(*command)
        assert (refused.status, "lies in .mergepub" in refused.err) == (2, True)
    assert not Path(".mergepub/a.md").exists()


def test_a_folder_is_no_tracked_file(here: Path, mergepub: Runner):
    Path("folder").mkdir()
    for command in (["pull", "folder"], ["status", "folder"], ["resolve", "folder"], ["mv", "folder", "other"]):
        refused = mergepub(*command)
        assert (refused.status, "folder is a folder, and files are tracked one by one" in refused.err) == (2, True)


def test_a_file_that_is_tracked_as_another_document_is_not_taken_from_it(here: Path, mergepub: Runner):
    here.write_bytes(FIRST)
    assert mergepub("publish", "/other", "--expected-version", "0", stdin=b"other\n").status == 0
    refused = mergepub("fetch", "/other", "-o", "guide.md")
    assert (refused.status, f"is tracked as {GUIDE}" in refused.err) == (3, True)
    assert "mergepub fetch /other -o guide.md --force" in refused.err
    assert here.read_bytes() == FIRST
    assert mergepub("fetch", "/other", "-o", "guide.md", "--force").status == 0
    assert here.read_bytes() == b"other\n"


def test_a_bad_prefix_is_said_though_every_file_is_tracked(here: Path, mergepub: Runner):
    refused = mergepub("push", "guide.md", "--prefix", "docs")
    assert (refused.status, "bad path 'docs'" in refused.err) == (2, True)
    assert mergepub("versions", GUIDE).out.count(b"\n") == 1


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = ["new\nline.md", "esc\x1b[31m.md", "bad\udcff.md", 'quo"te.md', "back\\slash.md", "-dash.md", "sp ace.md"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_no_name_breaks_a_line_or_steers_a_terminal(name: str, here: Path, mergepub: Runner):
    assert mergepub("fetch", GUIDE, "-o", name).status == 0
    Path(name).write_bytes(FIRST.replace(b"two", b"2"))
    for command in (["pull"], ["status"], ["push", "--dry-run", "--", name]):
        result = mergepub(*command)
        assert result.status == 0
        assert b"\x1b" not in result.out
        rows = [line for line in result.out.splitlines() if b".md" in line]
        assert len(rows) == (1 if "push" in command else 2), result.out


@pytest.mark.parametrize("name", [each for each in NAMES if "\x1b" not in each], ids=ascii)
def test_patch_takes_the_diff_of_a_file_of_any_name(name: str, here: Path, mergepub: Runner):
    if shutil.which("git") is None:
        pytest.skip("git, which applies the diff here, is not installed")
    assert mergepub("fetch", GUIDE, "-o", name).status == 0
    Path(name).write_bytes(FIRST.replace(b"two", b"2"))
    made = mergepub("diff", "--", name).out
    assert b"\n".join(made.splitlines()[:3]).count(b"\n") == 2
    Path(name).write_bytes(FIRST)
    subprocess.run(["git", "apply", "-p1", "-"], input=made, check=True)
    assert Path(name).read_bytes() == FIRST.replace(b"two", b"2")


@pytest.mark.parametrize("stem", ["n" * 250, "ü" * 125, "\udcff" * 250], ids=["n", "ue", "bytes"])
def test_the_longest_names_are_kept_and_mended_too(stem: str, here: Path, mergepub: Runner):
    name = f"{stem}.md"
    assert mergepub("fetch", GUIDE, "-o", name).status == 0
    Path(name).write_bytes(FIRST.replace(b"one", b"eins"))
    assert mergepub("publish", GUIDE, "--expected-version", "1", stdin=FIRST.replace(b"one", b"uno")).status == 0
    assert mergepub("pull", name).status == 3
    assert mergepub("resolve", name, "--tool", 'cat "$LOCAL" "$REMOTE" > "$MERGED"').status == 0
    assert Path(name).read_bytes() == FIRST.replace(b"one", b"eins") + FIRST.replace(b"one", b"uno")
    Path(name).write_bytes(b"edited\n")
    assert mergepub("fetch", GUIDE, "-o", name, "--force").status == 0
    assert [each.read_bytes() for each in Path(".mergepub/kept").iterdir()] == [b"edited\n"]


# ── files that were renamed ─────────────────────────────────────────────────────────────────────────────────────────


def test_status_names_what_a_file_was_renamed_to_and_mv_takes_it(here: Path, mergepub: Runner):
    Path("sub").mkdir()
    Path("sub/unlike.md").write_bytes(b"something else\n" * 5)
    here.rename("sub/new name.md")
    found = mergepub("status")
    assert b"missing here, looks renamed to sub/new name.md" in found.out
    assert "next: mergepub mv guide.md 'sub/new name.md'" in found.err
    [row] = json.loads(mergepub("status", "--json").out)["result"]["files"]
    assert (row["state"], row["moved-to"]) == ("missing", "sub/new name.md")
    assert mergepub("mv", "guide.md", "sub/new name.md").status == 0
    assert Path("sub/new name.md").read_bytes() == FIRST + b"six\n"
    assert b"edited here" in mergepub("status").out
    assert mergepub("push", "sub/new name.md").status == 0
    assert mergepub("fetch", GUIDE, "--body-only").out == FIRST + b"six\n"


def test_status_tells_two_renamed_files_apart_and_takes_none_for_a_deleted_one(mergepub: Runner):
    texts = {name: b"".join(b"%s %d\n" % (name.encode(), n) for n in range(9)) for name in ("a", "b", "c")}
    for name, text in texts.items():
        assert mergepub("publish", f"/{name}", "--expected-version", "0", stdin=text).status == 0
        assert mergepub("fetch", f"/{name}", "-o", f"{name}.md").status == 0
    Path("a.md").rename("x.md")
    Path("b.md").rename("y.md")
    Path("c.md").unlink()
    rows = json.loads(mergepub("status", "--json").out)["result"]["files"]
    assert [row.get("moved-to") for row in rows] == ["x.md", "y.md", None]


def test_mv_takes_no_name_that_is_none_or_tracked_itself(here: Path, mergepub: Runner):
    assert mergepub("fetch", GUIDE, "-o", "other.md").status == 0
    Path("other.md").unlink()
    for to, said in (("other.md", "is tracked itself"), ("missing/", "is no folder"), ("missing/a.md", "cannot write")):
        refused = mergepub("mv", "guide.md", to)
        assert (refused.status, said in refused.err) == (2, True), to
        assert here.read_bytes() == FIRST + b"six\n"
        assert "interrupted" not in mergepub("status").err
        assert list(Path(".mergepub/intents").glob("*")) == []
    here.unlink()
    assert "guide.md is gone" in mergepub("mv", "guide.md", "new.md").err


# ── what dead commands leave ────────────────────────────────────────────────────────────────────────────────────────


def age(place: Path, seconds: float) -> None:
    long_ago = time.time() - seconds
    os.utime(place, (long_ago, long_ago))


def test_what_a_killed_command_left_is_swept_a_day_later_and_what_was_mended_is_kept(here: Path, mergepub: Runner):
    young, old, aside = (Path(name_beside("x")) for _ in range(3))
    aside = aside.with_name(f"{aside.name}-aside")
    copies = Path(name_beside("x"))
    copies.mkdir()
    (copies / "guide.merged.md").write_bytes(b"half mended\n")
    (copies / "guide.base.md").write_bytes(FIRST)
    for file in (young, old, aside, Path(".mergepub-notes")):
        file.write_bytes(b"somebody's\n")
    for place in (old, aside, copies, Path(".mergepub-notes")):
        age(place, DAY + 60)
    _swept.clear()
    assert mergepub("fetch", GUIDE, "-o", "guide.md", "--force").status == 0
    left = {each.name for each in Path().glob(".mergepub-*")}
    assert left == {young.name, ".mergepub-notes"}
    kept = sorted(each.read_bytes() for each in Path(".mergepub/kept").glob("*-left-*"))
    assert kept == [b"half mended\n", b"somebody's\n"]


def test_copies_that_somebody_is_mending_are_swept_by_nobody(here: Path, mergepub: Runner):
    _, local = locate("guide.md")
    with copies_beside(local, {"MERGED": b"<<<"}) as copies:
        folder = Path(copies["MERGED"]).parent
        age(folder, 9 * DAY)
        _swept.clear()
        assert mergepub("fetch", GUIDE, "-o", "guide.md", "--force").status == 0
        assert Path(copies["MERGED"]).read_bytes() == b"<<<"
    assert not folder.exists()


def test_no_copy_of_an_open_editor_is_pushed_with_its_folder(here: Path, mergepub: Runner):
    _, local = locate("guide.md")
    with copies_beside(local, {"MERGED": b"m\n", "LOCAL": b"l\n"}):
        found = json.loads(mergepub("push", ".", "--prefix", "/all", "--dry-run", "--json").out)
    assert not [each for each in found["result"]["files"] if "local" in each["file"] or "merged" in each["file"]]


# ── files that are saved in between ─────────────────────────────────────────────────────────────────────────────────


def test_an_answer_never_takes_the_place_of_what_was_saved_since(here: Path, mergepub: Runner, monkeypatch):
    file = Path("untracked.md")
    file.write_bytes(FIRST.replace(b"five", b"5"))
    assert mergepub("publish", GUIDE, "--expected-version", "1", stdin=FIRST.replace(b"one", b"1")).status == 0
    publish = publishing.publish

    def saving(*arguments: Any, **options: Any) -> Any:
        outcome = publish(*arguments, **options)
        file.write_bytes(b"saved meanwhile\n")
        return outcome

    monkeypatch.setattr(publishing, "publish", saving)
    call = ["publish", GUIDE, "untracked.md", "-o", "untracked.md", "--expected-version", "1", "--on-conflict", "merge"]
    result = mergepub(*call)
    assert (result.status, "was changed meanwhile; it was left as it is" in result.err) == (2, True)
    assert b"version: 3\nmerged: true\n" in result.out, "what was published, was"
    assert file.read_bytes() == b"saved meanwhile\n"


def test_a_file_that_is_written_to_while_it_is_read_is_read_anew(tmp_path: Path, monkeypatch):
    file = tmp_path / "a"
    file.write_bytes(b"old\n")
    real, saves = os.fstat, iter([b"new", b"new text\n"])

    def saving(fd: int) -> os.stat_result:
        found = real(fd)
        text = next(saves, None)
        if text is not None:
            file.write_bytes(text)
        return found

    monkeypatch.setattr(os, "fstat", saving)
    assert disk.read(str(file)) == b"new text\n"


# ── disks and folders that refuse ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", ["write_new", "swap"])
def test_where_the_disk_refuses_nothing_is_left_begun(step: str, here: Path, mergepub: Runner, monkeypatch):
    assert mergepub("publish", GUIDE, "--expected-version", "1", stdin=FIRST.replace(b"one", b"1")).status == 0
    real = getattr(disk, step)

    def refusing(name: str, *rest: Any) -> Any:
        if os.path.dirname(name) == os.getcwd():  # noqa: PTH109, PTH120 - as the module itself sees names
            raise PermissionError(13, "Permission denied")
        return real(name, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(disk, step, refusing)
        refused = mergepub("pull", "guide.md")
    assert (refused.status, "cannot write guide.md" in refused.err) == (2, True)
    assert here.read_bytes() == FIRST + b"six\n"
    assert list(Path().glob(".mergepub-*")) + list(Path(".mergepub/intents").glob("*")) == []
    assert "interrupted" not in mergepub("pull", "guide.md").err
    assert here.read_bytes() == FIRST.replace(b"one", b"1") + b"six\n"


def test_a_file_system_without_second_names_is_enough(here: Path, mergepub: Runner, monkeypatch):
    """Those of memory cards: no hard links, no exchange."""

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(disk, "exchange", lambda *_: False)
    assert mergepub("publish", GUIDE, "--expected-version", "1", stdin=FIRST.replace(b"one", b"1")).status == 0
    assert mergepub("fetch", GUIDE, "-o", "new.md").status == 0
    assert mergepub("pull", "guide.md").status == 0
    assert mergepub("mv", "guide.md", "moved.md").status == 0
    assert Path("moved.md").read_bytes() == FIRST.replace(b"one", b"1") + b"six\n"
    assert mergepub("mv", "moved.md", "new.md").status == 2
    assert list(Path().glob(".mergepub-*")) == []


def test_what_other_programs_leave_in_the_directory_is_passed_over(here: Path, mergepub: Runner):
    assert mergepub("publish", GUIDE, "guide.md", "--queue").status == 0
    for folder in ("files", "intents", "queue"):
        for name in (".DS_Store", "note.json"):
            place = Path(".mergepub", folder, name)
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(b"\x00\x01")
    for command in (["status"], ["pull"], ["sync"], ["push", "guide.md"]):
        assert mergepub(*command).status == 0, command


def test_a_directory_that_is_none_is_said(here: Path, mergepub: Runner):
    shutil.rmtree(".mergepub")
    Path(".mergepub").touch()
    for command in (["status"], ["pull"], ["fetch", GUIDE, "-o", "new.md"]):
        refused = mergepub(*command)
        assert (refused.status in (2, 3), "Not a directory" in refused.err) == (True, True), command
