"""Whose word it is that a store gets a secret: that of whoever holds the secret, never that of files that came along.

A cloned project brings a ``mergepub.toml``, and it can bring records of tracked files: both name stores. A token of the
environment or of a file is for no store that nobody but such a file named. Keyring and netrc hold a secret for a host,
so they need no word. Nothing here sends or looks for a secret.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

HOSTS = "mergepub.token-hosts"
"""Where a command line's context keeps the hosts that its user named as the token's."""

_SAID = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_PORTS = {"http": 80, "https": 443}
Place = tuple[str, str, int | None]


def vouch(store: Store, url: str) -> None:
    """Let ``store`` send no secret of the environment where the user named neither ``url`` nor its host.

    Raises:
        InputError: PGPASSWORD would go to a database that the user did not name.
    """
    if is_vouched(url):
        return
    if url.partition(":")[0].lower() in _PORTS:
        store.vouched = False  # type: ignore[attr-defined]  # what HTTP stores have and others need not
    elif os.environ.get("PGPASSWORD"):
        host = urlsplit(url).hostname or "that database"
        raise InputError(
            f"PGPASSWORD is not sent to {host}: this project's files name that store, and you did not",
            hint=f"if it belongs there, say so: export MERGEPUB_TOKEN_HOST={host}; else unset PGPASSWORD",
        )


def is_vouched(url: str) -> bool:
    """Whether the user named the store, or another one at the same place, or its host as the token's."""
    context = click.get_current_context(silent=True)
    place = _place(url)
    if context is None or place is None:
        return True  # a program names its stores itself; what is no URL is refused elsewhere
    if any(_place(said) == place for said in _said(context)):
        return True
    host, port = place[1:]
    hosts = {each.lower().rstrip(".") for each in context.meta.get(HOSTS, ())}
    shown = f"[{host}]" if ":" in host else host
    return not hosts.isdisjoint({host, shown, f"{shown}:{port}"})


def _place(url: str) -> Place | None:
    try:
        parts = urlsplit(url)
        return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None


def _said(context: click.Context) -> Iterator[str]:
    """The stores that the command line, the environment and the user's own configuration name."""
    at: click.Context | None = context
    while at is not None:
        if at.get_parameter_source("store") in _SAID and at.params.get("store"):
            yield str(at.params["store"])
        at = at.parent
    variable = os.environ.get("MERGEPUB_STORE")
    if variable:
        yield variable
    yield from _configured(context)


def _configured(context: click.Context) -> Iterator[str]:
    from mergepub.cli.defaults import read_layers, settings_of

    yours = [layer for layer in read_layers() if layer.yours]
    if yours and context.parent is not None:
        found = settings_of(context.command, context.parent, context.info_name or "", yours)
        yield from (str(value) for option, value, _ in found if option.name == "store")
