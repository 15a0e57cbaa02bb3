"""Fuzz the diff, the merge and the marker parser; started by scripts/fuzz SECONDS [TARGET [SEED]].

Bodies are made of few distinct lines and of edits of one base, so that hunks meet, touch and overlap all the time; and
of lines that look like markers, of mixed endings, of bytes that are no UTF-8.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mergepub.merge import diff3
from mergepub.merge.lines import converted_ending, dominant_ending
from mergepub.merge.markers import Conflict, conflict_blocks, parse
from mergepub.merge.myers import edit_script
from tests.merge.support import check_marked, check_regions, check_swapped, lines

WORDS = [b"alpha", b"beta", b"gamma", b"the", b"a", b"|", b"-", b"\xc3\xa9t\xc3\xa9", b"\xff", b"\t", b""]
LOOKS = [b"", b"x", b"=======", b"<<<<<<< x", b">>>>>>>", b"||||||| q", b"<<<<<<<<", b"\r", b"y\r"]
LINE = st.sampled_from(LOOKS) | st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(b" ".join)
EDIT = st.tuples(st.integers(0, 40), st.integers(0, 3), st.lists(LINE, max_size=3))
ENDING = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])
OPTIONS = st.fixed_dictionaries(
    {
        "adjacent": st.sampled_from(["clean", "conflict"]),
        "style": st.sampled_from(["merge", "diff3", "zdiff3"]),
        "granularity": st.sampled_from(["line", "word"]),
        "favour": st.sampled_from([None, None, None, "ours", "theirs", "union"]),
    }
)


@st.composite
def related(draw: st.DrawFn, count: int) -> list[bytes]:
    """A body and edits of it."""
    base = draw(st.lists(LINE, max_size=30))
    bodies = [base]
    for _ in range(count - 1):
        body = list(base)
        for at, removed, added in draw(st.lists(EDIT, max_size=5)):
            body[at : at + removed] = added
        bodies.append(body)
    return [draw(ENDING).join(body) + draw(st.sampled_from([b"", b"\n", b"\r\n"])) for body in bodies]


def check_diff(bodies: list[bytes]) -> None:
    a, b = bodies
    for weak_rule in (True, False):
        at = b_at = 0
        for a0, a1, b0, b1 in edit_script(a, b, weak_rule=weak_rule):
            assert a[at:a0] == b[b_at:b0]
            assert a0 > at or at == 0
            assert a1 > a0 or b1 > b0
            at, b_at = a1, b1
        assert a[at:] == b[b_at:]


def check_merge(bodies: list[bytes], options: dict[str, Any]) -> None:
    base, ours, theirs = bodies
    merged = diff3(base, ours, theirs, **options)
    check_regions(merged, base, ours, theirs)
    converted = converted_ending(base, ours, theirs)
    if options["favour"] is None:
        check_swapped(merged, diff3(base, theirs, ours, **options))
    if merged.conflicts and not converted:
        check_marked(merged, ours, theirs, dominant_ending(base, ours, theirs))
    if not (merged.conflicts or merged.settled or converted) and options["granularity"] == "line":
        assert set(lines(merged.body)) <= set(lines(ours) + lines(theirs))


def check_markers(bodies: list[bytes]) -> None:
    (body,) = bodies
    blocks = conflict_blocks(body)
    assert all(body[block.start : block.end] == block.text for block in blocks)
    for size in (7, 8, 9):
        pieces = parse(body, size)
        assert b"".join(piece.text for piece in pieces) == body
        assert all(b"\n" not in label for piece in pieces if isinstance(piece, Conflict) for label in piece.labels)


TARGETS: dict[str, tuple[Callable[..., None], list[st.SearchStrategy[Any]]]] = {
    "diff": (check_diff, [related(2)]),
    "merge": (check_merge, [related(3), OPTIONS]),
    "markers": (check_markers, [related(1)]),
}


def fuzz(name: str, seconds: float, start: int) -> int:
    """Run rounds of a thousand examples, each from a seed of its own, until the time is up; the number of examples."""
    check, strategies = TARGETS[name]
    example = st.tuples(*strategies)
    ran, until = 0, time.monotonic() + seconds

    def counted(drawn: tuple[Any, ...]) -> None:
        nonlocal ran
        ran += 1
        check(*drawn)

    round_seed = start
    while time.monotonic() < until:
        quiet = settings(
            max_examples=1000,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.target, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        seed(round_seed)(quiet(given(example)(counted)))()
        round_seed += 1
    return ran


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("target", nargs="?", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("seed", nargs="?", type=int, default=None)
    options = parser.parse_args()
    start = random.randrange(10**9) if options.seed is None else options.seed
    for name in TARGETS if options.target == "all" else [options.target]:
        print(f"{name}: from seed {start}", flush=True)
        print(f"{name}: {fuzz(name, options.seconds, start)} examples, none broke a promise", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
