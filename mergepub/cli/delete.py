"""The verb ``delete``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from mergepub import publishing
from mergepub.cli.answers import Form, answer
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import Digits, json_option, label_options, path_argument, store_option, verb
from mergepub.errors import InputError
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.outcomes import Outcome


def delete(url: str, path: str, expected: int, **labels: str) -> Outcome:
    """Delete in the store at ``url``; arguments have the same meaning as in ``publishing.delete``."""
    with opened(url) as store:
        return publishing.delete(store, path, expected, **labels)


@verb("delete", "mergepub delete /docs/guide.md --expected-version 2 -m 'Moved to the handbook'")
@path_argument
@click.option("--expected-version", type=Digits(least=1), help="The version that you looked at last.")
@label_options("delete")
@json_option
@store_option
@click.pass_context
def delete_command(context: click.Context, /, path: str, **given: Any) -> int:
    """Delete the document PATH, if nobody else published since. Its history stays readable."""
    check_path(path)
    expected = given["expected_version"]
    if expected is None:
        raise InputError(
            "--expected-version is missing: the version that you looked at last",
            hint=f"see it: mergepub fetch {shlex.quote(path)}",
        )
    outcome = delete(store_url(context), path, expected, author=given["author"], message=given["message"])
    return answer(outcome, path, Form(given["json"]))
