"""The endpoints for operators: liveness, readiness, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from mergepub.errors import MergepubError, NotFoundError
from mergepub.service.problems import Problem, ProblemError

if TYPE_CHECKING:
    from mergepub.service.exchange import Exchange
    from mergepub.stores.contract import Store

METRICS = "/-/metrics"
_FRESH = {"Cache-Control": "no-store"}


async def get_health(_: Exchange) -> Response:
    """The process answers."""
    return JSONResponse({"status": "ok"}, headers=_FRESH)


async def get_ready(exchange: Exchange) -> Response:
    """The store answers."""
    try:
        await exchange.service.call(_touch, exchange.service.store)
    except MergepubError:
        problem = Problem(503, "store-unavailable", "the store does not answer", headers={"Retry-After": "5"})
        raise ProblemError(problem) from None
    return JSONResponse({"status": "ready"}, headers=_FRESH)


async def get_metrics(exchange: Exchange) -> Response:
    """Counters of this worker. In a closed service a token needs ``read`` or ``admin`` on ``/-/metrics``."""
    if not exchange.caller.may("admin", METRICS):
        exchange.caller.demand_read(METRICS)
    text = exchange.service.metrics.render()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8", headers=_FRESH)


def _touch(store: Store) -> None:
    """The cheapest question whose answer proves that the store works; one that has not been made yet works too."""
    try:
        list(store.list("/", limit=1))
    except NotFoundError:
        return
