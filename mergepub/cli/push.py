"""The verb ``push``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from mergepub import status_files
from mergepub.cli.answers import write_json
from mergepub.cli.favours import favour_for
from mergepub.cli.mentions import MOST, mention
from mergepub.cli.options import Digits, json_option, label_options, last_given, store_option, switch, verb
from mergepub.cli.peers import warn_of_peers
from mergepub.cli.publish import merge_options, options_of
from mergepub.cli.streams import printable, say, write_stdout
from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.cli.push_plan import Plan
    from mergepub.stores.contract import Store
    from mergepub.tracking.pushing import Pushed
    from mergepub.tracking.sending import How

ALIGNED = 200
"""Up to so many files the columns are as wide as what stands in them; beyond, rows are written as they come."""


@verb(
    "push",
    "mergepub push tracked.md -m 'Say how'",
    "mergepub push new.md --prefix /docs --dry-run",
    "mergepub push . --prefix /notes --jobs 8",
)
@click.argument("files", metavar="FILE|DIR...", nargs=-1, required=True)
@click.option("--prefix", metavar="PREFIX", help="Where files that are not tracked yet go, by their relative path.")
@click.option("--dry-run", is_flag=True, help="Say what would happen; write nothing, anywhere.")
@click.option(
    "--changed-since",
    metavar="REV",
    help="Only files that, as git diff says, changed since that commit or branch; all zeros: every file.",
)
@click.option("--jobs", type=Digits(least=1, most=64), default=8, help="So many files at a time.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "github"]),
    envvar="MERGEPUB_PUSH_FORMAT",
    default="text",
    help="github: workflow annotations on the files in conflict, too.",
)
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
    """Publish files that changed here, merged with what others published since.

    Of a folder, all files below it that are not hidden and that no .mergepubignore names; mergepub.toml, files of
    stores and files with a token only where they are named themselves. A document that does not exist is created. A
    conflict leaves its FILE untouched and stops no other; mergepub pull or mergepub resolve brings the markers. At the
    end a line says how many files were published, merged, unchanged, conflicted, failed.
    """
    from mergepub.cli.push_plan import plan_push
    from mergepub.cli.tracked import Stores

    if given["json"] and given["form"] != "text":
        raise InputError("--json and --format github contradict each other", hint="give one of them")
    stores = Stores(context)
    plan = plan_push(stores, files, given["prefix"], given["changed_since"])
    given |= {"favour": last_given(context, "ours", "theirs")}
    for line in plan.renamed:
        say(f"mergepub: {line}")
    for name in plan.stray:
        say(f"mergepub: {name} is a link to a file elsewhere, so it is left out; name it if it is meant")
    folders = list(filter(os.path.isdir, files))
    return _answer(push(plan, given), plan, given, folders)


def push(plan: Plan, given: dict[str, Any]) -> Iterator[Pushed]:
    """Publish the files of the plan; what each came to, in order."""
    from mergepub.cli.tracked import held

    warn_of_peers(plan.paths())
    for checkout, batches in plan.checkouts:
        if given["dry_run"]:
            yield from _push_batches(checkout, batches, given)
        else:
            with held(checkout):
                yield from _push_batches(checkout, batches, given)


def _push_batches(checkout: Any, batches: list[Any], given: dict[str, Any]) -> Iterator[Pushed]:
    from mergepub.tracking.batches import push_many

    for store, pairs in batches:
        yield from push_many(
            store, checkout, pairs, lambda path: _how(given, path), jobs=given["jobs"], dry_run=given["dry_run"]
        )
        _mention(store, [path for _, path in pairs])


def _mention(store: Store, paths: list[str]) -> None:
    """Mention the branches of these documents; of many, those of the folder that they share."""
    for path in paths if len(paths) <= MOST else [os.path.commonpath(paths)]:
        mention(store, path)


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


# ── the answer ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Answer:
    """What is said of the files, one after the other: nothing that holds a body outlives its turn."""

    def __init__(self, names: Sequence[str], given: dict[str, Any], *, quiet: bool) -> None:
        from mergepub.cli.progress import wants_bar

        self.code = 0
        self.counts = dict.fromkeys(status_files.CATEGORIES, 0)
        self.hints: list[str] = []
        self._given = given
        self._quiet = quiet
        self._rows: list[tuple[str, ...]] = []
        self._keys: list[dict[str, Any]] = []
        at_once = len(names) > ALIGNED and not wants_bar(len(names))
        self._widths = (len("conflicted"), max(map(len, names)), 0) if at_once else None

    def add(self, pushed: Pushed) -> None:
        """Count one file, and say what is to be said of it now."""
        self.code = max(self.code, status_of(pushed))
        self.counts[pushed.came] += 1
        self.hints += status_files.pushed_hints(pushed)
        if self._given["json"]:
            self._keys.append(status_files.pushed_keys(pushed))
        elif pushed.came != "unchanged" or not self._quiet:
            self._rows.append(status_files.pushed_row(pushed))
            self._annotate(pushed)
        if self._widths:
            self._write_rows(self._widths)

    def _annotate(self, pushed: Pushed) -> None:
        if self._given["form"] == "github":
            from mergepub.cli.annotations import annotation

            line = annotation(pushed)
            if line:
                self._write_rows(self._widths)
                write_stdout(_encoded(f"{line}\n"))

    def _write_rows(self, widths: Sequence[int] | None) -> None:
        from mergepub.cli.history import columns

        rows = [tuple(map(printable, row)) for row in self._rows]
        if rows:
            lines = columns(rows) if widths is None else "".join(_row(row, widths) for row in rows)
            write_stdout(_encoded(lines))
        self._rows = []

    def end(self, left_out: int, again: str) -> int:
        """Say what remains to be said, and return the exit status; ``again`` is the call that leaves no file out."""
        dry_run = self._given["dry_run"]
        if self._given["json"]:
            keys = {"files": self._keys, "summary": self.counts, **({"dry-run": True} if dry_run else {})}
            write_json(status_files.envelope(keys, self.code))
        else:
            self._write_rows(None)
            write_stdout(_encoded(status_files.summary_line(self.counts, dry_run=dry_run) + "\n"))
        for line in self.hints:
            say(line)
        if left_out:
            which, go = ("file is", "it goes") if left_out == 1 else ("files are", "they go")
            say(f"{left_out} {which} not tracked and left out; --prefix says where {go}")
            say(f"next: {again}")
        return self.code


def _call_again(folders: Sequence[str], prefix: str, given: dict[str, Any]) -> str:
    since = ["--changed-since", given["changed_since"]] if given["changed_since"] else []
    dry_run = ["--dry-run"] if given["dry_run"] else []
    return shlex.join(["mergepub", "push", *folders, "--prefix", prefix, *since, *dry_run])


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _answer(results: Iterable[Pushed], plan: Plan, given: dict[str, Any], folders: Sequence[str]) -> int:
    from mergepub.cli.progress import tracked

    names = plan.names()
    answer = Answer(names or [""], given, quiet=bool(folders))
    for pushed in tracked(results, len(names), "Trying" if given["dry_run"] else "Pushing"):
        answer.add(pushed)
    return answer.end(plan.left_out, _call_again(folders, plan.prefix, given))


def status_of(pushed: Pushed) -> int:
    """The exit status of one file: a conflict is 3, what failed has its own. That of several is the worst."""
    if pushed.error:
        return pushed.error.exit_status
    return 3 if pushed.came == "conflicted" else 0
