"""Which store a command works on, and opening it for as long as the command needs it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from mergepub.cli.streams import say
from mergepub.errors import InputError, NotFoundError
from mergepub.stores import default_url, open_store, own_url

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

_SAID = "mergepub.secret-looked-at"
_ASKING = ("http", "https", "postgresql")  # the stores that ask for a secret
_BY_RANK = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)


def store_url(context: click.Context) -> str:
    """The URL given after the verb or before it, by flag, else by variable, else by configuration; else the default.

    Raises:
        InputError: the flag is there, with nothing in it.
    """
    for source in _BY_RANK:
        for place in (context, context.find_root()):
            given = place.params.get("store") if place.get_parameter_source("store") is source else None
            if given == "" and source is ParameterSource.COMMANDLINE:  # an unset variable of a script, most likely
                raise InputError("--store is empty", hint="name the store, sqlite:///FILE, or leave --store out")
            if given:
                return str(given)
    return default_url()


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """The store at ``url``, closed afterwards. A secret goes there only where the user named the store or its host.

    Raises:
        InputError: as ``open_store``.
    """
    store = open_store(url)
    scheme = url.partition(":")[0].lower()
    if scheme in _ASKING:
        from mergepub.cli.vouching import vouch

        vouch(store, url)
        _warn_of_open_secret(scheme)
    folder = _missing_folder(store)
    try:
        yield store
        if folder and os.path.isdir(folder):  # noqa: PTH112 - pathlib costs every command milliseconds
            say(f"mergepub: made the folder {folder} with a new store in it, {store.url}")
    except NotFoundError as error:
        from mergepub.cli.nearest import name_nearest

        name_nearest(store, error)
        raise
    finally:
        store.close()


def is_open_to_others(file: int | str) -> bool:
    """Whether ``file``, a name or a descriptor, is a regular file that others than its owner can read."""
    try:
        mode = os.stat(file).st_mode  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and mode & 0o077 != 0


def _warn_of_open_secret(scheme: str) -> None:
    """Say once when others can read the file with the secret; what else is wrong with it is said when it is read."""
    context = click.get_current_context(silent=True)
    name = os.environ.get("MERGEPUB_TOKEN_FILE")
    if context is None or context.meta.setdefault(_SAID, False):
        return
    context.meta[_SAID] = True
    if name and scheme != "postgresql" and not os.environ.get("MERGEPUB_TOKEN") and is_open_to_others(name):
        say(f"mergepub: warning: others on this machine can read the token in {name}; next: chmod 600 {quote(name)}")


def _missing_folder(store: Store) -> str | None:
    """The folder that the file of a new store would be made with, where one was named that is not there."""
    _, is_file, name = store.url.partition("sqlite:///")
    folder = os.path.dirname(name) if is_file else ""  # noqa: PTH120 - as above
    return folder if folder and not os.path.isdir(folder) and store.url != own_url() else None  # noqa: PTH112 - as above
