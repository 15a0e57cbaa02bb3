"""The FastAPI application: which endpoint answers which path, and the life of what they share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from mergepub._version import __version__
from mergepub.service import branches, docs, documents, listings, openapi, operations
from mergepub.service.exchange import SCOPE_KEY, Exchange, Service
from mergepub.service.gateway import Endpoint, Gateway, answered
from mergepub.stores import open_store

if TYPE_CHECKING:
    from mergepub.service.settings import Settings


@dataclass(frozen=True, slots=True)
class _Route:
    path: str
    endpoint: Endpoint
    method: str
    status: int = 200


_READS = (
    ("/-/health", operations.get_health),
    ("/-/ready", operations.get_ready),
    (operations.METRICS, operations.get_metrics),
    (listings.VERSIONS + "/{path:path}", listings.get_versions),
    (listings.LIST + "/{path:path}", listings.get_list),
    (listings.VERIFY + "/{path:path}", listings.get_verify),
    (branches.BRANCHES + "/{path:path}", branches.get_branches),
    (branches.DECISIONS + "/{path:path}", branches.get_decisions),
)
_DOCUMENT = "/{path:path}"
ROUTES = (
    *(_Route(path, endpoint, method) for path, endpoint in _READS for method in ("GET", "HEAD")),
    _Route(branches.BRANCHES + "/{path:path}", branches.put_branches, "PUT"),
    _Route(branches.BRANCHES + "/{path:path}", branches.post_branches, "POST"),
    _Route(branches.DECISIONS + "/{path:path}", branches.post_decisions, "POST"),
    _Route(_DOCUMENT, documents.get_document, "GET"),
    _Route(_DOCUMENT, documents.get_document, "HEAD"),
    _Route(_DOCUMENT, documents.put_document, "PUT"),
    _Route(_DOCUMENT, documents.post_document, "POST"),
    _Route(_DOCUMENT, documents.delete_document, "DELETE", 204),
)


def create_app(settings: Settings) -> Gateway:
    """The whole application on the store of ``settings``, for one process. The store is opened by the first request."""
    service = Service(settings, open_store(settings.store_url, max_body=settings.limits.body))
    app = FastAPI(
        title="mergepub",
        version=__version__,
        description=openapi.DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=partial(_lifespan, service),
    )
    _describe_itself(app)
    for route in ROUTES:
        _add(app, route)
    return Gateway(app, service, {route.method: route.endpoint for route in ROUTES if route.path == _DOCUMENT})


@asynccontextmanager
async def _lifespan(service: Service, _app: FastAPI) -> AsyncIterator[None]:
    yield
    await service.close()


def _add(app: FastAPI, route: _Route) -> None:
    app.add_api_route(
        route.path,
        _answering(route.endpoint),
        methods=[route.method],
        status_code=route.status,
        response_class=Response,
        response_model=None,
        **openapi.operation(route.method, route.path),
    )


def _describe_itself(app: FastAPI) -> None:
    async def get_openapi(_: Exchange) -> Response:
        return JSONResponse(openapi.document(app), headers={"Cache-Control": "no-cache"})

    async def get_docs(_: Exchange) -> Response:
        return docs.page(openapi.document(app))

    for path, endpoint in (("/-/openapi.json", get_openapi), ("/-/docs", get_docs)):
        for method in ("GET", "HEAD"):
            _add(app, _Route(path, endpoint, method))


def _answering(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await answered(endpoint, request.scope[SCOPE_KEY])

    return answer
