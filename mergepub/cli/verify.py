"""The verb ``verify``."""

from __future__ import annotations

from typing import Any

import click

from mergepub import status
from mergepub.cli.answers import write_json
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import json_option, store_option, verb
from mergepub.cli.streams import say, write_stdout
from mergepub.paths import check_path

DAMAGED = 3


def verify(url: str, path: str | None = None) -> list[str]:
    """The faults of one document, or of all, in the store at ``url``; one sentence each."""
    with opened(url) as store:
        return list(store.verify(path))


@verb("verify", "mergepub verify", "mergepub verify /docs/guide.md")
@click.argument("path", metavar="[PATH]", required=False)
@json_option
@store_option
@click.pass_context
def verify_command(context: click.Context, /, path: str | None, **given: Any) -> int:
    """Check the digests, the chain and the numbering of one document, or of all.

    Exit status 3 when there is a fault; each is told on standard error.
    """
    if path is not None:
        check_path(path)
    faults = verify(store_url(context), path)
    for fault in faults:
        say(f"mergepub: {fault}")
    if faults:
        say("hint: the store was changed past mergepub, or its disk fails: go back to a copy that verifies")
    if given["json"]:
        write_json(_report(faults))
    elif not faults:
        write_stdout(f"ok: {path or 'every document'} holds what was published\n".encode())
    return DAMAGED if faults else 0


def _report(faults: list[str]) -> dict[str, object]:
    if not faults:
        return status.envelope({"status": "ok", "faults": []})
    message = f"{len(faults)} faults were found" if len(faults) > 1 else "1 fault was found"
    return {
        "schema_version": status.SCHEMA_VERSION,
        "ok": False,
        "error": {"code": DAMAGED, "message": message, "faults": faults},
    }
