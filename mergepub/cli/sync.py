"""The verb ``sync``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mergepub import status, status_files
from mergepub.cli.answers import write_json
from mergepub.cli.options import json_option, store_option, verb
from mergepub.cli.streams import say, write_stdout

if TYPE_CHECKING:
    from mergepub.checkout import Checkout
    from mergepub.queueing import Synced

STOPPED, AWAY = 3, 4


@verb("sync", "mergepub sync", "mergepub sync --on-conflict branch --json", "mergepub sync --dry-run")
@click.option(
    "--on-conflict",
    type=click.Choice(["fail", "merge", "branch"]),
    help="Another policy than the one that each publish was queued with.",
)
@click.option("--drop", metavar="QUEUE-ID", multiple=True, help="Take one out; its body stays in .mergepub/kept/.")
@click.option("--dry-run", is_flag=True, help="Show what waits, send nothing.")
@json_option
@store_option
@click.pass_context
def sync_command(context: click.Context, /, on_conflict: Any, drop: tuple[str, ...], **given: Any) -> int:
    """Send the publishes that wait in the local queue: in order per document, each exactly once.

    A conflict or refusal stops the later ones of its document and no other's (exit status 3); a store that cannot be
    reached leaves all of its own waiting (4). Whatever was stored before a sync was interrupted is recognised.
    """
    from mergepub.cli.tracked import Stores, held, here
    from mergepub.queueing import sync, waiting

    checkout = here()
    if not checkout.exists:
        say(f"mergepub: there is no queue in {checkout.root}")
        return _answer([], json=given["json"])
    if given["dry_run"]:
        return _answer(waiting(checkout), json=given["json"], sending=False)
    stores = Stores(context)
    with held(checkout):
        if drop:
            return _drop(checkout, drop)
        results = list(sync(checkout, stores.at, policy=on_conflict))
    if not results:
        say(f"mergepub: nothing waits in the queue of {checkout.root}")
    return _answer(results, json=given["json"])


def _drop(checkout: Checkout, names: tuple[str, ...]) -> int:
    from mergepub.queueing import drop

    for name in names:
        say(f"mergepub: kept what was taken out in {drop(checkout, name)}")
    return 0


def _answer(results: list[Synced], *, json: bool, sending: bool = True) -> int:
    from mergepub.cli.history import columns

    code = _code(results) if sending else 0
    if json:
        write_json(status_files.envelope({"entries": [_keys(each) for each in results]}, code))
    else:
        rows = columns([_row(each) for each in results]) if results else ""
        sent = sum(each.came == "sent" for each in results)
        write_stdout(f"{rows}{sent} sent, {len(results) - sent} waiting\n".encode("utf-8", "surrogateescape"))
    for each in results:
        for line in _hints(each):
            say(line)
    return code


def _code(results: list[Synced]) -> int:
    came = {each.came for each in results}
    return AWAY if "unreachable" in came else STOPPED if came & {"stopped", "waiting"} else 0


def _keys(each: Synced) -> dict[str, Any]:
    keys: dict[str, Any] = {"queue-id": each.entry.id, "path": each.entry.path, "result": each.came}
    if each.outcome is not None:
        keys |= status.fields(each.outcome)
    if each.error is not None:
        keys |= {key: value for key, value in status.error_json(each.error)["error"].items() if key != "code"}
    return keys


def _row(each: Synced) -> tuple[str, ...]:
    from mergepub.outcomes import Branched, Published

    what = ""
    if isinstance(each.outcome, Published):
        what = f"/v{each.outcome.version}"
    if isinstance(each.outcome, Branched):
        what = f" on {each.outcome.branch}@{each.outcome.branch_revision}"
    return each.came, each.entry.id, each.entry.path + what


def _way_out(each: Synced) -> str:
    """What to type about an entry in conflict: merge it where nobody tried, else keep it beside the head."""
    from mergepub.outcomes import Contention, Mismatch, Overlap

    if isinstance(each.outcome, Mismatch):
        return "next: mergepub sync --on-conflict merge, or keep it beside the head: mergepub sync --on-conflict branch"
    out = f"take it out and mend it by hand: mergepub sync --drop {each.entry.id}"
    if isinstance(each.outcome, Overlap | Contention):
        return f"next: keep it beside the head: mergepub sync --on-conflict branch; or {out}"
    return f"next: {out}"


def _hints(each: Synced) -> list[str]:
    if each.error is not None:
        said = [f"{each.entry.path or each.entry.id}: {each.error.message}"]
        return [*said, f"next: {each.error.hint}"] if each.error.hint else said
    if each.came == "stopped" and each.outcome is not None:
        return [
            f"{each.entry.path}: {status.sentence(each.outcome)}",
            _way_out(each),
        ]
    return status.hints(each.outcome, each.entry.path) if each.outcome is not None else []
