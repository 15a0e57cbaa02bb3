"""The verbs ``versions`` and ``list``: rows, as aligned columns in a pipe, as a table on a terminal, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import colourful, write_json
from mergepub.cli.mentions import mention
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Digits, json_option, path_argument, store_option, verb
from mergepub.cli.streams import printable, say, write_stdout
from mergepub.documents import TEXT
from mergepub.paths import check_path, check_prefix

if TYPE_CHECKING:
    from mergepub.documents import Listed, Revision


def versions(url: str, path: str, limit: int | None = None) -> list[Revision]:
    """The history of the document ``path`` in the store at ``url``, newest first."""
    with opened(url) as store:
        rows = list(store.versions(path, limit=limit))
        mention(store, path)
        return rows


def documents(url: str, prefix: str = "/", *, limit: int | None = None, deleted: bool = False) -> list[Listed]:
    """The documents at or below ``prefix`` in the store at ``url``, by path; where there are none, that is said."""
    with opened(url) as store:
        rows = list(store.list(prefix, limit=limit, deleted=deleted))
        mention(store, prefix)
        if not rows:
            from mergepub.cli.nearest import nothing_below

            for line in nothing_below(store, prefix):
                say(line)
        return rows


@verb("versions", "mergepub versions /docs/guide.md", "mergepub versions /docs/guide.md --limit 1 --json")
@path_argument
@click.option("--limit", type=Digits(least=1), help="The newest so many alone.")
@json_option
@store_option
@click.pass_context
def versions_command(context: click.Context, /, path: str, limit: int | None, **given: Any) -> int:
    """List the versions of the document PATH, newest first: number, time, size, author, message."""
    check_path(path)
    revisions = versions(store_url(context), path, limit)
    if given["json"]:
        write_json(status.envelope(status.versions_json(revisions)))
    else:
        show(("version", "modified", "size", "author", "message"), [_revision_row(row) for row in revisions])
    return 0


def _revision_row(row: Revision) -> tuple[str, ...]:
    size = "deleted" if row.deleted else str(row.size)
    return str(row.version), row.modified, size, row.author, row.message


@verb("list", "mergepub list", "mergepub list /docs --limit 10")
@click.argument("prefix", metavar="[PREFIX]", default="/")
@click.option("--limit", type=Digits(least=1), help="The first so many alone.")
@click.option("--deleted", is_flag=True, help="Deleted ones too.")
@json_option
@store_option
@click.pass_context
def list_command(context: click.Context, /, prefix: str, limit: int | None, **given: Any) -> int:
    """List the documents at or below PREFIX, by path: version, time, path."""
    check_prefix(prefix)
    listed = documents(store_url(context), prefix, limit=limit, deleted=given["deleted"])
    if given["json"]:
        write_json(status.envelope(status.list_json(listed)))
    else:
        show(("version", "modified", "path"), [_listed_row(row) for row in listed])
    return 0


def _listed_row(row: Listed) -> tuple[str, ...]:
    notes = [word for word, is_so in ((row.kind, row.kind != TEXT), ("deleted", row.deleted)) if is_so]
    return str(row.version), row.modified, f"{row.path} ({', '.join(notes)})" if notes else row.path


def show(heading: Sequence[str], rows: Sequence[Sequence[str]], *, whole: Sequence[str] = ()) -> None:
    """Print rows: a table with its heading on a terminal, aligned columns without one in a pipe.

    Where a terminal is narrow, columns are folded; those that ``whole`` names are typed again, and stay in one piece.
    """
    clean = [[printable(cell) for cell in row] for row in rows]
    if colourful() and clean:
        _show_table(heading, clean, whole)
    else:
        write_stdout(columns(clean).encode("utf-8", "backslashreplace"))


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines with their columns aligned, two blanks between them and none at the end."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _show_table(heading: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[str]) -> None:
    import io

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for name in heading:
        table.add_column(name, overflow="fold", no_wrap=name in whole)
    for row in rows:
        table.add_row(*map(Text, row))  # as text: what writers wrote is no markup
    console = Console(file=io.StringIO(), force_terminal=True)
    with console.capture() as captured:
        console.print(table)
    write_stdout(captured.get().encode("utf-8", "backslashreplace"))
