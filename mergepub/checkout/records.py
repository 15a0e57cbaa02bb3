"""What is remembered of a tracked file, as values, and their form as JSON. No I/O.

Bodies are named by their digest; the bytes lie beside the record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, TypeVar

from mergepub.documents import digest_of
from mergepub.errors import CheckoutError
from mergepub.values import dataclass

FORMAT = 1
Value = TypeVar("Value")
MOST_BROUGHT = 16
"""How many pulls and write-backs are remembered, for editors that were opened before them."""

EMPTY = digest_of(b"")


@dataclass(frozen=True, slots=True)
class Base:
    """The common ancestor of a FILE and the head.

    ``digest`` names its bytes. They are those of version ``version`` of this ``incarnation``; or, ``contained``, that
    version only contains them, merged with other edits. Version 0 is no document: the base is empty.
    """

    version: int
    incarnation: str
    digest: str
    contained: bool = False


NO_DOCUMENT = Base(0, "", EMPTY)


@dataclass(frozen=True, slots=True)
class Brought:
    """What a pull or a write-back did to a FILE: its bytes before and after.

    ``base`` is the common ancestor of the bytes *before* and the head: what an editor that was opened before, and is
    saved after, has to be merged from. ``serial`` counts them.
    """

    before: str
    after: str
    base: Base
    serial: int = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """A publish whose answer has not come: ``ours``, made from ``base``, last sent at version ``expected``.

    Once the head is above ``expected`` it can have arrived, but never arrive any more. ``serial`` is that of the last
    change that was brought before.
    """

    ours: str
    base: Base
    expected: int
    serial: int = 0


@dataclass(frozen=True, slots=True)
class Clash:
    """A FILE in conflict: ``ours`` as it was before, ``theirs`` the version it was merged with.

    ``marked`` names the bytes with markers of ``marker_size`` that were written to FILE, ``line`` (from 1) is where
    the first block starts.
    """

    ours: str
    theirs: Base
    marked: str
    marker_size: int
    line: int


@dataclass(frozen=True, slots=True)
class Record:
    """One tracked file: ``file`` relative to the checkout, the document it is tracked in, and the remembered base.

    ``brought`` is newest last.
    """

    file: str
    store: str
    path: str
    base: Base
    brought: tuple[Brought, ...] = ()
    sent: tuple[Sent, ...] = ()
    clash: Clash | None = None

    def digests(self) -> set[str]:
        """Every body that this record names."""
        found = {self.base.digest}
        for change in self.brought:
            found |= {change.before, change.after, change.base.digest}
        for sent in self.sent:
            found |= {sent.ours, sent.base.digest}
        if self.clash:
            found |= {self.clash.ours, self.clash.theirs.digest, self.clash.marked}
        return found

    @property
    def serial(self) -> int:
        """That of the last change that was brought."""
        return self.brought[-1].serial if self.brought else 0

    def bringing(self, before: bytes, after: bytes) -> tuple[Brought, ...]:
        """``brought`` with one more change of FILE, made while this record's base was the base."""
        if before == after:
            return self.brought
        change = Brought(digest_of(before), digest_of(after), self.base, self.serial + 1)
        return (*self.brought, change)[-MOST_BROUGHT:]

    def all_published(self, base: Base) -> Record:
        """This record once FILE holds just what ``base``, a version itself, holds: nothing of it is unpublished."""
        return replace(self.published(base), sent=self.sent)

    def published(self, base: Base, sent: Sent | None = None) -> Record:
        """This record after FILE's bytes (or, found out later, what was ``sent``) were published and became ``base``.

        What stood in FILE before earlier pulls is published with it: from now on an editor that was opened then is
        merged from those bytes. Of what stood in FILE after ``sent``, no more than ``sent`` is published.
        """
        brought = []
        for change in self.brought:
            known = change.before if sent is None or change.serial <= sent.serial else sent.ours
            brought.append(replace(change, base=Base(base.version, base.incarnation, known, contained=True)))
        return replace(self, base=base, brought=tuple(brought), sent=())


def to_json(record: Record) -> bytes:
    """A record as its file holds it."""
    return json.dumps({"format": FORMAT, **asdict(record)}, indent=1).encode() + b"\n"


def from_json(text: bytes, name: str) -> Record:
    """The record in ``text``, read from the file ``name``.

    Raises:
        CheckoutError: it is none, or a newer mergepub wrote it.
    """
    try:
        fields = json.loads(text)
        if fields.pop("format") != FORMAT:
            raise CheckoutError(f"{name} was written by a newer mergepub", hint="use that one here too")
        return _record(fields)
    except MALFORMED:
        raise damaged(name) from None


def damaged(name: str) -> CheckoutError:
    """The file ``name`` holds no record, or not the one that it should."""
    return CheckoutError(
        f"{name} is damaged, so it is not known what its file was made from",
        hint="to start anew, the file's bytes being kept in .mergepub/: mergepub fetch PATH -o FILE --force",
    )


MALFORMED = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading values from JSON raises where somebody else wrote it."""


def _record(fields: dict[str, Any]) -> Record:
    clash = fields.pop("clash")
    record = typed(
        Record,
        fields
        | {
            "base": _base(fields["base"]),
            "brought": tuple(typed(Brought, each | {"base": _base(each["base"])}) for each in fields["brought"]),
            "sent": tuple(typed(Sent, each | {"base": _base(each["base"])}) for each in fields["sent"]),
            "clash": typed(Clash, clash | {"theirs": _base(clash["theirs"])}) if clash else None,
        },
    )
    if not is_inside(record.file) or not all(map(is_digest, record.digests())):
        raise ValueError(record.file)
    return record


def _base(fields: dict[str, Any]) -> Base:
    return typed(Base, fields)


def typed(kind: type[Value], fields: dict[str, Any]) -> Value:
    """The value with those fields, whose texts, numbers and flags are such.

    Raises:
        TypeError: one of them is not, is missing, or there is one too many.
    """
    value = kind(**fields)
    for name, wanted in kind.__annotations__.items():
        if type(getattr(value, name)) is not _TYPES.get(wanted, type(getattr(value, name))):
            raise TypeError(name)
    return value


_TYPES = {"int": int, "str": str, "bool": bool}


def is_inside(file: str) -> bool:
    """Whether that is the name of a file in a checkout, relative to its top; such names come with a checkout."""
    parts = file.split("/")
    return "\0" not in file and not {"", ".", ".."} & set(parts)


def is_digest(text: str) -> bool:
    """Whether that is a digest, which names a file."""
    return len(text) == len(EMPTY) and not set(text) - set("0123456789abcdef")
