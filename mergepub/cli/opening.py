"""Which store a command works on, and opening it for as long as the command needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from click.core import ParameterSource

from mergepub.errors import InputError, NotFoundError
from mergepub.stores import default_url, open_store

if TYPE_CHECKING:
    import click

    from mergepub.stores.contract import Store

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
    if url.partition(":")[0].lower() in _ASKING:
        from mergepub.cli.vouching import vouch

        vouch(store, url)
    try:
        yield store
    except NotFoundError as error:
        from mergepub.cli.nearest import name_nearest

        name_nearest(store, error)
        raise
    finally:
        store.close()
