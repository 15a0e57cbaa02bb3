"""A progress bar on standard error, where that is a terminal; nowhere else, and nothing of it stays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

Each = TypeVar("Each")


def wants_bar(total: int) -> bool:
    """Whether a bar is shown for so many steps: on a terminal that can move its cursor, for more than one."""
    return total > 1 and os.isatty(2) and os.environ.get("TERM") != "dumb"


def tracked(steps: Iterable[Each], total: int, what: str) -> Iterator[Each]:
    """The steps as they are, with a bar that grows by each where one is wanted."""
    if not wants_bar(total):
        yield from steps
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        for step in steps:
            progress.advance(task)
            yield step
