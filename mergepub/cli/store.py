"""The verb ``store``: what is done to a store itself, not to a document in it."""

from __future__ import annotations

from typing import Any

import click

from mergepub import status
from mergepub.cli.answers import write_json
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Label, group, json_option, store_option, verb
from mergepub.cli.streams import write_stdout
from mergepub.errors import InputError


@group("store", "mergepub store init")
def store_command(**_: Any) -> None:
    """Make a store, or bring it up to date."""


def init(url: str, grant_to: tuple[str, ...] = ()) -> str:
    """Make the store at ``url``, or bring its schema up to date; its URL without secrets.

    Raises:
        InputError: this kind of store is not made from here, or it knows no roles to grant anything to.
    """
    from mergepub.stores.sql import SqlStore

    with opened(url) as store:
        if not isinstance(store, SqlStore):
            raise InputError(
                f"the store {store.url} is not made from here",
                hint="run this where its database is, beside the service",
            )
        store.init(grant_to=grant_to)
        return store.url


@verb(
    "init",
    "mergepub store init --store sqlite:///docs.sqlite",
    "mergepub store init --store postgresql://owner@db.example/docs --grant-to docs_service",
)
@click.option(
    "--grant-to", multiple=True, metavar="ROLE", type=Label(), help="PostgreSQL: let this role use the store."
)
@json_option
@store_option
@click.pass_context
def init_command(context: click.Context, /, grant_to: tuple[str, ...], **given: Any) -> int:
    """Make the store, or bring its schema up to date. One that stands is left as it is.

    The first publish makes a store too, where it may. Run this first where the role that publishes may not create
    tables in the PostgreSQL database: --grant-to lets it read, add versions and move heads, never change or remove
    what is published. Repeat it after an upgrade of mergepub.
    """
    made = init(store_url(context), grant_to)
    if given["json"]:
        write_json(status.envelope({"status": "ok", "store": made}))
    else:
        write_stdout(f"status: ok\nstore: {made}\n".encode("utf-8", "backslashreplace"))
    return 0


store_command.add_command(init_command)
