#!/usr/bin/env python3
"""Who merges: whole processes and calls, one run of each measured alone.

    python3 scripts/bench/peers.py CALL FOLDER         one call on FOLDER/{base,ours,theirs}: seconds on standard output
    python3 scripts/bench/peers.py --output FILE NEAR  digest and conflicts of a marked body

A process is measured by the user and system time of the child, the steadiest figure on a machine that others use too;
a call by the processor time of the call alone, the files read and the modules imported, the median of a few.
Processes are started by a small one of their own (_runner.py), because a child inherits its starter's peak memory.
"""

from __future__ import annotations

import functools
import hashlib
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PYTHON = sys.executable
OURS, WORDS, GIT = "mergepub", "mergepub, by words", "git merge-file"
PIECES = "mergepub, unjoined"
WIGGLE, FLOOR = "wiggle -m", "python -c pass"
MERGE = [str(Path(PYTHON).parent / "mergepub"), "merge", "-p", "-q"]
REPEATS, PATIENCE = 7, 0.5  # a call is repeated so often, but not after so many seconds
LABELS = ["-L", "ours", "-L", "base", "-L", "theirs"]

COMMANDS: dict[str, list[str]] = {
    OURS: [*MERGE, "--adjacent", "conflict", *LABELS],
    WORDS: [*MERGE, "--granularity", "word", *LABELS],
    GIT: ["git", "merge-file", "-p", "-q", *LABELS],
    "diff3 -m": ["diff3", "-m", *LABELS],
    "merge3": [PYTHON, "-m", "merge3"],
    WIGGLE: ["wiggle", "-m"],
    FLOOR: [PYTHON, "-c", "pass"],
}


def call_ours(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    from mergepub.merge import diff3

    return diff3(base, ours, theirs, adjacent="conflict").body


def call_ours_unjoined(base: bytes, ours: bytes, theirs: bytes) -> object:
    from mergepub.merge import diff3

    return diff3(base, ours, theirs, adjacent="conflict").pieces


def call_merge3(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    import merge3

    lines = [body.splitlines(keepends=True) for body in (base, ours, theirs)]
    return b"".join(merge3.Merge3(*lines).merge_lines(name_a=b"ours", name_b=b"theirs"))


def call_mercurial(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    from mercurial import simplemerge

    lines, _ = simplemerge.render_minimized(simplemerge.Merge3Text(base, ours, theirs), b"ours", b"theirs")
    return b"".join(lines)


CALLS: dict[str, Callable[[bytes, bytes, bytes], object]] = {
    OURS: call_ours,
    PIECES: call_ours_unjoined,  # as who writes a merge out takes it: the copy of a huge body costs more than its merge
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
    """Run a command in the runner's care, killed after `limit` seconds of wall time; None then."""
    requests, answers = runner()
    requests.write("\t".join([str(out), *argv]).encode() + b"\n")
    child = int(answers.readline())
    if not select.select([answers], [], [], limit)[0]:
        os.kill(child, signal.SIGKILL)
    code, seconds, peak = answers.readline().split()
    return None if int(code) == -signal.SIGKILL else Run(float(seconds), int(peak) / 1024, int(code))


@functools.cache
def runner() -> tuple[IO[bytes], IO[bytes]]:
    """The process that starts all others, see _runner.py: where it reads requests and where it answers, unbuffered."""
    argv = [PYTHON, "-I", "-S", str(Path(__file__).with_name("_runner.py"))]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin
    assert process.stdout
    return process.stdin, process.stdout


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
