"""The log on standard error: one line a request, one line for what went wrong, as text or as JSON. Never a trace.

What is written never holds a header, a query or a body, so no secret: method, path, status, size, time, and the name of
the token that asked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import select
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mergepub.stores.contract import now

if TYPE_CHECKING:
    from mergepub.service.settings import LogFormat


def write(log_format: LogFormat, event: str, **facts: object) -> None:
    """One line on standard error; a log that nobody reads never stops the service."""
    _write(line(log_format, now(), event, facts))


def line(log_format: LogFormat, time: str, event: str, facts: Mapping[str, object]) -> str:
    """One line, with its end."""
    if log_format == "json":
        return json.dumps({"time": time, "event": event, **facts}, ensure_ascii=True) + "\n"
    return " ".join([time, event, *[f"{name}={_shown(value)}" for name, value in facts.items()]]) + "\n"


class Lines:
    """Lines that come in one turn of the event loop, with one time, written at its end in few pieces.

    A piece is never longer than what a pipe takes as a whole, so lines of several workers stay whole lines.
    """

    def __init__(self, log_format: LogFormat) -> None:
        self._format: LogFormat = log_format
        self._waiting: list[str] = []
        self._time = ""

    def add(self, event: str, **facts: object) -> None:
        """Write one line, from the event loop."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
            self._time = now()
        self._waiting.append(line(self._format, self._time, event, facts))

    def _flush(self) -> None:
        lines, self._waiting = self._waiting, []
        piece = ""
        for each in lines:
            if len(piece) + len(each) > select.PIPE_BUF:
                _write(piece)
                piece = ""
            piece += each
        _write(piece)


def _write(text: str) -> None:
    with suppress(OSError):
        os.write(2, text.encode())


_PLAIN = re.compile(r"[!#-~]+")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return "null" if value is None else repr(value)


@lru_cache(1024)
def _quoted(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value)


def where(error: BaseException) -> str:
    """Class and place of an unexpected error: enough to find it, and nothing that a message may have held."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


class Handler(logging.Handler):
    """What libraries log, as lines of this log: warnings and worse, without the trace."""

    def __init__(self, log_format: LogFormat = "text") -> None:
        super().__init__(logging.WARNING)
        self._format: LogFormat = log_format

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        error = record.exc_info[1] if record.exc_info else None
        said = " ".join(record.getMessage().split())
        write(self._format, record.levelname.lower(), said=f"{said} {where(error)}" if error else said)


def configuration(log_format: LogFormat) -> dict[str, Any]:
    """For ``logging.config.dictConfig``: everything goes through ``Handler``."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"log": {"class": "mergepub.service.logs.Handler", "log_format": log_format}},
        "root": {"handlers": ["log"], "level": "WARNING"},
        # Malformed requests are the clients' business: they are answered, and counted nowhere.
        "loggers": {"uvicorn.error": {"level": "ERROR"}},
    }
