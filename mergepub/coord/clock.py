"""The two times of coordination: one that never jumps, for how long things last, and the calendar's, for stamps."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


def _since_boot() -> float:
    boot = getattr(time, "CLOCK_BOOTTIME", None)  # unlike the monotonic clock it goes on while the machine sleeps
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Clock:
    """Both times, from two sources that can be given: ``wall`` (seconds of the epoch) and ``steady`` (any seconds)."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _since_boot) -> None:
        self._wall = wall
        self.steady = steady
        self._offset = wall() - steady()

    def now(self) -> float:
        """Seconds of the epoch as they were at the start, and from then on as many more as really passed."""
        return self.steady() + self._offset

    def stamp(self) -> str:
        """The calendar's time, as RFC 3339 in UTC."""
        return stamp(self._wall())


def stamp(seconds: float) -> str:
    """Seconds of the epoch as RFC 3339 in UTC with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
