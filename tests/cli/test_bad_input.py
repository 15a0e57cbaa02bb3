"""Bad paths, versions, files, options, bodies and stores: the right status, the rule in one line, nothing created."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import present

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

NEW = ["publish", "/new", "body", "--expected-version", "0"]
LONG = "/" + "a" * 1024

PATHS = {
    "without a slash": ("docs", "start with /"),
    "empty": ("", "start with /"),
    "an empty segment": ("/a//b", "empty segment"),
    "a slash at the end": ("/a/", "empty segment"),
    "a dot": ("/a/./b", ". or .. segment"),
    "two dots": ("/../b", ". or .. segment"),
    "a control byte": ("/a\tb", "control"),
    "a line end": ("/a\nb", "control"),
    "an escape": ("/a\x1bb", "control"),
    "a C1 control": ("/a\x85b", "control"),
    "not NFC": ("/e\u0301", "NFC"),
    "not UTF-8": ("/a\udcff", "UTF-8"),
    "reserved": ("/-/x", "reserved"),
    "too long": (LONG, "1024"),
    "the root": ("/", "empty segment"),
}


@pytest.mark.parametrize("verb", ["publish", "fetch", "append", "versions", "delete", "verify", "list"])
@pytest.mark.parametrize(("path", "rule"), PATHS.values(), ids=PATHS.keys())
def test_a_bad_path_is_refused_with_its_rule(verb, path, rule, mergepub: Runner):
    if verb == "list" and path in ("/", "/a/"):
        return  # a prefix may end in a slash
    version = ["--expected-version", "1"] if verb in ("publish", "delete") else []
    check_refused(mergepub(verb, path, *version, stdin=b"x\n"), rule)
    assert present() == []


@pytest.mark.parametrize("path", ["/a/v1", "/a/v05", "/a/v0"])
def test_a_version_is_no_document(path, mergepub: Runner):
    check_refused(mergepub("publish", path, "--expected-version", "0", stdin=b"x\n"), "version")
    assert present() == []


def test_versions_to_fetch_are_numbered_from_1(mergepub: Runner):
    check_refused(mergepub("fetch", "/a/v0"), "numbered from 1")
    check_refused(mergepub("fetch", "/a/v01"), "leading zeros")
    assert present() == []


@pytest.mark.parametrize(
    "number", ["+5", "-1", "5.0", "\u0665", "\uff15", "", " 5", "5 ", "0x5", "1_0", "v5", "latest", "9" * 30]
)
@pytest.mark.parametrize("verb", ["publish", "delete"])
def test_a_bad_version_is_refused(verb, number, mergepub: Runner):
    result = mergepub(verb, "/a", f"--expected-version={number}", stdin=b"x\n")
    check_refused(result, "--expected-version")
    assert present() == []


def test_a_publish_without_a_version_says_how_to_create(mergepub: Runner):
    check_refused(mergepub("publish", "/a", stdin=b"x\n"), "--expected-version 0")
    check_refused(mergepub("delete", "/a"), "--expected-version")
    check_refused(mergepub("delete", "/a", "--expected-version", "0"), "--expected-version")
    assert present() == []


FILES = {
    "missing": ("nowhere", "cannot read nowhere: No such file or directory"),
    "a directory": (".", "cannot read .: Is a directory"),
    "below a file": ("body/x", "cannot read body/x: Not a directory"),
    "unreadable": ("/proc/self/mem", "cannot read /proc/self/mem"),
    "a name with NUL": ("a\0b", "null byte"),
}


@pytest.mark.parametrize(("file", "words"), FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize("verb", ["publish", "append"])
def test_a_file_that_cannot_be_read_is_named(verb, file, words, mergepub: Runner):
    Path("body").write_bytes(b"x\n")
    version = ["--expected-version", "0"] if verb == "publish" else []
    check_refused(mergepub(verb, "/a", file, *version), words)
    assert present() == ["body"]


OPTIONS = {
    "no retries": (["--retries", "0"], "between 1 and"),
    "a bad policy": (["--on-conflict", "panic"], "--on-conflict"),
    "a branch with a revision": (["--branch", "main@1"], "takes a name"),
    "a bad style": (["--style", "rcs"], "--style"),
    "a short marker": (["--marker-size", "6"], "between 7 and"),
    "a bad label": (["--ours-label", "a\nb"], "control character"),
    "a bad base label": (["--base-label", "a\x1bb"], "control character"),
    "a bad author": (["--author", "a\nb"], "control character"),
    "an author not in UTF-8": (["--author", "a\udcff"], "UTF-8"),
    "a bad message": (["-m", "a\rb"], "control character"),
    "an unknown option": (["--frobnicate"], "No such option"),
    "an option without its value": (["--style"], "requires an argument"),
    "a favour that is none": (["--favour-path", "*.md"], "GLOB=union"),
    "a favour for all": (["--favour-path", "*.md=ours"], "GLOB=union"),
    "a pattern that is none": (["--favour-path", "[z-a]=union"], "pattern"),
    "output and no output": (["-o", "x", "--no-body"], "contradict"),
    "no directory for the output": (["-o", "nowhere/x"], "there is no directory"),
    "a directory as output": (["-o", "."], "it is a directory"),
    "no name for the output": (["-o", ""], "no file name"),
    "the standard output as output": (["-o", "-"], "no file name"),
    "a name that ends as a directory's": (["-o", "body/"], "no file name"),
    "below a file": (["-o", "body/x"], "there is no directory"),
    "one argument too many": (["x"], "unexpected extra argument"),
    "an unknown store": (["--store", "gopher://x"], "gopher"),
    "a store that is no name": (["--store", "x\0y"], "bad store"),
    "an empty store": (["--store", ""], "--store is empty"),
}


@pytest.mark.parametrize(("options", "words"), OPTIONS.values(), ids=OPTIONS.keys())
def test_a_bad_option_is_refused(options, words, mergepub: Runner):
    Path("body").write_bytes(b"x\n")
    check_refused(mergepub(*NEW, *options), words)
    assert present() == ["body"]


def test_fetch_options_that_contradict_are_refused(mergepub: Runner):
    assert mergepub("fetch", "/a", "--body-only", "--json").status == 2
    for options in (["--body-only", "--no-body"], ["--body-only", "-o", "x"]):
        check_refused(mergepub("fetch", "/a", *options), "--body-only")
    assert present() == []


def test_limits_are_1_or_more(mergepub: Runner):
    for call in (["list", "--limit", "0"], ["versions", "/a", "--limit", "0"]):
        check_refused(mergepub(*call), "between 1 and")
    assert present() == []


def test_unknown_commands_are_answered_with_the_nearest(mergepub: Runner):
    check_refused(mergepub("publsh"), "did you mean mergepub publish?")
    check_refused(mergepub("xyzzy"), "mergepub --help")
    check_refused(mergepub(), "Missing command")
    check_refused(mergepub("completion", "tcsh"), "bash")
    assert present() == []


def test_an_empty_standard_input_is_refused_but_an_empty_file_is_a_body(mergepub: Runner):
    check_refused(mergepub("publish", "/a", "--expected-version", "0"), "--allow-empty")
    assert present() == []
    assert mergepub("publish", "/a", "--expected-version", "0", "--allow-empty").status == 0
    Path("empty").touch()
    assert mergepub("publish", "/b", "empty", "--expected-version", "0").status == 0


def test_an_empty_pipe_is_refused_under_whatever_name(process: Runner):
    os.mkfifo("pipe")
    with writer_of_nothing("pipe"):
        check_refused(process("publish", "/a", "pipe", "--expected-version", "0"), "pipe is empty")
    assert present() == ["pipe"]
    with writer_of_nothing("pipe"):
        assert process("publish", "/a", "pipe", "--expected-version", "0", "--allow-empty").status == 0
    assert process("publish", "/b", "/dev/null", "--expected-version", "0").status == 0


def writer_of_nothing(pipe: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", f"open({pipe!r}, 'wb').close()"])


def test_a_working_directory_that_was_deleted_is_said_so(scratch: Path, mergepub: Runner, monkeypatch):
    (scratch / "body").write_bytes(b"x\n")
    (scratch / "gone").mkdir()
    monkeypatch.chdir(scratch / "gone")
    (scratch / "gone").rmdir()
    for call in (["list"], ["publish", "/a", "../body", "--expected-version", "0"], [*NEW, "-o", "x"], ["status"]):
        check_refused(mergepub(*call), "the working directory was deleted")
    monkeypatch.chdir(scratch)


def test_an_empty_append_is_refused(mergepub: Runner):
    Path("empty").touch()
    check_refused(mergepub("append", "/a"), "empty")
    check_refused(mergepub("append", "/a", "empty"), "empty")
    check_refused(mergepub("append", "/a", "--idempotency-key", "", stdin=b"x"), "empty")
    assert present() == ["empty"]


def test_a_body_over_the_limit_is_refused_with_the_limit(mergepub: Runner):
    limit = 16 * 1024 * 1024
    check_refused(mergepub("publish", "/a", "--expected-version", "0", stdin=bytes(limit + 1)), str(limit))
    check_refused(mergepub("append", "/a", "/dev/zero"), str(limit))
    assert present() == []
    assert mergepub("publish", "/a", "--expected-version", "0", stdin=b"x" * limit).status == 0


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to look at\n" * 9, b"short"])
def test_a_file_that_is_no_store_is_refused_and_left_untouched(content, mergepub: Runner):
    Path("store.sqlite").write_bytes(content)
    for call in (["publish", "/a", "--expected-version", "0"], ["fetch", "/a"], ["list"], ["verify"]):
        result = mergepub(*call, stdin=b"x\n")
        assert (result.status, result.out) == (3, b""), call
        check_words(result, "store.sqlite")
    assert Path("store.sqlite").read_bytes() == content
    assert present() == ["store.sqlite"]


def test_a_database_of_somebody_else_is_refused_and_left_untouched(mergepub: Runner):
    with sqlite3.connect("store.sqlite") as database:
        database.execute("CREATE TABLE music (title TEXT)")
    database.close()
    before = Path("store.sqlite").read_bytes()
    result = mergepub("publish", "/a", "--expected-version", "0", stdin=b"x\n")
    assert result.status == 3
    check_words(result, "store.sqlite")
    assert Path("store.sqlite").read_bytes() == before
    assert present() == ["store.sqlite"]


def test_a_store_that_cannot_be_opened_is_exit_4(mergepub: Runner):
    Path("file").write_bytes(b"")
    for call in (["publish", "/a", "--expected-version", "0"], ["fetch", "/a"]):
        result = mergepub(*call, "--store", "file/store.sqlite", stdin=b"x\n")
        assert (result.status, result.out) == (4, b""), call
        check_words(result, "file/store.sqlite")
    assert present() == ["file"]


def test_reading_creates_no_store(mergepub: Runner):
    for call in (["fetch", "/a"], ["versions", "/a"], ["list"], ["verify"], ["append", "/a"]):
        result = mergepub(*call, stdin=b"x\n")
        assert result.status == 4, call
        check_words(result, "store.sqlite")
    assert mergepub("publish", "/a", "--expected-version", "4", stdin=b"x\n").status == 4
    assert mergepub("delete", "/a", "--expected-version", "4").status == 4
    assert present() == []


def test_a_store_locked_by_another_process_is_exit_4(guide: bytes, mergepub: Runner, monkeypatch):
    from mergepub.stores import sqlite

    holder = sqlite3.connect("store.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    monkeypatch.setitem(sqlite.SqliteStore.__init__.__kwdefaults__, "busy_timeout", 0.05)
    result = mergepub("publish", "/docs/guide.md", "--expected-version", "2", stdin=b"x\n")
    holder.execute("ROLLBACK")
    holder.close()
    assert (result.status, result.out) == (4, b"")
    check_words(result, "store.sqlite")
    assert mergepub("fetch", "/docs/guide.md", "--body-only").out == guide


def check_refused(result, words: str) -> None:
    assert (result.status, result.out) == (2, b""), result
    check_words(result, words)


def check_words(result, words: str) -> None:
    assert words in result.err
    assert "Traceback" not in result.err
    assert "internal error" not in result.err
    lines = result.err.splitlines()
    assert 1 <= len(lines) <= 2
    assert lines[0].startswith("mergepub: ")
    assert not lines[1:] or lines[1].startswith("hint: ")
