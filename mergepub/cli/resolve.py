"""The verb ``resolve``."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any, cast

import click

from mergepub import status, status_files
from mergepub.cli.answers import Form, answer, painted, write_json
from mergepub.cli.mending import MendingFailedError, edited, mended_by_tool
from mergepub.cli.options import json_option, label_options, last_given, store_option, switch, verb
from mergepub.cli.publish import merge_options, options_of
from mergepub.cli.streams import say, write_stdout
from mergepub.cli.tracked import Stores, by_checkout, held, record_of
from mergepub.errors import InputError, MergepubError
from mergepub.outcomes import Overlap, Refused
from mergepub.tracking.pulling import Pulled
from mergepub.tracking.resolving import (
    Conflict,
    begin,
    check_mended,
    conclude,
    favoured,
    keep_progress,
    leftover,
    publish_resolved,
)
from mergepub.tracking.sending import How
from mergepub.tracking.work import at_hand
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.checkout import Checkout, Local
    from mergepub.outcomes import Outcome
    from mergepub.publishing import Favour
    from mergepub.stores.contract import Store
    from mergepub.tracking.work import Work


@verb("resolve", "mergepub resolve conflicted.md --union -m 'Keep both'")
@click.argument("file", metavar="FILE")
@click.option("--tool", metavar="NAME", help="A git mergetool by its name, or a command with $MERGED in it.")
@switch("ours", "Settle conflicts with your lines.")
@switch("theirs", "Settle conflicts with the head's lines.")
@switch("union", "Settle conflicts with both, the head's lines first.")
@click.option("--mark-resolved", is_flag=True, help="FILE was mended by hand: publish it as it is.")
@click.option("--stale", is_flag=True, help="FILE comes from an editor that was opened before the last pull.")
@click.option("--allow-revert", is_flag=True, help="FILE is meant to undo what was pulled last.")
@click.option("--allow-markers", is_flag=True, help="Permit a body that holds a conflict block of its own.")
@merge_options
@label_options("resolve")
@json_option
@store_option
@click.pass_context
def resolve_command(context: click.Context, /, file: str, **given: Any) -> int:
    """Mend the conflicts of a tracked FILE in $VISUAL or $EDITOR, and publish the result.

    It is published at the version that FILE was merged with. When that has moved on, it is merged again; where that
    overlaps anew, the editor opens again. Leaving the editor with an error publishes nothing.
    """
    [(checkout, [local])] = by_checkout([file])
    store = Stores(context).of(record_of(checkout, local))
    how = How(
        author=given["author"],
        message=given["message"],
        merge_options=options_of(given),
        allow_markers=given["allow_markers"],
        stale=given["stale"],
        allow_revert=given["allow_revert"],
    )
    way = _way(context, given)
    outcome = Resolving(store, checkout, local, how, way, given["tool"]).run()
    if isinstance(outcome, Pulled):
        came = "merged without overlap" if outcome.changed else "is in no conflict"
        say(f"mergepub: {file} {came}: nothing to resolve")
        if outcome.edited:
            say(f"next: mergepub push {shlex.quote(file)}")
        return answer_nothing(json=given["json"])
    return _answer(outcome, checkout, local, json=given["json"])


def answer_nothing(*, json: bool) -> int:
    """The answer where there was no conflict."""
    keys: dict[str, status.Value] = {"status": "ok", "unchanged": True}
    if json:
        write_json(status.envelope(keys))
    else:
        write_stdout(painted(status.block_of(keys)))
    return 0


def _way(context: click.Context, given: dict[str, Any]) -> str | None:
    favour = last_given(context, "ours", "theirs", "union")
    if given["mark_resolved"]:
        if favour not in (None, "ours") or given["tool"]:
            raise InputError("--mark-resolved goes with no other way of resolving but --ours", hint="give one of them")
        return "mark-resolved-ours" if favour else "mark-resolved"
    if given["tool"] is not None and not given["tool"].strip():
        raise InputError("--tool is empty", hint="name a tool, or leave it out")
    if favour and given["tool"]:
        raise InputError(f"--tool and --{favour} contradict each other", hint="give one of them")
    return favour


@dataclass(frozen=True, slots=True)
class Resolving:
    """One FILE to be resolved.

    ``way`` is a favour, "mark-resolved" or "mark-resolved-ours"; None: in an editor, or with ``tool``.
    """

    store: Store
    checkout: Checkout
    local: Local
    how: How
    way: str | None = None
    tool: str | None = None

    def run(self) -> Outcome | Pulled:
        """Mend and publish until there is no conflict left, or nobody to mend it; what a pull did where there was none.

        The checkout's lock is not held while an editor or a tool is open.

        Raises:
            CheckoutError: the text is not mended, the editor failed, FILE was changed meanwhile.
            UnavailableError: the store gave no clear answer; a mended FILE stays mended.
        """
        while True:
            found = self._begin()
            if isinstance(found, Refused | Pulled):
                return found
            outcome = self._conclude(found, self._mended(found))
            if self.way is not None or not isinstance(outcome, Overlap):
                return outcome
            say(f"mergepub: version {outcome.current_version} was published meanwhile, and overlaps again")

    def _begin(self) -> Conflict | Pulled | Refused:
        with held(self.checkout):
            work = at_hand(self.store, self.checkout, self.local)
            how = self.how
            return begin(
                work, how.merge_options, mended=self._is_mended, stale=how.stale, allow_revert=how.allow_revert
            )

    @property
    def _is_mended(self) -> bool:
        return self.way is not None and self.way.startswith("mark-resolved")

    def _mended(self, conflict: Conflict) -> bytes:
        if self._is_mended:
            return conflict.here
        if self.way is not None:
            return favoured(conflict, cast("Favour", self.way), self.how.merge_options)
        try:
            return mended_by_tool(self.local, conflict, self.tool) if self.tool else self._edited(conflict)
        except MendingFailedError as failed:
            kept = "" if failed.text is None else f"what it left is kept in {self._kept(failed.text)}; "
            failed.hint = f"{kept}open it again: mergepub resolve {shlex.quote(self.local.name)}"
            raise

    def _edited(self, conflict: Conflict) -> bytes:
        if os.isatty(1):
            from mergepub.cli.show_conflict import show_conflicts
            from mergepub.tracking.conflicts import conflicts_in

            record = record_of(self.checkout, self.local)
            show_conflicts(conflicts_in(conflict, record.base.version), self.local.name)
        return edited(self.local, conflict)

    def _conclude(self, conflict: Conflict, text: bytes) -> Outcome:
        with held(self.checkout):
            work = at_hand(self.store, self.checkout, self.local)
            try:
                self._end(work, conflict, text)
            except MergepubError:
                if text not in (conflict.here, self.local.read()):
                    say(f"mergepub: the mended text is kept in {self._kept(text)}")
                raise
            outcome = publish_resolved(work, self.how)
        for notice in work.notices:
            say(f"mergepub: {notice}")
        return outcome

    def _end(self, work: Work, conflict: Conflict, text: bytes) -> None:
        how, ours_meant = self.how, self.way in ("ours", "mark-resolved-ours")
        if leftover(conflict, text, allow_markers=how.allow_markers) and text != conflict.here:
            keep_progress(work, conflict, text)
        flags = {"allow_revert": how.allow_revert, "allow_markers": how.allow_markers}
        check_mended(work, conflict, text, ours_meant=ours_meant, **flags)
        conclude(work, conflict, text)

    def _kept(self, text: bytes) -> str:
        return os.path.relpath(self.checkout.keep(self.checkout.relative(self.local), text, "mending"))


def _answer(outcome: Outcome, checkout: Checkout, local: Local, *, json: bool) -> int:
    record = checkout.load(local)
    path = record.path if record else ""
    hints = []
    if isinstance(outcome, Overlap):
        hints = status_files.pulled_hints(local.name, path, outcome)
    elif status.exit_status(outcome):
        hints = status_files.conflict_hints(local.name, path, outcome, None)
    return answer(outcome, path, Form(json, no_body=True), hints=hints)
