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
    from mergepub.checkout import Record


@verb("mv", "mergepub mv tracked.md renamed.md")
@click.argument("file", metavar="FILE")
@click.argument("to", metavar="NEW")
@json_option
def mv_command(file: str, to: str, **given: Any) -> int:
    """Rename a tracked FILE to NEW, or move it into the folder NEW; it stays tracked.

    The document keeps its path.
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
        InputError: it is not tracked, ``to`` exists or belongs to another checkout.
    """
    from mergepub.checkout import locate
    from mergepub.checkout.replacing import move_file
    from mergepub.cli.tracked import held, record_of

    checkout, local = locate(file)
    other, target = locate(to)
    with held(checkout):
        record = record_of(checkout, local)
        if os.path.lexists(to):  # a broken link counts as there
            raise InputError(f"{to} exists already", hint="give another name, or move it away first")
        if os.path.islink(file):  # noqa: PTH114 - what is tracked is what it points to
            os.rename(file, to)  # noqa: PTH104 - as above
        elif other.root != checkout.root:
            raise InputError(
                f"{to} belongs to another checkout, {other.root}",
                hint=f"track the document there: mergepub fetch {quote(record.path)} -o {quote(to)}",
            )
        else:
            move_file(checkout, record, local, target)
    return record
