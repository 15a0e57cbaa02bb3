"""The verb ``revert``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from mergepub import reverting, status
from mergepub.cli.answers import Form, answer
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import (
    Digits,
    VersionName,
    body_options,
    json_option,
    label_options,
    path_argument,
    store_option,
    verb,
)
from mergepub.outcomes import Overlap
from mergepub.paths import check_path
from mergepub.publishing import MergeOptions

if TYPE_CHECKING:
    from mergepub.outcomes import Outcome


def revert(url: str, path: str, number: int, **how: Any) -> Outcome:
    """Revert in the store at ``url``; arguments have the same meaning as in ``reverting.revert``."""
    with opened(url) as store:
        return reverting.revert(store, path, number, **how)


@verb("revert", "mergepub revert /docs/guide.md v2", "mergepub revert /docs/guide.md v2 -m 'That was premature'")
@path_argument
@click.argument("version", metavar="vN", type=VersionName())
@click.option("--retries", type=Digits(least=1), default=3, help="Merges that may lose the race.")
@click.option(
    "--style",
    type=click.Choice(["merge", "diff3", "zdiff3"]),
    default="merge",
    help="Style of the conflict blocks; diff3 and zdiff3 show version N.",
)
@click.option("--granularity", type=click.Choice(["line", "word"]), default="line", help="word: merge word by word.")
@label_options("revert")
@body_options
@json_option
@store_option
@click.pass_context
def revert_command(context: click.Context, /, path: str, version: int, **given: Any) -> int:
    """Undo one publish: take what version N changed out of the newest version, and publish that.

    What others changed since stays. Where it overlaps with what version N changed, nothing is published and the body
    with markers is printed (exit status 3).
    """
    form = Form(given["json"], no_body=given["no_body"], output=given["output"])
    check_path(path)
    form.check()
    outcome = revert(
        store_url(context),
        path,
        version,
        retries=given["retries"],
        author=given["author"],
        message=given["message"] or None,
        merge_options=MergeOptions(style=given["style"], granularity=given["granularity"]),
    )
    return answer(outcome, path, form, hints=_hints(outcome, path, form))


def _hints(outcome: Outcome, path: str, form: Form) -> list[str]:
    """What to do, where an edit and its undoing are no edits of the caller."""
    if not isinstance(outcome, Overlap):
        again = f"mergepub revert {shlex.quote(path)} v{getattr(outcome, 'your_version', 0)}"
        contended = status.fields(outcome).get("reason") == "contention"
        return [*status.hints(outcome, path)[:-1], f"next: {again}"] if contended else status.hints(outcome, path)
    file = "RESULT" if form.output is None else shlex.quote(form.output)
    places = "1 place" if outcome.conflicts == 1 else f"{outcome.conflicts} places"
    told = (
        f"What version {outcome.your_version} changed was changed again since, in {places}; nothing was published. "
        f"Mend the marked lines and publish the result at version {outcome.current_version}."
    )
    return [
        told,
        f"next: mergepub publish {shlex.quote(path)} {file} --expected-version {outcome.current_version}",
    ]
