"""The verb ``branch``: show one branch, take it over, end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import Form, painted, write_json
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import (
    Label,
    body_options,
    default_author,
    group,
    json_option,
    path_argument,
    store_option,
    verb,
)
from mergepub.cli.streams import replace_file, say, write_stdout
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.branching.looking import Changes
    from mergepub.histories import Branch, BranchRevision
    from mergepub.stores.contract import BranchStore


@group("branch", "mergepub branch show /docs/guide.md main")
def branch_command(**_: Any) -> None:
    """Show a branch of a document and what it changed; take one over; end one."""


def _branch_argument(function: Any) -> Any:
    return click.argument("branch", metavar="BRANCH[@R]")(function)


def _author_option(function: Any) -> Any:
    return click.option(
        "--author", type=Label(), envvar="MERGEPUB_AUTHOR", default=default_author, help="Who writes (USER@HOST)."
    )(function)


@verb(
    "show",
    "mergepub branch show /docs/guide.md main",
    "mergepub branch show /docs/guide.md main@1 --body-only",
    "mergepub branch show /docs/guide.md BRANCH --diff --json",
)
@path_argument
@_branch_argument
@click.option("--diff", is_flag=True, help="What it changed since the common ancestor with the head.")
@click.option("--body-only", is_flag=True, help="Print the body alone.")
@body_options
@json_option
@store_option
@click.pass_context
def show_command(context: click.Context, /, path: str, branch: str, output: str | None, **given: Any) -> int:
    """Show the newest revision of BRANCH, or revision R of it, byte for byte; with --diff what it changed.

    --diff --json names the hunks h1, h2 ... (of a log: the events) that mergepub decide --rebase --approve takes.
    """
    from mergepub.histories import parse_place

    check_path(path)
    name, number = parse_place(branch)
    form = Form(given["json"], no_body=given["no_body"], body_only=given["body_only"], output=output)
    form.check()
    if given["diff"]:
        return _show_changes(store_url(context), path, name, number, form)
    revision, row = revision_of(store_url(context), path, name, number)
    return _show_revision(revision, row, form)


def revision_of(url: str, path: str, name: str, number: int | None = None) -> tuple[BranchRevision, Branch]:
    """One revision of a branch in the store at ``url``, with its branch."""
    from mergepub.calls import branching, insist

    with opened(url) as store:
        keeper: BranchStore = branching(store)
        revision = insist(lambda: keeper.revision(path, name, number))
        return revision, insist(lambda: keeper.standing(path, name)).branch


def _show_revision(revision: BranchRevision, branch: Branch, form: Form) -> int:
    from mergepub.status_branches import revision_keys

    body = None if form.no_body else revision.body
    keys = revision_keys(revision, branch)
    if form.output is not None and body is not None:
        replace_file(form.output, body)
        body = None
    if form.json:
        write_json(status.envelope(keys | ({} if body is None else status.json_text("body", body))))
    elif form.body_only:
        write_stdout(body or b"")
    else:
        block = painted(status.block_of(keys))
        write_stdout(block if body is None else b"".join((block, b"\n", body)))
    return 0


def _show_changes(url: str, path: str, name: str, number: int | None, form: Form) -> int:
    from mergepub.branching.looking import changes
    from mergepub.status_branches import changes_json, decide_hint

    with opened(url) as store:
        found = changes(store, path, name, number)
    if form.json:
        write_json(status.envelope(changes_json(found)))
    elif found.events:
        write_stdout(*(event.line for event in found.events))
    else:
        _show_diff(found, name if number is None else f"{name}@{number}")
    say(decide_hint(path, found.standing))
    return 0


def _show_diff(found: Changes, name: str) -> None:
    from mergepub.cli.show import show_diff

    ancestor = ", ".join(map(str, found.standing.ancestors)) or "nothing"
    show_diff(found.base, found.body, (ancestor.encode(), name.encode()))


@verb("take", "mergepub branch take /docs/guide.md BRANCH --author ann@desk")
@path_argument
@_branch_argument
@_author_option
@json_option
@store_option
@click.pass_context
def take_command(context: click.Context, /, path: str, branch: str, author: str, **given: Any) -> int:
    """Take the branch over: your epoch rises above everybody's, and whoever held an older one is fenced off."""
    from mergepub.calls import branching, insist
    from mergepub.cli.writing import remember
    from mergepub.histories import parse_place
    from mergepub.outcomes import Branched

    check_path(path)
    name, _ = parse_place(branch)
    with opened(store_url(context)) as store:
        keeper = branching(store)
        taken = insist(lambda: keeper.take(path, name, author=author))
        owner = next((o for o in taken.owners if o.epoch == taken.epoch), None)
        who = owner.name if owner else author
        facts = (taken.name, taken.base_version, 0, taken.revision)
        remember(store, path, author, Branched(*facts, epoch=taken.epoch, incarnation=taken.incarnation))
    keys = {"status": "ok", "branch": taken.name, "branch-revision": taken.revision, "epoch": taken.epoch, "owner": who}
    return _said(keys, json=given["json"])


@verb("abandon", "mergepub branch abandon /docs/guide.md BRANCH")
@path_argument
@_branch_argument
@_author_option
@json_option
@store_option
@click.pass_context
def abandon_command(context: click.Context, /, path: str, branch: str, author: str, **given: Any) -> int:
    """End your own branch, visibly: it stays in the history and cannot be extended or decided about."""
    from mergepub.calls import branching, insist
    from mergepub.cli.writing import known_end
    from mergepub.histories import parse_place

    check_path(path)
    name, _ = parse_place(branch)
    with opened(store_url(context)) as store:
        keeper = branching(store)
        end = known_end(store, path, name, author)
        epoch = end.epoch if end else None
        ended = insist(lambda: keeper.abandon(path, name, author=author, epoch=epoch))
    return _said({"status": "ok", "branch": ended.name, "state": ended.state}, json=given["json"])


def _said(keys: dict[str, Any], *, json: bool) -> int:
    if json:
        write_json(status.envelope(keys))
    else:
        write_stdout(painted(status.block_of(keys)))
    return 0


for _command in (show_command, take_command, abandon_command):
    branch_command.add_command(_command)
