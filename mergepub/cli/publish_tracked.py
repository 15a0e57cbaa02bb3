"""``publish`` where a tracked file is published, or written to by ``-o``."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mergepub import status_files
from mergepub.checkout import Checkout, Local, Record, locate
from mergepub.cli.answers import Form, answer
from mergepub.cli.opening import opened, store_url
from mergepub.cli.publish import after_publish, options_of
from mergepub.cli.streams import say
from mergepub.cli.tracked import held
from mergepub.errors import InputError
from mergepub.outcomes import Mismatch, Outcome, Overlap, Refused
from mergepub.tracking.outputs import check_output, take_other_output, take_output
from mergepub.tracking.sending import How, check_version, publish_file, send
from mergepub.tracking.work import Work, at_hand

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def tracked_publish(context: click.Context, path: str, file: str, form: Form, given: dict[str, Any]) -> int | None:
    """Publish ``file`` from its remembered base; None where nothing is remembered of it for this document and store.

    Raises:
        MergepubError: as ``tracking.publish_file``.
    """
    found = tracked(file)
    if found is None or found[2].path != path:
        return None
    checkout, local, record = found
    if form.output is not None and not _is_output(form, local) and tracked(form.output):
        raise InputError(f"-o names {form.output}, which is tracked itself", hint="name another file")
    with opened(store_url(context)) as store:
        if record.store != store.url:
            return None
        with held(checkout):
            work = at_hand(store, checkout, local)
            outcome = publish_from_base(work, given["expected_version"], _how(given, form, local))
            form = _write_output(work, outcome, form)
        after_publish(store, path, outcome, given["author"], file)
    for notice in work.notices:
        say(f"mergepub: {notice}")
    return answer(outcome, path, form, shlex.quote(file), hints=_hints(work, outcome, form, given["favour_path"]))


def publish_from_base(work: Work, expected: int | None, how: How) -> Outcome:
    """Publish the tracked file; ``expected`` is a version that was typed."""
    if how.rebase_on is None:
        check_version(work, expected)
    return publish_file(work, how)


def tracked(file: str | None) -> tuple[Checkout, Local, Record] | None:
    """The file, its checkout and what is remembered of it; None where that is nothing."""
    if file in (None, "", "-") or "\0" in file:
        return None
    checkout, local = locate(file)
    record = checkout.load(local) if checkout.exists else None
    return (checkout, local, record) if record else None


def _how(given: dict[str, Any], form: Form, local: Local) -> How:
    if given["rebase_on"] and given["expected_version"] is None:
        raise InputError("--rebase-on needs --expected-version", hint="name the version that FILE was built on")
    return How(
        on_conflict=given["on_conflict"],
        retries=given["retries"],
        author=given["author"],
        message=given["message"],
        merge_options=options_of(given),
        favour=given["favour"],
        allow_markers=given["allow_markers"],
        stale=given["stale"],
        allow_revert=given["allow_revert"],
        update=given["update"] or _is_output(form, local),
        rebase_on=given["expected_version"] if given["rebase_on"] else None,
    )


def _is_output(form: Form, local: Local) -> bool:
    return form.output is not None and os.path.realpath(form.output) == local.target


def publish_into(context: click.Context, path: str, body: bytes, form: Form, given: dict[str, Any]) -> int | None:
    """Publish ``body``, the answer's body going to the tracked file that ``-o`` names; None where that is not tracked.

    Raises:
        CheckoutError: that file holds something of its own.
        MergepubError: as ``publishing.publish``.
    """
    found = tracked(form.output)
    if found is None:
        return None
    checkout, local, _ = found
    how = _how(given, form, local)
    with opened(store_url(context)) as store, held(checkout):
        work = at_hand(store, checkout, local)
        check_output(work, path)
        outcome = send(store, path, body, given["expected_version"], how, kind=given["kind"])
        take_other_output(work, outcome, body, given["expected_version"])
    form = replace(form, output=None, no_body=True)
    return answer(outcome, path, form, shlex.quote(local.name), hints=_hints(work, outcome, form, given["favour_path"]))


def _write_output(work: Work, outcome: Outcome, form: Form) -> Form:
    """Write to FILE what ``-o FILE`` asks for; the form that is left to answer in."""
    if not _is_output(form, work.local):
        return form
    take_output(work, outcome)
    return replace(form, output=None, no_body=True)


def _hints(work: Work, outcome: Outcome, form: Form, rules: Sequence[str]) -> list[str] | None:
    """What to type next for a tracked file; None where it is what it is for any file."""
    name = shlex.quote(work.local.name)
    if isinstance(outcome, Refused):
        return status_files.conflict_hints(work.local.name, work.record.path, outcome, outcome.current_version)
    if isinstance(outcome, Overlap) and form.output is None:
        lines = status_files.pulled_hints(work.local.name, work.record.path, outcome)
        return lines if work.record.clash else [lines[-2].replace(", marked in the file", ""), lines[-1]]
    if isinstance(outcome, Mismatch):
        favours = "".join(f" --favour-path {shlex.quote(rule)}" for rule in rules)
        made_from = f"{work.local.name} was made from version {outcome.your_version}"
        return [
            f"{made_from}, the head is version {outcome.current_version}; nothing was published.",
            f"next: mergepub publish {shlex.quote(work.record.path)} {name} --on-conflict merge{favours}",
        ]
    return None
