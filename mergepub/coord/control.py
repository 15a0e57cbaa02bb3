"""The operator's methods, on the control socket that only the daemon's own user can reach."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from mergepub.coord import bounds, reporting, wire
from mergepub.coord.clock import stamp
from mergepub.coord.methods import answered
from mergepub.coord.office import shown_files, shown_run
from mergepub.coord.radar import GRACE
from mergepub.coord.records import Run
from mergepub.coord.wire import CoordError, Parameter, Request, number, text

if TYPE_CHECKING:
    import asyncio

    from mergepub.coord.office import Office

DEFAULT_WORKSPACE = "default"
_LINE = text(bounds.TEXT_BYTES, least=1, one_line=True)
_LONG = text(bounds.LINE_BYTES)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _folder(value: Any) -> str:
    checked: str = _LONG(value)
    if not os.path.isabs(checked):
        raise ValueError("must be the absolute name of a directory")
    return os.path.realpath(checked)


_WORKSPACE = Parameter(_LINE, optional=True)

CONTROL_METHODS: Mapping[str, Mapping[str, Parameter]] = {
    "run.start": {
        "checkout": Parameter(_folder),
        "task": Parameter(_LONG),
        "member": Parameter(_LINE),
        "workspace": _WORKSPACE,
        "transcript": Parameter(_flag, optional=True),
        "pid": Parameter(number(1, 2**31 - 1, whole=True), optional=True),
    },
    "run.stop": {"run_id": Parameter(_LINE)},
    "run.list": {"all": Parameter(_flag, optional=True)},
    "radar.show": {"workspace": _WORKSPACE},
    "timeline.show": {
        "workspace": _WORKSPACE,
        "after": Parameter(number(0, 2**62, whole=True), optional=True),
        "limit": Parameter(number(1, 10_000, whole=True), optional=True),
    },
    "evidence.list": {},
    "evidence.show": {"evidence_ref": Parameter(_LINE)},
    "report.list": {},
}


class Control:
    """Answers the lines of the control socket; ``start`` and ``stop`` are the daemon's own."""

    def __init__(
        self, office: Office, start: Callable[[Run], Awaitable[Run]], stop: Callable[[str], Awaitable[Run]]
    ) -> None:
        self._office = office
        self._start = start
        self._stop = stop

    async def answer(self, line: bytes, _gone: asyncio.Event) -> bytes | None:
        """The line that answers ``line``."""
        try:
            request = wire.parse(line)
        except CoordError as error:
            return wire.refusal(error.id, error)
        return await answered(self._office, request, lambda: self._call(request))

    async def _call(self, request: Request) -> dict[str, Any]:
        params = wire.check(CONTROL_METHODS, request)
        office = self._office
        match request.method:
            case "run.start":
                return await self._run_start(params)
            case "run.stop":
                return self._run(await self._stop(params["run_id"]))
            case "run.list":
                runs = await office.db(lambda: office.state.runs(active=not params.get("all", False)))
                return {"runs": [self._run(run) for run in runs]}
            case "radar.show":
                return self._radar(params.get("workspace"))
            case "timeline.show":
                values = (params.get("workspace"), params.get("after", 0), params.get("limit", 1000))
                return {"entries": await office.db(office.state.timeline, *values)}
            case _:
                return await self._evidence(request.method, params)

    async def _run_start(self, params: dict[str, Any]) -> dict[str, Any]:
        if not os.path.isdir(params["checkout"]):
            raise CoordError(wire.NOT_FOUND, "run.start: the checkout is no directory")
        run = Run(
            "",
            params.get("workspace", DEFAULT_WORKSPACE),
            params["member"],
            params["task"],
            params["checkout"],
            transcript=str(self._office.root.transcripts) if params.get("transcript") else "",
            pid=params.get("pid", 0),
        )
        made = await self._start(run)
        return {"run_id": made.id, "run_dir": str(self._office.root.folder_of(made.id)), "transcript": made.transcript}

    def _run(self, run: Run) -> dict[str, Any]:
        facts = {"workspace_id": run.workspace, "state": run.state, "checkout": run.checkout}
        times = {"started_at": run.started} | ({"ended_at": run.ended} if run.ended else {})
        return shown_run(run) | facts | times

    def _radar(self, workspace: str | None) -> dict[str, Any]:
        office = self._office
        desks = [desk for desk in office.desks.values() if workspace in (None, desk.run.workspace)]
        runs = []
        for desk in sorted(desks, key=lambda desk: (desk.run.workspace, desk.run.started, desk.run.id)):
            files = office.radar.files(desk.run.id)
            life = {"life": desk.life or "unknown", "life_reason": desk.life_reason, "observed": files is not None}
            runs.append(self._run(desk.run) | life | shown_files(files or ()))
        overlaps = [
            {"workspace_id": o.workspace, "runs": [o.a, o.b], "state": o.state}
            | shown_files(o.files)
            | ({"expires_at": stamp(o.until)} if o.state == GRACE else {})
            for o in office.radar.overlaps()
            if workspace in (None, o.workspace) and (o.state != GRACE or o.until > office.clock.now())
        ]
        changes = [change for change in office.changes if workspace in (None, change["workspace_id"])]
        return {"at": office.clock.stamp(), "runs": runs, "overlaps": overlaps, "changes": changes}

    async def _evidence(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        office = self._office
        if method == "report.list":
            return {"reports": await office.db(reporting.reports, office.state)}
        if method == "evidence.list":
            return {"evidence": await office.db(reporting.evidence_list, office.state)}
        found = await office.db(reporting.evidence_show, office.state, params["evidence_ref"])
        if found is None:
            name = wire.shown(params["evidence_ref"])
            raise CoordError(wire.NOT_FOUND, f"evidence.show: there is no evidence {name}, or not any more")
        return found
