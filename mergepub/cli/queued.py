"""``publish`` into the local queue: asked for by ``--queue``, or by ``--offline`` when the store is away."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Any

from mergepub.checkout import Checkout, Record, locate, queue
from mergepub.checkout.home import root_of
from mergepub.checkout.queue import Entry, Start
from mergepub.checkout.writers import End, Writer, load_end
from mergepub.cli.opening import opened, store_url
from mergepub.cli.tracked import held
from mergepub.documents import digest_of
from mergepub.errors import InputError
from mergepub.outcomes import Queued
from mergepub.queueing import enqueue
from mergepub.tracking.work import refuse_conflict

if TYPE_CHECKING:
    import click


def queue_publish(context: click.Context, path: str, file: str, body: bytes, given: dict[str, Any]) -> Queued | None:
    """Keep the publish in the queue of FILE's checkout; None where nothing says what the body was made from.

    Raises:
        CheckoutError: another command holds the checkout.
        InputError: FILE is tracked, and was made from another version than the one that was typed.
    """
    with opened(store_url(context)) as store:
        url = store.url
    checkout, record = _place(file, url, path)
    with held(checkout):
        base, start = _start(checkout, record, given["expected_version"])
        if given["branch"] is not None:
            record, base = None, None  # what is tracked says nothing of a branch
            start = _end_of(checkout, Writer(url, path, given["branch"], given["author"]))
        if start is None and queue.last_of(checkout, url, path) is None:
            return None
        entry = Entry(
            "",
            url,
            path,
            digest_of(body),
            start or Start(0),
            policy=given["on_conflict"],
            author=given["author"],
            message=given["message"],
            retries=given["retries"],
            kind=given["kind"],
            allow_markers=given["allow_markers"],
            file=record.file if record else "",
            favour=given["favour"],
            adjacent=given["adjacent"],
            granularity=given["granularity"],
            engine=given["engine"],
        )
        kept = enqueue(checkout, entry, body, base)
    return Queued(kept.id, kept.start.version)


def sync_command_for(file: str) -> str:
    """The command that sends the queue of FILE's checkout, as it is typed in the working directory."""
    here = root_of(os.path.realpath(os.curdir))
    root = here if file == "-" else locate(file)[0].root
    return "mergepub sync" if root == here else f"cd {quote(os.path.relpath(root))} && mergepub sync"


def _place(file: str, url: str, path: str) -> tuple[Checkout, Record | None]:
    if file == "-":
        return Checkout(root_of(os.path.realpath(os.curdir))), None
    checkout, local = locate(file)
    record = checkout.load(local) if checkout.exists else None
    if record is None or (record.store, record.path) != (url, path):
        return checkout, None
    refuse_conflict(local, record, local.read())
    return checkout, record


def _end_of(checkout: Checkout, writer: Writer) -> Start:
    """The end of one's own branch as it is known here; the store knows it where nothing is known here."""
    end = load_end(checkout, writer) or End("", 0, 0)
    return Start(end.base_version, end.incarnation, branch=writer.branch, revision=end.revision, epoch=end.epoch)


def _start(checkout: Checkout, record: Record | None, expected: int | None) -> tuple[bytes | None, Start | None]:
    """Base identity and bytes: what is tracked, else the version that was typed, whose bytes only the store has."""
    if record is not None:
        base = record.base
        if expected not in (None, base.version):
            raise InputError(
                f"{record.file} was made from version {base.version} of {record.path}, not from version {expected}",
                hint="merge the head into it: mergepub pull "
                f"{quote(os.path.relpath(f'{checkout.root}/{record.file}'))}",
            )
        start = Start(base.version, base.incarnation, base.digest, base.contained)
        return checkout.body(record, base.digest), start
    return None, None if expected is None else Start(expected)
