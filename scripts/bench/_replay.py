"""Score merge engines on a corpus of recorded merges; started by scripts/bench/replay.

A corpus line is a group of merges of one document: `repo`, `path`, `blobs` (the texts) and `cases`, each with the
indexes `b`, `o`, `t`, `r` of base, ours, theirs and what people committed, `git` (what git made of it: "clean" or
"conf") and `res` (which side people took whole, empty where they took neither).

Precision is the share of cleanly merged conflicts that came out exactly as people committed them; `exact share` is the
share of all of git's conflicts. People also tidy up while they merge, so `otherwise` is an upper bound of wrong merges.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mergepub.merge import diff3

Engine = Callable[[bytes, bytes, bytes], tuple[bytes, bool]]
STRATA = ("git's conflicts", "those not settled by taking one side whole", "git's clean merges")


class Case(NamedTuple):
    ident: str
    base: bytes
    ours: bytes
    theirs: bytes
    people: bytes
    conflict: bool
    one_side: bool

    @property
    def strata(self) -> list[str]:
        if not self.conflict:
            return [STRATA[2]]
        return [STRATA[0]] if self.one_side else [STRATA[0], STRATA[1]]


class Score:
    """What one engine made of the merges it was given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[str, Counter[str]] = {stratum: Counter() for stratum in STRATA}
        self.again: Counter[str] = Counter()
        self.times: list[float] = []

    def add(self, case: Case, engine: Engine, *, again: bool) -> None:
        began = time.perf_counter()
        try:
            body, conflict = engine(case.base, case.ours, case.theirs)
            verdict = "conflict" if conflict else "exact" if body == case.people else "otherwise"
        except Exception as error:
            verdict = "crashed"
            print(f"{self.name} crashed on {case.ident}: {error!r}", file=sys.stderr)
        self.times.append(time.perf_counter() - began)
        for stratum in case.strata:
            self.counts[stratum][verdict] += 1
        if again and not case.conflict and verdict in ("exact", "otherwise"):
            self.again["merges"] += 1
            self.again.update(changes(engine, case, body))

    def row(self, stratum: str) -> str:
        count = self.counts[stratum]
        clean, total = count["exact"] + count["otherwise"], count.total()
        precision = f"{count['exact'] / clean:7.1%}" if clean else "      -"
        return (
            f"  {self.name:<26}{total:>7}{clean:>7}{count['exact']:>7}{count['otherwise']:>11}{precision:>11}"
            f"{count['exact'] / max(total, 1):>8.1%}{count['crashed']:>9}"
            f"{statistics.median(self.times) * 1000:>9.2f}"
        )


def changes(engine: Engine, case: Case, merged: bytes) -> set[str]:
    """What happens when a clean result is merged once more with ours, with theirs and with itself."""
    found = set()
    for other in (case.ours, case.theirs, merged):
        body, conflict = engine(case.base, merged, other)
        if conflict:
            found.add("conflict")
        elif body != merged:
            found.add("another text")
    return found


def read(paths: list[Path], every: int) -> Iterator[Case]:
    for path in paths:
        with lzma.open(path, "rb") as lines:
            for line in lines:
                yield from group(json.loads(line.decode("utf-8", "surrogatepass")), every)


def group(record: dict[str, Any], every: int) -> Iterator[Case]:
    blobs = [blob.encode("utf-8", "surrogateescape") for blob in record["blobs"]]
    for case in record["cases"]:
        if int(case["id"], 16) % every == 0:
            base, ours, theirs, people = (blobs[case[key]] for key in "botr")
            yield Case(case["id"], base, ours, theirs, people, case["git"] == "conf", bool(case["res"]))


def ours(base: bytes, ours: bytes, theirs: bytes, **options: str) -> tuple[bytes, bool]:
    merged = diff3(base, ours, theirs, **options)
    return merged.body, merged.conflicts > 0


def process(command: list[str], folder: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    for name, body in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(body)
    done = subprocess.run(command, capture_output=True, check=False, cwd=folder, timeout=60)
    if done.returncode < 0 or done.returncode > 127:
        raise RuntimeError(done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}")
    return done.stdout, done.returncode != 0


def engines(folder: Path) -> Iterator[tuple[str, Engine]]:
    """Ours in its three readings, and the peers that are installed."""
    yield "mergepub", ours
    yield "mergepub --adjacent strict", partial(ours, adjacent="conflict")
    yield "mergepub, words", partial(ours, granularity="word")
    yield "mergepub, engine merge3", partial(ours, engine="merge3")
    peers = {
        "git merge-file": ["git", "merge-file", "-p", "-q", "ours", "base", "theirs"],
        "diff3 -m": ["diff3", "-m", "ours", "base", "theirs"],
        "wiggle -m (words)": ["wiggle", "-m", "ours", "base", "theirs"],
    }
    for name, command in peers.items():
        if shutil.which(command[0]):
            yield name, partial(process, command, folder)
        else:
            print(f"{command[0]} is not installed and left out")


def report(scores: list[Score], *, again: bool) -> None:
    for stratum in STRATA:
        print(f"\n{stratum}\n  {'':<26}{'merges':>7}{'clean':>7}{'exact':>7}{'otherwise':>11}", end="")
        print(f"{'precision':>11}{'exact %':>8}{'crashed':>9}{'p50 ms':>9}")
        for score in scores:
            print(score.row(stratum))
    if again:
        print("\ngit's clean merges, merged once more with ours, theirs and the result itself")
        for score in scores:
            count = score.again
            print(f"  {score.name:<26}{count['merges']:>7} merges, {count['another text']} change cleanly, ", end="")
            print(f"{count['conflict']} conflict")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="*", type=Path)
    parser.add_argument("--from", dest="folder", type=Path, default=Path())
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    named = options.corpus or [Path(os.environ["MERGEPUB_REPLAY"])]
    paths = [options.folder / path for path in named]
    for path in paths:
        if not path.is_file():
            print(f"replay: there is no corpus file {path}", file=sys.stderr)
            return 2
    cases = list(read(paths, options.every))
    print(f"{len(cases)} merges from {', '.join(path.name for path in paths)}; times of processes include their start")
    with tempfile.TemporaryDirectory() as folder:
        scores = []
        for name, engine in engines(Path(folder)):
            score = Score(name)
            for case in cases:
                score.add(case, engine, again=options.again)
            scores.append(score)
    report(scores, again=options.again)
    return 0


if __name__ == "__main__":
    sys.exit(main())
