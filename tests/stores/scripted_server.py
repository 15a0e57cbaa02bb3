"""A server on a real socket that answers what a test scripts, byte for byte, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import struct
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import sha256

import requests
from mergepub.documents import Version
from mergepub.stores.memory import MemoryStore

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


def problem(status: int, **fields: object) -> bytes:
    facts = {"type": "about:blank", "title": "no", "status": status, "detail": f"status {status} it is", **fields}
    return reply(status, json.dumps(facts).encode(), kind="application/problem+json")


def json_reply(status: int, facts: object, **headers: str) -> bytes:
    return reply(status, json.dumps(facts).encode(), kind="application/json", **headers)


class Committing:
    """A service in front of a memory store that commits each publish, then says what ``answers`` scripts."""

    def __init__(self, path: str, *answers: object) -> None:
        self.path = path
        self.store = MemoryStore()
        self.answers = list(answers)

    def __call__(self, request: Request) -> object:
        if request.target.startswith("/-/versions/"):
            return json_reply(200, {"versions": [asdict(row) for row in self.store.versions(self.path)]})
        if request.method == "GET":
            head = self.store.fetch(self.path)
            return document_reply(head.body, head.version.number or 0)
        receipt = self.store.publish(
            self.path, request.body, Version(int(request.headers["mergepub-expected-version"]))
        )
        if self.answers:
            return self.answers.pop(0)
        facts = {"version": receipt.version.number, "replayed": receipt.replayed, "current-version": receipt.current}
        return json_reply(200, {key: value for key, value in facts.items() if value}, Mergepub_Incarnation="aa")


class Forwarding:
    """A way to the service at ``url`` on which the answers that ``lost`` scripts take the place of the true ones.

    None in ``lost`` lets the true answer pass; whatever is scripted, the service has done what it was asked.
    """

    def __init__(self, url: str, lost: list[object]) -> None:
        self.url = url
        self.lost = lost

    def __call__(self, request: Request) -> object:
        answer = requests.request(
            request.method, self.url + request.target, headers=request.headers, data=request.body, timeout=20
        )
        lost = self.lost.pop(0) if self.lost else None
        if lost is not None:
            return lost
        headers = {
            name: value for name, value in answer.headers.items() if name not in ("Content-Length", "Connection")
        }
        return reply(answer.status_code, answer.content, **headers)


HTML = b"<html><body>Bad <b>Gateway</b>\x1b[31m</body></html>"

NO_CLEAR_ANSWER = {
    "500": reply(500, b"oops", kind="text/plain"),
    "502 with HTML": reply(502, HTML, kind="text/html"),
    "503 with Retry-After": reply(503, b"", Retry_After="7"),
    "200 with an empty body": reply(200),
    "201 with an empty body": reply(201),
    "200 without a version": json_reply(200, {"unchanged": True}),
    "201 with JSON that is no object": json_reply(201, [5]),
    "201 with a version that is no number": json_reply(201, {"version": "5"}),
    "201 whose header and body name different versions": json_reply(201, {"version": 5}, Mergepub_Version="6"),
    "201 with replayed as text": json_reply(201, {"version": 5, "replayed": "yes"}),
    "200 with HTML": reply(200, HTML, kind="text/html"),
    "200 with JSON in the name of HTML": reply(200, b'{"version": 5}', kind="text/html"),
    "200 with cut JSON": reply(200, b'{"version": 5', kind="application/json"),
    "204": reply(204),
    "half a body": reply(201, b'{"version": 5}', kind="application/json", length=5000),
    "chunked garbage": b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ngarbage",
    "no HTTP at all": b"SSH-2.0-OpenSSH_9.6\r\n",
    "an endless header": b"HTTP/1.1 201 Created\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n",
    "200 headers": b"HTTP/1.1 201 Created\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(200)) + b"\r\n",
    "nothing before closing": b"",
    "a reset": RESET,
    "a hang": HANG,
    "a redirect to another host": reply(307, Location="http://localhost:1/docs/guide.md"),
    "a redirect on the same host": reply(308, Location="/elsewhere"),
    "a redirect to no URL": reply(302, Location="http://[::1/docs/guide.md"),
    "a redirect to nowhere": reply(302),
    "404 with HTML": reply(404, HTML, kind="text/html"),
    "404 of another service": reply(404, b'{"detail": "Not Found"}', kind="application/json"),
    "412 with HTML": reply(412, HTML, kind="text/html"),
    "418": reply(418, b"short and stout", kind="text/plain"),
}
"""Answers to a PUT, POST or GET that are neither a clear yes nor a clear no."""
