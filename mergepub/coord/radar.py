"""The radar: snapshots of what runs edit in, overlaps out. Pure: times are given, as seconds of one steady clock.

A snapshot is the whole truth about a run. Two runs of one workspace overlap while their newest snapshots share a path;
for ten minutes after that they are in grace. When the clearing was witnessed, the ten minutes count from it; when it
was only found later (after a restart, or a pause of more than ``lapse`` seconds), from the last time that the overlap
was known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mergepub.coord.bounds import GRACE_SECONDS

ACTIVE, GRACE, CLEAR = "active", "grace", "clear"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two runs, ``a`` < ``b``, that share ``files`` (while active) or did until a moment ago.

    ``seen``: when the overlap was last known. ``until``: the end of the grace, 0 while active.
    """

    a: str
    b: str
    workspace: str
    state: str
    files: tuple[str, ...]
    seen: float
    until: float = 0.0

    def peer_of(self, run: str) -> str:
        """The other one."""
        return self.b if run == self.a else self.a


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one overlap, seen from the side of ``run``; ``state`` is active, grace or clear."""

    workspace: str
    run: str
    peer: str
    state: str
    files: tuple[str, ...]


@dataclass(slots=True)
class _Seen:
    """A run under observation; ``files`` is None until its first snapshot."""

    workspace: str
    files: frozenset[str] | None = None
    when: float = 0.0


class Radar:
    """The overlaps between the runs that are under observation."""

    def __init__(self, known: Iterable[Overlap] = (), *, now: float = 0.0, lapse: float = 60.0) -> None:
        """``known``: what an earlier radar knew; it stays so until both runs were observed again.

        Its times come from another life of the clock: none counts as later than ``now`` allows.
        """
        self._runs: dict[str, _Seen] = {}
        self._overlaps = {(o.a, o.b): _plausible(o, now) for o in known}
        self._lapse = lapse

    # ── what happens ────────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, run: str, workspace: str) -> None:
        """Observe ``run`` from now on."""
        self._runs.setdefault(run, _Seen(workspace))

    def leave(self, run: str) -> list[Change]:
        """``run`` has ended, and its overlaps with it."""
        self._runs.pop(run, None)
        return [each for key in self._of(run) for each in _both(self._overlaps.pop(key), CLEAR)]

    def observe(self, run: str, files: frozenset[str], now: float) -> list[Change]:
        """``run`` edits exactly ``files`` at ``now``; what changed, from both sides."""
        seen = self._runs[run]
        # Where nobody looked in between, what is known is how it stood when somebody last looked.
        cleared = None if seen.files is None else now if now - seen.when <= self._lapse else seen.when
        seen.files, seen.when = files, now
        changes: list[Change] = []
        for peer, other in self._runs.items():
            if peer != run and other.workspace == seen.workspace and other.files is not None:
                changes += self._compare(run, peer, files & other.files, now, cleared)
        return changes

    def expire(self, now: float) -> list[Change]:
        """End the graces whose time is over."""
        over = [key for key, overlap in self._overlaps.items() if overlap.state == GRACE and overlap.until <= now]
        return [each for key in over for each in _both(self._overlaps.pop(key), CLEAR)]

    def _compare(self, run: str, peer: str, shared: frozenset[str], now: float, cleared: float | None) -> list[Change]:
        key = (min(run, peer), max(run, peer))
        known = self._overlaps.get(key)
        if shared:
            found = Overlap(*key, self._runs[run].workspace, ACTIVE, tuple(sorted(shared)), now)
            self._overlaps[key] = found
            same = known is not None and (known.state, known.files) == (ACTIVE, found.files)
            return [] if same else _both(found, ACTIVE)
        if known is None or known.state != ACTIVE:
            return []
        until = (known.seen if cleared is None else cleared) + GRACE_SECONDS
        gone = replace(known, state=GRACE, files=(), until=until)
        self._overlaps[key] = gone
        if gone.until > now:
            return _both(gone, GRACE)
        del self._overlaps[key]
        return _both(gone, CLEAR)

    # ── how it stands ───────────────────────────────────────────────────────────────────────────────────────────────

    def overlap(self, run: str, peer: str, now: float) -> Overlap | None:
        """The overlap of the two, None where they share nothing and are not in grace."""
        found = self._overlaps.get((min(run, peer), max(run, peer)))
        return found if found and (found.state == ACTIVE or found.until > now) else None

    def peers(self, run: str, now: float) -> list[Overlap]:
        """The overlaps of ``run``: the active ones first, then by the peer's id."""
        found = [self._overlaps[key] for key in self._of(run)]
        lively = [each for each in found if each.state == ACTIVE or each.until > now]
        return sorted(lively, key=lambda each: (each.state, each.peer_of(run)))

    def overlaps(self) -> list[Overlap]:
        """All of them, in a fixed order; ``seen`` of an active one is when both sides were last known to share."""
        return [self._with_seen(self._overlaps[key]) for key in sorted(self._overlaps)]

    def files(self, run: str) -> frozenset[str] | None:
        """What ``run`` edits, None before its first snapshot."""
        seen = self._runs.get(run)
        return seen.files if seen else None

    def _of(self, run: str) -> list[tuple[str, str]]:
        return [key for key in self._overlaps if run in key]

    def _with_seen(self, overlap: Overlap) -> Overlap:
        times = [self._runs[run].when for run in (overlap.a, overlap.b) if self.files(run) is not None]
        if overlap.state != ACTIVE or len(times) < 2:
            return overlap
        return replace(overlap, seen=max(overlap.seen, min(times)))


def _both(overlap: Overlap, state: str) -> list[Change]:
    files = overlap.files if state == ACTIVE else ()
    sides = ((overlap.a, overlap.b), (overlap.b, overlap.a))
    return [Change(overlap.workspace, run, peer, state, files) for run, peer in sides]


def _plausible(overlap: Overlap, now: float) -> Overlap:
    return replace(overlap, seen=min(overlap.seen, now), until=min(overlap.until, now + GRACE_SECONDS))
