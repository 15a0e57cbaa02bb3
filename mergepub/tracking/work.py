"""One tracked file at hand, with its store and its checkout; what every command asks of it first. Prints nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from shlex import quote
from typing import TYPE_CHECKING

from mergepub import publishing
from mergepub.checkout import Base, Checkout, Local, Record
from mergepub.checkout.replacing import late_saves, recover
from mergepub.errors import CheckoutError, InputError, NotFoundError
from mergepub.outcomes import Refused
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.documents import Document
    from mergepub.stores.contract import Store


@dataclass(slots=True)
class Work:
    """A tracked file at hand: its checkout's lock is held, and no change of it is half done.

    ``record`` is what is remembered, always as it is on disk. ``last``: the bytes that were published last, and the
    base that they were merged from. ``notices`` are sentences for the person.
    """

    store: Store
    checkout: Checkout
    local: Local
    record: Record
    last: tuple[bytes, Base] | None = None
    notices: list[str] = field(default_factory=list)

    def save(self, record: Record, *bodies: bytes) -> None:
        """Make ``record`` the file's record, on disk and here; ``bodies`` that it names are stored first."""
        self.checkout.save(record, *bodies)
        self.record = record

    def body(self, digest: str) -> bytes:
        """The bytes that the record names by ``digest``."""
        return self.checkout.body(self.record, digest)

    @property
    def base_body(self) -> bytes:
        """The remembered base."""
        return self.body(self.record.base.digest)

    def read(self) -> bytes:
        """The bytes of FILE.

        Raises:
            InputError: FILE is gone, or cannot be read.
        """
        body = self.local.read()
        if body is None:
            raise InputError(
                f"{self.local.name} is gone, and {self.record.path} is tracked in it",
                hint=f"bring it back: mergepub fetch {quote(self.record.path)} -o {quote(self.local.name)}",
            )
        return body


@contextmanager
def locked(checkout: Checkout) -> Iterator[list[str]]:
    """Hold the checkout's lock; what was begun and interrupted is finished or undone first, and told."""
    with checkout.locked():
        yield list(recover(checkout, _undoes))


def _undoes(before: bytes, after: bytes, now: bytes) -> bool:
    from mergepub.tracking.stale import undoes_all  # noqa: PLC0415 - only after a crash

    return undoes_all(before, after, now)


def at_hand(store: Store, checkout: Checkout, local: Local) -> Work:
    """The tracked file ``local``, ready to be worked on. The lock is held.

    Raises:
        InputError: it is not tracked.
    """
    record = checkout.load(local)
    if record is None:
        raise not_tracked(local)
    work = Work(store, checkout, local, record)
    work.notices += [
        f"what was saved to {local.name} very late is kept in {name}" for name in late_saves(checkout, record)
    ]
    return work


def not_tracked(local: Local) -> InputError:
    """``local`` is a file that nothing is remembered of."""
    hint = f"start to track a document in it: mergepub fetch PATH -o {quote(local.name)}"
    if os.path.isdir(local.target):  # noqa: PTH112 - names as text
        return InputError(f"{local.name} is a folder, and files are tracked one by one", hint="name a file in it")
    return InputError(
        f"{local.name} is not tracked: it is not known which document it was made from",
        hint=ways_out("PATH", local.name) if os.path.lexists(local.target) else hint,
    )


def ways_out(path: str, name: str) -> str:
    """What to do with a file that is there, of which nothing is remembered."""
    path, file, other = (quote(each) for each in (path, name, f"{name}.head"))
    return (
        f"if it was made from version N: mergepub publish {path} {file} --expected-version N --on-conflict merge; "
        f"else fetch the document beside it and merge by hand: mergepub fetch {path} -o {other}"
    )


def refuse_conflict(local: Local, record: Record, body: bytes | None) -> None:
    """Refuse to work on a FILE in conflict.

    Raises:
        CheckoutError: it is in conflict; the line of the first block is named.
    """
    if record.clash is None:
        return
    line = block_line(body or b"", record.clash.marker_size)
    where = f"line {line} starts a conflict block" if line else "it was merged with conflicts and never resolved"
    raise CheckoutError(
        f"{local.name} is in conflict with version {record.clash.theirs.version} of {record.path}: {where}",
        reason="in-conflict",
        line=line or record.clash.line,
        hint=f"mergepub resolve {quote(local.name)}",
    )


def block_line(body: bytes, marker_size: int) -> int | None:
    """The line (from 1) of the first conflict block with markers of that size, None where there is none."""
    from mergepub.merge.markers import Conflict, parse  # noqa: PLC0415 - only a FILE in conflict is searched

    return next((piece.line for piece in parse(body, marker_size) if isinstance(piece, Conflict)), None)


def head_of(store: Store, record: Record) -> Document | Refused:
    """The head of the document, or why FILE cannot be merged with it.

    A store that went back behind the remembered base, or holds another text as that version, is no store to merge with.

    Raises:
        NotFoundError: the document never existed.
    """
    base = record.base
    try:
        head = publishing.fetch(store, record.path).document
    except NotFoundError as missing:
        if missing.tombstone is None:
            raise
        return Refused(base.version, missing.tombstone, "deleted")
    number = number_of(head)
    if base.version and head.incarnation != base.incarnation:
        return Refused(base.version, number, "recreated")
    if number < base.version or (is_exactly(base, number) and head.digest != base.digest):
        return Refused(base.version, number, "base-unavailable")
    return head


def is_exactly(base: Base, version: int) -> bool:
    """Whether the base is that version itself."""
    return base.version == version and not base.contained


def number_of(document: Document) -> int:
    """The version's number; tracked files need a store that counts."""
    number = document.version.number
    if number is None:
        raise InputError("this store does not number its versions, so nothing can be tracked in it")
    return number


def exactly(document: Document) -> Base:
    """That version of the document, as a base."""
    return Base(number_of(document), document.incarnation, document.digest)
