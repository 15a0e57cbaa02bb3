"""Publishes that wait to be sent: one folder an entry in ``.mergepub/queue/``, in the order in which they were made.

An entry holds everything that sending it needs: policy, base identity, the exact bytes of base and body. Adding and
removing one is a single rename of its folder, so a command that is killed leaves whole entries alone. Callers hold the
checkout's lock.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.checkout import disk
from mergepub.checkout.home import check_real, names_in, reading, writing
from mergepub.checkout.records import MALFORMED, is_digest, typed
from mergepub.documents import digest_of
from mergepub.errors import CheckoutError, OutputError
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.checkout.home import Checkout

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Start:
    """What an entry's body was made from.

    ``version``, ``incarnation`` and ``digest`` as a publish has them; ``digest`` is None where the bytes are not at
    hand. ``contained``: that version only contains the bytes. ``former``: the id of the entry whose body it was, while
    that one waits too. ``branch``, ``revision``, ``epoch``: the end of the branch on which the former was kept.
    """

    version: int
    incarnation: str = ""
    digest: str | None = None
    contained: bool = False
    former: str | None = None
    branch: str | None = None
    revision: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One publish that waits. ``file`` is the tracked file that it came from, relative to the checkout, or empty.

    ``favour``, ``adjacent``, ``granularity``, ``engine``: how it is to be merged, as a publish has them.
    """

    id: str
    store: str
    path: str
    digest: str
    start: Start
    policy: str = "fail"
    author: str = ""
    message: str = ""
    retries: int = 3
    kind: str | None = None
    allow_markers: bool = False
    file: str = ""
    favour: str | None = None
    adjacent: str = "clean"
    granularity: str = "line"
    engine: str = "mergepub"


def entries(checkout: Checkout) -> list[Entry]:
    """All entries that can be read, the oldest first."""
    found = []
    for name in _names(checkout):
        with suppress(CheckoutError):
            found.append(_load(checkout, name))
    return found


def damaged(checkout: Checkout) -> dict[str, CheckoutError]:
    """The entries that cannot be read, by id, and why: what was to be published where is not known."""
    found = {}
    for name in _names(checkout):
        try:
            _load(checkout, name)
        except CheckoutError as error:
            found[name] = error
    return found


def load(checkout: Checkout, name: str) -> Entry | None:
    """The entry with that id, None where there is none.

    Raises:
        CheckoutError: it is damaged.
    """
    return _load(checkout, name) if name in _names(checkout) else None


def discard(checkout: Checkout, name: str) -> str:
    """Take out an entry that is damaged; the folder in which its files are kept."""
    place = checkout.inside("kept", f"queued-{name}")
    with writing(checkout.home):
        disk.make_folder(checkout.inside("kept"))
        os.rename(_folder(checkout, name), place)
        disk.sync_folder(_folder(checkout))
    return place


def may_wait(checkout: Checkout) -> bool:
    """Whether anything may wait here; cheap."""
    return bool(_names(checkout))


def last_of(checkout: Checkout, store: str, path: str) -> Entry | None:
    """The newest entry of a document."""
    return next((entry for entry in reversed(entries(checkout)) if (entry.store, entry.path) == (store, path)), None)


def add(checkout: Checkout, entry: Entry, body: bytes, base: bytes | None) -> Entry:
    """Keep ``entry`` behind all others, durably; the entry with the id that it was given.

    Raises:
        OutputError: the disk does not take it; nothing of it is kept.
    """
    last = next(reversed(_names(checkout)), "00000000")
    named = replace(entry, id=f"{int(last.partition('-')[0]) + 1:08d}-{os.urandom(4).hex()}")
    folder = _folder(checkout, f".{named.id}")
    try:
        with writing(_folder(checkout)):
            disk.make_folder(folder)
            for content in (body, base):
                if content is not None:
                    disk.put(os.path.join(folder, digest_of(content)), content)
            disk.put(os.path.join(folder, "entry.json"), _json(named))
            os.rename(folder, _folder(checkout, named.id))
            disk.sync_folder(_folder(checkout))
    except OutputError:
        with suppress(OSError):
            _sweep(folder)  # what is half there would take the room that the next one needs
        raise
    return named


def start_from(checkout: Checkout, entry: Entry, start: Start, base: bytes | None) -> Entry:
    """Let ``entry`` be made from something else than was said when it was added: what its former has become."""
    later = replace(entry, start=start)
    folder = _folder(checkout, entry.id)
    with writing(folder):
        if base is not None:
            disk.put(os.path.join(folder, digest_of(base)), base)
        disk.put(os.path.join(folder, "entry.json"), _json(later))
    return later


def body_of(checkout: Checkout, entry: Entry, digest: str) -> bytes:
    """The bytes of an entry with this digest.

    Raises:
        CheckoutError: they are not there, or not what they were.
    """
    name = os.path.join(_folder(checkout, entry.id), digest)
    with reading(name):
        body = disk.read(name)
    if body is None or digest_of(body) != digest:
        raise _damaged(name, entry.id)
    return body


def remove(checkout: Checkout, entry: Entry) -> None:
    """Take an entry out, durably."""
    gone = _folder(checkout, f".{entry.id}")
    with writing(_folder(checkout)):
        os.rename(_folder(checkout, entry.id), gone)
        disk.sync_folder(_folder(checkout))
        _sweep(gone)


def _names(checkout: Checkout) -> list[str]:
    return [name for name in names_in(_folder(checkout)) if _ID.fullmatch(name)]


_ID = re.compile("[0-9]{8,}-[0-9a-f]{8}")


def sweep(checkout: Checkout) -> None:
    """Remove what a killed command left of entries that were being added or taken out."""
    for name in _leftovers(checkout):
        _sweep(_folder(checkout, name))


def _leftovers(checkout: Checkout) -> Iterator[str]:
    yield from (name for name in names_in(_folder(checkout)) if name[:1] == "." and _ID.fullmatch(name[1:]))


def _sweep(folder: str) -> None:
    check_real(folder)
    for name in os.listdir(folder):
        disk.remove(os.path.join(folder, name))
    os.rmdir(folder)


def _folder(checkout: Checkout, *names: str) -> str:
    return checkout.inside("queue", *names)


def _json(entry: Entry) -> bytes:
    return json.dumps({"format": FORMAT, **asdict(entry)}, indent=1).encode() + b"\n"


def _load(checkout: Checkout, name: str) -> Entry:
    file = os.path.join(_folder(checkout, name), "entry.json")
    with reading(file):
        text = disk.read(file)
    try:
        fields = json.loads(text or b"")
        if fields.pop("format") != FORMAT:
            raise CheckoutError(f"{file} was written by a newer mergepub", hint="use that one here too")
        entry = typed(Entry, {**fields, "start": typed(Start, fields["start"])})
    except MALFORMED:
        raise _damaged(file, name) from None
    if entry.id != name or not is_digest(entry.digest) or not is_digest(entry.start.digest or entry.digest):
        raise _damaged(file, name)
    return entry


def _damaged(file: str, name: str) -> CheckoutError:
    return CheckoutError(
        f"{file} is missing or damaged, so it is not known what was to be published",
        hint=f"take it out of the queue, its files being kept: mergepub sync --drop {quote(name)}",
    )
