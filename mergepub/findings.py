"""What an examination comes to: one finding a check. Values only."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["ok", "warn", "fail"]


class Finding(NamedTuple):
    """One check: what was found, what to do next, and the exit status that a failure asks for."""

    check: str
    verdict: Verdict
    message: str
    hint: str | None = None
    status: int = 0
