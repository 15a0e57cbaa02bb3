"""What the parts of the daemon share: the state, the radar, the desks of the living runs, threads for what blocks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mergepub.coord import bounds
from mergepub.coord.budgets import Bucket
from mergepub.coord.clock import stamp
from mergepub.coord.radar import GRACE, Change, Radar

if TYPE_CHECKING:
    from mergepub.coord.clock import Clock
    from mergepub.coord.connections import Listener
    from mergepub.coord.records import Run
    from mergepub.coord.state import State
    from mergepub.coord.surfaces import Root

T = TypeVar("T")
Log = Callable[[str], None]

_REMEMBERED = 100  # changes that the operator can look back on


@dataclass(slots=True)
class Desk:
    """One living run: its budgets, its mail bell, its socket's listener, what its harness last said of it."""

    run: Run
    listener: Listener | None = None
    lines: Bucket = field(default_factory=lambda: Bucket(*bounds.LINES))
    sends: Bucket = field(default_factory=lambda: Bucket(*bounds.SENDS))
    reads: Bucket = field(default_factory=lambda: Bucket(*bounds.READS))
    arrival: asyncio.Event = field(default_factory=asyncio.Event)
    reporting: asyncio.Lock = field(default_factory=asyncio.Lock)
    life: str = ""
    life_reason: str = ""

    def wake(self) -> None:
        """Wake whoever waits for mail; who comes later waits for the next bell."""
        self.arrival.set()
        self.arrival = asyncio.Event()


class Office:
    """Shared by the parts of one daemon; used from its event loop alone, except where it says otherwise."""

    def __init__(self, state: State, root: Root, clock: Clock, log: Log, *, lapse: float) -> None:
        self.state = state
        self.root = root
        self.clock = clock
        self.log = log
        self.desks: dict[str, Desk] = {}
        self.closing = asyncio.Event()
        self.changes: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self.radar = Radar(lapse=lapse)
        self._lapse = lapse
        self._keeping = asyncio.Lock()
        self._pool = ThreadPoolExecutor(16, "coord-db")

    async def db(self, call: Callable[..., T], *values: Any) -> T:
        """Run what blocks on the database in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: call(*values))

    async def recall(self) -> None:
        """Let the radar know what an earlier one knew."""
        known = await self.db(self.state.overlaps)
        self.radar = Radar(known, now=self.clock.now(), lapse=self._lapse)

    def close(self) -> None:
        """End the threads, once they have nothing to do any more."""
        self._pool.shutdown(wait=True)

    # ── changes of the radar ────────────────────────────────────────────────────────────────────────────────────────

    async def settle(self, changes: Sequence[Change]) -> None:
        """Keep what changed, tell it, and bring the files of the runs concerned up to date."""
        if not changes:
            return
        async with self._keeping:
            await self._keep({(min(c.run, c.peer), max(c.run, c.peer)) for c in changes})
        for change in changes:
            self._tell(change)
        for run in {change.run for change in changes}:
            await self.refresh_co_authors(run)

    async def _keep(self, pairs: Iterable[tuple[str, str]]) -> None:
        known = {(o.a, o.b): o for o in self.radar.overlaps()}
        wanted = set(pairs)
        gone = [pair for pair in wanted if pair not in known]
        await self.db(self.state.keep_overlaps, [known[pair] for pair in wanted if pair in known], gone)

    async def keep_all(self) -> None:
        """Keep when the overlaps were last known, for the grace after a restart."""
        async with self._keeping:
            await self.db(self.state.keep_overlaps, self.radar.overlaps())

    def _tell(self, change: Change) -> None:
        names = f" in {', '.join(change.files[:3])}" if change.files else ""
        more = f" and {len(change.files) - 3} more" if len(change.files) > 3 else ""
        self.log(f"overlap of {change.run} with {change.peer}: {change.state}{names}{more}")
        told = {"workspace_id": change.workspace, "run_id": change.run, "peer_run_id": change.peer}
        files = [bounds.cut(name) for name in change.files[: bounds.FILES_SHOWN]]
        self.changes.append(told | {"state": change.state, "files": files, "at": self.clock.stamp()})

    async def refresh_co_authors(self, run_id: str) -> None:
        """Write the commit trailers of a run's peers."""
        if run_id not in self.desks:
            return
        peers = [overlap.peer_of(run_id) for overlap in self.radar.peers(run_id, self.clock.now())]
        members = [self.desks[peer].run.member for peer in peers if peer in self.desks]
        try:
            await asyncio.to_thread(self.root.write_co_authors, run_id, members)
        except Exception as error:  # the file is a convenience; a foreign one in its place stops nothing else
            self.log(f"co-authors of {run_id} cannot be written: {error}")

    # ── how it stands ───────────────────────────────────────────────────────────────────────────────────────────────

    def peers_of(self, run_id: str) -> list[dict[str, Any]]:
        """Every peer of a run as the wire shows it."""
        shown = []
        for overlap in self.radar.peers(run_id, self.clock.now()):
            desk = self.desks.get(overlap.peer_of(run_id))
            if desk is not None:
                until = {"expires_at": stamp(overlap.until)} if overlap.state == GRACE else {}
                shown.append(shown_run(desk.run) | shown_files(overlap.files) | {"state": overlap.state} | until)
        return shown


def shown_run(run: Run) -> dict[str, Any]:
    """A run's id, member and task as the wire shows them."""
    task = bounds.cut(run.task)
    facts = {"run_id": run.id, "member_id": bounds.cut(run.member), "task": task}
    return facts | {"task_bytes": bounds.size(run.task), "task_truncated": task != run.task}


def shown_files(files: Iterable[str]) -> dict[str, Any]:
    """A list of paths as the wire shows it."""
    names = sorted(files)
    shown = [bounds.cut(name) for name in names[: bounds.FILES_SHOWN]]
    return {"files": shown, "file_total": len(names), "files_truncated": shown != names}
