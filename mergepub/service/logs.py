"""The log on standard error: one line a request, one line for what went wrong, as text or as JSON. Never a trace.

What is written never holds a header, a query or a body, so no secret: method, path, status, size, time, and the name of
the token that asked.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mergepub.service.settings import LogFormat


def write(log_format: LogFormat, event: str, **facts: object) -> None:
    """One line on standard error; a log that nobody reads never stops the service."""
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if log_format == "json":
        line = json.dumps({"time": at, "event": event, **facts}, ensure_ascii=True)
    else:
        line = " ".join([at, event, *(f"{name}={_shown(value)}" for name, value in facts.items())])
    try:
        os.write(2, f"{line}\n".encode())
    except OSError:
        return


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value if value and value.isprintable() and value.isascii() and " " not in value else json.dumps(value)
    return json.dumps(value)


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
