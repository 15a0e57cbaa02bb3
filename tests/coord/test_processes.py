"""Whether the process of a run lives: a number that another process has got meanwhile is another process."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mergepub.coord import processes
from mergepub.coord.processes import lives, started
from tests.coord.living import living, wait_for


def no_proc(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(processes, "_PROC", Path("/nowhere"))


def no_ps(patch: pytest.MonkeyPatch) -> None:
    no_proc(patch)
    patch.setenv("PATH", "/nowhere")


@pytest.fixture(params=["proc", "ps", "neither"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where it is told from."""
    name = str(request.param)
    if name == "proc" and not Path("/proc/self/stat").exists():
        pytest.skip("this system has no /proc")
    if name == "ps" and shutil.which("ps") is None:
        pytest.skip("this machine has no ps")
    {"proc": lambda _: None, "ps": no_proc, "neither": no_ps}[name](monkeypatch)
    return name


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    made = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield made
    made.kill()
    made.communicate()


def test_a_living_process_is_told_the_same_each_time_and_an_ended_one_not_at_all(
    source: str, child: subprocess.Popen[bytes]
) -> None:
    first = started([child.pid, os.getpid()])
    assert first == started([child.pid, os.getpid()])
    assert set(first) == {child.pid, os.getpid()}
    assert bool(first[child.pid]) is (source != "neither")
    child.kill()
    if source != "neither":  # who only knows that there is one waits until its parent has asked about it
        wait_for(lambda: child.pid not in started([child.pid]), "a process that has ended counts as living")
    child.wait()
    assert started([child.pid]) == {}


def test_nobody_is_asked_about_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    no_ps(monkeypatch)
    assert started([]) == {}


@pytest.mark.parametrize(
    ("found", "living_still"),
    [({}, False), ({7: "then"}, True), ({7: "later"}, False), ({7: ""}, True), ({8: "then"}, False)],
    ids=["gone", "the same", "another one", "cannot be told", "somebody else"],
)
def test_a_process_is_the_same_when_it_was_started_at_the_same_time(found: dict[int, str], living_still: bool) -> None:
    assert lives(7, "then", found) is living_still


def test_a_process_of_which_no_time_was_known_lives_while_its_number_does() -> None:
    assert lives(7, "", {7: "whenever"})


def another_process(store: Path, run: str) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE coord_runs SET process = 'another boot 1' WHERE id = ?", [run])
    connection.close()


def test_a_run_whose_number_is_another_process_now_is_ended(child: subprocess.Popen[bytes]) -> None:
    with living() as daemon:
        made = daemon.operator("run.start", checkout=str(daemon.checkout("one")), task="t", member="m", pid=child.pid)
        other = daemon.operator("run.start", checkout=str(daemon.checkout("one")), task="t", member="m", pid=child.pid)
        daemon.stop()
        another_process(daemon.folder / "store.sqlite", made["run_id"])
        daemon.start()
        wait_for(
            lambda: [run["run_id"] for run in daemon.operator("run.list")["runs"]] == [other["run_id"]],
            "another process keeps a dead run alive",
        )
