"""The verb ``decisions``."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import write_json
from mergepub.cli.history import show
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Digits, json_option, path_argument, store_option, verb
from mergepub.cli.streams import say
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.histories import Decision


def decisions(url: str, path: str, limit: int | None = None) -> list[Decision]:
    """The audit history of the document ``path`` in the store at ``url``, newest first."""
    from mergepub.calls import branching, insist

    with opened(url) as store:
        keeper = branching(store)
        return insist(lambda: keeper.decisions(path, limit=limit))


@verb("decisions", "mergepub decisions /docs/guide.md", "mergepub decisions /docs/guide.md --json")
@path_argument
@click.option("--limit", type=Digits(least=1), help="The newest so many alone.")
@json_option
@store_option
@click.pass_context
def decisions_command(context: click.Context, /, path: str, limit: int | None, **given: Any) -> int:
    """List the decisions about branches of the document PATH, newest first: what, about which heads, by whom, why."""
    from mergepub.status_branches import DECISION_HEADING, decision_json, decision_row

    check_path(path)
    rows = decisions(store_url(context), path, limit)
    if given["json"]:
        write_json(status.envelope({"decisions": [decision_json(row) for row in rows]}))
    elif not rows:
        say(f"mergepub: nothing has been decided about {path} yet")
        say(f"hint: mergepub branches {quote(path)}")
    else:
        show(DECISION_HEADING, [decision_row(row) for row in rows], whole=("decision", "branch"))
    return 0
