"""Draws what the views of the command line show of a small example; started by scripts/screenshots/render."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from mergepub import open_store, publish
from mergepub.checkout import locate
from mergepub.cli.conflictview import conflict_view
from mergepub.cli.diffview import diff_view
from mergepub.cli.statusview import status_view
from mergepub.merge.unified import unified
from mergepub.tracking import Work, fetch_into, locked
from mergepub.tracking.conflicts import conflicts_of
from mergepub.tracking.differing import compare
from mergepub.tracking.previewing import standing
from rich.console import Console, RenderableType

WIDTH = 96
BASE = """Backups

Every Sunday the operators save all documents.

A copy goes to the other house.

Kept for thirty days, then deleted.
"""
THEIRS = BASE.replace("Sunday", "night").replace("other house", "house in Lund")
OURS = BASE.replace("Sunday", "Friday").replace("thirty", "ninety")
BARE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
"""As rich draws it, without the fonts that it would have a reader's browser fetch from elsewhere."""


def main() -> None:
    place = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, views in pictures().items():
            draw(place / f"{name}.svg", f"mergepub {name}", views)
        os.chdir(place)


def pictures() -> dict[str, list[RenderableType]]:
    """What each command shows, of the same example."""
    Path(".mergepub").mkdir()
    store = open_store("sqlite:///documents.sqlite")
    files = {"backups.md": (OURS, THEIRS), "guide.md": (BASE, THEIRS), "rota.md": (OURS, BASE), "keys.md": (BASE, BASE)}
    files["house.md"] = (BASE.replace("thirty", "ninety"), THEIRS)
    works = {}
    for name, (ours, theirs) in files.items():
        publish(store, f"/docs/{name}", BASE.encode(), 0)
        checkout, local = locate(name)
        with locked(checkout):
            fetch_into(store, checkout, local, store.fetch(f"/docs/{name}"))
        Path(name).write_text(ours)
        if theirs != BASE:
            publish(store, f"/docs/{name}", theirs.encode(), 1)
        works[name] = Work(store, checkout, local, checkout.load(local))
    found = compare(works["backups.md"], "ours")
    names = b"a/backups.md\tbase v1", b"b/backups.md\there"
    standings = [standing(store, work.checkout, work.record) for work in works.values()]
    return {
        "diff": list(diff_view(unified(found.old, found.new, names))),
        "status": list(status_view(standings, WIDTH)),
        "show-conflict": list(conflict_view(conflicts_of(works["backups.md"]), "backups.md", WIDTH)),
    }


def draw(file: Path, title: str, views: Iterable[RenderableType]) -> None:
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    for view in views:
        console.print(view)
    file.write_text(console.export_svg(title=title, code_format=BARE, unique_id=file.stem), "utf-8")
    print(file)


if __name__ == "__main__":
    main()
