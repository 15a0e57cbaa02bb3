"""The one line of JSON that a command of a run answers with, and where it asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from mergepub.cli.options import Group, Shell
from mergepub.cli.streams import complain, write_stdout
from mergepub.errors import MergepubError

if TYPE_CHECKING:
    from pathlib import Path

    from mergepub.coord.wire import CoordError

SCHEMA_VERSION = "v3"
ALWAYS = frozenset({"status", "send", "ask", "reply", "inbox", "report", "hook"})
"""The commands that answer with an envelope whatever becomes of them."""


class CoordGroup(Group):
    """A group whose commands end in an envelope, also where they cannot be parsed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what goes wrong is its envelope, and words on standard error."""
        kept = getattr(ctx, "_protected_args", None)  # the name; older releases of click say it openly
        arguments = [*(getattr(ctx, "protected_args", []) if kept is None else kept), *ctx.args]
        try:
            return super().invoke(ctx)
        except (MergepubError, click.ClickException) as error:
            if not (set(arguments[:1]) & ALWAYS or "--json" in arguments):
                raise
            refusal = refusal_of(error, f"coord.{arguments[0]}")
            complain(refusal)
            write_error(refusal)
            return refusal.exit_status


def refusal_of(error: MergepubError | click.ClickException, method: str) -> CoordError:
    """``error`` with a code of the wire and the name of the method that it is about."""
    from mergepub.coord import wire

    if isinstance(error, wire.CoordError):
        return error
    if isinstance(error, click.ClickException):
        refusal = wire.CoordError(wire.BAD_PARAMS, f"{method}: {' '.join(error.format_message().split())}")
        refusal.hint = f"mergepub {method.replace('.', ' ')} --help shows how it is called"
        return refusal
    codes = {2: wire.BAD_PARAMS, 3: wire.BAD_STATE, 4: wire.UNAVAILABLE}
    refusal = wire.CoordError(codes.get(error.exit_status, wire.INTERNAL), f"{method}: {error.message}")
    refusal.hint = error.hint
    return refusal


def write_result(result: Mapping[str, Any]) -> None:
    """Print the envelope of a result."""
    _write({"schema_version": SCHEMA_VERSION, "ok": True, "result": result})


def write_error(error: CoordError) -> None:
    """Print the envelope of a refusal."""
    from mergepub.coord.wire import error_of

    _write({"schema_version": SCHEMA_VERSION, "ok": False, "error": error_of(error)})


def _write(value: Mapping[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not text.isprintable():  # a terminal would obey what others wrote; what stands here stands in strings
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    write_stdout(text.encode() + b"\n")


def ask_run(method: str, params: Mapping[str, Any], *, announce: Any = None) -> dict[str, Any]:
    """Ask the run that this process belongs to; what the wire would refuse is refused before anything is sent.

    ``announce`` is called after that, and before the call.

    Raises:
        CoordError: it is refused, or there is no socket.
    """
    from mergepub.coord import client, wire

    wire.check(wire.RUN_METHODS, wire.Request(1, method, dict(params)))
    if announce is not None:
        announce()
    try:
        return client.call(client.run_socket(), method, params)
    except wire.CoordError as error:
        if error.reason == "no-socket":
            error.hint = (
                "this is for the inside of a run: mergepub coord run --task 'What for' -- \"$SHELL\" begins one"
            )
        raise


def data_option(function: Shell) -> Shell:
    """``--data-dir DIR``: which daemon."""
    return click.option(
        "--data-dir",
        metavar="DIR",
        envvar="MERGEPUB_DATA_DIR",
        help="The daemon's data directory (the user's own for mergepub).",
    )(function)


def data_dir(given: str | None) -> Path:
    """The data directory that ``given`` names, else the user's own."""
    from pathlib import Path

    if given:
        return Path(given).absolute()
    from platformdirs import user_data_path

    return user_data_path("mergepub", appauthor=False)


def ask_daemon(data: str | None, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the daemon of a data directory, as its operator.

    Raises:
        CoordError: it is refused, or no daemon listens there.
    """
    from mergepub.coord import client, wire

    place = client.control_socket(data_dir(data))
    try:
        return client.call(place, method, params)
    except wire.CoordError as error:
        if error.reason == "no-socket":
            error.hint = "start the daemon with: mergepub coord serve"
        raise
