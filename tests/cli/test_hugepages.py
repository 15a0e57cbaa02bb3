"""Starting again with huge pages: for large files alone, once, with the same command, and never to anybody's harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mergepub.cli import hugepages
from mergepub.cli.mergefile import LARGE, are_large

Calls = list[tuple[str, list[str], dict[str, str]]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Calls:
    """What would take the place of the process, on a system that gives huge pages on request."""
    made: Calls = []
    monkeypatch.setattr(os, "execve", lambda *call: made.append(call))
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    set_to(monkeypatch, tmp_path, b"always [madvise] never\n")
    return made


def set_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: bytes) -> None:
    setting = tmp_path / "enabled"
    setting.write_bytes(text)
    monkeypatch.setattr(hugepages, "_SETTING", str(setting))


def large_files(folder: Path) -> list[str]:
    """Three files that take no room on the disk: their holes read as NUL bytes."""
    for name in ("ours", "base", "theirs"):
        with (folder / name).open("wb") as file:
            file.truncate(LARGE // 3 + 1)
    with (folder / "theirs").open("r+b") as file:
        file.write(b"theirs\n")
    return [str(folder / name) for name in ("ours", "base", "theirs")]


def test_the_same_command_starts_again_with_huge_pages(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "/bin/mergepub", "merge", "a", "b", "c"])
    hugepages.start_again()
    ((program, argv, environment),) = calls
    assert program == sys.executable
    assert argv == [sys.executable, "/bin/mergepub", "merge", "a", "b", "c"]
    assert environment == {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def test_it_starts_again_once(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    hugepages.start_again()
    assert not calls


def test_what_the_user_asked_of_the_allocator_stands(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "")
    hugepages.start_again()
    assert not calls


@pytest.mark.parametrize("text", [b"[always] madvise never\n", b"always madvise [never]\n", b""])
def test_nothing_starts_again_where_everybody_or_nobody_gets_huge_pages(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: bytes
) -> None:
    set_to(monkeypatch, tmp_path, text)
    hugepages.start_again()
    assert not calls


def test_nothing_starts_again_where_the_system_does_not_say(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hugepages, "_SETTING", "/nowhere/enabled")
    hugepages.start_again()
    assert not calls


def test_nothing_starts_again_without_a_known_interpreter(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    hugepages.start_again()
    assert not calls


def test_a_process_that_cannot_start_again_goes_on(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "execve", refused)
    hugepages.start_again()
    assert not calls


def test_files_are_large_by_their_sizes_together(tmp_path: Path) -> None:
    files = large_files(tmp_path)
    assert are_large(files)
    os.truncate(files[0], 0)
    assert not are_large(files)


@pytest.mark.parametrize("name", ["missing", "a\0b"])
def test_a_name_that_cannot_be_read_is_not_large(tmp_path: Path, name: str) -> None:
    assert not are_large([*large_files(tmp_path)[:2], name])


@pytest.mark.parametrize("tunables", [None, ""], ids=["huge pages", "as ever"])
def test_large_files_merge_the_same_in_either_way(tmp_path: Path, tunables: str | None) -> None:
    files = large_files(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    if tunables is not None:
        environment["GLIBC_TUNABLES"] = tunables
    with (tmp_path / "out").open("wb") as out:
        command = [sys.executable, "-m", "mergepub", "merge", "-p", *files]
        done = subprocess.run(command, stdout=out, env=environment, check=False, timeout=120)
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == Path(files[2]).read_bytes()
