"""Capturing the evidence for a report: what the run left behind, and in sentences what of it is missing.

    <evidence>/<ref>/            one capture
        transcript               the end of what the run's terminal showed
        place.json               where the private Git commit is, for removing it: written before there is one

It is no atomic picture, and proves nothing about the work that was reported.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mergepub._version import __version__
from mergepub.checkout import Checkout, Record, disk
from mergepub.coord import gitcommit, transcript
from mergepub.coord.clock import stamp
from mergepub.coord.gitcommit import GitError
from mergepub.coord.records import CaptureError, Evidence, Report, Run, evidence_ref
from mergepub.documents import digest_of
from mergepub.errors import MergepubError

_MARGIN = 2.0  # seconds of a capture's time that are left for what comes after git
_NAMED = 200  # documents described one by one

NOTHING_VERIFIED = "nothing was verified: that the work is done is what the run says"
IGNORED = "of what Git is told to ignore, edited documents alone are in the commit"


@dataclass(slots=True)
class _Found:
    """What was captured so far."""

    commit: str = ""
    transcript: str = ""
    transcript_bytes: int = 0
    transcript_truncated: bool = False
    provenance: dict[str, Any] = field(default_factory=dict)
    unresolved: list[str] = field(default_factory=list)


class Evidences:
    """Captures evidence into ``folder``, one folder a ref."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def capture(self, run: Run, report: Report, documents: Sequence[str], deadline: float) -> Evidence:
        """See ``Capture.capture``."""
        ref = evidence_ref(report.id)
        found = _Found(provenance=_origin(run, report))
        with self._alone(ref):
            try:
                self._capture(run, report, ref, documents, found=found, deadline=deadline)
            except CaptureError:
                with suppress(OSError):
                    self.release(ref)  # on a disk that is full it would stand in the way of the next attempt
                raise
        return Evidence(
            ref,
            tuple(documents),
            found.commit,
            found.transcript,
            found.transcript_bytes,
            found.transcript_truncated,
            found.provenance,
            (*found.unresolved, NOTHING_VERIFIED),
        )

    @contextmanager
    def _alone(self, ref: str) -> Iterator[None]:
        """Refuse a repetition while a capture that nobody waits for any more is still at it."""
        with self._lock:
            if ref in self._busy:
                raise CaptureError("an earlier attempt is still under way")
            self._busy.add(ref)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(ref)

    def _capture(
        self, run: Run, report: Report, ref: str, documents: Sequence[str], *, found: _Found, deadline: float
    ) -> None:
        place = str(self._folder / ref)
        try:
            self.release(ref)
            os.mkdir(place, 0o700)
            _capture_transcript(run, place, found)
            tracked = _capture_documents(run, set(documents), found)
            _capture_commit(run, report, place, tracked, found=found, deadline=deadline)
            disk.sync_folder(place)
            disk.sync_folder(str(self._folder))
        except OSError as error:
            raise CaptureError(f"{place} cannot be written: {error.strerror or error}") from error
        if time.monotonic() > deadline:
            raise CaptureError("it took too long")

    def release(self, ref: str) -> None:
        """See ``Capture.release``."""
        place = self._folder / ref
        with suppress(OSError, ValueError, KeyError):
            gitcommit.remove(json.loads((place / "place.json").read_bytes())["repository"], ref)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)

    def refs(self) -> Sequence[str]:
        """See ``Capture.refs``."""
        return sorted(name for name in os.listdir(self._folder) if name.startswith("evidence-"))


def _origin(run: Run, report: Report) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "report_id": report.id,
        "workspace_id": run.workspace,
        "member": run.member,
        "task": run.task,
        "checkout": run.checkout,
        "started_at": run.started,
        "captured_at": stamp(time.time()),
        "host": os.uname().nodename,
        "mergepub": __version__,
    }


# ── the transcript ──────────────────────────────────────────────────────────────────────────────────────────────────


def _capture_transcript(run: Run, place: str, found: _Found) -> None:
    if not run.transcript:
        found.unresolved.append("there is no transcript: the run was not started around a command")
        return
    name = os.path.join(place, "transcript")
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        kept = _copied(run.transcript, fd)
        os.fsync(fd)
    finally:
        os.close(fd)
    if isinstance(kept, str):
        os.unlink(name)
        found.unresolved.append(f"the transcript is missing: {kept}")
        return
    found.transcript, found.transcript_bytes, found.transcript_truncated = name, kept.size, kept.cut
    if kept.earlier:
        text = f"the transcript is cut: the last {kept.size} bytes are kept, {kept.earlier} before them are not"
        found.unresolved.append(text)
    if kept.lost:
        found.unresolved.append(f"the transcript lacks {kept.lost} bytes that could not be written to the disk")


def _copied(source: str, to: int) -> transcript.Kept | str:
    """What was copied, or why there is nothing to copy; a copy that cannot be written is raised."""
    try:
        os.close(os.open(source, os.O_RDONLY | os.O_NOFOLLOW))
    except OSError as error:
        return f"{source} cannot be read: {error.strerror}"
    try:
        return transcript.copy(source, to)
    except ValueError as error:
        return f"{source} is damaged: {error}"


# ── the document set ────────────────────────────────────────────────────────────────────────────────────────────────


def _capture_documents(run: Run, documents: Collection[str], found: _Found) -> list[str]:
    """Describe the documents that are edited and not published; the names of their files."""
    try:
        records = [record for record in Checkout(run.checkout).records() if record.path in documents]
    except (MergepubError, OSError) as error:
        found.unresolved.append(f"what is tracked in the checkout cannot be read: {error}")
        return []
    found.provenance["documents"] = [_described(run.checkout, record) for record in records[:_NAMED]]
    if len(records) > _NAMED:
        found.unresolved.append(f"of {len(records)} edited documents, {_NAMED} are described")
    found.unresolved += [
        f"{record.path} is in conflict: {record.file} holds conflict markers" for record in records if record.clash
    ]
    if documents:
        found.unresolved.append(f"not published yet: {_listed(sorted(documents))}")
    return [os.path.join(run.checkout, record.file) for record in records]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more


def _described(checkout: str, record: Record) -> dict[str, Any]:
    facts = {"path": record.path, "file": record.file, "base_version": record.base.version}
    with suppress(OSError):
        body = disk.read(os.path.join(checkout, record.file))
        facts |= {} if body is None else {"bytes": len(body), "digest": digest_of(body)}
    return facts


# ── the commit ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _capture_commit(
    run: Run, report: Report, place: str, files: Sequence[str], *, found: _Found, deadline: float
) -> None:
    ref = os.path.basename(place)
    until = deadline - _MARGIN
    try:
        tree = gitcommit.find(run.checkout, until)
        where = {"repository": tree.repository, "ref": f"{gitcommit.REFS}/{ref}"}
        disk.put(os.path.join(place, "place.json"), json.dumps(where).encode())
        found.provenance["git"] = where | {"top": tree.top, "head": tree.head, "branch": tree.branch}
        index = os.path.join(place, "index")
        made = gitcommit.commit(tree, ref, _message(run, report), index, files, deadline=until)
    except GitError as error:
        found.unresolved.append(f"there is no Git commit of the checkout: {error}")
        return
    found.commit = made.id
    found.unresolved += [*made.notes, IGNORED]


def _message(run: Run, report: Report) -> str:
    head = f"Evidence of {run.id}: {report.outcome}"
    return f"{head}\n\n{report.summary}\n\nReport: {report.id}\nMember: {run.member}\nTask: {run.task}\n"
