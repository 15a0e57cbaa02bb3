"""Commands that are really killed, at one step after the other, on a real store; the next commands make it good."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"
FIRST = b"one\ntwo\nthree\nfour\nfive\n"
COMMAND = Path(__file__).parent.parent / "killed_command.py"
EVERY = 5  # steps between two kills; the random histories kill at each of them


def killed(steps: int, *arguments: str) -> bool:
    """Run a command that is killed at that step; False when it ended before."""
    done = subprocess.run([sys.executable, COMMAND, str(steps), *arguments], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    return done.returncode == -signal.SIGKILL


def start(mergepub: Runner, ours: bytes, theirs: bytes) -> Path:
    """``guide.md`` with our edit of version 1, and theirs as version 2."""
    for file in Path().glob("*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST)
    mergepub("fetch", GUIDE, "-o", "guide.md", "--force")
    mergepub("publish", GUIDE, "--expected-version", "1", stdin=theirs)
    Path("guide.md").write_bytes(ours)
    return Path("guide.md")


def all_ends(mergepub: Runner, run, check) -> None:
    """Kill at every few steps until the command gets to its end; check after each kill."""
    steps, deaths = 0, 0
    while run(steps):
        deaths += 1
        check()
        steps += EVERY
    assert deaths > 3
    check()


OURS, THEIRS = FIRST.replace(b"five", b"FIVE"), FIRST.replace(b"one", b"ONE")
MERGED = b"ONE\ntwo\nthree\nfour\nFIVE\n"


@pytest.mark.parametrize(
    "call", [("push", "guide.md"), ("publish", GUIDE, "guide.md", "--on-conflict", "merge")], ids=str
)
def test_a_killed_push_is_made_good_by_the_next(call, mergepub: Runner):
    def run(steps: int) -> bool:
        start(mergepub, OURS, THEIRS)
        return killed(steps, *call)

    def check() -> None:
        assert Path("guide.md").read_bytes() in (OURS, MERGED)
        assert mergepub("push", "guide.md").status == 0
        assert mergepub("pull", "guide.md").status == 0
        assert Path("guide.md").read_bytes() == mergepub("fetch", GUIDE, "--body-only").out == MERGED
        assert mergepub("versions", GUIDE).out.count(b"\n") == 3, "published once"
        assert mergepub("status").out.startswith(b"unchanged")
        assert sorted(file.name for file in Path().glob("*uide*")) == ["guide.md"]

    all_ends(mergepub, run, check)


def test_a_killed_pull_and_an_edit_after_it_lose_nothing(mergepub: Runner):
    def run(steps: int) -> bool:
        start(mergepub, OURS, THEIRS)
        return killed(steps, "pull", "guide.md")

    def check() -> None:
        file = Path("guide.md")
        assert file.read_bytes() in (OURS, MERGED)
        file.write_bytes(file.read_bytes().replace(b"three", b"THREE"))
        assert mergepub("push", "guide.md").status == 0
        assert file.read_bytes() == MERGED.replace(b"three", b"THREE")

    all_ends(mergepub, run, check)


def test_a_killed_pull_into_a_conflict_is_none_or_a_whole_one(mergepub: Runner):
    ours = FIRST.replace(b"one", b"eins")

    def run(steps: int) -> bool:
        start(mergepub, ours, THEIRS)
        return killed(steps, "pull", "guide.md")

    def check() -> None:
        mergepub("resolve", "guide.md", "--union")
        assert mergepub("fetch", GUIDE, "--body-only").out == b"ONE\neins\ntwo\nthree\nfour\nfive\n"

    all_ends(mergepub, run, check)


def test_a_killed_rename_is_finished_or_undone(mergepub: Runner):
    def run(steps: int) -> bool:
        start(mergepub, OURS, THEIRS)
        return killed(steps, "mv", "guide.md", "renamed.md")

    def check() -> None:
        mergepub("fetch", GUIDE, "-o", "bystander.md", "--force")
        file = Path("renamed.md") if Path("renamed.md").exists() else Path("guide.md")
        assert file.read_bytes() == OURS
        assert Path("guide.md").exists() != Path("renamed.md").exists()
        assert mergepub("push", str(file)).status == 0
        assert file.read_bytes() == MERGED
        assert mergepub("status").out.count(b"\n") == 2

    all_ends(mergepub, run, check)
