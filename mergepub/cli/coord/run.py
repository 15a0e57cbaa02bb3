"""The group ``coord run``: around a command, or ``start``, ``stop`` and ``list`` for what cannot be wrapped."""

from __future__ import annotations

from typing import Any

import click

from mergepub.cli.coord.envelope import ask_daemon, data_option, write_result
from mergepub.cli.coord.who import start_params, who_options
from mergepub.cli.coord.wrap import RunGroup, wrap_command
from mergepub.cli.options import group, verb
from mergepub.cli.streams import printable, write_stdout


@group(
    "run",
    "mergepub coord run --task 'Revise the guide' -- $SHELL",
    "mergepub coord run start --task 'Revise the guide'",
    cls=RunGroup,
)
def run_group(**_: Any) -> None:
    """Run a command as a run, or start, stop and list runs: writers at work in a checkout.

    The options before -- are --task TEXT (needed), --member NAME, --workspace NAME, --data-dir DIR.
    """


_JSON = click.option("--json", "json", is_flag=True, help="Print one JSON object.")


@verb("start", "mergepub coord run start --task 'Revise the guide'")
@who_options
@data_option
@_JSON
def start_command(task: str, member: str, workspace: str | None, data_dir: str | None, json: bool) -> int:
    """Start a run in the checkout of the working directory, for a process that is not wrapped.

    Give that process MERGEPUB_RUN_DIR, as printed; end the run with mergepub coord run stop.
    """
    made = ask_daemon(data_dir, "run.start", start_params(task, member, workspace))
    if json:
        write_result(made)
    else:
        write_stdout(f"run-id: {made['run_id']}\nrun-dir: {made['run_dir']}\n".encode("utf-8", "surrogateescape"))
    return 0


@verb("stop", "mergepub coord run stop run-0123456789ab")
@click.argument("run", metavar="RUN")
@data_option
@_JSON
def stop_command(run: str, data_dir: str | None, json: bool) -> int:
    """End the run RUN: its directory and inbox are released; what it sent stays for its peers."""
    ended = ask_daemon(data_dir, "run.stop", {"run_id": run})
    if json:
        write_result(ended)
    return 0


@verb("list", "mergepub coord run list")
@click.option("--all", "everything", is_flag=True, help="Those that have ended too.")
@data_option
@_JSON
def list_command(everything: bool, data_dir: str | None, json: bool) -> int:
    """List the runs: id, workspace, state, member, when it started, task."""
    found = ask_daemon(data_dir, "run.list", {"all": everything})
    if json:
        write_result(found)
        return 0
    from mergepub.cli.history import show

    headings = ("run", "workspace", "state", "member", "started", "task")
    names = ("run_id", "workspace_id", "state", "member_id", "started_at", "task")
    show(headings, [tuple(printable(run[name]) for name in names) for run in found["runs"]])
    return 0


for _command in (start_command, stop_command, list_command, wrap_command):
    run_group.add_command(_command)
