"""Capturing the evidence for a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mergepub.coord.records import Evidence, Report, Run


class Evidences:
    """Captures evidence into ``folder``, one folder a ref."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def capture(self, run: Run, report: Report, documents: Sequence[str], deadline: float) -> Evidence:  # noqa: ARG002 - nothing here takes long
        """See ``Capture.capture``: the document set alone."""
        unresolved = ("no Git commit was made", "no transcript was kept")
        provenance = {"checkout": run.checkout, "member": run.member, "task": run.task}
        return Evidence(f"evidence-{report.id}", tuple(documents), provenance=provenance, unresolved=unresolved)

    def release(self, ref: str) -> None:
        """See ``Capture.release``."""

    def refs(self) -> Sequence[str]:
        """See ``Capture.refs``."""
        return ()
