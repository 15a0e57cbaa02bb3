"""How tracked files stand, on a terminal: a table, or one file below the other where it is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from mergepub import status_files
from mergepub.cli.streams import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mergepub.tracking.previewing import Standing

NARROW = 60
"""Columns below which a table would break its names."""

STYLES = {
    "unchanged": "dim",
    "edited": "green",
    "newer": "cyan",
    "both": "bold",
    "conflict": "bold red",
    "missing": "red",
    "gone": "red",
}


def status_view(found: Sequence[Standing], width: int) -> Iterable[RenderableType]:
    """The table, for a terminal of that many columns."""
    rows = [(_style(standing), *map(printable, status_files.standing_row(standing))) for standing in found]
    if width < NARROW:
        return [_stacked(*row) for row in rows]
    table = Table("state", "file", "made from", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for style, words, file, origin in rows:
        table.add_row(Text(words, style), Text(file), Text(origin, "dim"))
    return [table]


def _style(standing: Standing) -> str:
    return "bold red" if standing.mergeable is False else STYLES[standing.state]


def _stacked(style: str, words: str, file: str, origin: str) -> Text:
    return Text("\n").join([Text(file), Text(f"  {words}", style), Text(f"  {origin}", "dim")])
