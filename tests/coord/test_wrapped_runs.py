"""``coord run -- COMMAND`` and reports with their evidence, with real daemons that are killed at the worst moments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from tests.coord.living import PATIENCE, SCRIPT, Living, living, wait_for


@pytest.fixture
def daemon() -> Iterator[Living]:
    with living() as made:
        yield made


def wrapped(daemon: Living, *command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return daemon.mergepub("coord", "run", "--task", "a task", "--member", "m", "--", *command, check=False, **options)


def start(daemon: Living, *command: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [SCRIPT, "coord", "run", "--task", "a task", "--member", "m", "--workspace", "w", "--", *command],
        env=daemon.environment,
        cwd=cwd or daemon.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def runs(daemon: Living, *, everything: bool = False) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.operator("run.list", all=everything)["runs"]
    return found


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=True)
    return done.stdout.decode().strip()


# ── a run around a command ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_has_its_run_and_the_run_ends_with_it(daemon: Living) -> None:
    done = wrapped(daemon, "sh", "-c", f"{SCRIPT} coord status --json; cat; exit 5", input=b"in")
    line, _, rest = done.stdout.partition(b"\n")
    status = json.loads(line)["result"]
    assert (status["task"], status["member_id"], status["workspace_id"]) == ("a task", "m", "default")
    assert (rest, done.stderr, done.returncode) == (b"in", b"", 5)
    assert runs(daemon) == []
    (ended,) = runs(daemon, everything=True)
    assert (ended["run_id"], ended["state"]) == (status["run_id"], "finished")
    assert not daemon.socket(status["run_id"]).parent.exists()
    assert list((daemon.data / "transcripts").iterdir()) == []


def test_the_double_dash_may_be_missing_and_the_commands_own_options_are_its_own(daemon: Living) -> None:
    done = daemon.mergepub("coord", "run", "--task", "t", "printf", "%s", "--task", check=False)
    assert (done.stdout, done.returncode) == (b"--task", 0)


@pytest.mark.parametrize(("arguments", "status"), [(("--", "true"), 2), (("--task", "t"), 2), (("nonsense",), 2)])
def test_a_call_that_is_wrong_starts_nothing(daemon: Living, arguments: tuple[str, ...], status: int) -> None:
    done = daemon.mergepub("coord", "run", *arguments, check=False)
    assert (done.returncode, done.stdout) == (status, b"")
    assert b"Traceback" not in done.stderr
    assert runs(daemon, everything=True) == []


def test_a_program_that_is_not_there_is_127_and_no_run(daemon: Living) -> None:
    (daemon.folder / "plain").write_text("not executable")
    assert wrapped(daemon, "no-such-program").returncode == 127
    assert wrapped(daemon, "./plain").returncode == 126
    assert runs(daemon, everything=True) == []


def test_without_a_daemon_the_command_is_not_started(daemon: Living) -> None:
    daemon.stop()
    done = wrapped(daemon, "touch", "started")
    assert done.returncode == 4
    assert b"mergepub coord serve" in done.stderr
    assert not (daemon.folder / "started").exists()


def test_with_coordination_off_the_command_runs_and_its_run_has_no_socket() -> None:
    with living("--no-coordination") as daemon:
        done = wrapped(daemon, "sh", "-c", f"{SCRIPT} coord status --json; echo $?; exit 3")
        line, _, rest = done.stdout.partition(b"\n")
        assert json.loads(line)["error"]["data"]["reason"] == "off"
        assert (rest, done.returncode) == (b"4\n", 3)


def test_on_a_terminal_it_works_too(daemon: Living) -> None:
    command = (
        f"test -t 1 && echo begun && read line && {SCRIPT} coord report --outcome blocked --summary x; kill -15 $$"
    )
    child = pexpect.spawn(
        str(SCRIPT),
        ["coord", "run", "--task", "t", "--", "sh", "-c", command],
        env=daemon.environment | {"TERM": "dumb"},
        cwd=str(daemon.folder),
        timeout=PATIENCE,
    )
    child.expect(b"begun")  # what was shown is kept; what is shown while the report is made may be or not
    child.sendline(b"")
    child.expect(rb'"ok":true')
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 128 + signal.SIGTERM
    (kept,) = daemon.operator("evidence.list")["evidence"]
    captured = daemon.operator("evidence.show", evidence_ref=kept["evidence_ref"])["captured"]
    assert Path(captured["transcript"]).read_bytes().startswith(b"begun\r\n")


def test_a_run_whose_wrapper_was_killed_is_ended_by_the_daemon(daemon: Living) -> None:
    with start(daemon, "sh", "-c", "echo ready; exec sleep 60") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        (run,) = runs(daemon)
        child.kill()
        wait_for(lambda: not runs(daemon), "the run goes on")  # although nobody has asked about its end yet
        wait_for(lambda: not daemon.socket(run["run_id"]).parent.exists(), "its directory stays")


def test_a_run_that_was_stopped_by_the_operator_goes_on_as_a_command(daemon: Living) -> None:
    os.mkfifo(daemon.folder / "go")
    with start(daemon, "sh", "-c", "echo ready; read line < go; exit 6") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        daemon.operator("run.stop", run_id=runs(daemon)[0]["run_id"])
        (daemon.folder / "go").write_text("go\n")
        assert child.wait(PATIENCE) == 6
        assert child.stderr is not None
        assert child.stderr.read() == b""


def test_a_daemon_that_dies_takes_no_command_with_it_and_ends_its_run_when_it_is_back(daemon: Living) -> None:
    with start(daemon, "sh", "-c", "echo ready; read line < go; exit 7") as child:
        os.mkfifo(daemon.folder / "go")
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"ready\n"
        daemon.kill()
        (daemon.folder / "go").write_text("go\n")
        assert child.wait(PATIENCE) == 7
        assert b"the daemon will note it" in child.stderr.read()
    daemon.start()
    wait_for(lambda: not runs(daemon), "the run goes on")


def test_a_run_outlives_its_daemon_with_its_transcript(daemon: Living) -> None:
    report = f"{SCRIPT} coord report --outcome success --summary done"
    for name in ("go", "on"):
        os.mkfifo(daemon.folder / name)
    with start(daemon, "sh", "-c", f"echo before; read line < go; echo after; read line < on; {report}") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"before\n"
        daemon.kill()
        daemon.start()
        (daemon.folder / "go").write_text("go\n")
        assert child.stdout.readline() == b"after\n"
        (daemon.folder / "on").write_text("on\n")
        receipt = json.loads(child.stdout.readline())["result"]
        assert child.wait(PATIENCE) == 0
    captured = daemon.operator("evidence.show", evidence_ref=receipt["evidence_ref"])["captured"]
    assert Path(captured["transcript"]).read_bytes().startswith(b"before\nafter\n")
    assert (captured["transcript_truncated"], runs(daemon)) == (False, [])


def test_a_report_names_what_was_edited_in_the_moment_before(daemon: Living) -> None:
    folder = daemon.checkout("checkout", "/docs/a.md")
    run = daemon.run(folder)
    with daemon.client(run) as client:
        client.result("coord.status")
        (folder / "a.md").write_bytes(b"two\n")
        ref = client.result("coord.report", outcome="success", summary="done", idempotency_key="k")["evidence_ref"]
    assert daemon.operator("evidence.show", evidence_ref=ref)["captured"]["documents"] == ["/docs/a.md"]


# ── a capture that is cut off ───────────────────────────────────────────────────────────────────────────────────────

DEADLY_GIT = f"""#!{sys.executable}
import os, signal, sys
arguments = sys.argv[1:]
command = next(word for word in arguments if word in COMMANDS) if set(arguments) & set(COMMANDS) else ""
def strike(moment):
    if os.path.exists("DEADLY") and open("DEADLY").read() == f"{{moment}} {{command}}":
        os.unlink("DEADLY")
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(1)
strike("before")
status = os.waitstatus_to_exitcode(os.spawnv(os.P_WAIT, "REAL", ["git", *arguments]) << 8)
strike("after")
os._exit(status)
"""
COMMANDS = ("rev-parse", "ls-files", "add", "write-tree", "commit-tree", "update-ref")


@pytest.fixture
def deadly(daemon: Living) -> Path:
    """A git that kills the daemon once, at the moment that stands in the file that is returned."""
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, check=True).stdout.decode().strip()
    place = daemon.folder / "bin" / "git"
    place.parent.mkdir()
    text = DEADLY_GIT.replace("COMMANDS", repr(COMMANDS)).replace("DEADLY", str(daemon.folder / "deadly"))
    place.write_text(text.replace("REAL", real))
    place.chmod(0o755)
    daemon.stop()
    daemon.environment["PATH"] = f"{place.parent}:{os.environ['PATH']}"
    daemon.start()
    return daemon.folder / "deadly"


@pytest.mark.parametrize("moment", [f"{when} {what}" for what in COMMANDS for when in ("before", "after")])
def test_a_capture_that_was_cut_off_is_made_again_and_leaves_one_commit(
    daemon: Living, deadly: Path, moment: str
) -> None:
    folder = daemon.checkout("checkout", "/docs/a.md")
    git(folder, "init", "-q")
    (folder / "a.md").write_bytes(b"two\n")
    run = daemon.run(folder)
    deadly.write_text(moment)
    report = {"outcome": "success", "summary": "done", "idempotency_key": "k"}
    with daemon.client(run) as client, pytest.raises((AssertionError, OSError)):
        client.ask("coord.report", **report)
    daemon.wait_dead()
    (folder / "a.md").write_bytes(b"three\n")
    daemon.start()
    wait_for(lambda: daemon.operator("evidence.list")["evidence"], "the report is not finished by itself")
    with daemon.client(run) as client:
        ref = client.result("coord.report", **report)["evidence_ref"]
    captured = daemon.operator("evidence.show", evidence_ref=ref)["captured"]
    assert git(folder, "for-each-ref", "--format=%(objectname)") == captured["commit"]
    assert git(folder, "show", f"{captured['commit']}:a.md") == "three"
    assert captured["documents"] == ["/docs/a.md"]
    assert sorted(path.name for path in (daemon.data / "evidence").iterdir()) == [ref]
    assert sorted(path.name for path in (daemon.data / "evidence" / ref).iterdir()) == ["place.json"]
    assert [entry["kind"] for entry in daemon.operator("timeline.show")["entries"]] == ["report"]


def test_the_command_line_lists_and_shows_evidence(daemon: Living) -> None:
    (run,) = daemon.runs(1)
    receipt = json.loads(daemon.mergepub("coord", "report", "--outcome", "failure", "--summary", "no", run=run).stdout)
    ref = receipt["result"]["evidence_ref"]
    (row,) = json.loads(daemon.mergepub("coord", "evidence", "list", "--json").stdout)["result"]["evidence"]
    assert (row["evidence_ref"], row["report_state"], row["attempts"]) == (ref, "published", 0)
    shown = json.loads(daemon.mergepub("coord", "evidence", "show", ref, "--json").stdout)
    assert shown["ok"]
    assert any("no Git commit" in sentence for sentence in shown["result"]["captured"]["unresolved"])
    assert b"unresolved: " in daemon.mergepub("coord", "evidence", "show", ref).stdout
    gone = daemon.mergepub("coord", "evidence", "show", "evidence-none", "--json", check=False)
    assert (gone.returncode, json.loads(gone.stdout)["error"]["code"]) == (4, -32000)
