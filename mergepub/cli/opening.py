"""Which store a command works on, and opening it for as long as the command needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from click.core import ParameterSource

from mergepub.stores import default_url, open_store

if TYPE_CHECKING:
    import click

    from mergepub.stores.contract import Store

_BY_RANK = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)


def store_url(context: click.Context) -> str:
    """The URL given after the verb or before it, by flag, else by variable, else by configuration; else the default."""
    for source in _BY_RANK:
        for place in (context, context.find_root()):
            if place.get_parameter_source("store") is source and place.params.get("store"):
                return str(place.params["store"])
    return default_url()


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """The store at ``url``, closed afterwards."""
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()
