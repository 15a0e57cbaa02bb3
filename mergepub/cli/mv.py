"""The verb ``mv``."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import painted, write_json
from mergepub.cli.options import json_option, verb
from mergepub.cli.streams import write_stdout
from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Local, Record


@verb("mv", "mergepub mv tracked.md renamed.md")
@click.argument("file", metavar="FILE")
@click.argument("to", metavar="NEW")
@json_option
def mv_command(file: str, to: str, **given: Any) -> int:
    """Rename a tracked FILE to NEW, or move it into the folder NEW; it stays tracked.

    One that was renamed without mergepub is tracked under its new name from now on. The document keeps its path.
    """
    name = os.path.join(to, os.path.basename(file)) if os.path.isdir(to) else to  # noqa: PTH112, PTH118, PTH119 - names as given
    record = move(file, name)
    keys: dict[str, status.Value] = {"status": "ok", "file": name, "path": record.path, "version": record.base.version}
    if given["json"]:
        write_json(status.envelope(keys))
    else:
        write_stdout(painted(status.block_of(keys)))
    return 0


def move(file: str, to: str) -> Record:
    """Rename the tracked ``file`` and what is remembered of it. A symbolic link is renamed itself.

    Raises:
        InputError: it is not tracked, ``to`` exists, is tracked itself or belongs to another checkout.
    """
    from mergepub.checkout import locate
    from mergepub.checkout.replacing import move_file
    from mergepub.cli.tracked import held, record_of

    checkout, local = locate(file)
    other, target = locate(to)
    with held(checkout):
        record = record_of(checkout, local)
        checkout.check_place(target)
        _check_names(file, to)
        if os.path.islink(file):  # noqa: PTH114 - what is tracked is what it points to
            os.rename(file, to)  # noqa: PTH104 - as above
        elif other.root != checkout.root:
            raise InputError(
                f"{to} belongs to another checkout, {other.root}",
                hint=f"track the document there: mergepub fetch {quote(record.path)} -o {quote(to)}",
            )
        else:
            _check_untracked(checkout, target)
            move_file(checkout, record, local, target)
    return record


def _check_names(file: str, to: str) -> None:
    """Refuse names between which nothing can be moved; that ``file`` has become ``to`` already is fine."""
    is_there = os.path.lexists(file)
    if to.endswith(os.sep):
        raise InputError(f"{to} is no folder", hint=f"make it first: mkdir -p {quote(to)}")
    if os.path.lexists(to) and (is_there or not os.path.isfile(to)):  # noqa: PTH113 - a broken link counts as there
        raise InputError(f"{to} exists already", hint="give another name, or move it away first")
    if not is_there and not os.path.lexists(to):
        raise InputError(f"{file} is gone, and there is no {to}", hint="name the file that it has become")


def _check_untracked(checkout: Checkout, target: Local) -> None:
    known = checkout.load(target)
    if known is not None:
        raise InputError(
            f"{target.name} is tracked itself, as {known.path}",
            hint=f"give another name, or bring that one back: mergepub fetch {quote(known.path)} "
            f"-o {quote(target.name)}",
        )
