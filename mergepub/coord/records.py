"""What coordination keeps, as values; and the seam between a report and whoever captures its evidence. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ACTIVE, FINISHED = "active", "finished"
CAPTURE_SECONDS = 120.0
"""How long capturing evidence may take."""
EVIDENCE_DAYS = 30


@dataclass(frozen=True, slots=True)
class Run:
    """One writer at work in a checkout.

    ``checkout`` is the folder with ``.mergepub/``; ``transcript`` the file that holds the terminal's transcript, ""
    where nobody keeps one; ``pid`` the process that ends with the run, 0 where none does, and ``process`` when that was
    started, as ``processes.started`` tells it. Times are RFC 3339.
    """

    id: str
    workspace: str
    member: str
    task: str
    checkout: str
    transcript: str = ""
    pid: int = 0
    state: str = ACTIVE
    started: str = ""
    ended: str = ""
    process: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """An outcome as it was reported: ``evidence_refs`` are the caller's own."""

    id: str
    run: str
    outcome: str
    summary: str
    evidence_refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was captured for one report.

    ``ref`` names it for good. ``commit`` is the private Git commit, ``transcript`` the kept copy's file, each ""
    where there is none. ``documents`` is the run's document set. ``unresolved`` says in sentences which sources are
    missing or cut, and what is not known; ``provenance`` says where the rest came from. All of it is stored as JSON.
    """

    ref: str
    documents: tuple[str, ...] = ()
    commit: str = ""
    transcript: str = ""
    transcript_bytes: int = 0
    transcript_truncated: bool = False
    provenance: dict[str, Any] = field(default_factory=dict)
    unresolved: tuple[str, ...] = ()


def evidence_ref(report_id: str) -> str:
    """The name of the evidence for a report."""
    return f"evidence-{report_id}"


class CaptureError(Exception):
    """Evidence could not be captured; the message says why. The report is not accepted, and can be repeated."""


class Capture(Protocol):
    """Whoever captures evidence. Called in a thread of its own; nothing of it is shared between calls."""

    def capture(self, run: Run, report: Report, documents: Sequence[str], deadline: float) -> Evidence:
        """Capture the evidence for ``report``, completely and durably, until ``deadline`` (``time.monotonic()``).

        A crash may come at any point and the call be repeated for the same report, so the ref is made from
        ``report.id`` and a repeated call replaces what an earlier one left. Until the report is finalised with it, it
        may be released again.

        Raises:
            CaptureError: it cannot be done.
        """
        ...

    def release(self, ref: str) -> None:
        """Remove what was kept under ``ref``; nothing happens where there is nothing."""
        ...

    def refs(self) -> Sequence[str]:
        """Every ref of which anything is kept, for removing what no report names."""
        ...
