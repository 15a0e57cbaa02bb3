"""``mergepub merge -p`` of huge files: the sides are read past in parts, and nobody can tell but by time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.cli import mergefile, streams
from mergepub.merge import diff3, sparse
from tests.cli.test_merge import CASES, LABELS, write, write_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Runner

FILES = ("ours", "base", "theirs")
TEXT = [b"line %d of a text in which all lines differ\n" % n for n in range(20_000)]
BASE = b"".join(TEXT)
OURS = b"".join([*TEXT[:10], b"ours\n", *TEXT[11:9_000], b"clash\n", *TEXT[9_001:]])
THEIRS = b"".join([*TEXT[:9_000], b"clang\n", *TEXT[9_001:15_000], *TEXT[15_002:]])
BODIES = {"ours": OURS, "base": BASE, "theirs": THEIRS}
MERGED = b"".join([
    *(*TEXT[:10], b"ours\n", *TEXT[11:9_000]),
    *(b"<<<<<<< ours\n", b"clash\n", b"=======\n", b"clang\n", b">>>>>>> theirs\n"),
    *(*TEXT[9_001:15_000], *TEXT[15_002:]),
])  # fmt: skip


@pytest.fixture(autouse=True)
def everything_is_huge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mergefile, "HUGE", 0)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read whole."""
    names: list[str] = []

    def read_file(name: str) -> bytes:
        names.append(name)
        return streams.read_file(name)

    monkeypatch.setattr(mergefile, "read_file", read_file)
    return names


OPTIONS = [[], ["--diff3"], ["--zdiff3"], ["--ours"], ["--union"], ["--adjacent=conflict"], ["--granularity=word"]]
OPTIONS += [["--marker-size=9"], ["--engine=mergepub", "--style=diff3"], ["-q"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_case_comes_out_the_same_whether_its_files_count_as_huge_or_not(case, mergepub: Runner, monkeypatch):
    write_case(case)
    for options in (OPTIONS[0], OPTIONS[len(case["name"]) % len(OPTIONS)]):
        monkeypatch.setattr(mergefile, "HUGE", 0)
        huge = mergepub("merge", "-p", *options, *LABELS, *FILES)
        monkeypatch.setattr(mergefile, "HUGE", 1 << 40)
        assert mergepub("merge", "-p", *options, *LABELS, *FILES) == huge


@pytest.mark.parametrize("part", [100, 1 << 17])
def test_only_the_base_is_held(part: int, held: list[str], mergepub: Runner, monkeypatch):
    monkeypatch.setattr(streams.parts_of, "__defaults__", (part,))
    write(BODIES)
    result = mergepub("merge", "-p", *FILES)
    assert (result.status, result.out, result.err) == (1, MERGED, "mergepub: 1 conflict\n")
    assert held == ["base"]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_every_option_counts_for_huge_files_too(options, mergepub: Runner, monkeypatch):
    write(BODIES)
    huge = mergepub("merge", "-p", *options, *FILES)
    monkeypatch.setattr(mergefile, "HUGE", 1 << 40)
    assert mergepub("merge", "-p", *options, *FILES) == huge


def test_files_are_huge_from_a_size_on_and_below_it_nothing_is_imported_for_them():
    write({name: body[:100_000] for name, body in BODIES.items()})
    program = "import sys, mergepub.__main__ as m; m.main()\n"
    program += "sys.stderr.write(str('mergepub.merge.sparse' in sys.modules))"

    def imported() -> str:
        command = [sys.executable, "-c", program, "merge", "-p", "-q", *FILES]
        return subprocess.run(command, capture_output=True, check=False).stderr

    assert imported().endswith(b"False")
    padding = b"a line below\n" * 350_000
    write({name: body + padding for name, body in BODIES.items()})
    assert imported().endswith(b"True")


def test_ours_is_held_where_it_is_replaced(held: list[str], mergepub: Runner):
    write(BODIES)
    assert mergepub("merge", *FILES).status == 1
    assert Path("ours").read_bytes() == MERGED
    assert held == ["ours", "base", "theirs"]


def test_sides_that_have_to_be_held_are_read_again_and_the_base_is_not(held: list[str], mergepub: Runner):
    write({**BODIES, "theirs": b"".join(reversed(TEXT))})
    assert mergepub("merge", "-p", *FILES).status > 0
    assert held == ["base", "ours", "theirs"]


def test_a_nul_byte_is_refused_in_the_same_words(mergepub: Runner):
    for name, words in (("ours", "The ours body"), ("base", "The base body"), ("theirs", "The theirs body")):
        write({**BODIES, name: BODIES[name] + b"\0\n"})
        result = mergepub("merge", "-p", *FILES)
        assert (result.status, result.out) == (255, b"")
        assert words in result.err


def test_a_wrong_label_is_refused_in_the_same_words(mergepub: Runner):
    write({**BODIES, "theirs": BASE})
    result = mergepub("merge", "-p", "-L", "a\nb", *FILES)
    assert (result.status, result.out) == (255, b"")
    assert "control" in result.err


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_is_named(name: str, mergepub: Runner):
    write(BODIES)
    Path(name).unlink()
    result = mergepub("merge", "-p", *FILES)
    assert (result.status, result.out) == (255, b"")
    assert f"cannot read {name}: No such file" in result.err


@pytest.mark.parametrize("name", ["ours", "theirs"])
def test_a_side_that_is_a_directory_is_named(name: str, mergepub: Runner):
    write(BODIES)
    Path(name).unlink()
    Path(name).mkdir()
    assert f"cannot read {name}: Is a directory" in mergepub("merge", "-p", *FILES).err


@pytest.mark.parametrize("name", ["ours", "theirs"])
def test_a_side_that_comes_out_of_a_pipe_is_read_once(name: str, mergepub: Runner):
    write(BODIES)
    Path(name).unlink()
    os.mkfifo(name)
    threading.Thread(target=lambda: Path(name).write_bytes(BODIES[name]), daemon=True).start()
    result = mergepub("merge", "-p", *FILES)
    assert (result.status, result.out) == (1, MERGED)


@pytest.mark.parametrize("body", [OURS, b"".join(reversed(TEXT))], ids=["past", "whole"])
def test_a_side_may_be_standard_input(body: bytes, mergepub: Runner, monkeypatch):
    write(BODIES)
    huge = mergepub("merge", "-p", "/dev/stdin", "base", "theirs", stdin=body)
    monkeypatch.setattr(mergefile, "HUGE", 1 << 40)
    assert mergepub("merge", "-p", "/dev/stdin", "base", "theirs", stdin=body) == huge


def cut_while_read(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have somebody truncate the file once its second part has been read."""
    pread, calls = os.pread, []

    def reading(fd: int, count: int, at: int) -> bytes:
        found = pread(fd, count, at)
        if os.fstat(fd).st_ino == Path(name).stat().st_ino:
            calls.append(at)
            if len(calls) == 2:
                os.truncate(name, size)
        return found

    monkeypatch.setattr(os, "pread", reading)


def test_a_side_that_is_truncated_while_it_is_read_is_merged_as_it_was_read(mergepub: Runner, monkeypatch):
    theirs = b"".join([*TEXT[:400], b"theirs\n", *TEXT[401:]])
    write({**BODIES, "theirs": theirs})
    cut_while_read("ours", 1000, monkeypatch)
    result = mergepub("merge", "-p", *FILES)
    assert (result.status, result.out) == (0, diff3(BASE, OURS[: 2 * streams.PART], theirs).body)


def test_parts_may_be_short(mergepub: Runner, monkeypatch: pytest.MonkeyPatch):
    write(BODIES)
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, count, at: pread(fd, 1 + at % 7919, at))
    result = mergepub("merge", "-p", *FILES)
    assert (result.status, result.out) == (1, MERGED)


def failing(fail: Callable[[], None]) -> Callable[[int, int, int], bytes]:
    pread = os.pread

    def reading(fd: int, count: int, at: int) -> bytes:
        if at > 200_000:
            fail()
        return pread(fd, count, at)

    return reading


def test_a_side_that_cannot_be_read_on_is_read_whole(held: list[str], mergepub: Runner, monkeypatch):
    def fail() -> None:
        raise OSError(5, "Input/output error")

    write(BODIES)
    monkeypatch.setattr(os, "pread", failing(fail))
    result = mergepub("merge", "-p", *FILES)
    assert (result.status, result.out) == (1, MERGED)
    assert held == ["base", "ours", "theirs"]


def test_an_interrupt_while_a_side_is_read_is_130(mergepub: Runner, monkeypatch):
    def fail() -> None:
        raise KeyboardInterrupt

    write(BODIES)
    monkeypatch.setattr(os, "pread", failing(fail))
    result = mergepub("merge", "-p", *FILES)
    assert (result.status, result.out, result.err) == (130, b"", "mergepub: interrupted\n")


def test_options_that_look_at_whole_bodies_hold_them(held: list[str], mergepub: Runner, monkeypatch):
    monkeypatch.setattr(sparse, "merge_parts", None)
    write(BODIES)
    assert mergepub("merge", "-p", "--granularity", "word", *FILES).status == 1
    assert mergepub("merge", "-p", "--engine", "merge3", *FILES).status == 1
    assert held == [*FILES, *FILES]
