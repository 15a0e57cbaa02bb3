"""The other end of a socket: one call, one answer; blocking, with a time-out. No identity is given, there is none."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mergepub.coord import wire
from mergepub.coord.records import CAPTURE_SECONDS
from mergepub.coord.surfaces import CONTROL, OFF, SOCKET
from mergepub.coord.wire import CoordError

RUN_DIR = "/run/mergepub"
"""Where a run's directory is when ``MERGEPUB_RUN_DIR`` does not say."""

SECONDS = 15.0
REPORT_SECONDS = CAPTURE_SECONDS + SECONDS
_TIMES = {"coord.report": REPORT_SECONDS, "run.stop": REPORT_SECONDS, "run.start": 60.0}


def run_socket() -> Path:
    """The socket of the run that this process belongs to, whether it is there or not."""
    return Path(os.environ.get("MERGEPUB_RUN_DIR") or RUN_DIR) / SOCKET


def control_socket(data: Path) -> Path:
    """The operator's socket of the daemon that serves ``data``."""
    return data / "coord" / CONTROL


def call(place: Path, method: str, params: Mapping[str, Any], seconds: float | None = None) -> dict[str, Any]:
    """Ask for ``method`` at the socket ``place``; its result.

    Args:
        place: the socket's path.
        method: a method of that socket.
        params: its parameters.
        seconds: how long to wait for the answer; None for as long as the method may take.

    Raises:
        CoordError: the answer is a refusal, there is no answer, or nobody listens there.
    """
    wait = _seconds(method, params) if seconds is None else seconds
    line = wire.request(1, method, params)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(wait)
        _connect(connection, place, method)
        try:
            connection.sendall(line)
            answer = _read_line(connection)
        except OSError as error:
            raise _no_answer(method, error) from error
    return _result(method, answer)


def _seconds(method: str, params: Mapping[str, Any]) -> float:
    return _TIMES.get(method, SECONDS) + float(params.get("wait_seconds", 0))


def _connect(connection: socket.socket, place: Path, method: str) -> None:
    try:
        connection.connect(os.fsencode(place))
    except OSError as error:
        if (place.parent / OFF).exists():
            raise CoordError(wire.UNAVAILABLE, f"{method}: coordination is off", "off") from error
        why = error.strerror or str(error)
        text = f"{method}: there is no socket {place}: {why}"
        raise CoordError(wire.UNAVAILABLE, text, "no-socket") from error


def _read_line(connection: socket.socket) -> bytes:
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        piece = connection.recv(1 << 16)
        if not piece:
            raise ConnectionResetError("the connection was closed without an answer")
        pieces.append(piece)
    return b"".join(pieces)


def _no_answer(method: str, error: OSError) -> CoordError:
    why = "no answer in time" if isinstance(error, TimeoutError) else str(error.strerror or error)
    text = f"{method}: {why}; it may have been done: repeat it with the same idempotency key"
    return CoordError(wire.UNAVAILABLE, text)


def _result(method: str, line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            data = dict(error.get("data", {}))
            raise CoordError(int(error["code"]), str(error["message"]), data.pop("reason", None), **data)
        found: dict[str, Any] = dict(answer["result"])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CoordError(wire.INTERNAL, f"{method}: the answer is no answer of wire v3") from None
    return found
