"""Requests as the tests write them: targets and headers go out as they are given, nothing is tidied on the way."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

_names = itertools.count(1)


def fresh_path(folder: str = "/docs") -> str:
    """The path of a document that no other test has."""
    return f"{folder}/doc-{next(_names)}.md"


@dataclass(frozen=True)
class Answer:
    """One answer, whole; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> Any:
        """The problem details that every refusal is made of."""
        assert self.headers["content-type"] == "application/problem+json", self
        problem = self.json
        assert set(problem) >= {"type", "title", "status", "detail"}
        assert problem["status"] == self.status
        return problem


class Client:
    """A client of one service; every request has a connection of its own."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self.host, self.port = urlsplit(url).hostname or "", urlsplit(url).port or 0
        self.token = token

    def ask(
        self, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        connection = HTTPConnection(self.host, self.port, timeout=60)
        named = dict(headers or {})
        if self.token and "Authorization" not in named:
            named["Authorization"] = f"Bearer {self.token}"
        try:
            connection.putrequest(method, target, skip_host="Host" in named, skip_accept_encoding=True)
            if body is not None:
                named.setdefault("Content-Length", str(len(body)))
            for name, value in named.items():
                connection.putheader(name, value.encode("utf-8"))
            connection.endheaders(body)
            return _whole(connection.getresponse())
        finally:
            connection.close()

    def get(self, target: str, **headers: str) -> Answer:
        return self.ask("GET", target, _dashed(headers))

    def put(self, target: str, body: bytes = b"text\n", **headers: str) -> Answer:
        return self.ask("PUT", target, _dashed(headers), body)

    def create(self, target: str, body: bytes = b"text\n", **headers: str) -> Answer:
        answer = self.put(target, body, Mergepub_Expected_Version="0", **headers)
        assert answer.status == 201, answer
        return answer

    def post(self, target: str, body: bytes = b"more\n", **headers: str) -> Answer:
        return self.ask("POST", target, _dashed(headers), body)

    def delete(self, target: str, **headers: str) -> Answer:
        return self.ask("DELETE", target, _dashed(headers))

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection((self.host, self.port), timeout=60)

    def raw(self, request: bytes) -> bytes:
        """Send ``request`` as it is and read until the service ends the connection."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def status_of(answer: bytes) -> int:
    """The status of a raw answer."""
    return int(answer.split(b" ", 2)[1])


def _whole(response: HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
