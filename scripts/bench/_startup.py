"""What each command costs to start; started by scripts/bench/startup.

Every command line is a process of its own; all of them take turns, in an order shuffled for each round, so that a
machine that slows down slows all of them. Compared are medians of CPU time (user and system, as the operating system
accounts the finished child) with the reference that each line names.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.stores.http_service import HttpService

PASS, CLICK, SQLITE = "python -c pass", "python -c 'import click'", "python -c 'import click, sqlite3'"
REQUESTS, PUT = "python -c 'import click, requests'", "python -c 'import click, requests', one PUT"

Command = Callable[[int], list[str]]


@dataclass
class Line:
    """One command line: how round N calls it, what it is compared with, and the ratio that is aimed at."""

    name: str
    command: Command
    reference: str = PASS
    target: float | None = None
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def run(self, number: int) -> None:
        streams = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
        streams.append((os.POSIX_SPAWN_OPEN, 2, "errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        argv = self.command(number)
        begun = time.perf_counter()
        child = os.posix_spawn(argv[0], argv, environment(), file_actions=streams)
        _, status, used = os.wait4(child, 0)
        self.wall.append((time.perf_counter() - begun) * 1e3)
        self.cpu.append((used.ru_utime + used.ru_stime) * 1e3)
        code = os.waitstatus_to_exitcode(status)
        assert code == 0, f"{' '.join(argv)} ended with {code}:\n{Path('errors.txt').read_text()}"


def environment() -> dict[str, str]:
    left_out = ("MERGEPUB_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def python(code: str) -> Command:
    return lambda _: [sys.executable, "-c", code]


def mergepub(*arguments: str) -> Command:
    """The command line, {n} standing for the number of the round."""
    script = str(Path(sys.executable).with_name("mergepub"))
    return lambda n: [script, *(argument.replace("{n}", str(n)) for argument in arguments)]


def one_put(url: str) -> Command:
    code = "import click, requests; r = requests.put({!r}, data=b'{}', headers={{'Mergepub-Expected-Version': '{}'}})"
    return lambda n: [sys.executable, "-c", f"{code.format(f'{url}/bare.md', n, n)}; r.raise_for_status()"]


def lines(service: str) -> list[Line]:
    local, remote = ("--store", "docs.sqlite"), ("--store", service)
    return [
        Line(PASS, python("pass")),
        Line(CLICK, python("import click")),
        Line(SQLITE, python("import click, sqlite3")),
        Line(REQUESTS, python("import click, requests")),
        Line(PUT, one_put(service)),
        Line("--version", mergepub("--version"), PASS, 1.2),
        Line("merge", mergepub("merge", "-p", "ours.md", "base.md", "theirs.md"), PASS, 1.2),
        Line("publish", mergepub("publish", "/a.md", "{n}.md", "--expected-version", "{n}", *local), SQLITE, 1.5),
        Line("fetch", mergepub("fetch", "/guide.md", *local), SQLITE, 1.5),
        Line("status", mergepub("status"), SQLITE, 1.5),
        Line(
            "publish over HTTP",
            mergepub("publish", "/b.md", "{n}.md", "--expected-version", "{n}", *remote),
            PUT,
            1.25,
        ),
        Line("fetch over HTTP", mergepub("fetch", "/guide.md", *remote), REQUESTS),
        Line("append", mergepub("append", "/log.md", "{n}.md", *local), SQLITE),
        Line("list", mergepub("list", *local), SQLITE),
        Line("versions", mergepub("versions", "/guide.md", *local), SQLITE),
        Line("log", mergepub("log", "/guide.md", *local), SQLITE),
        Line("diff", mergepub("diff", "/guide.md", "v1", "v2", *local), SQLITE),
        Line("verify", mergepub("verify", "/guide.md", *local), SQLITE),
        Line("config", mergepub("config", *local), SQLITE),
        Line("push, nothing to do", mergepub("push", "guide.md", *local), SQLITE),
        Line("--help", mergepub("--help"), CLICK),
        Line("publish --help", mergepub("publish", "--help"), CLICK),
    ]


def prepare(rounds: int) -> None:
    """Files, a store with a history, a tracked file."""
    for n in range(rounds + 1):
        Path(f"{n}.md").write_text(f"# Guide\n\nrevision {n}\n")
    for name, body in (("ours", "a\nB\nc\nd\n"), ("base", "a\nb\nc\nd\n"), ("theirs", "a\nb\nc\nD\n")):
        Path(f"{name}.md").write_text(body)
    local = ("--store", "docs.sqlite")
    for n in (0, 1):
        Line("", mergepub("publish", "/guide.md", "{n}.md", "--expected-version", "{n}", *local)).run(n)
    Line("", mergepub("publish", "/log.md", "{n}.md", "--expected-version", "{n}", *local)).run(0)
    Line("", mergepub("fetch", "/guide.md", "-o", "guide.md", *local)).run(0)


def measure(rounds: int) -> list[Line]:
    folder, before = tempfile.mkdtemp(prefix="mergepub-startup-"), Path.cwd()
    service = HttpService(f"{folder}/service.sqlite").start()
    try:
        os.chdir(folder)
        prepare(rounds)
        Line("", mergepub("publish", "/guide.md", "0.md", "--expected-version", "0", "--store", service.url)).run(0)
        found = lines(service.url)
        for number in range(rounds):
            for line in random.sample(found, len(found)):
                line.run(number)
    finally:
        os.chdir(before)
        service.remove()
        shutil.rmtree(folder)
    return found


def report(found: list[Line]) -> bool:
    """Print the table; whether every target is met."""
    median = {line.name: statistics.median(line.cpu[1:]) for line in found}  # the first round warms up
    print(f"{'':44} {'CPU ms':>7} {'wall ms':>8}  {'ratio':>6} {'target':>7}   beside")
    met = True
    for line in found:
        wall, ratio = statistics.median(line.wall[1:]), median[line.name] / median[line.reference]
        reached = line.target is None or ratio <= line.target
        met &= reached
        target = "" if line.target is None else f"{line.target:.2f}"
        note = "" if reached else "   over"
        print(f"{line.name:44} {median[line.name]:7.1f} {wall:8.1f}  {ratio:6.2f} {target:>7}   {line.reference}{note}")
    return met


def main() -> int:
    options = argparse.ArgumentParser(prog="scripts/bench/startup", description=__doc__)
    options.add_argument("--rounds", type=int, default=21, help="turns of every command, the first not counted (21)")
    met = report(measure(max(2, options.parse_args().rounds)))
    print("every target is met" if met else "a target is not met")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
