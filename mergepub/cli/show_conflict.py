"""The verb ``show-conflict``: what stands against what, and what both were made from."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from mergepub import status, status_files
from mergepub.cli.answers import Form, answer, write_json
from mergepub.cli.options import json_option, store_option, verb
from mergepub.cli.streams import printable, say, write_stdout
from mergepub.outcomes import Refused

if TYPE_CHECKING:
    from mergepub.tracking.conflicts import Conflicts, Place


@verb("show-conflict", "mergepub show-conflict conflicted.md", "mergepub show-conflict conflicted.md --json")
@click.argument("file", metavar="FILE")
@json_option
@store_option
@click.pass_context
def show_conflict_command(context: click.Context, /, file: str, **given: Any) -> int:
    """Show the conflicts of a tracked FILE side by side, what both were made from in the middle.

    Of a FILE that is in no conflict, those that a pull would bring. In a pipe, blocks with markers. Nothing is changed.
    """
    from mergepub.checkout import locate
    from mergepub.cli.tracked import Stores, record_of
    from mergepub.tracking.conflicts import conflicts_of
    from mergepub.tracking.work import Work

    checkout, local = locate(file)
    record = record_of(checkout, local)
    found = conflicts_of(Work(Stores(context).of(record), checkout, local, record))
    if isinstance(found, Refused):
        hints = status_files.conflict_hints(file, record.path, found, None)
        return answer(found, record.path, Form(given["json"]), hints=hints)
    if given["json"]:
        write_json(status.envelope(_facts(found, file, record.path)))
    else:
        show_conflicts(found, file)
        _say_next(found, file)
    return 0


def show_conflicts(found: Conflicts, file: str) -> None:
    """Print them: side by side on a terminal, as blocks with markers in a pipe."""
    if not os.isatty(1):
        write_stdout(*(piece for place in found.places for piece in _block(place)))
    elif found.places:
        from mergepub.cli.conflictview import conflict_view
        from mergepub.cli.looks import show, width

        show(*conflict_view(found, printable(file), width()))


def _block(place: Place) -> tuple[bytes, ...]:
    from mergepub.merge.markers import BASE, END, MIDDLE, START, free_size, marker_line, sizes_in

    base = [] if place.base is None else [(BASE, b"base", place.base)]
    parts = [(START, b"ours", place.ours), *base, (MIDDLE, b"", place.theirs)]
    size = free_size({taken for _, _, text in parts for taken in sizes_in(text, 0, len(text))})
    pieces = [piece for char, label, text in parts for piece in (marker_line(char, size, label, b"\n"), _ended(text))]
    return *pieces, marker_line(END, size, b"theirs", b"\n")


def _ended(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _say_next(found: Conflicts, file: str) -> None:
    name = shlex.quote(file)
    if found.places:
        say(f"next: mergepub resolve {name}")
    elif found.marked:
        say(f"mergepub: no conflict block is left in {file}")
        say(f"next: mergepub resolve {name} --mark-resolved")
    else:
        say(f"mergepub: {file} is in no conflict, and a pull would bring none")


def _facts(found: Conflicts, file: str, path: str) -> dict[str, Any]:
    facts = {"status": "ok", "file": file, "path": path, "base-version": found.base, "their-version": found.theirs}
    return facts | {"marked": found.marked, "conflicts": [_place_facts(place) for place in found.places]}


def _place_facts(place: Place) -> dict[str, Any]:
    texts = {"ours": place.ours, "base": place.base, "theirs": place.theirs}
    facts: dict[str, Any] = {"line": place.line}
    for name, text in texts.items():
        facts |= {} if text is None else status.json_text(name, text)
    return facts
