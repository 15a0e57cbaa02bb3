"""The command ``coord run`` itself: a run around a command, with the transcript of what it shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from mergepub.cli.coord.envelope import CoordGroup, ask_daemon, data_option
from mergepub.cli.coord.who import start_params, who_options
from mergepub.cli.options import verb
from mergepub.cli.streams import say, why

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit statuses of a command that could not be started, as shells have them."""


class RunGroup(CoordGroup):
    """A group that takes what begins with an option for a command to wrap."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the word ``wrap`` before the options of a command that is to be wrapped."""
        wrapped = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["wrap", *args] if wrapped else args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click gives it
        """Both ways to call it."""
        return ["--task TEXT [OPTIONS] -- COMMAND [ARGS]... | start | stop | list"]


@verb(
    "wrap",
    "mergepub coord run --task 'Revise the guide' -- $SHELL",
    "mergepub coord run --task 'Nightly build' --member ci@build --workspace docs -- make docs",
)
@who_options
@click.argument("command", metavar="COMMAND [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED)
@data_option
def wrap_command(task: str, member: str, workspace: str | None, data_dir: str | None, command: tuple[str, ...]) -> int:
    """Run COMMAND as a run in the checkout of the working directory; its exit status is ours, 128 + N for signal N.

    It finds MERGEPUB_RUN_DIR in its environment. The last 16 MiB that it shows are kept as evidence for a report.
    """
    refused = _trouble_with(command[0])
    if refused:
        say(f"mergepub: cannot run {command[0]}: {refused[1]}")
        return refused[0]
    wanted = start_params(task, member, workspace) | {"transcript": True, "pid": os.getpid()}
    made = ask_daemon(data_dir, "run.start", wanted)
    try:
        with _keeping(made["transcript"]) as keep:
            return _run(command, made["run_dir"], keep)
    finally:
        _end(data_dir, made["run_id"])


wrap_command.hidden = True
wrap_command.allow_interspersed_args = False


def _trouble_with(program: str) -> tuple[int, str] | None:
    import shutil

    if shutil.which(program):
        return None
    if "/" in program and os.access(program, os.F_OK):
        return NOT_EXECUTABLE, "it is no program that may be run"
    return NOT_FOUND, "there is no such program"


def _run(command: tuple[str, ...], run_dir: str, keep: Callable[[bytes], None]) -> int:
    from mergepub.coord import pty

    try:
        return pty.run(command, os.environ | {"MERGEPUB_RUN_DIR": run_dir}, keep)
    except OSError as error:
        say(f"mergepub: cannot run {command[0]}: {why(error)}")
        return NOT_EXECUTABLE


@contextmanager
def _keeping(name: str) -> Iterator[Callable[[bytes], None]]:
    """What keeps the transcript in the file ``name``; a disk that fails does not keep the command from running."""
    from mergepub.coord.transcript import Ring

    try:
        ring = Ring(name)
    except OSError as error:
        say(f"mergepub: no transcript is kept, {name} cannot be made: {why(error)}")
        yield lambda _: None
        return
    try:
        yield ring.write
    finally:
        ring.close()


def _end(data: str | None, run_id: str) -> None:
    from mergepub.coord.wire import BAD_STATE, NOT_FOUND, CoordError

    try:
        ask_daemon(data, "run.stop", {"run_id": run_id})
    except CoordError as error:
        ended: Any = (BAD_STATE, NOT_FOUND)  # somebody stopped it, with mergepub coord run stop
        if error.code not in ended:
            say(f"mergepub: the run {run_id} has ended, and the daemon will note it once it is there: {error}")
