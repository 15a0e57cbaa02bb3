"""The verb ``fetch``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from mergepub import publishing
from mergepub.cli.answers import Form, answer
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import body_options, json_option, store_option, verb
from mergepub.cli.streams import say
from mergepub.paths import split_version

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Local
    from mergepub.outcomes import Fetched


def fetch(url: str, path: str, version: int | None = None) -> Fetched:
    """Fetch from the store at ``url``; arguments have the same meaning as in ``publishing.fetch``."""
    with opened(url) as store:
        return publishing.fetch(store, path, version)


@verb(
    "fetch",
    "mergepub fetch /docs/guide.md",
    "mergepub fetch /docs/guide.md/v1 --body-only",
    "mergepub fetch /docs/guide.md -o copy.md",
)
@click.argument("path", metavar="PATH[/vN]")
@click.option("--force", is_flag=True, help="Replace FILE whatever it holds; that is kept in .mergepub/.")
@click.option("--body-only", is_flag=True, help="Print the body alone.")
@body_options
@json_option
@store_option
@click.pass_context
def fetch_command(context: click.Context, /, path: str, output: str | None, **given: Any) -> int:
    """Fetch the newest version of the document PATH, or version N of it.

    Prints a block of key: value lines, an empty line, and the body byte for byte. With -o FILE it is remembered which
    version FILE was made from: mergepub pull, push, publish and status go on from there.
    """
    form = Form(given["json"], no_body=given["no_body"], body_only=given["body_only"], output=output)
    document, version = split_version(path)
    form.check()
    if output is not None:
        from mergepub.checkout import locate

        checkout, local = locate(output)
        if not local.special:
            fetched = fetch_tracked(store_url(context), document, version, checkout, local, force=given["force"])
            return answer(fetched, document, Form(given["json"], no_body=True))
    return answer(fetch(store_url(context), document, version), document, form)


def fetch_tracked(
    url: str, path: str, version: int | None, checkout: Checkout, local: Local, *, force: bool = False
) -> Fetched:
    """Fetch into the file ``local``, tracked from now on.

    Raises:
        CheckoutError: the file holds something that is nowhere else, and ``force`` is False.
    """
    from mergepub.cli.tracked import held
    from mergepub.tracking import fetch_into

    with opened(url) as store:
        fetched = publishing.fetch(store, path, version)
        with held(checkout):
            taken = fetch_into(store, checkout, local, fetched.document, force=force)
    for name in taken.kept:
        say(f"mergepub: kept what was taken out of {local.name} in {os.path.relpath(name)}")
    return fetched
