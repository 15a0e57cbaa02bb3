#!/usr/bin/env python3
"""Three-way merges to measure with: the same bytes on every machine, from a fixed seed.

    python3 scripts/bench/workloads.py OUTDIR [W1 W2 ...]     writes OUTDIR/Wn/{base,ours,theirs}

Lines are Markdown-like, 20 to 100 bytes, about one in eight is blank. An edit replaces one line (80 %), inserts one
(10 %) or deletes one (10 %).

W1 200 lines, two edits a side      W5 5,000 lines, half of them edited      W9  300 paragraphs of one line
W2 10,000 lines, 1 % edited         W6 three unlike documents                X1  20,000 random lines of five kinds
W3 100,000 lines, 0.1 %             W7 20,000 lines, five distinct ones      X2  20,000 lines, shuffled on one side
W4 1,000,000 lines, 10 edits        W8 10,000 lines, three blocks moved      X3  100,000 blank lines
                                                                             X4  200,000 lines, one region rewritten
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

Lines = list[bytes]
Merge = tuple[Lines, Lines, Lines]

SEED = 20261130
SYLLABLES = ["ba", "con", "de", "er", "fi", "gra", "hy", "in", "ju", "ka", "lo", "men", "nu", "or", "pre"]
SYLLABLES += ["qui", "re", "sta", "ti", "un", "ver", "wi", "xe", "yo", "zu", "ment", "ing", "ed"]


def vocabulary(chance: random.Random) -> list[str]:
    return sorted({"".join(chance.choice(SYLLABLES) for _ in range(chance.randint(1, 4))) for _ in range(3000)})


class Writer:
    """Writes lines; everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(SEED + seed)
        self.vocabulary = vocabulary(self.chance)

    def words(self, least: int, most: int) -> str:
        wanted = self.chance.randint(least, most)
        words: list[str] = []
        size = 0
        while size < wanted:
            words.append(self.chance.choice(self.vocabulary))
            size += len(words[-1]) + 1
        return " ".join(words)[:most]

    def line(self) -> bytes:
        kind = self.chance.random()
        if kind < 0.125:
            return b"\n"
        if kind < 0.17:
            text = "## " + self.words(17, 40)
        elif kind < 0.35:
            text = "- " + self.words(18, 90)
        elif kind < 0.42:
            text = "| " + self.words(8, 25) + " | " + self.words(8, 25) + " |"
        elif kind < 0.48:
            text = "    " + self.words(16, 60).replace(" ", "_") + "()"
        else:
            text = self.words(40, 98) + "."
        return text.encode() + b"\n"

    def full_line(self) -> bytes:
        while (line := self.line()) == b"\n":
            pass
        return line

    def document(self, lines: int) -> Lines:
        return [self.line() for _ in range(lines)]

    def edited(self, base: Lines, places: Iterable[int]) -> Lines:
        """The base with one edit at each of the places."""
        out: Lines = []
        last = 0
        for place in sorted(places):
            out += base[last:place]
            kind = self.chance.random()
            if kind < 0.9:
                out.append(self.full_line())
            if 0.8 <= kind < 0.9:
                out.append(base[place])
            last = place + 1
        return out + base[last:]

    def scattered(self, base: Lines, edits: int) -> Lines:
        return self.edited(base, set(self.chance.sample(range(len(base)), edits)))


def scattered_edits(seed: int, lines: int, edits: int) -> Merge:
    writer = Writer(seed)
    base = writer.document(lines)
    return base, writer.scattered(base, edits), writer.scattered(base, edits)


def small_document() -> Merge:
    writer = Writer(1)
    base = writer.document(200)
    return base, writer.edited(base, {20, 130}), writer.edited(base, {75, 180})


def unlike_documents() -> Merge:
    writer = Writer(6)
    return writer.document(5000), writer.document(5000), writer.document(5000)


def five_distinct_lines() -> Merge:
    writer = Writer(7)
    kinds = [writer.full_line() for _ in range(5)]
    chance = writer.chance
    base = [chance.choice(kinds) for _ in range(20000)]

    def side() -> Lines:
        out: Lines = []
        for line in base:
            if chance.random() >= 0.02:
                out.append(line)
                continue
            kind = chance.random()
            if kind < 0.9:
                out.append(chance.choice(kinds))
            if 0.8 <= kind < 0.9:
                out.append(line)
        return out

    return base, side(), side()


def moved_blocks() -> Merge:
    writer = Writer(8)
    base = writer.document(10000)
    ours = list(base)
    for source, target in ((1000, 6000), (4000, 500), (8000, 3000)):
        block = ours[source : source + 500]
        del ours[source : source + 500]
        ours[target:target] = block
    return base, ours, writer.scattered(base, 100)


def paragraphs_of_one_line() -> Merge:
    """Both sides edit two words of every paragraph, never the same ones."""
    writer = Writer(9)
    chance = writer.chance
    base: Lines = []
    ours: Lines = []
    theirs: Lines = []
    for _ in range(300):
        words = writer.words(790, 810).split(" ")
        places = chance.sample(range(len(words) // 8), 4)
        base += [" ".join(words).encode() + b"\n", b"\n"]
        for side, edits in ((ours, places[:2]), (theirs, places[2:])):
            changed = list(words)
            for place in edits:
                changed[place * 8 + 2] = chance.choice(writer.vocabulary)
            side += [" ".join(changed).encode() + b"\n", b"\n"]
    return base, ours, theirs


def random_lines_of_five_kinds() -> Merge:
    writer = Writer(11)
    kinds = [writer.full_line() for _ in range(5)]
    first, second, third = ([writer.chance.choice(kinds) for _ in range(20000)] for _ in range(3))
    return first, second, third


def shuffled_lines() -> Merge:
    writer = Writer(12)
    base = [b"%06d " % n + writer.full_line() for n in range(20000)]
    ours = list(base)
    writer.chance.shuffle(ours)
    return base, ours, writer.scattered(base, 20)


def blank_lines() -> Merge:
    writer = Writer(13)
    base = [b"\n"] * 100000

    def side() -> Lines:
        out = list(base)
        for place in sorted(set(writer.chance.sample(range(100000), 50)), reverse=True):
            out.insert(place, writer.full_line())
        return out

    return base, side(), side()


def rewritten_region() -> Merge:
    writer = Writer(14)
    base = writer.document(200000)
    ours = writer.scattered(base, 200)
    ours[90000:92000] = writer.document(2000)
    return base, ours, writer.scattered(base, 200)


ALL: dict[str, Callable[[], Merge]] = {
    "W1": small_document,
    "W2": lambda: scattered_edits(2, 10000, 100),
    "W3": lambda: scattered_edits(3, 100000, 100),
    "W4": lambda: scattered_edits(4, 1000000, 10),
    "W5": lambda: scattered_edits(5, 5000, 2500),
    "W6": unlike_documents,
    "W7": five_distinct_lines,
    "W8": moved_blocks,
    "W9": paragraphs_of_one_line,
    "X1": random_lines_of_five_kinds,
    "X2": shuffled_lines,
    "X3": blank_lines,
    "X4": rewritten_region,
}


def write(folder: Path, merge: Callable[[], Merge]) -> None:
    """Write one merge to a folder, unless it is there already."""
    if (folder / "theirs").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in zip(("base", "ours", "theirs"), merge(), strict=True):
        part = folder / (name + ".tmp")
        part.write_bytes(b"".join(lines))
        part.replace(folder / name)


if __name__ == "__main__":
    for load in sys.argv[2:] or ALL:
        write(Path(sys.argv[1]) / load, ALL[load])
