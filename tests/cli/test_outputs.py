"""Where output goes: full disks, closed pipes, files replaced whole or not at all, interrupts."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.cli import streams
from mergepub.errors import OutputError
from tests.cli.conftest import SCRIPT, Result, present

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"
OVERLAP = ("publish", GUIDE, "--expected-version", "1", "--on-conflict", "merge")
THEIRS = b"eins\ntwo\nthree\nfour\nfive\n"

PRINTING = [
    ["--version"],
    ["--help"],
    ["fetch", "--help"],
    ["fetch", GUIDE],
    ["fetch", GUIDE, "--json"],
    ["versions", GUIDE],
    ["list"],
    ["verify"],
    ["completion", "bash"],
]


@pytest.mark.parametrize("call", PRINTING, ids=" ".join)
def test_a_full_disk_is_one_line_and_exit_2(call, guide: bytes, process: Runner):
    with Path("/dev/full").open("wb") as full:
        result = process(*call, stdout=full)
    assert result.status == 2
    assert result.err == "mergepub: cannot write to standard output: No space left on device\n"


def test_a_full_disk_under_a_merge_is_255(guide: bytes, process: Runner):
    Path("a").write_bytes(b"a\n")
    with Path("/dev/full").open("wb") as full:
        result = process("merge", "-p", "a", "a", "a", stdout=full)
    assert (result.status, result.err) == (255, "mergepub: cannot write to standard output: No space left on device\n")


@pytest.mark.parametrize("call", PRINTING, ids=" ".join)
def test_a_closed_pipe_ends_quietly_with_the_commands_own_status(call, guide: bytes):
    assert with_closed_pipe(call) == (0, b"")


def test_a_closed_pipe_keeps_the_status_of_a_conflict(guide: bytes):
    Path("theirs").write_bytes(THEIRS)
    status, err = with_closed_pipe([*OVERLAP[:2], "theirs", *OVERLAP[2:]])
    assert status == 3
    assert b"Traceback" not in err
    assert b"Broken pipe" not in err


def with_closed_pipe(call: list[str]) -> tuple[int, bytes]:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen([SCRIPT, *call], stdout=writing, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_a_reader_that_leaves_in_the_middle_is_no_error(process: Runner):
    Path("big").write_bytes(b"line\n" * 1_000_000)
    process("publish", "/big", "big", "--expected-version", "0")
    done = subprocess.run(
        ["bash", "-c", f"{SCRIPT} fetch /big | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.parametrize("call", [["fetch", GUIDE], ["fetch", GUIDE, "--json"], ["--version"]], ids=" ".join)
def test_a_closed_standard_output_is_exit_2(call, guide: bytes):
    done = subprocess.run(
        ["bash", "-c", f"{SCRIPT} {' '.join(call)} >&-"], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"mergepub: cannot write to standard output")


def test_closed_streams_never_become_the_store(guide: bytes):
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        subprocess.run(["bash", "-c", f"{SCRIPT} fetch {GUIDE} {closed}"], capture_output=True, check=False)
    done = subprocess.run([SCRIPT, "verify"], capture_output=True, check=False)
    assert done.stdout.startswith(b"ok: ")
    done = subprocess.run(
        ["bash", "-c", f"{SCRIPT} publish /x --expected-version 0 <&-"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"mergepub: cannot read standard input")


def test_the_places_of_closed_streams_are_filled_before_any_file_is_opened():
    program = "from mergepub.cli.app import _mend_descriptors, os; _mend_descriptors(); "
    program += "fd = os.open('n', os.O_CREAT | os.O_WRONLY); os.write(fd, str(fd).encode())"
    subprocess.run(["bash", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, program], check=True)
    assert int(Path("n").read_text()) > 2


# ── -o ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_body_goes_to_the_file_and_the_block_alone_is_printed(guide: bytes, process: Runner):
    result = process("fetch", GUIDE, "-o", "copy.md")
    assert Path("copy.md").read_bytes() == guide
    assert result.out.endswith(b"Z\n")
    result = process(*OVERLAP, "-o", "marked.md", stdin=THEIRS)
    assert result.status == 3
    assert result.out.endswith(b"conflicts: 1\n")
    assert Path("marked.md").read_bytes().startswith(b"<<<<<<< ours\neins\n=======\nONE\n>>>>>>> theirs\n")
    assert result.err.endswith(f"next: mergepub publish {GUIDE} marked.md --expected-version 2\n")


@pytest.mark.parametrize("call", [["fetch", GUIDE, "--force"], [*OVERLAP, "other"]], ids=["fetch", "publish"])
def test_a_body_never_takes_the_place_of_the_store(call, guide: bytes, process: Runner):
    Path("other").write_bytes(THEIRS)
    result = process(*call, "-o", "store.sqlite")
    assert (result.status, result.out) == (2, b"")
    assert "store.sqlite: it is a store of documents" in result.err
    assert process("fetch", GUIDE, "--body-only").out == guide


def test_json_leaves_out_the_body_that_went_to_a_file(guide: bytes, process: Runner):
    result = process("fetch", GUIDE, "-o", "copy.md", "--json")
    assert "body" not in json.loads(result.out)["result"]
    assert Path("copy.md").read_bytes() == guide


def test_an_answer_without_a_body_leaves_the_file_alone(guide: bytes, process: Runner):
    Path("kept").write_bytes(b"kept")
    assert process("publish", GUIDE, "--expected-version", "2", "-o", "kept", stdin=b"x\n").status == 0
    assert Path("kept").read_bytes() == b"kept"


def test_mode_and_link_of_the_file_are_kept_and_a_new_one_follows_the_umask(guide: bytes, process: Runner):
    Path("real.md").write_bytes(b"before")
    Path("real.md").chmod(0o604)
    Path("link.md").symlink_to("real.md")
    process("fetch", GUIDE, "-o", "link.md", "--force")
    assert Path("link.md").is_symlink()
    assert Path("real.md").read_bytes() == guide
    assert stat.S_IMODE(Path("real.md").stat().st_mode) == 0o604
    process("fetch", GUIDE, "-o", "new.md", umask=0o027)
    assert stat.S_IMODE(Path("new.md").stat().st_mode) == 0o640
    assert [name for name in present() if name.startswith(".")] == [".mergepub"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_the_owner_of_the_file_is_kept(guide: bytes, process: Runner):
    Path("theirs.md").write_bytes(b"before")
    os.chown("theirs.md", 1234, 5678)
    process("fetch", GUIDE, "-o", "theirs.md", "--force")
    assert Path("theirs.md").read_bytes() == guide
    now = Path("theirs.md").stat()
    assert (now.st_uid, now.st_gid) == (1234, 5678)


def test_what_is_no_regular_file_is_written_to_and_never_replaced(guide: bytes, process: Runner):
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    assert process("fetch", GUIDE, "-o", "pipe").status == 0
    assert reader.communicate(timeout=30)[0] == guide
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert process("fetch", GUIDE, "-o", "/dev/null").status == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    full = process("fetch", GUIDE, "-o", "/dev/full")
    assert full.status == 2
    assert "cannot write /dev/full: No space left on device" in full.err


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
def test_a_directory_that_takes_no_files_is_exit_2_before_anything_is_published(folder, process: Runner):
    result = process("publish", "/a", "--expected-version", "0", "-o", f"{folder}/copy.md", stdin=b"x\n")
    assert (result.status, result.out) == (2, b"")
    assert result.err.startswith(f"mergepub: cannot write {folder}/copy.md: ")
    assert present() == []


def test_a_file_that_turns_out_unwritable_still_gives_the_block(guide: bytes, mergepub: Runner, monkeypatch):
    """What was published, was: the version must not be lost with the body's file."""
    monkeypatch.setattr(os, "replace", failing(OSError(28, "No space left on device")))
    result = mergepub(*OVERLAP, "-o", "out.md", stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    assert result.status == 2
    assert result.out == b"status: ok\nversion: 3\nmerged: true\nbase-version: 1\ntheir-version: 2\n"
    assert result.err.startswith("mergepub: cannot write out.md: No space left on device\n")
    assert "out.md" not in present()


def test_json_tells_of_an_unwritable_file_and_of_what_was_published(guide: bytes, mergepub: Runner, monkeypatch):
    monkeypatch.setattr(os, "replace", failing(OSError(28, "No space left on device")))
    result = mergepub(*OVERLAP, "-o", "out.md", "--json", stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    answer = json.loads(result.out)
    assert (result.status, answer["ok"], answer["error"]["code"]) == (2, False, 2)
    assert "out.md" in answer["error"]["message"]
    assert (answer["error"]["status"], answer["error"]["version"], answer["error"]["merged"]) == ("ok", 3, True)
    assert result.err.startswith("mergepub: cannot write out.md: No space left on device\n")


def failing(error: BaseException):
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("step", ["writev", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_file_is_replaced_whole_or_not_at_all(step, error, scratch: Path, monkeypatch):
    Path("kept").write_bytes(b"before")
    monkeypatch.setattr(os, step, failing(error))
    with pytest.raises((OutputError, KeyboardInterrupt)):
        streams.replace_file("kept", b"after")
    assert present() == ["kept"]
    assert Path("kept").read_bytes() == b"before"


def test_a_file_that_was_edited_during_its_merge_keeps_the_edit(mergepub: Runner, monkeypatch):
    for name, body in (("ours", b"1\n2\nO\n"), ("base", b"1\n2\n3\n"), ("theirs", b"T\n2\n3\n")):
        Path(name).write_bytes(body)
    sync = os.fsync

    def edit_and_sync(fd: int) -> None:
        Path("ours").write_bytes(b"1\n2\nsaved by an editor\n")
        sync(fd)

    monkeypatch.setattr(os, "fsync", edit_and_sync)
    result = mergepub("merge", "ours", "base", "theirs")
    assert result.status == 255
    assert "ours was changed meanwhile; it was left as it is" in result.err
    assert Path("ours").read_bytes() == b"1\n2\nsaved by an editor\n"
    assert present() == ["base", "ours", "theirs"]


def test_short_writes_lose_nothing(scratch: Path, monkeypatch):
    """Pipes and full sockets take a part of what they are given."""
    writev, write = os.writev, os.write
    monkeypatch.setattr(os, "writev", lambda fd, pieces: writev(fd, [b"".join(pieces)[:5]]))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:3]))
    for pieces in ([b"abc"], [b"abcdefghijk"], [b"abc", b"", b"defghi", b"jk"], [b"x"] * 2000, []):
        streams.replace_file("out", *pieces)
        assert Path("out").read_bytes() == b"".join(pieces)


def test_descriptors_that_others_made_non_blocking_lose_nothing(process: Runner):
    """Some parents share their terminal or pipes that way; what does not fit at once is written later."""
    body = b"line of a long body\n" * 50_000
    (give_read, give), (take, take_write) = os.pipe(), os.pipe()
    for fd in (give_read, take_write):
        os.set_blocking(fd, False)
    writer = subprocess.Popen([SCRIPT, "publish", "/a", "--expected-version", "0"], stdin=give_read)
    os.close(give_read)
    time.sleep(0.3)
    with os.fdopen(give, "wb") as pipe:
        pipe.write(body)
    assert writer.wait(30) == 0
    reader = subprocess.Popen([SCRIPT, "fetch", "/a", "--body-only"], stdout=take_write)
    os.close(take_write)
    time.sleep(0.3)
    with os.fdopen(take, "rb") as pipe:
        assert pipe.read() == body
    assert reader.wait(30) == 0


# ── interrupts ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", ["publish", "append"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_interrupt_while_waiting_for_the_body_is_130_and_leaves_nothing(verb, form, scratch: Path):
    version = ["--expected-version", "0"] if verb == "publish" else []
    process = subprocess.Popen(
        [SCRIPT, verb, "/a", *version, *form], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until_it_reads(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"mergepub: interrupted\n")
    assert (json.loads(out)["error"]["code"] == 130) if form else out == b""
    assert present() == []


def test_an_interrupted_merge_is_130(scratch: Path):
    os.mkfifo("slow")
    Path("a").write_bytes(b"a\n")
    process = subprocess.Popen([SCRIPT, "merge", "a", "slow", "a"], stderr=subprocess.PIPE)
    wait_until_it_reads(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == b"mergepub: interrupted\n"
    assert process.returncode == 130
    assert present() == ["a", "slow"]


def test_an_interrupt_while_a_command_is_being_loaded_is_130(mergepub: Runner, monkeypatch):
    import mergepub.__main__ as entry

    monkeypatch.setattr(entry, "_fast", failing(KeyboardInterrupt()))
    assert mergepub("list") == Result(130, b"", "mergepub: interrupted\n")


def wait_until_it_reads(pid: int) -> None:
    """Until the process sleeps in a system call with everything imported: its CPU time stands still."""
    still, before = 0, -1
    for _ in range(600):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        spent = int(fields[11]) + int(fields[12])
        still = still + 1 if spent == before and fields[0] == "S" else 0
        if still >= 20:
            return
        before = spent
        time.sleep(0.02)
    raise AssertionError("it never came to rest")
