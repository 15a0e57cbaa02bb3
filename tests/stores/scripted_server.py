"""A server on a real socket that answers what a test scripts, byte for byte, and remembers what it was asked."""

from __future__ import annotations

import socket
import struct
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

HANG = object()
"""Scripted instead of an answer: keep the connection open and say nothing."""

RESET = object()
"""Scripted instead of an answer: break the connection with a TCP reset."""


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Reply = object  # bytes, HANG, RESET, or a function of the request that gives one of these


@dataclass
class ScriptedServer:
    """Answers the requests in turn from ``script``; the last reply goes on for ever. Every connection serves one."""

    script: list[Reply]
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._turn = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        if request is None:
            return
        self.requests.append(request)
        reply = self.script[min(self._turn, len(self.script) - 1)]
        self._turn += 1
        if isinstance(reply, Callable):
            reply = reply(request)
        if reply is HANG:
            return
        if reply is RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            try:
                connection.sendall(reply)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):  # until the client is done, or unread bytes would become a reset
                    pass
            except OSError:
                pass
        connection.close()


def _read_request(connection: socket.socket) -> Request | None:
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65536)
        if not more:
            return None
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, target, _ = first.split(" ", 2)
    return Request(method, target, headers, body)


def reply(
    status: int, body: bytes = b"", *, kind: str | None = None, length: int | None = None, **headers: str
) -> bytes:
    """An HTTP answer; header names are given with underscores, ``length`` overrides the true Content-Length."""
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(body) if length is None else length}"]
    if kind:
        lines.append(f"Content-Type: {kind}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines.append("Connection: close")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def document_reply(body: bytes, version: int = 5, **headers: str) -> bytes:
    """A service's true answer to a GET; ``headers`` replace single ones."""
    named = {
        "ETag": f'"aa-{version}"',
        "Mergepub_Version": str(version),
        "Mergepub_Incarnation": "aa",
        "Repr_Digest": repr_digest(body),
        "Last_Modified": "Mon, 30 Nov 2026 10:00:00 GMT",
        **headers,
    }
    return reply(200, body, kind="application/octet-stream", **{name: value for name, value in named.items() if value})


def repr_digest(body: bytes) -> str:
    return f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
