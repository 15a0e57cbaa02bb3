"""Counters of one worker, in the text format of Prometheus. Updated from the event loop only, so without locks.

Where several workers serve, whoever asks is answered by any of them: each labels its series with its process, so that
they are never taken for one another's; sums over all are the reader's.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter

from mergepub._version import __version__

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds."""

METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})


class Metrics:
    """What this process has served since it started."""

    def __init__(self, *, alone: bool = True) -> None:
        """``alone``: no other worker serves."""
        self._label = "" if alone else f'worker="{os.getpid()}"'
        self.in_flight = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def observe(self, method: str, room: str, status: int, *, seconds: float, received: int, sent: int) -> None:
        """Count one finished request."""
        known = method if method in METHODS else "other"
        self._requests[known, room, status] += 1
        self._buckets[known, bisect_left(BUCKETS, seconds)] += 1
        self._seconds[known] += seconds  # type: ignore[assignment]  # a Counter sums floats as well
        self._bytes["received"] += received
        self._bytes["sent"] += sent

    def render(self) -> str:
        """All of it."""
        lines = [
            *_family("mergepub_info", "gauge", "The version that runs.", [(_labels(version=__version__), 1)]),
            *_family("mergepub_requests_in_flight", "gauge", "Requests under way.", [("", self.in_flight)]),
            *_family("mergepub_worker", "gauge", "Process id of the worker that answers.", [("", os.getpid())]),
            *_family("mergepub_requests_total", "counter", "Requests answered.", self._request_rows()),
            *_family("mergepub_body_bytes_total", "counter", "Bytes of bodies.", self._byte_rows()),
            *self._histogram(),
        ]
        return "\n".join(map(self._labelled, lines)) + "\n"

    def _labelled(self, line: str) -> str:
        if line.startswith("#") or not self._label:
            return line
        series, _, value = line.rpartition(" ")
        name, _, labels = series.partition("{")
        return f"{name}{{{self._label}{',' if labels else '}'}{labels} {value}"

    def _request_rows(self) -> list[tuple[str, float]]:
        rows = sorted(self._requests.items())
        return [(_labels(method=m, room=r, status=str(s)), count) for (m, r, s), count in rows]

    def _byte_rows(self) -> list[tuple[str, float]]:
        return [(_labels(direction=way), self._bytes[way]) for way in ("received", "sent")]

    def _histogram(self) -> list[str]:
        name = "mergepub_request_seconds"
        lines = _family(name, "histogram", "Time from the header to the end of the answer.", [])
        for method in sorted({method for method, _ in self._buckets}):
            total = 0
            for index, bound in enumerate((*map(str, BUCKETS), "+Inf")):
                total += self._buckets[method, index]
                lines.append(f"{name}_bucket{_labels(method=method, le=bound)} {total}")
            lines.append(f"{name}_sum{_labels(method=method)} {float(self._seconds[method]):.6f}")
            lines.append(f"{name}_count{_labels(method=method)} {total}")
        return lines


def _family(name: str, kind: str, text: str, rows: list[tuple[str, float]]) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *(f"{name}{labels} {value}" for labels, value in rows)]


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
