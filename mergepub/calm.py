"""Reading files that somebody may be saving in this very instant.

Many programs save a file in its place: they empty it and write it anew. Whoever reads in between gets nothing, or half
of it, and what was read does not show it. What gives it away is the time of the last change. Nothing tells a save that
pauses for longer from a text that is done: what was published of it is a version like any other, and the next publish
brings the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from time import sleep, time_ns

MOMENT = 20_000_000
"""Nanoseconds for which a file must have been left alone; the clock of a file system ticks every ten milliseconds."""

LOOKS = 5
"""How often a file is read again. One that is written to without end is then taken as it is."""


def when_calm(name: str, read: Callable[[], bytes]) -> bytes:
    """What ``read`` gives of the file ``name``; again, where the file was changed within the last moment."""
    body = read()
    for _ in range(LOOKS):
        wait = _still_fresh(name)
        if not wait:
            break
        sleep(wait / 1e9)
        body = read()
    return body


def _still_fresh(name: str) -> int:
    """Nanoseconds until the file has been left alone for a moment; 0 for what is no regular file: it is read once."""
    try:
        found = os.stat(name)  # noqa: PTH116 - pathlib costs milliseconds
    except (OSError, ValueError):
        return 0
    age = time_ns() - found.st_mtime_ns
    return MOMENT - age if stat.S_ISREG(found.st_mode) and 0 <= age < MOMENT else 0
