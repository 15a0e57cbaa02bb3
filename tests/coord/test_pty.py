"""Commands on real pseudo-terminals and on pipes: bytes, sizes, signals, stops and exit statuses come through."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

PROGRAM = """
import os, sys
from mergepub.coord import pty
kept = open(sys.argv[1], "ab", buffering=0)
status = pty.run(sys.argv[2:], os.environ, kept.write)
try:
    os.write(1, b"[over]")
except OSError:
    pass
os._exit(status)
"""
PATIENCE = 60


def arguments(kept: Path, *command: str) -> list[str]:
    return ["-c", PROGRAM, str(kept), *command]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def spawned() -> Iterator[list[pexpect.spawn[bytes]]]:
    made: list[pexpect.spawn[bytes]] = []
    yield made
    for each in made:
        each.close(force=True)


def on_terminal(spawned: list[Any], kept: Path, *command: str, **options: Any) -> pexpect.spawn[bytes]:
    child = pexpect.spawn(sys.executable, arguments(kept, *command), timeout=PATIENCE, **options)
    spawned.append(child)
    return child


def status_of(child: pexpect.spawn[bytes]) -> int:
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus is not None, child.signalstatus
    return child.exitstatus


def on_pipes(kept: Path, *command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments(kept, *command)], capture_output=True, check=False, timeout=60, **options
    )


def wait_for(condition: Any) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def is_over(pid: int) -> bool:
    try:
        return state_of(pid) == "Z"
    except OSError:
        return True


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


# ── pipes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_on_pipes_every_byte_comes_through_each_output_for_itself(kept: Path) -> None:
    done = on_pipes(kept, "sh", "-c", r"cat; printf 'o\r\n\0\377' ; printf 'e\n' >&2; exit 7", input=b"in\r\n\x04\xfe")
    assert (done.stdout, done.stderr, done.returncode) == (b"in\r\n\x04\xfeo\r\n\0\xff[over]", b"e\n", 7)
    assert sorted(kept.read_bytes()) == sorted(b"in\r\n\x04\xfeo\r\n\0\xffe\n")


def test_large_output_is_whole(kept: Path) -> None:
    done = on_pipes(kept, "sh", "-c", "seq 300000")
    assert done.stdout == b"".join(b"%d\n" % n for n in range(1, 300001)) + b"[over]"
    assert kept.read_bytes() + b"[over]" == done.stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_that_ended_the_command_is_128_and_its_number(kept: Path, number: int) -> None:
    assert on_pipes(kept, "sh", "-c", f"kill -{int(number)} $$").returncode == 128 + number


def test_who_still_holds_the_output_after_the_end_is_not_waited_for(kept: Path) -> None:
    done = subprocess.Popen(
        [sys.executable, *arguments(kept, "sh", "-c", "yes & sleep 0.2; echo $! >&2")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = done.communicate(timeout=60)
    assert done.returncode == 0
    assert out.endswith(b"[over]")
    wait_for(lambda: is_over(int(err.split()[-1])))


def test_a_reader_that_went_away_ends_the_command_as_it_would_alone(kept: Path) -> None:
    with subprocess.Popen([sys.executable, *arguments(kept, "yes")], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read(10)
        child.stdout.close()
        assert child.wait(PATIENCE) == 128 + signal.SIGPIPE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_a_signal_for_us_is_passed_on_once_and_the_command_decides(kept: Path, number: int) -> None:
    script = f"trap 'echo met' {int(number)}; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen([sys.executable, *arguments(kept, "bash", "-c", script)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.stdout.readline() == b"met\n"
        assert child.poll() is None
        child.send_signal(signal.SIGTERM if number != signal.SIGTERM else signal.SIGHUP)
        assert b"met" not in child.stdout.read()
    assert child.returncode == 128 + (signal.SIGTERM if number != signal.SIGTERM else signal.SIGHUP)


def test_a_program_that_cannot_be_started_is_an_os_error(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"\x7fELFjunk")
    (tmp_path / "junk").chmod(0o755)
    for name in ("nosuchprogram", str(tmp_path / "junk")):
        done = on_pipes(kept, name)
        assert b"OSError" in done.stderr or b"FileNotFoundError" in done.stderr


# ── terminals ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_on_a_terminal_the_command_has_a_terminal_of_our_size(spawned: list[Any], kept: Path) -> None:
    child = on_terminal(
        spawned, kept, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size", dimensions=(33, 77)
    )
    child.expect(b"33 77\r\n")
    assert status_of(child) == 0
    assert kept.read_bytes() == b"33 77\r\n"


def test_a_new_size_of_the_window_is_passed_on(spawned: list[Any], kept: Path) -> None:
    script = "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.1; done"
    child = on_terminal(spawned, kept, "bash", "-c", script)
    child.expect(b"ready")
    child.setwinsize(11, 44)
    child.expect(b"11 44")
    assert status_of(child) == 4


def test_what_is_typed_arrives_and_ctrl_d_ends_it(spawned: list[Any], kept: Path) -> None:
    child = on_terminal(spawned, kept, "cat")
    child.sendline(b"hello")
    child.expect(b"hello\r\nhello\r\n")
    child.sendeof()
    assert status_of(child) == 0


def test_more_is_typed_than_the_command_reads(spawned: list[Any], kept: Path) -> None:
    child = on_terminal(spawned, kept, "sh", "-c", "stty raw -echo; echo ready; sleep 1; head -c 200000 | wc -c")
    child.expect(b"ready")
    child.send(b"x" * 200000)
    child.expect(b"200000")
    assert status_of(child) == 0


def test_ctrl_c_reaches_the_command_alone(spawned: list[Any], kept: Path) -> None:
    script = "trap 'echo met; exit 9' INT; echo ready; while :; do sleep 0.1; done"
    child = on_terminal(spawned, kept, "bash", "-c", script)
    child.expect(b"ready")
    child.sendintr()
    child.expect(b"met")
    assert status_of(child) == 9


def test_a_command_ended_by_ctrl_c_is_130(spawned: list[Any], kept: Path) -> None:
    child = on_terminal(spawned, kept, "sh", "-c", "echo ready; exec sleep 60")
    child.expect(b"ready")
    child.sendintr()
    assert status_of(child) == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_on_a_terminal_signals_are_passed_on_too(spawned: list[Any], kept: Path, number: int) -> None:
    child = on_terminal(spawned, kept, "sh", "-c", "echo ready; exec sleep 60")
    child.expect(b"ready")
    child.kill(number)
    assert status_of(child) == 128 + number


def test_the_terminal_is_as_it_was_afterwards(spawned: list[Any], kept: Path) -> None:
    shell = pexpect.spawn("bash", ["--norc"], timeout=PATIENCE, env=os.environ | {"PS1": "$ ", "P": PROGRAM})
    spawned.append(shell)
    shell.sendline(
        f"before=$(stty -g); {sys.executable} -c \"$P\" {kept} sh -c 'stty raw; kill -9 $$'; echo status $?;"
        ' [ "$before" = "$(stty -g)" ]; echo the same: $((7 + $?))'
    )
    shell.expect(b"status 137")
    shell.expect(b"the same: 7")


def test_output_of_a_moment_before_the_end_is_not_lost(spawned: list[Any], kept: Path) -> None:
    for _ in range(5):
        kept.unlink(missing_ok=True)
        child = on_terminal(spawned, kept, "sh", "-c", "seq 5000")
        child.expect(rb"\[over\]")
        assert kept.read_bytes() == b"".join(b"%d\r\n" % n for n in range(1, 5001))


def test_errors_sent_to_a_file_go_there_and_are_kept(spawned: list[Any], kept: Path, tmp_path: Path) -> None:
    program = (
        f'exec 2>{tmp_path}/errors; exec {sys.executable} -c "$PROGRAM" {kept} sh -c '
        "'test -t 2 || echo bad >&2; echo good'"
    )
    child = pexpect.spawn("sh", ["-c", program], env=os.environ | {"PROGRAM": PROGRAM}, timeout=PATIENCE)
    spawned.append(child)
    child.expect(b"good")
    assert status_of(child) == 0
    assert (tmp_path / "errors").read_bytes() == b"bad\n"
    assert b"bad\n" in kept.read_bytes()


def test_ctrl_z_stops_both_and_fg_goes_on(spawned: list[Any], kept: Path) -> None:
    shell = pexpect.spawn("bash", ["--norc", "-i"], timeout=PATIENCE, env=os.environ | {"PS1": "$ ", "P": PROGRAM})
    spawned.append(shell)
    script = 'trap "echo continued" CONT; echo ready; while read line; do echo got $line; done'
    shell.sendline(f"{sys.executable} -c \"$P\" {kept} bash -c '{script}'")
    shell.expect(b"ready\r\n")
    shell.send(b"\x1a")
    shell.expect(b"Stopped")
    shell.sendline(b"echo shell here")
    shell.expect(b"shell here\r\n")
    shell.sendline(b"fg")
    shell.expect(b"continued")
    shell.sendline(b"word")
    shell.expect(b"got word")
    shell.sendeof()
    shell.expect(rb"\[over\]")
    shell.sendline(b"echo status $?")
    shell.expect(b"status 0")


def filled(child: pexpect.spawn[bytes]) -> int:
    """Type until nothing takes any more; how much that was."""
    os.set_blocking(child.child_fd, False)
    typed, quiet = 0, 0
    while quiet < 10:
        try:
            typed += os.write(child.child_fd, b"x" * 1000)
            quiet = 0
        except BlockingIOError:
            quiet += 1
            time.sleep(0.05)
    os.set_blocking(child.child_fd, True)
    return typed


def test_what_was_typed_and_not_taken_before_a_stop_arrives_after_it(
    spawned: list[Any], kept: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    script = f"stty raw -echo; echo ready; read count < {tmp_path}/go; head -c $count | wc -c"
    child = on_terminal(spawned, kept, "bash", "-c", script)
    child.expect(b"ready")
    typed = filled(child)
    for number in (signal.SIGTSTP, signal.SIGCONT):
        child.kill(number)
        time.sleep(0.2)
    (tmp_path / "go").write_text(f"{typed}\n")
    child.expect(str(typed).encode())
    assert status_of(child) == 0


def test_where_nobody_could_continue_us_ctrl_z_stops_nothing_for_good(spawned: list[Any], kept: Path) -> None:
    child = on_terminal(spawned, kept, "bash", "-c", "echo ready; while read line; do echo got $line; done")
    child.expect(b"ready")
    child.send(b"\x1a")
    child.sendline(b"word")
    child.expect(b"got word")
    child.sendeof()
    assert status_of(child) == 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_a_monitor_that_was_killed_ends_the_command_and_us(spawned: list[Any], kept: Path) -> None:
    child = on_terminal(spawned, kept, "sh", "-c", "echo pid $$; exec sleep 60")
    child.expect(rb"pid (\d+)\r\n")
    assert child.match is not None
    os.kill(parent_of(int(child.match.group(1))), signal.SIGKILL)
    assert status_of(child) == 128 + signal.SIGHUP


def test_in_the_background_the_terminal_is_left_alone(spawned: list[Any], kept: Path) -> None:
    shell = pexpect.spawn("bash", ["--norc", "-i"], timeout=PATIENCE, env=os.environ | {"PS1": "$ ", "P": PROGRAM})
    spawned.append(shell)
    shell.sendline(f'{sys.executable} -c "$P" {kept} sh -c "echo ready; exec sleep 60" &')
    shell.expect(b"ready\r+\n")
    shell.sendline(b"echo still $((40+2))")
    shell.expect(b"still 42")
    shell.sendline(b"kill %1; wait %1; echo status $?")
    shell.expect(b"status 143")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_nothing_lives_on_when_we_are_killed(spawned: list[Any], kept: Path) -> None:
    child = on_terminal(spawned, kept, "sh", "-c", "echo pid $$; sleep 60; echo late")
    child.expect(rb"pid (\d+)\r\n")
    assert child.match is not None
    pid = int(child.match.group(1))
    family = [pid, parent_of(pid)]
    os.kill(child.pid, signal.SIGKILL)
    wait_for(lambda: all(map(is_over, family)))
    assert b"pid" in kept.read_bytes()
