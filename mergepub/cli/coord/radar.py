"""The operator's view: ``coord radar`` and ``coord timeline``."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from mergepub.cli.coord.envelope import ask_daemon, data_option, write_result
from mergepub.cli.options import Digits, Label, verb
from mergepub.cli.streams import printable, write_stdout

if TYPE_CHECKING:
    from rich.table import Table

_JSON = click.option("--json", "json", is_flag=True, help="Print one JSON object.")
_WORKSPACE = click.option("--workspace", type=Label(), metavar="NAME", help="This workspace alone.")
_EVERY = 1.0  # seconds between two pictures
_NAMED = len("run-0123456789ab:")  # a peer is named to be typed again too
_COLOURS = {"active": "bold red", "grace": "yellow"}


@verb("radar", "mergepub coord radar", "mergepub coord radar --workspace docs --json")
@_WORKSPACE
@data_option
@_JSON
def radar_command(workspace: str | None, data_dir: str | None, json: bool) -> int:
    """Show who edits what and where runs overlap: live on a terminal until Ctrl-C, once in a pipe."""
    params = {"workspace": workspace} if workspace else {}
    if json:
        write_result(ask_daemon(data_dir, "radar.show", params))
    elif os.isatty(1):
        _live(data_dir, params)
    else:
        from mergepub.cli.history import columns

        rows = [HEADINGS, *(row[:-1] for row in rows_of(ask_daemon(data_dir, "radar.show", params)))]
        write_stdout(columns(rows).encode("utf-8", "surrogateescape"))
    return 0


HEADINGS = ("run", "workspace", "member", "doing", "documents", "overlaps with")


def rows_of(picture: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row a run: the columns of ``HEADINGS``, then the liveliest state of its overlaps ("" for none)."""
    return [_row(run, picture["overlaps"]) for run in picture["runs"]]


def _row(run: dict[str, Any], overlaps: list[dict[str, Any]]) -> tuple[str, ...]:
    own = [each for each in overlaps if run["run_id"] in each["runs"]]
    peers = [_overlap(run["run_id"], each) for each in own]
    state = next((name for name in ("active", "grace") if name in {each["state"] for each in own}), "")
    edits = _files(run) if run["observed"] else "not looked at yet"
    doing = run["life"] if run["life"] != "unknown" else "-"
    names = (run["run_id"], printable(run["workspace_id"]), printable(run["member_id"]))
    return (*names, doing, edits or "-", "; ".join(peers) or "-", state)


def _overlap(run: str, overlap: dict[str, Any]) -> str:
    peer = next(each for each in overlap["runs"] if each != run)
    if overlap["state"] == "grace":
        return f"{peer} until {overlap['expires_at'][11:19]}"
    return f"{peer}: {_files(overlap)}"


def _files(holder: dict[str, Any]) -> str:
    shown = holder["files"][:3]
    more = f" +{holder['file_total'] - len(shown)}" if holder["file_total"] > len(shown) else ""
    return " ".join(map(printable, shown)) + more


def _live(data: str | None, params: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.live import Live

    first = _table(
        ask_daemon(data, "radar.show", params)
    )  # a daemon that is not there is told before the screen changes
    with Live(first, console=Console(), auto_refresh=False, screen=True) as live:
        while True:
            live.update(_table(ask_daemon(data, "radar.show", params)), refresh=True)
            time.sleep(_EVERY)


def _table(picture: dict[str, Any]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"radar at {picture['at'][11:19]} UTC, Ctrl-C ends", expand=True)
    rows = rows_of(picture)
    # A run is named to be typed again, so its name is never broken over lines nor cut, however narrow the screen is.
    table.add_column(HEADINGS[0], no_wrap=True, min_width=max((len(row[0]) for row in rows), default=None))
    for heading in HEADINGS[1:]:
        table.add_column(heading, overflow="fold", min_width=_NAMED if heading == HEADINGS[-1] else None)
    for *cells, state in rows:
        table.add_row(*(Text(cell) for cell in cells), style=_COLOURS.get(state, ""))
    return table


@verb("timeline", "mergepub coord timeline", "mergepub coord timeline --workspace docs --json")
@_WORKSPACE
@click.option("--after", type=Digits(), default=0, metavar="NUMBER", help="The entries above this number alone.")
@click.option("--limit", type=Digits(1, 10_000), default=1000, show_default=True, help="The newest so many.")
@data_option
@_JSON
def timeline_command(workspace: str | None, after: int, limit: int, data_dir: str | None, json: bool) -> int:
    """Show what runs said to each other and reported, oldest first; it says what was stored, not what was read."""
    params = {"after": after, "limit": limit} | ({"workspace": workspace} if workspace else {})
    found = ask_daemon(data_dir, "timeline.show", params)
    if json:
        write_result(found)
        return 0
    from mergepub.cli.history import show

    headings = ("number", "time", "workspace", "run", "kind", "to", "text")
    show(headings, [_entry(entry) for entry in found["entries"]])
    return 0


def _entry(entry: dict[str, Any]) -> tuple[str, ...]:
    data = entry["data"]
    text = data.get("body") or f"{data.get('outcome', '')}: {data.get('summary', '')}"
    names = (str(entry["seq"]), entry["created_at"], entry["workspace_id"], entry["run_id"], entry["kind"])
    return tuple(map(printable, (*names, data.get("to_run_id", "-"), text)))
