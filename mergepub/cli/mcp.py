"""The verb ``mcp``: the options of the tool server. What its tools do is decided in ``mergepub.mcp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Label, default_author, store_option, verb
from mergepub.cli.streams import say
from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.stores.contract import Store


def serve(store: Store, author: str) -> None:
    """Answer on standard streams until standard input ends.

    Raises:
        InputError: the extra is not installed.
    """
    try:
        from mergepub.mcp import make_server
    except ModuleNotFoundError as error:
        raise InputError(
            f"the tool server needs the package {error.name}",
            hint='install the extra: pip install "mergepub[mcp]"',
        ) from error
    server = make_server(store, author=author)
    say(f"mergepub: tools for {store.url} on standard input and output; end with Ctrl-D")
    server.run("stdio")


@verb("mcp", "mergepub mcp", "mergepub mcp --store https://docs.example.org --author assistant@desk")
@click.option(
    "--author",
    type=Label(),
    envvar=["MERGEPUB_MCP_AUTHOR", "MERGEPUB_AUTHOR"],
    default=default_author,
    help="Who writes, where a call does not say (USER@HOST).",
)
@store_option
@click.pass_context
def mcp_command(context: click.Context, /, author: str, **_: object) -> int:
    """Offer the documents as tools (Model Context Protocol) on standard input and output.

    mark_publish, mark_fetch, mark_append, mark_versions, mark_list: they answer with the keys of the status block and
    the body, so that the caller can resolve conflicts. Needs the extra: pip install "mergepub[mcp]".
    """
    with opened(store_url(context)) as store:
        serve(store, author)
    return 0
