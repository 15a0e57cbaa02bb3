"""Time and peak memory of pushing folders; started by scripts/bench/push."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.stores.http_service import HttpService

SCRIPT = Path(sys.executable).with_name("mergepub")
PER_FOLDER = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--size", type=int, default=1024, help="bytes of each file")
    parser.add_argument("--jobs", type=int, default=8)
    given = parser.parse_args()
    print(f"{'files':>6}  {'push':<11} {'seconds':>8}  {'files/s':>8}  {'client MB':>9}  {'service MB':>10}  summary")
    for count in given.files:
        measure(count, given.size, given.jobs)


def measure(count: int, size: int, jobs: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="mergepub-push-"))
    service = HttpService(str(folder / "docs.sqlite")).start()
    try:
        names = [folder / "site" / f"{number // PER_FOLDER:03}" / f"{number:05}.md" for number in range(count)]
        for number, name in enumerate(names):
            name.parent.mkdir(parents=True, exist_ok=True)
            name.write_bytes(f"Page {number}\n".encode() + b"text of the page\n" * (size // 17))
        push(folder, service, count, jobs, "all new")
        push(folder, service, count, jobs, "unchanged")
        for name in names[::100]:
            name.write_bytes(name.read_bytes() + b"one line more\n")
        push(folder, service, count, jobs, "1 % changed")
    finally:
        service.remove()
        shutil.rmtree(folder)


def push(folder: Path, service: HttpService, count: int, jobs: int, what: str) -> None:
    command = [str(SCRIPT), "push", "site", "--prefix", "/docs", "--store", service.url, "--jobs", str(jobs)]
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        child = spawn(command, folder, out.fileno())
        _, status, usage = os.wait4(child, 0)
        seconds = time.perf_counter() - started
        out.seek(0)
        summary = out.read().splitlines()[-1].decode()
    assert os.waitstatus_to_exitcode(status) == 0, summary
    row = f"{count:>6}  {what:<11} {seconds:>8.1f}  {count / seconds:>8.0f}  {usage.ru_maxrss / 1024:>9.1f}"
    print(f"{row}  {peak_of(service.pid):>10.1f}  {summary}", flush=True)


def peak_of(pid: int) -> float:
    """The most memory, in MB, that a process and those below it have held so far, each by itself."""
    status = Path(f"/proc/{pid}/status").read_text()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    return own / 1024 + sum(peak_of(int(child)) for child in children)


def spawn(command: list[str], folder: Path, out: int) -> int:
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(out, 1)
        os.execv(command[0], command)
    return child


if __name__ == "__main__":
    main()
