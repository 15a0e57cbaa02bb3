"""The verb ``log``: the history of a document, told version by version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import painted, write_json
from mergepub.cli.history import versions
from mergepub.cli.opening import store_url
from mergepub.cli.options import Digits, json_option, path_argument, store_option, verb
from mergepub.cli.streams import write_stdout
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.documents import Revision


@verb("log", "mergepub log /docs/guide.md", "mergepub log /docs/guide.md --limit 3 --json")
@path_argument
@click.option("--limit", type=Digits(least=1), help="The newest so many alone.")
@json_option
@store_option
@click.pass_context
def log_command(context: click.Context, /, path: str, limit: int | None, **given: Any) -> int:
    """Tell the history of the document PATH, newest version first.

    For each version a block of key: value lines: version, modified, author; and where there is something to say,
    message, source (a commit or other origin), merged-from (the versions that it was merged of), deleted.
    """
    check_path(path)
    revisions = versions(store_url(context), path, limit)
    if given["json"]:
        write_json(status.envelope(status.versions_json(revisions)))
    else:
        write_stdout(*_blocks(revisions))
    return 0


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
