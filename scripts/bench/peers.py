#!/usr/bin/env python3
"""Who merges: whole processes and calls, one run of each measured alone.

    python3 scripts/bench/peers.py CALL FOLDER         one call on FOLDER/{base,ours,theirs}: seconds on standard output
    python3 scripts/bench/peers.py --output FILE NEAR  digest and conflicts of a marked body

A process is measured by the user and system time of the child, the steadiest figure on a machine that others use too;
a call by the processor time of the call alone, the files read and the modules imported, the median of a few. The
driver stays small, because a child inherits its peak memory over exec.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
OURS, GIT, FLOOR = "mergepub", "git merge-file", "python -c pass"
REPEATS, PATIENCE = 7, 0.5  # a call is repeated so often, but not after so many seconds
LABELS = ["-L", "ours", "-L", "base", "-L", "theirs"]

COMMANDS: dict[str, list[str]] = {
    OURS: [str(Path(PYTHON).parent / "mergepub"), "merge", "-p", "-q", "--adjacent", "conflict", *LABELS],
    GIT: ["git", "merge-file", "-p", "-q", *LABELS],
    "diff3 -m": ["diff3", "-m", *LABELS],
    "merge3": [PYTHON, "-m", "merge3"],
    "wiggle -m": ["wiggle", "-m"],
    FLOOR: [PYTHON, "-c", "pass"],
}


def call_ours(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    from mergepub.merge import diff3

    return diff3(base, ours, theirs, adjacent="conflict").body


def call_merge3(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    import merge3

    lines = [body.splitlines(keepends=True) for body in (base, ours, theirs)]
    return b"".join(merge3.Merge3(*lines).merge_lines(name_a=b"ours", name_b=b"theirs"))


def call_mercurial(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    from mercurial import simplemerge

    lines, _ = simplemerge.render_minimized(simplemerge.Merge3Text(base, ours, theirs), b"ours", b"theirs")
    return b"".join(lines)


CALLS: dict[str, Callable[[bytes, bytes, bytes], bytes]] = {
    OURS: call_ours,
    "merge3": call_merge3,
    "hg simplemerge": call_mercurial,
}


@dataclass
class Run:
    """One measured run: seconds of processor time, peak memory in MiB, exit status."""

    seconds: float
    memory: float
    status: int


def missing() -> list[str]:
    """The peers that are not installed here."""
    absent = [name for name, argv in COMMANDS.items() if shutil.which(argv[0]) is None]
    for name, module in (("merge3", "merge3"), ("hg simplemerge", "mercurial")):
        try:
            __import__(module)
        except ImportError:
            absent.append(name)
    return absent


def run_command(name: str, folder: Path, out: Path, limit: float) -> Run | None:
    """Run a peer as a process, its output into `out`; None when it took more than `limit` seconds."""
    argv = list(COMMANDS[name])
    if name != FLOOR:
        argv += [str(folder / body) for body in ("ours", "base", "theirs")]
    return spawn(argv, out, limit)


def run_call(name: str, folder: Path, out: Path, limit: float) -> Run | None:
    """Run a peer as a call in a process of its own; the seconds are those of the call alone."""
    run = spawn([PYTHON, __file__, name, str(folder)], out, limit)
    if run is None or run.status:
        return None
    return Run(float(out.read_text()), run.memory, 0)


def spawn(argv: list[str], out: Path, limit: float) -> Run | None:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(out), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    _, status, usage = os.wait4(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return None
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, code)


def conflicts(lines: Iterable[bytes], near: int) -> int:
    """The conflict blocks of a marked body; those at most `near` lines apart count as one."""
    count, inside, since = 0, False, near + 1
    for line in lines:
        if line.startswith(b"<<<<<<<") and not inside:
            count += since > near
            inside = True
        elif line.startswith(b">>>>>>>"):
            inside, since = False, 0
        elif not inside:
            since += 1
    return count


def look_at(out: Path, near: int) -> tuple[str, int]:
    """Digest and conflicts of an output, read in a process of its own: the driver must not grow with it."""
    answer = subprocess.run([PYTHON, __file__, "--output", str(out), str(near)], capture_output=True, check=True)
    digest, count = answer.stdout.split()
    return digest.decode(), int(count)


def output(file: str, near: str) -> None:
    with Path(file).open("rb") as lines:
        print(hashlib.file_digest(lines, "sha256").hexdigest(), end=" ")
        lines.seek(0)
        print(conflicts(lines, int(near)))


def call(name: str, folder: str) -> None:
    function = CALLS[name]
    bodies = [(Path(folder) / body).read_bytes() for body in ("base", "ours", "theirs")]
    function(b"a\nb\nc\n", b"a\nb\nc\nd\n", b"z\na\nb\nc\n")  # imports, warms up
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < PATIENCE:
        start = time.process_time()
        function(*bodies)
        seconds.append(time.process_time() - start)
    print(statistics.median(seconds))


if __name__ == "__main__":
    if sys.argv[1] == "--output":
        output(*sys.argv[2:])
    else:
        call(*sys.argv[1:])
