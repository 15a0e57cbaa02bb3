"""The verb ``append``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mergepub import publishing
from mergepub.cli.answers import Form, answer
from mergepub.cli.bodies import read_body
from mergepub.cli.mentions import mention_after
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Label, file_argument, json_option, label_options, path_argument, store_option, verb
from mergepub.errors import InputError
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.outcomes import Published


def append(url: str, path: str, body: bytes, **how: Any) -> Published:
    """Append in the store at ``url``; arguments have the same meaning as in ``publishing.append``."""
    with opened(url) as store:
        appended = publishing.append(store, path, body, **how)
        mention_after(store, path, appended)
        return appended


@verb("append", "date | mergepub append /docs/guide.md", "mergepub append /docs/guide.md log.txt -m 'Log of today'")
@path_argument
@file_argument
@click.option("--idempotency-key", type=Label(), help="Makes repeating safe: the same key and body are added once.")
@label_options("append")
@json_option
@store_option
@click.pass_context
def append_command(context: click.Context, /, path: str, file: str, **given: Any) -> int:
    """Add FILE to the end of the document PATH, whatever its newest version is.

    FILE omitted or - is standard input. Appends never conflict. An empty body is refused.
    """
    check_path(path)
    body = read_body(file, allow_empty=True)
    if not body:
        raise InputError("there is nothing to append: the body is empty", hint="check what should have written it")
    if given["idempotency_key"] == "":
        raise InputError("--idempotency-key is empty", hint="leave it out, or give a key of your own")
    labels = {"author": given["author"], "message": given["message"]}
    outcome = append(store_url(context), path, body, key=given["idempotency_key"], **labels)
    return answer(outcome, path, Form(given["json"]))
