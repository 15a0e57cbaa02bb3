"""A file that is being saved in this very instant is read once it has been left alone; no other file is waited for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mergepub import calm
from mergepub.calm import LOOKS, when_calm

HOUR = 3600 * 10**9


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that an editor has just emptied, and writes to while it is waited for."""
    file = tmp_path / "guide.md"
    file.write_bytes(b"")
    monkeypatch.setattr(calm, "MOMENT", HOUR)  # so that any machine is fast enough
    monkeypatch.setattr(calm, "sleep", lambda _: file.write_bytes(b"saved\n"))
    return file


def never(_: float) -> None:
    raise AssertionError("there is nothing to wait for")


def test_what_an_editor_is_about_to_write_is_waited_for(saved: Path):
    assert when_calm(str(saved), saved.read_bytes) == b"saved\n"


def test_a_file_that_was_left_alone_is_read_once(saved: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calm, "sleep", never)
    for age in (2 * HOUR, -HOUR):  # the clock of another machine may be ahead
        times = (time.time_ns() - age,) * 2
        os.utime(saved, ns=times)
        assert when_calm(str(saved), saved.read_bytes) == b""


def test_a_file_that_is_written_to_without_end_is_taken_as_it_is(saved: Path, monkeypatch: pytest.MonkeyPatch):
    def more(_: float) -> None:
        with saved.open("ab") as file:
            file.write(b"line\n")

    monkeypatch.setattr(calm, "sleep", more)
    assert when_calm(str(saved), saved.read_bytes) == b"line\n" * LOOKS


def test_it_is_waited_until_the_moment_is_over(saved: Path, monkeypatch: pytest.MonkeyPatch):
    slept: list[float] = []
    monkeypatch.setattr(calm, "sleep", slept.append)
    changed = time.time_ns()
    os.utime(saved, ns=(changed, changed))
    monkeypatch.setattr(calm, "time_ns", lambda: changed + HOUR // 4 if not slept else changed + HOUR)
    when_calm(str(saved), saved.read_bytes)
    assert slept == [pytest.approx(HOUR * 3 / 4 / 1e9)]


@pytest.mark.parametrize("kind", ["pipe", "gone", "no name"])
def test_what_is_no_regular_file_is_read_once(kind: str, saved: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calm, "sleep", never)
    name: str = {"pipe": str(saved.with_name("pipe")), "gone": str(saved.with_name("gone")), "no name": "a\0b"}[kind]
    if kind == "pipe":
        os.mkfifo(name)
    reads = [b"once"]
    assert when_calm(name, reads.pop) == b"once"
