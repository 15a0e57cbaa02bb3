"""The verb ``log``: the history of a document, told version by version."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import RESET, colourful, painted, write_json
from mergepub.cli.history import versions
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Digits, json_option, path_argument, store_option, verb
from mergepub.cli.streams import printable, write_stdout
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.branching.picture import Line
    from mergepub.documents import Revision


@verb(
    "log",
    "mergepub log /docs/guide.md",
    "mergepub log /docs/guide.md --limit 3 --json",
    "mergepub log /docs/guide.md --graph",
)
@path_argument
@click.option("--limit", type=Digits(least=1), help="The newest so many alone.")
@click.option("--graph", is_flag=True, help="A picture of versions, branches and decisions instead.")
@json_option
@store_option
@click.pass_context
def log_command(context: click.Context, /, path: str, limit: int | None, **given: Any) -> int:
    """Tell the history of the document PATH, newest version first.

    For each version a block of key: value lines: version, modified, author; and where there is something to say,
    message, source (a commit or other origin), merged-from (the versions that it was merged of), deleted. --graph
    draws all branches with their decisions, each revision above what it was made from.
    """
    check_path(path)
    if given["graph"]:
        return _graph(store_url(context), path, limit, json=given["json"])
    revisions = versions(store_url(context), path, limit)
    if given["json"]:
        write_json(status.envelope(status.versions_json(revisions)))
    else:
        write_stdout(*_blocks(revisions))
    return 0


def _graph(url: str, path: str, limit: int | None, *, json: bool) -> int:
    from mergepub.branching.picture import picture
    from mergepub.calls import branching
    from mergepub.cli.mentions import mention

    with opened(url) as store:
        keeper = branching(store)
        rows, (_, branches), decisions = list(store.versions(path)), keeper.branches(path), keeper.decisions(path)
        mention(store, path)
    lines = list(islice(picture(rows, branches, decisions), limit))
    if json:
        write_json(status.envelope({"graph": [f"{line.lanes}  {line.label}".rstrip() for line in lines]}))
    else:
        write_stdout(*(_drawn(line, colours=colourful()) for line in lines))
    return 0


# On a terminal, lines instead of letters; lanes in colours, so that the eye can follow one.
_SHAPES = str.maketrans({"*": "●", "|": "│", "/": "╱", "\\": "╲"})  # noqa: RUF001 - it is meant to look alike
_LANES = (b"\x1b[32m", b"\x1b[33m", b"\x1b[34m", b"\x1b[35m", b"\x1b[36m")


def _drawn(line: Line, *, colours: bool) -> bytes:
    label = printable(line.label).encode("utf-8", "backslashreplace")
    if not colours:
        return b"%s  %s\n" % (line.lanes.encode(), label) if label else line.lanes.encode() + b"\n"
    lanes = b"".join(
        _LANES[at // 2 % len(_LANES)] + mark.encode() + RESET for at, mark in enumerate(line.lanes.translate(_SHAPES))
    )
    return b"%s  %s\n" % (lanes, label)


def _blocks(revisions: Iterable[Revision]) -> Iterable[bytes]:
    for number, revision in enumerate(revisions):
        block = painted(status.block_of(_keys(revision)))
        yield b"\n" + block if number else block


def _keys(revision: Revision) -> dict[str, status.Value]:
    keys: dict[str, status.Value] = {"version": revision.version, "modified": revision.modified}
    keys["author"] = revision.author
    if revision.message:
        keys["message"] = revision.message
    if revision.source is not None:
        keys["source"] = revision.source
    if revision.merged_from:
        keys["merged-from"] = f"base v{revision.merged_from.base}, theirs v{revision.merged_from.theirs}"
    return keys | ({"deleted": True} if revision.deleted else {})
