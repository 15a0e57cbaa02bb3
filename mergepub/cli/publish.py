"""The verb ``publish``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from mergepub import publishing, status
from mergepub.cli.answers import Form, answer
from mergepub.cli.bodies import read_body
from mergepub.cli.favours import favour_for
from mergepub.cli.mergefile import MARKER_SIZES
from mergepub.cli.nearby import may_be_tracked
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import (
    Digits,
    Label,
    Shell,
    body_options,
    file_argument,
    json_option,
    label_options,
    last_given,
    path_argument,
    store_option,
    switch,
    verb,
)
from mergepub.cli.peers import warn_of_peers
from mergepub.cli.streams import complain
from mergepub.errors import BadPathError, InputError, UnavailableError
from mergepub.outcomes import Branched
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.checkout import Record
    from mergepub.outcomes import Outcome
    from mergepub.stores.contract import Store


def publish(url: str, path: str, body: bytes, expected: int, **how: Any) -> Outcome:
    """Publish to the store at ``url``; arguments have the same meaning as in ``publishing.publish``."""
    with opened(url) as store:
        outcome = publishing.publish(store, path, body, expected, **how)
        after_publish(store, path, outcome, how.get("author", ""))
        return outcome


def after_publish(store: Store, path: str, outcome: Outcome, author: str, file: str = "-") -> None:
    """Remember the end of a branch that the publish was kept on, and mention what is unresolved."""
    if isinstance(outcome, Branched):
        from mergepub.cli.writing import remember

        remember(store, path, author, outcome, file)
    from mergepub.cli.mentions import mention_after

    mention_after(store, path, outcome)


def merge_options(function: Shell) -> Shell:
    """How bodies are merged and conflicts shown."""
    for option in _MERGE_OPTIONS:
        function = option(function)
    return function


_MERGE_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--engine",
        type=click.Choice(["mergepub", "merge3"]),
        default="mergepub",
        help="What merges; merge3 needs that package.",
    ),
    click.option(
        "--granularity",
        type=click.Choice(["line", "word"]),
        default="line",
        help="word: merge edits of different words of the same lines too.",
    ),
    click.option(
        "--adjacent",
        type=click.Choice(["clean", "conflict"]),
        default="clean",
        help="Whether edits of neighbouring lines merge or conflict.",
    ),
    click.option(
        "--marker-size",
        type=Digits(MARKER_SIZES[0], MARKER_SIZES[-1]),
        default=7,
        help="Least length of the conflict markers.",
    ),
    click.option("--theirs-label", type=Label(), default="theirs", help="What the markers call the head."),
    click.option("--base-label", type=Label(), default="base", help="What the markers call the base."),
    click.option("--ours-label", type=Label(), default="ours", help="What the markers call your body."),
    click.option(
        "--style",
        type=click.Choice(["merge", "diff3", "zdiff3"]),
        default="merge",
        help="Style of the conflict blocks; diff3 and zdiff3 show the base.",
    ),
)


def options_of(given: Mapping[str, Any]) -> publishing.MergeOptions:
    """What ``merge_options`` were given."""
    return publishing.MergeOptions(
        style=given["style"],
        labels=(given["ours_label"], given["base_label"], given["theirs_label"]),
        marker_size=given["marker_size"],
        adjacent=given["adjacent"],
        granularity=given["granularity"],
        engine=given["engine"],
    )


@verb(
    "publish",
    "mergepub publish /docs/new.md guide.md --expected-version 0",
    "mergepub publish /docs/guide.md guide.md --expected-version 1 --on-conflict merge -m 'Say how'",
    "sort list.txt | mergepub publish /docs/list.txt --expected-version 0",
)
@path_argument
@file_argument
@click.option("--expected-version", type=Digits(), help="The version your edit was made from; 0: none exists yet.")
@click.option(
    "--on-conflict",
    type=click.Choice(["fail", "merge", "candidate", "branch"]),
    default="fail",
    help="When the head is another version: report it, merge and publish, merge for review, or keep a branch.",
)
@click.option("--branch", "branch", metavar="NAME", help="Add to the end of your own branch instead.")
@click.option("--queue", is_flag=True, help="Keep it in the local queue; mergepub sync sends it.")
@click.option("--offline", is_flag=True, help="Keep it there when the store cannot be reached.")
@click.option("--kind", type=click.Choice(["text", "events"]), help="What a new document is: text, or a log of events.")
@click.option("--retries", type=Digits(least=1), default=3, help="Merges that may lose the race.")
@click.option(
    "--favour-path", metavar="GLOB=union", multiple=True, help="Keep both sides where such documents conflict."
)
@switch("ours", "Settle conflicts with your lines.")
@switch("theirs", "Settle conflicts with the head's lines.")
@merge_options
@click.option("--update", is_flag=True, help="Write a merged body back to FILE, which is tracked.")
@click.option("--rebase-on", is_flag=True, help="FILE was built on --expected-version, whatever is remembered.")
@click.option("--stale", is_flag=True, help="FILE comes from an editor that was opened before the last pull.")
@click.option("--allow-revert", is_flag=True, help="FILE is meant to undo what was pulled last.")
@click.option("--allow-markers", is_flag=True, help="Permit a body that holds a conflict block.")
@click.option("--allow-empty", is_flag=True, help="Permit an empty body from standard input.")
@label_options("publish")
@body_options
@json_option
@store_option
@click.pass_context
def publish_command(context: click.Context, /, path: str, file: str, **given: Any) -> int:
    """Publish FILE as the next version of the document PATH, if nobody else published since.

    FILE omitted or - is standard input. When somebody did publish, --on-conflict merge brings both edits together;
    where they overlap, nothing is published and the body with markers is printed (exit status 3). For a FILE that
    mergepub fetch -o made, it is remembered which version it was made from.
    """
    form = Form(given["json"], no_body=given["no_body"], output=given["output"])
    _check_path(path, file)
    by_path = favour_for(path, given["favour_path"])
    given |= {"favour": last_given(context, "ours", "theirs") or by_path}
    form.check()
    warn_of_peers([path])
    if given["branch"] is not None:
        given["branch"] = _own_branch(path, file, given)
    read = cache(lambda: read_body(file, allow_empty=given["allow_empty"]))  # standard input can be read once
    if given["queue"]:
        return _queue(context, path, file, read, form, given)
    try:
        now = _publish_now if given["branch"] is None else _publish_to_branch
        return now(context, path, file, read, form, given)
    except UnavailableError as error:
        from mergepub.queueing import is_away

        if not given["offline"] or not is_away(error):
            raise
        complain(error)
        return _queue(context, path, file, read, form, given)


def _check_path(path: str, file: str) -> None:
    """As ``paths.check_path``; a file in its place is told from a mistyped path."""
    try:
        check_path(path)
    except BadPathError as bad:
        if file.startswith("/") and path[:1] != "/" and "\0" not in path and os.path.isfile(path):  # noqa: PTH113 - pathlib costs milliseconds
            bad.hint = f"the document comes first, then the file: {shlex.join(['mergepub', 'publish', file, path])}"
        elif path[:1] not in ("/", "") and "\0" not in path and os.path.isfile(path):  # noqa: PTH113 - pathlib costs milliseconds
            push, name = shlex.join(["mergepub", "push", path]), os.path.basename(path)  # noqa: PTH119 - as above
            called = shlex.join(["mergepub", "publish", f"/{name}", path])
            bad.hint = f"that is a file; {push if may_be_tracked(path) else f'name the document first: {called}'}"
        raise


def _queue(  # noqa: PLR0917 - what the command line said
    context: click.Context, path: str, file: str, read: Callable[[], bytes], form: Form, given: dict[str, Any]
) -> int:
    from mergepub.cli.queued import queue_publish, sync_command_for

    queued = queue_publish(context, path, file, read(), given)
    if queued is None:
        raise _no_version(path, file)
    hints = [*status.hints(queued, path)[:-1], f"next: {sync_command_for(file)}"]
    return answer(queued, path, form, hints=hints)


def _publish_now(  # noqa: PLR0917 - what the command line said
    context: click.Context, path: str, file: str, read: Callable[[], bytes], form: Form, given: dict[str, Any]
) -> int:
    if file not in ("", "-") and "\0" not in file and may_be_tracked(file):
        from mergepub.cli.publish_tracked import tracked_publish

        done = tracked_publish(context, path, file, form, given)
        if done is not None:
            return done
    expected = given["expected_version"]
    if expected is None:
        raise _no_version(path, file)
    if given["update"]:
        raise InputError(f"{file} is not tracked as {path}, so --update cannot write to it", hint="use -o FILE")
    body = read()
    if form.output is not None and may_be_tracked(form.output):
        from mergepub.cli.publish_tracked import publish_into

        done = publish_into(context, path, body, form, given)
        if done is not None:
            return done
    outcome = publish(
        store_url(context),
        path,
        body,
        expected,
        on_conflict=given["on_conflict"],
        retries=given["retries"],
        author=given["author"],
        message=given["message"],
        merge_options=options_of(given),
        favour=given["favour"],
        allow_markers=given["allow_markers"],
        kind=given["kind"],
    )
    return answer(outcome, path, form, _next_file(outcome, form, file, given["favour_path"]))


def _own_branch(path: str, file: str, given: dict[str, Any]) -> str:
    """The branch that is named, once it is sure that nothing else names a base."""
    from mergepub.histories import parse_place

    name, revision = parse_place(given["branch"])
    if revision is not None or given["expected_version"] is not None:
        raise InputError(
            "a branch grows at its end: --branch takes a name, and no --expected-version goes with it",
            hint=f"mergepub publish {shlex.quote(path)} {shlex.quote(file)} --branch {name}",
        )
    return name


def _publish_to_branch(  # noqa: PLR0917 - what the command line said
    context: click.Context, path: str, file: str, read: Callable[[], bytes], form: Form, given: dict[str, Any]
) -> int:
    from mergepub.cli.writing import publish_to_branch

    with opened(store_url(context)) as store:
        labels = {"author": given["author"], "message": given["message"]}
        outcome = publish_to_branch(store, path, given["branch"], read(), file=file, **labels)
        after_publish(store, path, outcome, given["author"], file)
    return answer(outcome, path, form)


def _next_file(outcome: Outcome, form: Form, file: str, rules: Sequence[str]) -> str:
    """The file that the next command publishes, with the rules that it was to be merged by.

    Never the caller's own where another body has to be looked at first.
    """
    if status.body(outcome) is not None:
        return "RESULT" if form.output is None else shlex.quote(form.output)
    named = "FILE" if file == "-" else shlex.quote(file)
    return " ".join([named, *(f"--favour-path {shlex.quote(rule)}" for rule in rules)])


def _no_version(path: str, file: str) -> InputError:
    missing = "--expected-version is missing"
    call = shlex.join(["mergepub", "publish", path, *([] if file == "-" else [file])])
    record = _record_of(file)
    if record and record.path == path:
        return InputError(
            f"{missing}, and {file} is tracked from another store, {record.store}",
            hint=f"name that store with --store, or to create the document here: {call} --expected-version 0",
        )
    if record:
        return InputError(
            f"{missing}, and {file} is tracked as another document, {record.path}",
            hint=f"to create {shlex.quote(path)}: {call} --expected-version 0; "
            f"to publish what it is tracked as: {shlex.join(['mergepub', 'publish', record.path, file])}",
        )
    return InputError(
        f"{missing}: the version that your edit was made from, or 0 to create the document",
        hint=f"to see the version: mergepub fetch {shlex.quote(path)}; "
        f"to create the document: {call} --expected-version 0",
    )


def _record_of(file: str) -> Record | None:
    """What is remembered of ``file``; None where it is not tracked."""
    if file in ("", "-") or "\0" in file or not may_be_tracked(file):
        return None
    from mergepub.cli.publish_tracked import tracked

    found = tracked(file)
    return found[2] if found else None
