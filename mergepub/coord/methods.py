"""The methods of a run's socket. Whoever talks on it is that run; there is no other way to say who one is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mergepub.coord import bounds, mailing, wire
from mergepub.coord.mailing import Draft, Gate
from mergepub.coord.office import shown_run
from mergepub.coord.wire import CoordError, Request
from mergepub.errors import MergepubError, UnavailableError

if TYPE_CHECKING:
    from mergepub.coord.budgets import Bucket
    from mergepub.coord.office import Desk, Office
    from mergepub.coord.records import Run
    from mergepub.coord.reports import Reports

Call = Callable[[], Awaitable[dict[str, Any]]]


class Methods:
    """Answers the lines of run sockets."""

    def __init__(self, office: Office, reports: Reports, *, coordination: bool = True) -> None:
        self._office = office
        self._reports = reports
        self._coordination = coordination

    async def answer(self, desk: Desk, line: bytes, gone: asyncio.Event) -> bytes | None:
        """The line that answers ``line`` from the run at ``desk``, or None to close the connection."""
        wait = desk.lines.take(self._office.clock.steady())
        if wait is not None:
            return _over_budget(line, wait)
        try:
            request = wire.parse(line)
        except CoordError as error:
            return wire.refusal(error.id, error)
        return await answered(self._office, request, lambda: self._call(desk, request, gone))

    async def _call(self, desk: Desk, request: Request, gone: asyncio.Event) -> dict[str, Any]:
        params = wire.check(wire.RUN_METHODS, request)
        if not self._coordination:
            raise CoordError(wire.UNAVAILABLE, f"{request.method}: coordination is off", "off")
        match request.method:
            case "coord.status":
                return await self._status(desk)
            case "coord.inbox":
                return await self._inbox(desk, params, gone)
            case "coord.report":
                return await self._reports.report(desk, params)
            case "run.report":
                desk.life, desk.life_reason = params["state"], params.get("reason", "")
                return {"state": desk.life, "reason": desk.life_reason}
            case _:
                return await self._mail(desk, request.method, params)

    async def _status(self, desk: Desk) -> dict[str, Any]:
        run, peers = desk.run, self._office.peers_of(desk.run.id)
        unread = await self._office.db(mailing.count_unread, self._office.state, run.id)
        facts = {"wire_version": wire.VERSION, "workspace_id": run.workspace} | shown_run(run)
        shown = peers[: bounds.PEERS_SHOWN]
        facts |= {"peers": shown, "peer_total": len(peers), "peers_truncated": len(shown) < len(peers)}
        return facts | {"unread": unread, "capabilities": list(wire.CAPABILITIES)}

    # ── mail ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _mail(self, desk: Desk, method: str, params: dict[str, Any]) -> dict[str, Any]:
        target = params["question_id"] if method == "coord.reply" else params["to_run_id"]
        if target == desk.run.id and method != "coord.reply":
            raise CoordError(wire.BAD_PARAMS, f"{method}: a run does not write to itself")
        draft = Draft(method, target, params["body"], params["idempotency_key"])
        gate = Gate(_once(lambda: self._spend(desk.sends, method)), lambda to: self._authorise(desk.run, to, method))
        stored, to = await self._office.db(mailing.deliver, self._office.state, desk.run, draft, gate)
        if to in self._office.desks:
            self._office.desks[to].wake()
        return {"question_id" if method == "coord.ask" else "message_id": stored}

    def _spend(self, bucket: Bucket, method: str) -> None:
        wait = bucket.take(self._office.clock.steady())
        if wait is not None:
            raise _limited(method, wait)

    def _authorise(self, own: Run, to: Run, method: str) -> None:
        """Called from the thread that stores: it only looks."""
        radar = self._office.radar
        if to.workspace != own.workspace:
            raise CoordError(wire.DENIED, f"{method}: the run {to.id} is in another workspace", "other-workspace")
        if radar.overlap(own.id, to.id, self._office.clock.now()):
            return
        if radar.files(own.id) is None or radar.files(to.id) is None:
            raise CoordError(wire.CONFLICT, f"{method}: the radar has not seen both runs yet; try again", "not-ready")
        raise CoordError(wire.DENIED, f"{method}: the run {to.id} edits none of this run's documents", "not-a-peer")

    # ── the inbox ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def _inbox(self, desk: Desk, params: dict[str, Any], gone: asyncio.Event) -> dict[str, Any]:
        self._spend(desk.reads, "coord.inbox")
        loop = asyncio.get_running_loop()
        until = loop.time() + params.get("wait_seconds", 0)
        token, acked = params.get("ack_token"), False
        while True:
            arrival = desk.arrival  # the bell from before the look: mail that comes meanwhile rings it
            answer = await self._office.db(mailing.read_inbox, self._office.state, desk.run, token)
            token, acked = None, acked or answer["acked"]
            left = until - loop.time()
            if answer["messages"] or left <= 0 or gone.is_set() or self._office.closing.is_set():
                return answer | {"acked": acked}
            await _first_of(left, arrival, gone, self._office.closing)


async def _first_of(seconds: float, *events: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _once(call: Callable[[], None]) -> Callable[[], None]:
    """``call``, whose first outcome counts: a transaction that is run again spends nothing again."""
    outcomes: list[CoordError | None] = []

    def repeated() -> None:
        if not outcomes:
            try:
                call()
            except CoordError as error:
                outcomes.append(error)
            else:
                outcomes.append(None)
        if outcomes[0] is not None:
            raise outcomes[0]

    return repeated


def _limited(method: str, wait: float) -> CoordError:
    seconds = round(wait + 0.0005, 3)
    return CoordError(
        wire.CONFLICT, f"{method}: too many; try again in {seconds:g} seconds", "rate-limited", retry_after=seconds
    )


def _over_budget(line: bytes, wait: float) -> bytes | None:
    """Say so under the request's id; a line whose id cannot be read closes the connection."""
    try:
        request = wire.parse(line)
    except CoordError as error:
        return None if error.id is None else wire.refusal(error.id, _limited("request", wait))
    return wire.refusal(request.id, _limited(wire.shown(request.method), wait))


async def answered(office: Office, request: Request, call: Call) -> bytes:
    """The line that answers ``request`` with what ``call`` returns or raises."""
    name = wire.shown(request.method)
    try:
        return wire.result(request.id, await call())
    except CoordError as error:
        return wire.refusal(request.id, error)
    except UnavailableError as error:
        return wire.refusal(request.id, CoordError(wire.UNAVAILABLE, f"{name}: {error}"))
    except MergepubError as error:
        office.log(f"{name} failed: {error}")
        return wire.refusal(request.id, CoordError(wire.INTERNAL, f"{name}: {error}"))
    except Exception as error:  # whatever it is, the connection lives on
        office.log(f"{name} failed: {type(error).__name__}: {error}")
        return wire.refusal(request.id, CoordError(wire.INTERNAL, f"{name}: internal failure"))
