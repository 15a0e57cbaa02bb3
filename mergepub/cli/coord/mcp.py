"""The command ``coord mcp``: the tool server of a run. What its tools do is decided in ``mergepub.coord.mcp``."""

from __future__ import annotations

from mergepub.cli.options import verb
from mergepub.cli.streams import say
from mergepub.errors import InputError


@verb("mcp", "mergepub coord mcp", "MERGEPUB_RUN_DIR=/run/mergepub mergepub coord mcp")
def mcp_command() -> int:
    """Offer this run's methods as tools (Model Context Protocol) on standard input and output.

    coord_status, coord_send, coord_inbox, coord_ask, coord_reply, coord_report: as on the command line, but the caller
    supplies each idempotency key. Needs the extra: pip install "mergepub[mcp]".
    """
    from mergepub.coord.client import run_socket

    try:
        from mergepub.coord.mcp import make_server
    except ModuleNotFoundError as error:
        raise InputError(
            f"the tool server needs the package {error.name}",
            hint='install the extra: pip install "mergepub[mcp]"',
        ) from error
    place = run_socket()
    say(f"mergepub: tools for the run at {place.parent} on standard input and output; end with Ctrl-D")
    make_server(place).run("stdio")
    return 0
