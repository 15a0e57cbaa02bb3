"""The command ``coord evidence``: what was captured with reports."""

from __future__ import annotations

import json as json_form
from typing import Any

import click

from mergepub.cli.coord.envelope import CoordGroup, ask_daemon, data_option, write_result
from mergepub.cli.options import group, verb
from mergepub.cli.streams import printable, write_stdout


@group("evidence", "mergepub coord evidence list", cls=CoordGroup)
def evidence_group(**_: Any) -> None:
    """List and show the evidence that was captured with reports; it is kept for 30 days."""


_JSON = click.option("--json", "json", is_flag=True, help="Print one JSON object.")


@verb("list", "mergepub coord evidence list")
@data_option
@_JSON
def list_command(data_dir: str | None, json: bool) -> int:
    """List the evidence: ref, run, outcome, how far its report got, until when it is kept, summary."""
    found = ask_daemon(data_dir, "evidence.list", {})
    if json:
        write_result(found)
        return 0
    from mergepub.cli.history import show

    headings = ("evidence", "run", "outcome", "report", "kept until", "summary")
    names = ("evidence_ref", "run_id", "outcome", "report_state", "expires_at", "summary")
    show(headings, [tuple(printable(str(row[name])) for name in names) for row in found["evidence"]])
    return 0


@verb("show", "mergepub coord evidence show evidence-report-0123456789abcdef")
@click.argument("ref", metavar="REF")
@data_option
@_JSON
def show_command(ref: str, data_dir: str | None, json: bool) -> int:
    """Show one piece of evidence: commit, transcript, documents, where it comes from, what is missing."""
    found = ask_daemon(data_dir, "evidence.show", {"evidence_ref": ref})
    if json:
        write_result(found)
        return 0
    facts = found | found.pop("captured")
    del facts["ref"]  # it stands there already
    lines = [f"{name}: {_shown(value)}\n" for name, value in facts.items() if value not in ("", [], {})]
    write_stdout("".join(lines).encode("utf-8", "backslashreplace"))
    return 0


def _shown(value: Any) -> str:
    return printable(value if isinstance(value, str) else json_form.dumps(value, ensure_ascii=False))


for _command in (list_command, show_command):
    evidence_group.add_command(_command)
