"""The verb ``status``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mergepub import status_files
from mergepub.cli.answers import colourful, write_json
from mergepub.cli.mentions import mention
from mergepub.cli.options import json_option, store_option, verb
from mergepub.cli.streams import printable, say, write_stdout
from mergepub.errors import UnavailableError

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Record
    from mergepub.cli.tracked import Stores
    from mergepub.tracking.previewing import Standing


@verb("status", "mergepub status", "mergepub status tracked.md --json")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("--exit-code", is_flag=True, help="Exit with 3 when anything is in conflict.")
@json_option
@store_option
@click.pass_context
def status_command(context: click.Context, /, files: tuple[str, ...], exit_code: bool, **given: Any) -> int:
    """Show how tracked files stand: unchanged, edited here, newer there, both (and whether it merges), in conflict.

    Without FILE, all of this checkout. Nothing is changed, here or there.
    """
    from mergepub.cli.tracked import Stores, by_checkout, here, record_of

    checkouts = by_checkout(files) if files else [(here(), None)]
    stores, found, unreachable = Stores(context), list[Any](), list[UnavailableError]()
    for checkout, locals_ in checkouts:
        records = checkout.records() if locals_ is None else [record_of(checkout, local) for local in locals_]
        standings = [_standing(stores, checkout, record, unreachable) for record in records]
        found += _with_moved(checkout, records, standings)
    return _answer(found, unreachable, json=given["json"], exit_code=exit_code)


def _standing(stores: Stores, checkout: Checkout, record: Record, unreachable: list[UnavailableError]) -> Standing:
    from mergepub.tracking.previewing import standing

    try:
        store = stores.of(record)
        found = standing(store, checkout, record)
        if found.current is not None:
            mention(store, record.path)
        return found
    except UnavailableError as error:
        unreachable.append(error)
        return standing(None, checkout, record)


def _with_moved(checkout: Checkout, records: Sequence[Record], standings: Sequence[Standing]) -> list[Standing]:
    """The standings, of files that are missing with what they look to be called now."""
    from dataclasses import replace

    missing = [record for record, each in zip(records, standings, strict=True) if each.state == "missing"]
    if not missing:
        return list(standings)
    from mergepub.checkout.moved import find_moved

    moved = find_moved(checkout, missing)
    pairs = zip(records, standings, strict=True)
    return [replace(each, moved_to=moved[it.file].name) if it.file in moved else each for it, each in pairs]


def _answer(found: list[Standing], unreachable: list[UnavailableError], *, json: bool, exit_code: bool) -> int:
    code = 3 if exit_code and any(standing.state == "conflict" for standing in found) else 0
    if unreachable:
        code = unreachable[0].exit_status
    if json:
        write_json(status_files.envelope({"files": [status_files.standing_keys(standing) for standing in found]}, code))
    elif found:
        _show(found)
    else:
        from mergepub.cli.tracked import say_nothing_tracked

        say_nothing_tracked()
    for standing in found:
        for line in status_files.standing_hints(standing):
            say(line)
    if unreachable:
        say(f"mergepub: {unreachable[0].message}; what is newer there is not known")
    return code


def _show(found: list[Standing]) -> None:
    from mergepub.cli.history import columns

    if colourful():
        from mergepub.cli.looks import show, width
        from mergepub.cli.statusview import status_view

        show(*status_view(found, width()))
    else:
        rows = [[printable(cell) for cell in status_files.standing_row(standing)] for standing in found]
        write_stdout(columns(rows).encode("utf-8", "backslashreplace"))
