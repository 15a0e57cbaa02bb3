"""What the verbs about tracked files share: which checkout, which store, one file after the other.

Imported by verbs when they turn out to need it: a publish from standard input never does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.checkout import Checkout, Local, Record, locate
from mergepub.checkout.home import root_of
from mergepub.cli.opening import opened, store_url
from mergepub.cli.streams import say
from mergepub.errors import InputError
from mergepub.tracking.work import locked, not_tracked

if TYPE_CHECKING:
    import click

    from mergepub.stores.contract import Store


def by_checkout(names: Sequence[str]) -> list[tuple[Checkout, list[Local]]]:
    """The files under the checkouts that they belong to, each file once, in a fixed order of checkouts."""
    found: dict[str, tuple[Checkout, dict[str, Local]]] = {}
    for name in names:
        checkout, local = locate(name)
        found.setdefault(checkout.root, (checkout, {}))[1].setdefault(local.target, local)
    return [(checkout, list(locals_.values())) for _, (checkout, locals_) in sorted(found.items())]


def here() -> Checkout:
    """The checkout of the working directory."""
    return Checkout(root_of(os.path.realpath(os.curdir)))


@contextmanager
def held(checkout: Checkout) -> Iterator[None]:
    """Hold the checkout's lock, and say what of an interrupted command was finished or undone."""
    with locked(checkout) as told:
        for line in told:
            say(f"mergepub: {line}")
        yield


class Stores:
    """The stores of tracked files, each opened once: the one of the command line, and those that records name."""

    def __init__(self, context: click.Context) -> None:
        self._url = store_url(context)
        self._asked = _was_asked_for(context)
        self._opened: dict[str, Store] = {}
        self._context = context

    def given(self) -> Store:
        """The store that the command line, the environment or the configuration names."""
        return self._open(self._url)

    def of(self, record: Record) -> Store:
        """The store that a record names.

        Raises:
            InputError: the command line names another one.
        """
        given = self.given()
        if given.url == record.store:
            return given
        if self._asked:
            raise InputError(
                f"{record.file} is tracked in {record.store}, not in {given.url}",
                hint=f"leave --store out; or take the other one's: mergepub fetch {quote(record.path)} "
                f"-o {quote(record.file)} --force",
            )
        return self._open(record.store)

    def at(self, url: str) -> Store:
        """The store at ``url``, as a record or a queued publish names it."""
        return self._open(url)

    def _open(self, url: str) -> Store:
        if url not in self._opened:
            self._opened[url] = self._context.with_resource(opened(url))
        return self._opened[url]


def _was_asked_for(context: click.Context) -> bool:
    from click.core import ParameterSource

    places = (context, context.find_root())
    return any(place.get_parameter_source("store") is ParameterSource.COMMANDLINE for place in places)


def record_of(checkout: Checkout, local: Local) -> Record:
    """The record of a tracked file.

    Raises:
        InputError: it is not tracked.
    """
    record = checkout.load(local)
    if record is None:
        raise _not_tracked(checkout, local)
    return record


def _not_tracked(checkout: Checkout, local: Local) -> InputError:
    """The error, with the tracked file that a name may have meant under which there is nothing."""
    error = not_tracked(local)
    if not os.path.lexists(local.target):
        from mergepub.cli.nearest import tracked_meant

        meant = tracked_meant(local.name, (checkout.local(each).name for each in checkout.records()))
        error.hint = f"{meant}{error.hint}"
    return error


def say_nothing_tracked() -> None:
    """Say that a command without FILE found nothing to work on, and how that comes about."""
    say("mergepub: nothing is tracked here")
    say("next: mergepub fetch PATH -o FILE")
