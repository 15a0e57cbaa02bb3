"""Other people's three-way merges, where they may be judges: git merge-file, and the merge3 library."""

from __future__ import annotations

import builtins
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mergepub.errors import InputError
from mergepub.merge import diff3
from tests.merge.support import check_marked, check_regions, lines, small_bodies


def random_triples(seed: int, count: int, letters: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Bodies of up to forty lines out of ``letters`` different ones; each side made of one to four edits."""
    chance = random.Random(seed)

    def line() -> bytes:
        return b"line %d\n" % chance.randrange(letters)

    def edited(body: list[bytes]) -> bytes:
        body = list(body)
        for _ in range(chance.randint(1, 4)):
            at, what = chance.randrange(len(body) + 1), chance.random()
            if what < 0.5 and at < len(body):
                body[at] = line()
            elif what < 0.75:
                body[at:at] = [line() for _ in range(chance.randint(1, 3))]
            else:
                del body[at : at + chance.randint(1, 3)]
        text = b"".join(body)
        return text[:-1] if chance.random() < 0.1 else text

    for _ in range(count):
        base = [line() for _ in range(chance.randint(0, 40))]
        yield b"".join(base), edited(base), edited(base)


def git_merge(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    for name, body in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(body)
    labels = ["-L", "ours", "-L", "base", "-L", "theirs"]
    done = subprocess.run(
        ["git", "merge-file", "-p", *labels, folder / "ours", folder / "base", folder / "theirs"],
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed, and it is the oracle here")
def test_the_verdict_is_gits_when_adjacent_is_conflict_and_so_are_the_bytes_of_clean_merges(tmp_path: Path) -> None:
    other_verdict, other_bytes, count = [], [], 800
    for base, ours, theirs in random_triples(1, count, letters=100_000):
        conflicts, body = git_merge(tmp_path, base, ours, theirs)
        merged = diff3(base, ours, theirs, adjacent="conflict")
        if bool(conflicts) != bool(merged.conflicts):
            other_verdict.append((base, ours, theirs))
        elif conflicts == merged.conflicts and conflicts < 2 and body != merged.body:
            other_bytes.append((base, ours, theirs))
    assert len(other_verdict) <= count * 0.005
    assert len(other_bytes) <= count * 0.005


def library_merge(base: bytes, ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    merge3 = pytest.importorskip("merge3", reason="the extra merge3 is not installed, and it is the oracle here")
    merge = merge3.Merge3(lines(base), lines(ours), lines(theirs))
    conflicts = sum(region[0] == "conflict" for region in merge.merge_regions())
    return conflicts, b"".join(merge.merge_lines())


def test_merge3_gives_the_same_where_an_unchanged_line_stands_between_the_edits() -> None:
    chance, compared = random.Random(2), 0
    for _ in range(300):
        base = [b"%d\n" % i for i in range(chance.randint(1, 8))]
        ours, theirs = ([chance.choice([line, line, line, b"x\n", b"y\n", b""]) for line in base] for _ in range(2))
        kept = [b"keep %d\n" % i for i in range(len(base) + 1)]
        bodies = [
            b"".join(line for pair in zip(kept, [*side, b""], strict=True) for line in pair)
            for side in (base, ours, theirs)
        ]
        merged = diff3(bodies[0], bodies[1], bodies[2])
        conflicts, body = library_merge(*bodies)
        assert merged.conflicts == conflicts
        if not conflicts:
            assert merged.body == body
            compared += 1
    assert compared > 50


def test_the_merge3_engine_keeps_the_promises_of_every_engine() -> None:
    pytest.importorskip("merge3", reason="the extra merge3 is not installed, and it is the engine here")
    bodies = list(small_bodies(2))
    for base in bodies:
        for ours in bodies:
            for theirs in bodies:
                merged = diff3(base, ours, theirs, engine="merge3")
                check_regions(merged, base, ours, theirs)
                if merged.conflicts:
                    check_marked(merged, ours, theirs)
                else:
                    assert set(lines(merged.body)) <= set(lines(ours) + lines(theirs))


def test_the_merge3_engine_finds_every_kind_of_region() -> None:
    pytest.importorskip("merge3", reason="the extra merge3 is not installed, and it is the engine here")
    base = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    ours = b"o\n2\n3\n4\nb\n6\n7\n8\nx\n"
    theirs = b"1\n2\nt\n4\nb\n6\n7\n8\ny\n"
    merged = diff3(base, ours, theirs, engine="merge3")
    assert [r.kind for r in merged.regions if r.kind != "unchanged"] == ["ours", "theirs", "both", "conflict"]
    assert merged.body == b"o\n2\nt\n4\nb\n6\n7\n8\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"


def test_a_missing_merge3_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_merge3(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "merge3":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_merge3)
    with pytest.raises(InputError, match=r'pip install "mergepub\[merge3\]"'):
        diff3(b"b\n", b"o\n", b"t\n", engine="merge3")
