"""The verb ``pull``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mergepub import status, status_files
from mergepub.cli.answers import write_json
from mergepub.cli.options import json_option, store_option, verb
from mergepub.cli.publish import merge_options, options_of
from mergepub.cli.streams import printable, say, write_stdout
from mergepub.errors import MergepubError

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Local
    from mergepub.cli.tracked import Stores
    from mergepub.outcomes import Overlap, Refused
    from mergepub.tracking.pulling import Pulled

    Came = Pulled | Overlap | Refused | MergepubError


def pull(stores: Stores, checkout: Checkout, local: Local, **how: Any) -> tuple[str, Came]:
    """Merge the head into one tracked file; its document's path and what it came to. The lock is held."""
    from mergepub.cli.tracked import record_of
    from mergepub.tracking import at_hand, pull_file

    record = record_of(checkout, local)
    try:
        work = at_hand(stores.of(record), checkout, local)
        came = pull_file(work, **how)
    except MergepubError as error:
        return record.path, error
    for notice in work.notices:
        say(f"mergepub: {notice}")
    return record.path, came


@verb("pull", "mergepub pull tracked.md", "mergepub pull tracked.md other.md --json")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--stale", is_flag=True, help="FILE comes from an editor that was opened before the last pull.")
@click.option("--allow-revert", is_flag=True, help="FILE is meant to undo what was pulled last.")
@merge_options
@json_option
@store_option
@click.pass_context
def pull_command(context: click.Context, /, files: tuple[str, ...], **given: Any) -> int:
    """Merge the newest version of their documents into tracked files; without FILE, into all of this checkout.

    Where your edits overlap with those of others, both are marked in FILE, and mergepub resolve ends that.
    """
    from mergepub.cli.tracked import Stores, by_checkout, held, here, record_of

    stores = Stores(context)
    how = {"options": options_of(given), "stale": given["stale"], "allow_revert": given["allow_revert"]}
    checkouts = by_checkout(files) if files else [(here(), [here().local(record) for record in here().records()])]
    for checkout, locals_ in checkouts:
        for local in locals_:
            record_of(checkout, local)
    results: list[tuple[str, str, Came]] = []
    for checkout, locals_ in checkouts:
        if locals_:
            with held(checkout):
                results += [(local.name, *pull(stores, checkout, local, **how)) for local in locals_]
    return _answer(results, json=given["json"])


def _answer(results: list[tuple[str, str, Came]], *, json: bool) -> int:
    from mergepub.cli.history import columns

    codes = [_code(came) for _, _, came in results]
    code = max(codes, default=0)
    if json:
        keys = [status_files.pulled_keys(*result) for result in results]
        write_json(status_files.envelope({"files": keys}, code))
    elif results:
        rows = [[printable(cell) for cell in status_files.pulled_row(*result)] for result in results]
        write_stdout(columns(rows).encode("utf-8"))
    else:
        from mergepub.cli.tracked import say_nothing_tracked

        say_nothing_tracked()
    for result in results:
        for line in status_files.pulled_hints(*result):
            say(line)
    return code


def _code(came: Came) -> int:
    if isinstance(came, Exception):
        return status.exit_status_of(came)
    return 3 if status_files.pulled_word(came) == "conflict" else 0
