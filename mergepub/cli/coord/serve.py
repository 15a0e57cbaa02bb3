"""The command ``coord serve``: the daemon's process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mergepub.cli.coord.envelope import data_dir, data_option
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Shell, store_option, verb
from mergepub.cli.streams import say
from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.coord.daemon import Daemon, Settings


def _hidden(name: str, default: float) -> Callable[[Shell], Shell]:
    """A time in seconds that nobody but a test has to set."""
    return click.option(name, type=float, default=default, hidden=True)


@verb("serve", "mergepub coord serve", "mergepub coord serve --data-dir /srv/mergepub --no-coordination")
@data_option
@click.option("--no-coordination", is_flag=True, help="Run the radar alone: no run gets a socket.")
@_hidden("--idle-seconds", 300.0)
@_hidden("--write-seconds", 30.0)
@_hidden("--quiet-seconds", 0.1)
@_hidden("--least-seconds", 0.3)
@_hidden("--most-seconds", 30.0)
@_hidden("--polling-seconds", 2.0)
@store_option
@click.pass_context
def serve_command(context: click.Context, /, **given: Any) -> int:
    """Serve runs, the radar and mail until SIGTERM or SIGINT.

    Everything durable is in the store's database (SQLite or PostgreSQL). One daemon serves a data directory.
    """
    from mergepub.coord.daemon import Daemon
    from mergepub.stores.sql import SqlStore

    with opened(store_url(context)) as store:
        if not isinstance(store, SqlStore):
            raise InputError(
                f"coordination needs the database itself, and {store.url} is none",
                hint="name a SQLite or PostgreSQL store with --store",
            )
        daemon = Daemon(store, data_dir(given["data_dir"]), lambda line: say(f"mergepub: {line}"), _settings(given))
        serve(daemon, f"mergepub: coordination serves {data_dir(given['data_dir'])} over {store.url}")
    return 0


def _settings(given: dict[str, Any]) -> Settings:
    from mergepub.coord.connections import Limits
    from mergepub.coord.daemon import Settings
    from mergepub.coord.observing import Intervals

    times = [given[f"{name}_seconds"] for name in ("quiet", "least", "most", "polling")]
    return Settings(
        coordination=not given["no_coordination"],
        limits=Limits(idle=given["idle_seconds"], write=given["write_seconds"]),
        intervals=Intervals(*times),
    )


def serve(daemon: Daemon, greeting: str) -> None:
    """Run ``daemon`` until a signal; ``greeting`` is said once it answers."""
    import asyncio
    import resource
    import signal

    os.umask(os.umask(0o077) & 0o077)  # whatever it keeps from others, our own files stay ours
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # sixteen connections a run soon pass the usual limit

    async def life() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, daemon.stop)
        await daemon.run(lambda: say(greeting))

    asyncio.run(life())
