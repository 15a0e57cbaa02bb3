"""Conflicts on a terminal: yours and theirs with the base in the middle, or one below the other where it is narrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from mergepub.cli.looks import changed_words, lines_of, set_off

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mergepub.tracking.conflicts import Conflicts, Place

NARROW = 72
"""Columns below which three texts side by side are no help."""


def conflict_view(found: Conflicts, file: str, width: int) -> Iterator[RenderableType]:
    """Every place with a heading, for a terminal of that many columns."""
    for number, place in enumerate(found.places, 1):
        yield Text(f"{file}, line {place.line}: conflict {number} of {len(found.places)}", "bold")
        texts = _texts(place)
        names = "yours", f"base v{found.base}", f"theirs v{found.theirs}"
        yield _stacked(names, texts) if width < NARROW else _beside(names, texts)


def _texts(place: Place) -> tuple[list[Text], list[Text], list[Text]]:
    """Ours, base and theirs, line by line; what a side changed of the base is set off."""
    base = None if place.base is None else lines_of(place.base)
    middle = [Text("(not known)", "dim")] if base is None else _or_nothing([Text(line) for line in base])
    ours, theirs = (
        _or_nothing(_side(base or [], lines_of(body), kind))
        for body, kind in ((place.ours, "ours"), (place.theirs, "theirs"))
    )
    return ours, middle, theirs


def _side(base: list[str], lines: list[str], kind: str) -> list[Text]:
    text = "\n".join(lines)
    _, spans = changed_words("\n".join(base), text)
    return list(set_off(text, spans, kind).split("\n", allow_blank=True)) if lines else []


def _or_nothing(lines: list[Text]) -> list[Text]:
    return lines or [Text("(nothing)", "dim")]


def _beside(names: tuple[str, ...], texts: tuple[list[Text], ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, expand=True, padding=(0, 1), pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(name, ratio=1, overflow="fold")
    if len({len(lines) for lines in texts}) == 1:
        for row in zip(*texts, strict=True):
            table.add_row(*row)
    else:
        table.add_row(*(Text("\n").join(lines) for lines in texts))
    table.add_row()
    return table


def _stacked(names: tuple[str, ...], texts: tuple[list[Text], ...]) -> Text:
    parts: list[Text] = []
    for name, lines in zip(names, texts, strict=True):
        parts += [Text(f"{name}:", "underline"), *(Text("  ") + line for line in lines)]
    return Text("\n").join([*parts, Text("")])
