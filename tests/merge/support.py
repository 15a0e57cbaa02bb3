"""What the tests of the merge engine share: bodies, lines, and what every merge must hold whatever its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from mergepub.merge.lines import converted_ending, plain
from mergepub.merge.markers import Conflict, parse
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, UNCHANGED, WORDS, Region

if TYPE_CHECKING:
    from mergepub.merge import Merged

SWAPPED = {OURS: THEIRS, THEIRS: OURS}


def lines(body: bytes) -> list[bytes]:
    parts = body.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def small_bodies(longest: int, letters: bytes = b"ab") -> Iterator[bytes]:
    """All bodies of up to ``longest`` one-letter lines, with and without final newline."""
    yield b""
    for n in range(1, longest + 1):
        for chosen in product(letters, repeat=n):
            body = b"\n".join(bytes([letter]) for letter in chosen)
            yield body
            yield body + b"\n"


def part(body: bytes, span: tuple[int, int]) -> bytes:
    return body[slice(*span)]


def check_regions(merged: Merged, base: bytes, ours: bytes, theirs: bytes) -> None:
    """The regions cover the bodies exactly and in order, and each is what its kind says (but for converted endings)."""
    at = [0, 0, 0]
    converted = converted_ending(base, ours, theirs)
    for region in merged.regions:
        spans = (region.base, region.ours, region.theirs)
        assert [span[0] for span in spans] == at
        at = [span[1] for span in spans]
        texts = [part(body, span) for body, span in zip((base, ours, theirs), spans, strict=True)]
        if converted:
            texts = [plain(text) for text in texts]
        if region.kind == UNCHANGED:
            assert texts[0] == texts[1] == texts[2]
        if region.kind == BOTH:
            assert texts[1] == texts[2]
        if region.kind == CONFLICT:
            assert texts[1] != texts[2]
        assert (region.text is not None) == (region.kind == WORDS)
    assert at == [len(base), len(ours), len(theirs)]


def check_swapped(merged: Merged, other: Merged) -> None:
    """The other merge, of the same bodies with the sides swapped, differs in the sides and in nothing else."""
    assert [(r.kind, r.base, r.ours, r.theirs, r.text) for r in other.regions] == [
        (SWAPPED.get(r.kind, r.kind), r.base, r.theirs, r.ours, r.text) for r in merged.regions
    ]
    assert other.conflicts == merged.conflicts
    assert other.marker_size == merged.marker_size
    if not merged.conflicts:
        assert other.body == merged.body


def check_marked(merged: Merged, ours: bytes, theirs: bytes, ending: bytes = b"\n") -> None:
    """The marked body parses back to the regions, but for the newline that a marker needs before it."""
    expected: list[bytes | tuple[bytes, bytes]] = []
    for region in merged.regions:
        if region.kind == CONFLICT:
            expected.append((ended(part(ours, region.ours), ending), ended(part(theirs, region.theirs), ending)))
            continue
        text = standing(region, ours, theirs)
        if expected and isinstance(expected[-1], bytes):
            text = expected.pop() + text
        expected.append(text)
    pieces = parse(merged.body, merged.marker_size)
    assert [(p.ours, p.theirs) if isinstance(p, Conflict) else p.text for p in pieces] == [x for x in expected if x]
    assert sum(isinstance(p, Conflict) for p in pieces) == merged.conflicts


def standing(region: Region, ours: bytes, theirs: bytes) -> bytes:
    if region.text is not None:
        return region.text
    return part(theirs, region.theirs) if region.kind == THEIRS else part(ours, region.ours)


def ended(text: bytes, ending: bytes) -> bytes:
    return text + ending if text and not text.endswith(b"\n") else text
