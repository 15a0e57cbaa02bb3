"""Where a tracked FILE is in conflict, or would be if the head were pulled: three texts a place. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mergepub.merge.markers import Conflict as Block
from mergepub.merge.markers import parse
from mergepub.merge.regions import CONFLICT
from mergepub.outcomes import Refused
from mergepub.publishing import DEFAULT_MERGE
from mergepub.tracking.pulling import merge_with
from mergepub.tracking.work import head_of, is_exactly, number_of
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.merge import Merged
    from mergepub.tracking.resolving import Conflict
    from mergepub.tracking.work import Work

Bodies = tuple[bytes, bytes, bytes]
"""Base, ours, theirs."""


@dataclass(frozen=True, slots=True)
class Place:
    """One conflict: the line of FILE where it starts, and what stands there. ``base`` is None where nobody knows it."""

    line: int
    ours: bytes
    base: bytes | None
    theirs: bytes


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The conflicts of FILE between its base's version and ``theirs``. ``marked``: they stand in FILE, as blocks."""

    places: tuple[Place, ...]
    base: int
    theirs: int
    marked: bool


def conflicts_of(work: Work) -> Conflicts | Refused:
    """The conflicts that stand in FILE; in a FILE that is in none, those that a pull would bring.

    Raises:
        InputError: FILE is gone.
        NotFoundError: the document never existed.
        UnavailableError: the store gave no clear answer.
    """
    record = work.record
    if record.clash:
        bodies = work.base_body, work.body(record.clash.ours), work.body(record.clash.theirs.digest)
        places = tuple(_marked_places(work.read(), record.clash.marker_size, bodies))
        return Conflicts(places, record.base.version, record.clash.theirs.version, marked=True)
    head = head_of(work.store, record)
    if isinstance(head, Refused):
        return head
    number = number_of(head)
    if is_exactly(record.base, number):
        return Conflicts((), record.base.version, number, marked=False)
    ours = work.read()
    merged = merge_with(work, record.base, ours, head, DEFAULT_MERGE)
    if isinstance(merged, Refused):
        return merged
    places = tuple(_places(merged, (work.base_body, ours, head.body)))
    return Conflicts(places, record.base.version, number, marked=False)


def conflicts_in(conflict: Conflict, base: int) -> Conflicts:
    """Those that somebody is about to mend; ``base`` is the number of their base's version."""
    bodies = conflict.base, conflict.ours, conflict.theirs
    places = _marked_places(conflict.marked, conflict.clash.marker_size, bodies)
    return Conflicts(tuple(places), base, conflict.clash.theirs.version, marked=True)


def _places(merged: Merged, bodies: Bodies) -> Iterator[Place]:
    base, ours, theirs = bodies
    for region in merged.regions:
        if region.kind == CONFLICT:
            line = ours.count(b"\n", 0, region.ours[0]) + 1
            yield Place(line, ours[slice(*region.ours)], base[slice(*region.base)], theirs[slice(*region.theirs)])


def _marked_places(marked: bytes, size: int, bodies: Bodies) -> Iterator[Place]:
    """The blocks that stand in a marked body, with their base where the merge that made them tells it."""
    from mergepub.merge import diff3  # noqa: PLC0415 - a FILE without conflict needs no engine

    known = {(_bare(place.ours), _bare(place.theirs)): place.base for place in _places(diff3(*bodies), bodies)}
    for block in _blocks(parse(marked, size)):
        base = known.get((_bare(block.ours), _bare(block.theirs)), block.base)
        yield Place(block.line, block.ours, base, block.theirs)


def _blocks(pieces: Iterable[object]) -> Iterator[Block]:
    return (piece for piece in pieces if isinstance(piece, Block))


def _bare(text: bytes) -> bytes:
    """A side without its last line's end, which a marker may have needed."""
    return text.removesuffix(b"\n").removesuffix(b"\r")
