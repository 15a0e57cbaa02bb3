"""Whose run it is and what it is about: options that starting one and wrapping a command share."""

from __future__ import annotations

import os
from typing import Any

import click

from mergepub.cli.options import Label, Shell, default_author


def who_options(function: Shell) -> Shell:
    """What a run is about, and whose it is."""
    for option in (
        click.option("--workspace", type=Label(), metavar="NAME", help="The runs that publish to one store."),
        click.option(
            "--member",
            type=Label(),
            metavar="NAME",
            envvar=["MERGEPUB_COORD_RUN_MEMBER", "MERGEPUB_AUTHOR"],
            default=default_author,
            help="Who writes (USER@HOST).",
        ),
        click.option("--task", required=True, metavar="TEXT", help="What the run is about."),
    ):
        function = option(function)
    return function


def start_params(task: str, member: str, workspace: str | None) -> dict[str, Any]:
    """The parameters of ``run.start`` for the checkout of the working directory."""
    from mergepub.checkout.home import root_of

    checkout = root_of(os.path.realpath(os.curdir))
    return {"checkout": checkout, "task": task, "member": member} | ({"workspace": workspace} if workspace else {})
