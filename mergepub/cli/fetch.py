"""The verb ``fetch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mergepub import publishing
from mergepub.cli.answers import Form, answer
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import body_options, json_option, store_option, verb
from mergepub.paths import split_version

if TYPE_CHECKING:
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
@click.option("--body-only", is_flag=True, help="Print the body alone.")
@body_options
@json_option
@store_option
@click.pass_context
def fetch_command(context: click.Context, /, path: str, output: str | None, **given: Any) -> int:
    """Fetch the newest version of the document PATH, or version N of it.

    Prints a block of key: value lines, an empty line, and the body byte for byte.
    """
    form = Form(given["json"], no_body=given["no_body"], body_only=given["body_only"], output=output)
    document, version = split_version(path)
    form.check()
    return answer(fetch(store_url(context), document, version), document, form)
