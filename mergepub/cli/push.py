"""The verb ``push``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from mergepub import status_files
from mergepub.cli.answers import write_json
from mergepub.cli.favours import favour_for
from mergepub.cli.mentions import mention
from mergepub.cli.options import Digits, json_option, label_options, last_given, store_option, switch, verb
from mergepub.cli.peers import warn_of_peers
from mergepub.cli.publish import merge_options, options_of
from mergepub.cli.streams import say, write_stdout
from mergepub.errors import InputError, NotFoundError
from mergepub.paths import check_path, check_prefix

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Local
    from mergepub.cli.tracked import Stores
    from mergepub.tracking.pushing import Pushed
    from mergepub.tracking.sending import How


@verb("push", "mergepub push tracked.md -m 'Say how'", "mergepub push new.md --prefix /docs --dry-run")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--prefix", metavar="PREFIX", help="Where files that are not tracked yet go, by their relative path.")
@click.option("--dry-run", is_flag=True, help="Say what would happen; write nothing, anywhere.")
@click.option(
    "--on-conflict",
    type=click.Choice(["merge", "fail"]),
    default="merge",
    help="When the head is another version: merge and publish, or report it.",
)
@click.option("--retries", type=Digits(least=1), default=3, help="Merges that may lose the race.")
@click.option("--no-update", is_flag=True, help="Leave FILE alone: do not write the merged text back to it.")
@click.option("--stale", is_flag=True, help="FILE comes from an editor that was opened before the last pull.")
@click.option("--allow-revert", is_flag=True, help="FILE is meant to undo what was pulled last.")
@click.option("--allow-markers", is_flag=True, help="Permit a body that holds a conflict block.")
@click.option(
    "--favour-path", metavar="GLOB=union", multiple=True, help="Keep both sides where such documents conflict."
)
@switch("ours", "Settle conflicts with your lines.")
@switch("theirs", "Settle conflicts with the head's lines.")
@merge_options
@label_options("push")
@json_option
@store_option
@click.pass_context
def push_command(context: click.Context, /, files: tuple[str, ...], **given: Any) -> int:
    """Publish tracked files that changed here, merged with what others published since.

    A document that does not exist is created. A conflict leaves its FILE untouched and stops no other; mergepub pull or
    mergepub resolve brings the markers. At the end a line says how many files were published, merged, unchanged,
    conflicted, failed.
    """
    from mergepub.cli.tracked import Stores

    stores = Stores(context)
    results = list(push(stores, files, given | {"favour": last_given(context, "ours", "theirs")}))
    return _answer(results, json=given["json"], dry_run=given["dry_run"])


def push(stores: Stores, names: Sequence[str], given: dict[str, Any]) -> Iterable[Pushed]:
    """Publish the files of those names; what each came to."""
    from mergepub.cli.tracked import by_checkout, held

    checkouts = [(checkout, _by_store(stores, checkout, locals_, given)) for checkout, locals_ in by_checkout(names)]
    warn_of_peers(path for _, batches in checkouts for _, pairs in batches for _, path in pairs)
    for checkout, batches in checkouts:
        if given["dry_run"]:
            yield from _push_batches(checkout, batches, given)
        else:
            with held(checkout):
                yield from _push_batches(checkout, batches, given)


Batch = tuple[Any, list[tuple["Local", str]]]


def _by_store(stores: Stores, checkout: Checkout, locals_: list[Local], given: dict[str, Any]) -> list[Batch]:
    """The files with the paths of their documents, under the stores that these are in."""
    found: dict[str, Batch] = {}
    for local in locals_:
        record = checkout.load(local)
        store = stores.of(record) if record else stores.given()
        path = record.path if record else path_for(local, given["prefix"])
        found.setdefault(store.url, (store, []))[1].append((local, path))
    return list(found.values())


def path_for(local: Local, prefix: str | None) -> str:
    """The path of the document for a file that is not tracked yet: its path from here, below the prefix.

    Raises:
        InputError: no prefix was given, or the file does not lie below the working directory.
        NotFoundError: there is no such file.
    """
    if not os.path.exists(local.target):  # noqa: PTH110 - a name, not a path object
        raise NotFoundError(f"there is no file {local.name}", hint="give the name of a file")
    relative = os.path.normpath(os.path.relpath(local.name))
    if prefix is None or relative.startswith(os.pardir):
        why = "no --prefix says where it goes" if prefix is None else "it does not lie below the working directory"
        raise InputError(
            f"{local.name} is not tracked, and {why}",
            hint=f"mergepub push {local.name} --prefix /docs, or mergepub fetch PATH -o {local.name}",
        )
    return check_path(f"{check_prefix(prefix).rstrip('/')}/{relative}")


def _push_batches(checkout: Checkout, batches: list[Batch], given: dict[str, Any]) -> Iterable[Pushed]:
    from mergepub.tracking.pushing import push_files

    for store, pairs in batches:
        for pair in pairs:
            yield from push_files(store, checkout, [pair], _how(given, pair[1]), dry_run=given["dry_run"])
            mention(store, pair[1])


def _how(given: dict[str, Any], path: str) -> How:
    from mergepub.tracking.sending import How

    by_path = favour_for(path, given["favour_path"])
    return How(
        on_conflict=given["on_conflict"],
        retries=given["retries"],
        author=given["author"],
        message=given["message"],
        merge_options=options_of(given),
        favour=given["favour"] or by_path,
        allow_markers=given["allow_markers"],
        stale=given["stale"],
        allow_revert=given["allow_revert"],
        update=not given["no_update"],
    )


def _answer(results: list[Pushed], *, json: bool, dry_run: bool) -> int:
    from mergepub.cli.history import columns

    counts = status_files.summary(results)
    code = exit_status_of(results)
    if json:
        keys: dict[str, Any] = {"files": [status_files.pushed_keys(pushed) for pushed in results], "summary": counts}
        write_json(status_files.envelope(keys | ({"dry-run": True} if dry_run else {}), code))
    else:
        rows = columns([status_files.pushed_row(pushed) for pushed in results]) if results else ""
        line = status_files.summary_line(counts, dry_run=dry_run)
        write_stdout(f"{rows}{line}\n".encode("utf-8", "surrogateescape"))
    for pushed in results:
        for line in status_files.pushed_hints(pushed):
            say(line)
    return code


def exit_status_of(results: Iterable[Pushed]) -> int:
    """The worst of all: a conflict is 3, what failed has its own."""
    return max((_status_of(pushed) for pushed in results), default=0)


def _status_of(pushed: Pushed) -> int:
    if pushed.error:
        return pushed.error.exit_status
    return 3 if pushed.came == "conflicted" else 0
