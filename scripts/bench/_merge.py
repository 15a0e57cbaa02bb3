"""What scripts/bench/merge runs: peers and mergepub interleaved, the table of targets, time against size.

Every round runs each peer once, in an order shuffled per round; figures are medians of processor time, quoted as
ratios. Conflicts stand beside times, because giving up early is fast. For W5 and W7 conflicts at most three lines apart
are counted as one in every output, since git joins such conflicts; the product does not.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import peers
import workloads
from peers import FLOOR, GIT, OURS, PIECES, WIGGLE, WORDS

HUGE = ("W4",)  # loads in which a call is measured without joining the pieces, too
SLOW = 4.0  # seconds; a peer that takes longer runs once, not in every round
NEAR = 3  # lines between two conflicts that are counted as one


@dataclass
class Target:
    """What mergepub promises on one load: figures at most or at least as large as these."""

    process: float  # times the process of `of`
    call: float | None  # times faster than merge3's call
    conflicts: Callable[[int], float]  # at most, given git's
    identical: bool = False
    memory: float | None = None  # times git's peak
    of: str = GIT
    command: str = OURS


TARGETS = {
    "W1": Target(1.2, 5, lambda git: git, identical=True, of=FLOOR),
    "W2": Target(1.8, 22, lambda git: git, identical=True),
    "W3": Target(0.27, 130, lambda git: git, identical=True),
    "W4": Target(0.09, 200, lambda git: git, identical=True, memory=0.40),
    "W5": Target(3.5, 4, lambda git: 1.2 * git),
    "W6": Target(2.5, 1, lambda _: 1),
    "W7": Target(1.5, 1.5, lambda git: 1.2 * git),
    "W8": Target(1.6, 3, lambda _: 3),
    "W9": Target(0.7, None, lambda _: 0, of=WIGGLE, command=WORDS),
}
FOLDED = ("W5", "W7")


@dataclass
class Peer:
    """The runs of one peer on one load."""

    seconds: list[float] = field(default_factory=list)
    memory: float = 0
    digest: str = ""
    conflicts: int = 0
    over: bool = False

    def add(self, run: peers.Run | None) -> None:
        if run is None:
            self.over = True
            return
        self.seconds.append(run.seconds)
        self.memory = max(self.memory, run.memory)

    @property
    def wanted(self) -> bool:
        return not self.over and not (self.seconds and self.seconds[0] > SLOW)

    @property
    def figure(self) -> float:
        return median(self.seconds) if self.seconds else math.nan


def measure(folder: Path, rounds: int, limit: float, commands: Iterable[str], calls: Iterable[str]) -> dict[str, Peer]:
    """Interleaved rounds of all peers on one load; a call is kept under its name with `()`."""
    near = NEAR if folder.name in FOLDED else 0
    runs: list[tuple[str, Callable[[Path], peers.Run | None]]] = [
        (name, lambda out, name=name: peers.run_command(name, folder, out, limit)) for name in commands
    ]
    runs += [(name + "()", lambda out, name=name: peers.run_call(name, folder, out, limit)) for name in calls]
    results = {name: Peer() for name, _ in runs}
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        out = Path(scratch) / "out"
        for _ in range(rounds):
            chance.shuffle(runs)
            for name, run in runs:
                peer = results[name]
                if peer.wanted:
                    peer.add(run(out))
                    if name in peers.COMMANDS and not peer.digest:
                        peer.digest, peer.conflicts = peers.look_at(out, near)
    return results


def ratio(value: float, of: float) -> str:
    return "-" if math.isnan(value / of) else f"{value / of:.2f}"


def show_load(load: str, results: dict[str, Peer]) -> None:
    """All peers on one load, with their ratios to git's process."""
    git = results[GIT]
    print(f"\n{load:28}{'cpu ms':>10}{'x git':>9}{'MiB':>7}{'conflicts':>11}")
    for name, peer in sorted(results.items(), key=lambda item: item[1].figure):
        if peer.over or not peer.seconds:
            print(f"  {name:26}{'over the limit':>19}")
            continue
        whole = not name.endswith("()")
        found = "-" if name == FLOOR or not whole else str(peer.conflicts)
        memory = f"{peer.memory:.0f}" if whole else "-"
        milliseconds = peer.figure * 1000
        print(f"  {name:26}{milliseconds:10.2f}{ratio(peer.figure, git.figure):>9}{memory:>7}{found:>11}")


def judge(load: str, results: dict[str, Peer]) -> tuple[list[str], bool]:
    """The cells of the table of targets for one load, and whether all of them hold."""
    target, git = TARGETS[load], results[GIT]
    ours = results[target.command]
    process = ours.figure / results[target.of].figure if target.of in results else math.nan
    call = results["merge3()"].figure / results[OURS + "()"].figure if "merge3()" in results else math.nan
    found, gits = ours.conflicts, git.conflicts
    same = ours.digest == git.digest
    memory = ours.memory / git.memory
    holds = [
        not process > target.process,  # a peer that is missing or over the limit decides nothing
        target.call is None or not call < target.call,
        found <= target.conflicts(gits),
        same or not target.identical,
        target.memory is None or memory <= target.memory,
    ]
    cells = [
        ("-" if math.isnan(process) else f"{process:.2f}") + f" <= {target.process:g} {target.of.partition(' ')[0]}",
        ("-" if math.isnan(call) else f"{call:.1f}") + (f" >= {target.call:g}" if target.call else ""),
        f"{found} <= {target.conflicts(gits):g} (git {gits})",
        ("yes" if same else "no") + ("" if target.identical else " (not asked)"),
        f"{memory:.2f}" + (f" <= {target.memory:g}" if target.memory else ""),
    ]
    return [cell if held else cell + " MISSED" for cell, held in zip(cells, holds, strict=True)], all(holds)


def show_targets(measured: dict[str, dict[str, Peer]]) -> bool:
    heads = ["load", "process", "call, times faster than merge3", "conflicts", "bytes = git's", "memory of git's"]
    rows = [heads]
    held = True
    for load in (name for name in measured if name in TARGETS):
        cells, holds = judge(load, measured[load])
        rows.append([load, *cells])
        held &= holds
    widths = [max(len(row[n]) for row in rows) for n in range(len(heads))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return held


def sizes_chart(data: Path, rounds: int, limit: float, commands: list[str], svg: Path) -> None:
    """Time against size: one line in a thousand edited on both sides, 100 to 1,000,000 lines."""
    sizes = [100, 1000, 10_000, 100_000, 1_000_000]
    drawn = [name for name in (OURS, GIT, "diff3 -m", "merge3") if name in commands]
    times: dict[str, dict[int, float]] = {name: {} for name in drawn}
    for size in sizes:
        folder = data / f"size-{size}"
        workloads.write(folder, lambda size=size: workloads.scattered_edits(100 + size, size, max(2, size // 1000)))
        # Four times ten is more than any of them needs for ten times the lines.
        fitting = [
            name for name in drawn if size == 100 or times[name].get(size // 10, limit) * 40 < limit or name == OURS
        ]
        for name, peer in measure(folder, rounds, limit, fitting, ()).items():
            if peer.seconds:
                times[name][size] = peer.figure
    print("\ntime against size, milliseconds of processor time, one line in a thousand edited on both sides")
    longest = math.log10(max(max(points.values()) for points in times.values()) * 1000)
    for size in sizes:
        print(f"{size:>9,} lines")
        for name in drawn:
            if size in times[name]:
                milliseconds = times[name][size] * 1000
                bar = "█" * max(1, round(50 * math.log10(max(1.0, milliseconds)) / longest))
                print(f"  {name:16}{milliseconds:10.1f}  {bar}")
    svg.write_text(draw(sizes, times))
    print(f"drawn in {svg}")


COLOURS = ("#0b6e4f", "#c8553d", "#7a7a7a", "#3f6fb5")


def draw(sizes: list[int], times: dict[str, dict[int, float]]) -> str:
    """An SVG chart, both axes logarithmic."""
    low, high = 1.0, 10 ** math.ceil(math.log10(max(max(points.values()) for points in times.values()) * 1000))

    def across(size: float) -> float:
        return 70 + 400 * math.log10(size / sizes[0]) / math.log10(sizes[-1] / sizes[0])

    def up(milliseconds: float) -> float:
        return 310 - 270 * math.log10(milliseconds / low) / math.log10(high / low)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 360" font-family="sans-serif" font-size="12">',
        '<rect width="620" height="360" fill="#ffffff"/>',
        '<text x="70" y="24" font-size="14">Three-way merge: processor time against size</text>',
        '<text x="270" y="350" text-anchor="middle">lines, one in a thousand edited on both sides</text>',
    ]
    parts += [f'<text x="{across(size):.0f}" y="328" text-anchor="middle">{size:,}</text>' for size in sizes]
    step = low
    while step <= high:
        y = up(step)
        parts.append(f'<line x1="70" y1="{y:.0f}" x2="470" y2="{y:.0f}" stroke="#dddddd"/>')
        parts.append(f'<text x="62" y="{y + 4:.0f}" text-anchor="end">{step:g} ms</text>')
        step *= 10
    for (name, points), colour in zip(times.items(), COLOURS, strict=False):
        path = " ".join(f"{across(size):.1f},{up(seconds * 1000):.1f}" for size, seconds in points.items())
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        last = max(points)
        x, y = across(last) + 8, up(points[last] * 1000) + 4
        parts.append(f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench/merge", description=__doc__)
    parser.add_argument("--load", default=",".join(TARGETS), help="workloads, see workloads.py")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a peer is stopped")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "mergepub-bench")
    parser.add_argument("--no-chart", action="store_true", help="leave out time against size")
    parser.add_argument("--svg", type=Path, default=Path(__file__).with_name("merge-time.svg"))
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    os.environ["GIT_CONFIG_GLOBAL"] = os.environ["GIT_CONFIG_SYSTEM"] = os.devnull
    absent = peers.missing()
    if absent:
        print("not installed and left out:", ", ".join(absent))
    if GIT in absent or OURS in absent:
        sys.exit("git and mergepub are needed: run scripts/bench/merge, with git on the PATH")
    commands = [name for name in peers.COMMANDS if name not in absent]
    calls = [name for name in peers.CALLS if name not in absent]
    measured = {}
    for load in options.load.split(","):
        workloads.write(options.data / load, workloads.ALL[load])
        wanted = [name for name in commands if name != WORDS or (load in TARGETS and TARGETS[load].command == WORDS)]
        called = [name for name in calls if name != PIECES or load in HUGE]
        measured[load] = measure(options.data / load, options.rounds, options.limit, wanted, called)
        show_load(load, measured[load])
        sys.stdout.flush()
    held = show_targets(measured)
    if not options.no_chart:
        sizes_chart(options.data, min(3, options.rounds), options.limit, commands, options.svg)
    return 1 if options.strict and not held else 0


if __name__ == "__main__":
    sys.exit(main())
