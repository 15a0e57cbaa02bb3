"""One connection: uvicorn's HTTP/1.1 protocol on httptools, with what it leaves open closed.

- heads are limited while they arrive, and so is whatever else of a message hands nothing on (chunk extensions,
  trailers, which count for nothing); transfer codings but chunked, and HTTP/0.9, are malformed;
- a header that does not arrive in time, and an answer that nobody takes, end the connection;
- connections over the limit, and malformed requests, are answered with problem details, in their turn: what came
  before them on the connection is answered first;
- an application that has the whole answer at hand may hand it over at once (``REPLY``);
- nothing is upgraded: such a request is the last one of its connection;
- when the answer ends the connection while a body is still coming, the rest is read and dropped for a moment before the
  socket closes: otherwise the reset that the unread bytes cause would destroy the answer on its way.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from mergepub.service import logs
from mergepub.service.problems import Problem

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.server import ServerState

    from mergepub.service.gateway import Gateway
    from mergepub.service.patience import Limit, Patience
    from mergepub.service.settings import Limits, LogFormat

REPLY = "mergepub.reply"
"""The extension of the scope for whole answers: two messages cost as much as reading the request.

Its ``call`` takes status, headers (names in lower case, the length of the body among them) and body. False: nothing was
written, and the answer has to go by messages, because an earlier one is not taken yet, or nobody is there.
"""

LINGER_TIME = 2.0
"""Seconds that the rest of an unwanted body is read and dropped."""

LINGER_BYTES = 1 << 20
"""How much of it is dropped at least; more where the limit of a body is higher."""

_BUSY = Problem(503, "busy", "the service has all the connections it takes; try again", headers={"Retry-After": "1"})
_MALFORMED = Problem(400, "malformed", "this is not a valid HTTP/1.1 request")
_HEAD_TOO_LARGE = Problem(431, "head-too-large", "request line and headers are too large")
_BAD_TARGET = Problem(
    400, "malformed", "bad target: it must start with / and be visible ASCII; anything else is percent-encoded"
)
_VERSION = Problem(505, "version", "this service speaks HTTP/1.1")
_LATE = Problem(408, "timeout", "the request did not arrive in time")


_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}) ([!-~]+) HTTP/1\.[01]\r\n")
_VISIBLE = re.compile(rb"[!-~]+\Z")
_CONTROL = re.compile(rb"[\0-\x08\n-\x1f\x7f]")


class _MalformedError(Exception):
    """The parser took it, this service does not."""


class ServiceConfig(Config):
    """uvicorn's configuration with the limits and the log of this service."""

    limits: Limits
    log_format: LogFormat
    idle_time: Patience


class ServiceProtocol(HttpToolsProtocol):
    """See the module."""

    def __init__(
        self,
        config: ServiceConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._log_format = config.log_format
        self._in_head = False
        self._in_body = False
        self._broken = False  # nothing that comes is read any more
        self._refusal: Problem | None = None  # for when everything before it is answered
        self._unread = 0  # bytes since something was handed on
        self._served: RequestResponseCycle  # whose answer is the next one
        self._idle_time = config.idle_time
        self._idle: Limit | None = None
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._lingering: _Lingering | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the class above
        """Take the connection, or refuse it when there are too many."""
        self._lingering = _Lingering(transport, self, self._limits)
        super().connection_made(self._lingering)  # type: ignore[arg-type]  # all of a transport that it uses
        if len(self.connections) > self._limits.connections:
            self._answer(_BUSY)
        else:
            self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers with the connection."""
        self._header_arrived()
        self._taken()
        self._unset_keepalive_if_required()
        if self._lingering:
            self._lingering.forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and see whether a header is awaited."""
        if (self._lingering and self._lingering.drops(len(data))) or self._broken:
            return
        self._unset_keepalive_if_required()
        self._unread += len(data)
        before = self.cycle
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserInvalidMethodError:
            self._refuse(self._unknown_method(data) if self.cycle is before else _MALFORMED)
            return
        except httptools.HttpParserError as error:
            self._refuse(_problem(error))
            return
        except httptools.HttpParserUpgrade:
            self._broken, self.cycle.keep_alive = True, False
        if self._unread > self._limits.head and not self._broken:
            self._refuse(_HEAD_TOO_LARGE)
        elif self._awaits_header():
            self._await_header()
        else:
            self._header_arrived()

    def eof_received(self) -> bool | None:  # type: ignore[override]  # asyncio takes either
        """The client sends nothing more: a whole request is still answered, a lingering connection has lingered."""
        if self._lingering:
            self._lingering.flush()  # an answer that was written in this turn: the socket closes now
            if self._lingering.is_closing():
                self._lingering.finish()
        if self.cycle and not self.cycle.response_complete and not self.receives_body():
            self.cycle.keep_alive = False
            return True
        return None

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what comes after the body is none."""
        if self._in_head:
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Begin with the request: the target goes on as it was sent."""
        target, self.url = self.url, b"/"
        if (
            not _VISIBLE.match(target)
            or self.parser.get_http_version() == "0.9"
            or not _codings_are_known(self.headers)
        ):
            raise _MalformedError
        self._unread, self._in_head, self._in_body = 0, False, True
        super().on_headers_complete()
        self.scope["raw_path"], _, self.scope["query_string"] = target.partition(b"?")
        self.scope["extensions"] = {REPLY: {"call": self._reply}}

    def on_body(self, body: bytes) -> None:
        """Hand on a piece of the body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._unread, self._in_body = 0, False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Answer the next request of the connection, or refuse what came after them, or wait for more."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._refusal:
            self._answer(self._refusal)
        else:
            self._idle = self._idle_time.begin(self.timeout_keep_alive_handler)

    def _unset_keepalive_if_required(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def pause_writing(self) -> None:
        """The client does not take the answer as fast as it is written: from now on it has to show progress."""
        super().pause_writing()
        self._expect_taking(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client took it."""
        self._taken()
        super().resume_writing()

    def receives_body(self) -> bool:
        """Whether more of a request's body is to come."""
        return self._in_body or self._broken

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._served = cycle
        super()._start_asgi_task(cycle, app)

    def _reply(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """See ``REPLY``."""
        cycle = self._served
        if cycle.disconnected or self.flow.write_paused:
            return False
        lines = [name + b": " + value for name, value in (*cycle.default_headers, *headers)]
        if any(map(_CONTROL.search, lines)):
            raise RuntimeError("Invalid HTTP header value.")
        ends = b"connection: close" in lines
        if not (ends or cycle.keep_alive):
            lines.append(b"connection: close")
        shown = b"" if cycle.scope["method"] == "HEAD" else body
        self.transport.writelines((STATUS_LINE[status], b"\r\n".join(lines), b"\r\n\r\n", shown))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        if ends or not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()
        return True

    # The timers

    def _awaits_header(self) -> bool:
        return self._in_head or self.cycle is None or (self.cycle.response_complete and not self._in_body)

    def _await_header(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self._limits.header_time, self._header_late)

    def _header_arrived(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _header_late(self) -> None:
        self._header_timer = None
        if not self.transport.is_closing() and self._awaits_header():
            self._refuse(_LATE)

    def _expect_taking(self, size: int) -> None:
        self._taken()
        self._write_timer = self.loop.call_later(self._limits.body_time, self._check_taking, size)

    def _check_taking(self, size: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < size:
            self._expect_taking(left)
        else:
            self.transport.abort()

    def _taken(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _unknown_method(self, data: bytes) -> Problem:
        """The refusal of ``data``, told by its method where it begins with a request line."""
        line = _REQUEST_LINE.match(data)
        app = cast("Gateway", self.app)
        return app.unknown_method(line[1].decode("ascii"), line[2]) if line else _MALFORMED

    def _refuse(self, problem: Problem) -> None:
        """Read no further, and answer ``problem`` once all that came before it is answered."""
        self._broken = True
        self._header_arrived()
        if self._in_body and self.pipeline:
            self.pipeline.popleft()  # the last one, whose body it is: nobody has begun with it
        elif self._in_body or self.cycle is None or self.cycle.response_complete:
            self._answer(problem)
            return
        self._refusal = problem

    def _answer(self, problem: Problem) -> None:
        """Write a whole answer beside whatever is under way, and end the connection."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = problem.body()
            headers = {**problem.all_headers(), "Content-Length": str(len(body)), "Connection": "close"}
            head = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            self.transport.write(head.encode("latin-1") + b"\r\n" + body)
        client = self.client[0] if self.client else ""
        logs.write(self._log_format, "refused", client=client, status=problem.status, said=problem.detail)
        self.transport.close()
        if self.cycle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()


def _problem(error: httptools.HttpParserError) -> Problem:
    if isinstance(error, httptools.HttpParserInvalidURLError):
        return _BAD_TARGET
    return _VERSION if error.args == ("Invalid HTTP version",) else _MALFORMED


def _codings_are_known(headers: list[tuple[bytes, bytes]]) -> bool:
    return all(value.lower() == b"chunked" for name, value in headers if name == b"transfer-encoding")


class _Lingering:
    """A transport whose ``close`` reads on for a moment when the client is still sending, and ends in any case.

    Head and body of an answer are written one after the other; they leave in one piece.
    """

    def __init__(self, transport: asyncio.Transport, protocol: ServiceProtocol, limits: Limits) -> None:
        self._transport = transport
        self._protocol = protocol
        self._limits = limits
        self._closing = False
        self._to_drop = max(limits.body, LINGER_BYTES)
        self._timer: asyncio.TimerHandle | None = None
        self._pending: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send ``data`` at the end of this turn of the loop, with whatever else is written until then."""
        if not self._pending:
            self._protocol.loop.call_soon(self.flush)
        self._pending.append(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """Send ``pieces`` now."""
        self.flush()
        self._transport.writelines(pieces)

    def flush(self) -> None:
        """Send what is written now, not at the end of the turn."""
        pending, self._pending = self._pending, []
        if pending:
            self._transport.writelines(pending)

    def close(self) -> None:
        """Close, now or after lingering; called again, now."""
        if self._closing or not self._protocol.receives_body():
            self.finish()
            return
        self._closing = True
        self.flush()
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._after(LINGER_TIME, self.finish)

    def drops(self, count: int) -> bool:
        """Whether received bytes are dropped; too many of them end the connection."""
        if self._closing:
            self._to_drop -= count
            if self._to_drop < 0:
                self._transport.abort()
        return self._closing

    def finish(self) -> None:
        """Close the socket once what was written is sent."""
        self._closing = True
        self.flush()
        self._transport.close()
        self._expect_end(self._transport.get_write_buffer_size())

    def _expect_end(self, size: int) -> None:
        # A client that takes nothing more, or under TLS never says goodbye, would hold the connection (and the end of
        # the service) for as long as it likes.
        self._after(self._limits.body_time if size else LINGER_TIME, self._check_end, size)

    def _check_end(self, size: int) -> None:
        left = self._transport.get_write_buffer_size()
        if 0 < left < size:
            self._expect_end(left)
        else:
            self._transport.abort()

    def _after(self, seconds: float, then: Callable[..., None], *args: Any) -> None:
        self.forget()
        self._timer = self._protocol.loop.call_later(seconds, then, *args)

    def forget(self) -> None:
        """Stop waiting: the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def is_closing(self) -> bool:
        """Whether ``close`` was called."""
        return self._closing or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        """Everything else is the transport's."""
        return getattr(self._transport, name)
