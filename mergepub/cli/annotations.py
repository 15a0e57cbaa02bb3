"""Workflow annotations: what went wrong with a file, as GitHub shows it beside the file's line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mergepub import status_files
from mergepub.cli.streams import printable, read_file
from mergepub.errors import InputError
from mergepub.outcomes import Overlap

if TYPE_CHECKING:
    from mergepub.tracking.pushing import Pushed


def annotation(pushed: Pushed) -> str | None:
    """The line ``::error file=…,line=…::…`` for a file that was not published; None for every other."""
    if pushed.came not in ("conflicted", "failed"):
        return None
    said = "\n".join(printable(line) for line in status_files.pushed_hints(pushed)[len(pushed.notices) :])
    where = f"file={_property(_from_workspace(pushed.file))},line={line_of(pushed)},title=mergepub"
    return f"::error {where}::{_data(said)}"


def line_of(pushed: Pushed) -> int:
    """The line of FILE, from 1, where it first overlaps with the head; 1 where no line is to blame."""
    if isinstance(pushed.outcome, Overlap):
        return _line_in(pushed.file, pushed.outcome)
    return getattr(pushed.error, "line", None) or 1


def _line_in(file: str, overlap: Overlap) -> int:
    """The line of FILE, which holds no markers, where the marked text gets its first one."""
    from mergepub.merge.markers import Conflict, parse
    from mergepub.merge.myers import edit_script

    try:
        ours = read_file(file)
    except InputError:
        return 1
    pieces = parse(overlap.body, overlap.marker_size)
    start = next((piece.start for piece in pieces if isinstance(piece, Conflict)), 0)
    at = next((a0 for a0, _, b0, b1 in edit_script(ours, overlap.body) if b0 <= start < b1), 0)
    return min(ours.count(b"\n", 0, at) + 1, max(1, ours.count(b"\n")))


def _from_workspace(name: str) -> str:
    """The file's name from the top of the repository that the workflow checked out, else as it was given."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if not workspace:
        return name
    inside = os.path.relpath(os.path.realpath(name), os.path.realpath(workspace))
    return name if inside.startswith(os.pardir) else inside


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text.encode("utf-8", "replace").decode()).replace(":", "%3A").replace(",", "%2C")
