"""What every request passes before and after its endpoint: limits, the host, the target, time; log and metrics.

A plain ASGI application around the FastAPI one. Whatever goes wrong inside ends here as problem details; no exception
and no trace leaves this module.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from mergepub.errors import MergepubError, NotFoundError
from mergepub.service import logs, operations
from mergepub.service.branches import BRANCHES, DECISIONS
from mergepub.service.exchange import SCOPE_KEY, Exchange, Service
from mergepub.service.listings import LIST, VERIFY, VERSIONS
from mergepub.service.patience import Within
from mergepub.service.problems import Problem, ProblemError, bad_request, missing, problem_of, refuse, unknown_outcome
from mergepub.service.protocol import REPLY
from mergepub.service.targets import decode_path, host_name, is_loopback, split_origin

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

Endpoint = Callable[[Exchange], Awaitable[Response]]

DOCUMENT_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
READ_METHODS = ("GET", "HEAD")
METHODS = {
    "document": DOCUMENT_METHODS,
    "branches": (*READ_METHODS, "PUT", "POST"),
    "decisions": (*READ_METHODS, "POST"),
}
OPEN_ROOMS = frozenset({"health", "ready", "openapi.json", "docs"})
"""What a closed service answers without a token: nothing of it is about a document."""

_ROOMS = {
    "/-/health": "health",
    "/-/ready": "ready",
    operations.METRICS: "metrics",
    "/-/openapi.json": "openapi.json",
    "/-/docs": "docs",
}
# The router sees what kind of thing was asked for, never a path: no pattern of its own can misread one.
_ROUTED = {
    "versions": VERSIONS + "/path",
    "list": LIST + "/path",
    "verify": VERIFY + "/path",
    "branches": BRANCHES + "/path",
    "decisions": DECISIONS + "/path",
}
_CLOSE = (b"connection", b"close")
_INTERNAL = Problem(500, "internal", "the service failed; its log says where")


class Gateway:
    """The outermost application.

    ``app`` serves everything; requests for documents go past its router, straight to their endpoint by method: routing,
    dependencies and exit stacks would be a seventh of what such a request costs.
    """

    def __init__(self, app: ASGIApp, service: Service, document: Mapping[str, Endpoint]) -> None:
        self._app = app
        self._service = service
        self._document = document
        self._log = logs.Lines(service.settings.log_format)
        settings = service.settings
        self._names = {host_name(name) for name in (settings.host, *settings.public_names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and end of the process."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        answer = _Answer(send)
        self._service.metrics.in_flight += 1
        try:
            await self._serve(scope, receive, answer)
        finally:
            self._service.metrics.in_flight -= 1
            self._note(scope, answer, time.perf_counter() - started)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            with Within(self._service.request_time) as deadline:
                answer.exchange = exchange = self._admitted(scope, receive)
                await (self._serve_document if exchange.room == "document" else self._route)(scope, exchange, answer)
                return
        except TimeoutError as error:
            problem = _overdue(answer.exchange) if deadline.expired else self._unexpected(error)
        except (ProblemError, MergepubError) as error:
            problem = error.problem if isinstance(error, ProblemError) else problem_of(error)
        except Exception as error:
            problem = self._unexpected(error)
        await answer.refuse(problem)

    async def _serve_document(self, scope: Scope, exchange: Exchange, answer: _Answer) -> None:
        response = await answered(self._document[exchange.method], exchange)
        if not answer.reply(scope, response):
            await response(scope, exchange.receive, answer.send)

    async def _route(self, scope: Scope, exchange: Exchange, answer: _Answer) -> None:
        scope["path"] = _ROUTED.get(exchange.room, exchange.path)
        scope[SCOPE_KEY] = exchange
        await self._app(scope, exchange.receive, answer.send)

    def unknown_method(self, method: str, target: bytes) -> Problem:
        """What a request with a method is answered that HTTP does not know, so that it cannot even be read."""
        try:
            _, path = split_origin(target.partition(b"?")[0])
            return _not_done(method, _room(decode_path(path))).problem
        except MergepubError as error:
            return problem_of(error)

    def _unexpected(self, error: BaseException) -> Problem:
        logs.write(self._service.settings.log_format, "error", said=logs.where(error))
        return _INTERNAL

    def _admitted(self, scope: Scope, receive: Receive) -> Exchange:
        self._check_head(scope)
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise bad_request("Transfer-Encoding and Content-Length contradict each other")  # what smuggling is made of
        authority, raw_path = split_origin(scope["raw_path"])
        self._check_host(scope["http_version"], headers, authority)
        exchange = Exchange(
            self._service,
            scope["method"],
            decode_path(raw_path),
            scope["query_string"],
            headers,
            receive,
        )
        exchange.room = _room(exchange.path)
        _check_method(exchange)
        return exchange

    def _check_head(self, scope: Scope) -> None:
        if not scope["http_version"].startswith("1."):
            raise refuse(505, "version", "this service speaks HTTP/1.1", Connection="close")
        limit = self._service.settings.limits.head
        target = len(scope["raw_path"]) + len(scope["query_string"])
        if target > limit:
            raise refuse(414, "target-too-long", f"the request target is over {limit} bytes")
        if target + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > limit:
            raise refuse(431, "head-too-large", f"request line and headers are over {limit} bytes together")

    def _check_host(self, http_version: str, headers: dict[bytes, list[bytes]], authority: bytes | None) -> None:
        """A name that a web page made point here (DNS rebinding) is not one of ours; no browser leaves it out."""
        hosts = headers.get(b"host", [])
        if len(hosts) > 1 or not (hosts or http_version == "1.0"):
            raise bad_request("a request has one Host header")
        hosts = hosts if authority is None else [authority]
        for host in hosts:
            name = host_name(host.decode("latin-1"))
            if name not in self._names and not is_loopback(name):
                detail = (
                    f"this service does not answer for the host {name[:80]!r}; start it with --public-name to allow it"
                )
                raise refuse(421, "misdirected", detail)

    def _note(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        exchange = answer.exchange
        room, received = (exchange.room, exchange.received) if exchange else ("refused", 0)
        status = answer.status or 499  # nobody was there any more to be answered
        self._service.metrics.observe(
            scope["method"], room, status, seconds=seconds, received=received, sent=answer.sent
        )
        client = scope.get("client")
        self._log.add(
            "request",
            client=client[0] if client else "",
            method=scope["method"],
            path=scope["raw_path"][:2048].decode("ascii", "backslashreplace"),
            status=status,
            ms=round(seconds * 1000, 1),
            received=received,
            sent=answer.sent,
            token=exchange.caller.name if exchange else None,
        )


async def answered(endpoint: Endpoint, exchange: Exchange) -> Response:
    """What ``endpoint`` answers to a caller who may ask, its refusals turned into problem details."""
    try:
        if exchange.room not in OPEN_ROOMS:
            exchange.caller = await exchange.service.access.caller(exchange.values("Authorization"))
        return await endpoint(exchange)
    except ProblemError as error:
        problem = error.problem
    except NotFoundError as error:
        problem = missing(exchange.path, error)
    except MergepubError as error:
        problem = problem_of(error)
        if problem.status >= 500:
            logs.write(exchange.service.settings.log_format, "error", said=error.message)
    return Response(problem.body(), problem.status, problem.all_headers())


class _Answer:
    """The sending side of one request: notes what is sent, and closes the connection under an unread body."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.exchange: Exchange | None = None
        self.status = 0
        self.sent = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass one message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._leaves_body():
                message = {**message, "headers": [*message["headers"], _CLOSE]}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    def reply(self, scope: Scope, response: Response) -> bool:
        """Answer with the whole response at once, where that can be done."""
        status, body = response.status_code, bytes(response.body)
        headers = [*response.raw_headers, _CLOSE] if self._leaves_body() else response.raw_headers
        if not scope["extensions"][REPLY]["call"](status, headers, body):
            return False
        self.status, self.sent = status, len(body)
        return True

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, unless an answer has begun: then the connection ends in the middle of it."""
        if self.status:
            return
        body = problem.body()
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in problem.all_headers().items()]
        headers.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def _leaves_body(self) -> bool:
        exchange = self.exchange
        return exchange is None or (exchange.announces_body and not exchange.body_done)


def _room(path: str) -> str:
    if not path.startswith("/-/"):
        return "document"
    if path.startswith(VERSIONS + "/"):
        return "versions"
    if path.startswith(LIST + "/"):
        return "list"
    if path.startswith(VERIFY + "/"):
        return "verify"
    if path.startswith((BRANCHES + "/", DECISIONS + "/")):
        return "branches" if path.startswith(BRANCHES) else "decisions"
    return _ROOMS.get(path, "document")


def _check_method(exchange: Exchange) -> None:
    if exchange.method not in METHODS.get(exchange.room, READ_METHODS):
        raise _not_done(exchange.method, exchange.room)


def _not_done(method: str, room: str) -> ProblemError:
    allowed = METHODS.get(room, READ_METHODS)
    detail = f"{method} is not done here; {', '.join(allowed)} are"
    return refuse(405, "method-not-allowed", detail, Allow=", ".join(allowed))


def _overdue(exchange: Exchange | None) -> Problem:
    if exchange is None or exchange.method in READ_METHODS:
        return Problem(503, "overdue", "the request took too long; try again", headers={"Retry-After": "5"})
    if exchange.method == "DELETE" or exchange.body_done:
        return unknown_outcome()
    return Problem(408, "timeout", "the request took too long to arrive")
