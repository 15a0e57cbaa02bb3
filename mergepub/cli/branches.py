"""The verb ``branches``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import painted, write_json
from mergepub.cli.history import show
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import json_option, path_argument, store_option, verb
from mergepub.cli.streams import say, write_stdout
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.branching.looking import Overview

STATES = ("open", "default", "superseded", "merged", "rejected", "abandoned")


def branches(url: str, path: str) -> Overview:
    """The head and all branches of the document ``path`` in the store at ``url``."""
    from mergepub.branching.looking import overview

    with opened(url) as store:
        return overview(store, path)


@verb("branches", "mergepub branches /docs/guide.md", "mergepub branches /docs/guide.md --state open --json")
@path_argument
@click.option("--state", type=click.Choice(STATES), multiple=True, help="Branches in this state alone; repeatable.")
@json_option
@store_option
@click.pass_context
def branches_command(context: click.Context, /, path: str, state: tuple[str, ...], **given: Any) -> int:
    """Show the branches of the document PATH against its head.

    First the head; then for each branch its state, its end as BRANCH@R, what it was made from, the common ancestors
    with the head, how many revisions each side has alone, and its owners.
    """
    from mergepub import status_branches

    check_path(path)
    found = branches(store_url(context), path)
    rows = [row for row in found.branches if not state or row.branch.state in state]
    if given["json"]:
        keys = status_branches.overview_json(found)
        names = {(row.branch.incarnation, row.branch.name) for row in rows}
        keys["branches"] = [row for row in keys["branches"] if (row["incarnation"], row["branch"]) in names]
        write_json(status.envelope(keys))
    else:
        head = found.head
        write_stdout(painted(status.block_of({"head": head.version, "branch": str(head.place)})))
        show(status_branches.BRANCH_HEADING, [status_branches.branch_row(row) for row in rows], whole=("branch",))
    for line in status_branches.overview_hints(found):
        say(line)
    return 0
