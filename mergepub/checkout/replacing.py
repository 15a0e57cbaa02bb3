"""Changing a tracked FILE: an intent is made durable first, FILE is exchanged second, its record moves last.

Whatever crashes in between, the next command that writes finishes the change or undoes it; and whatever an editor saves
in between stays in FILE.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace

from mergepub.checkout import disk
from mergepub.checkout.home import REPLACED, Checkout, Local, key_of, names_in, reading, writing
from mergepub.checkout.leftovers import sweep_beside
from mergepub.checkout.records import MALFORMED, Record, from_json, is_inside, to_json, typed
from mergepub.documents import digest_of
from mergepub.errors import CheckoutError, InputError
from mergepub.values import dataclass

Undoes = Callable[[bytes, bytes, bytes], bool]


class FileChangedError(CheckoutError):
    """FILE was saved by somebody while it was about to be replaced; it holds what they saved, nothing was changed."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A change of ``file`` that was begun.

    A replacement: from the bytes with digest ``old`` ("" where there was no file) to ``new``, through the file named
    ``beside`` in the same folder, with the record ``after``. A rename: ``moved_from`` names the file before.
    """

    file: str
    after: Record
    old: str = ""
    new: str = ""
    beside: str = ""
    moved_from: str = ""


def replace_file(checkout: Checkout, local: Local, old: bytes | None, new: bytes, after: Record) -> None:
    """Make ``new`` the content of FILE, which holds ``old`` (None: does not exist), and ``after`` its record.

    The bodies that ``after`` names are stored already, except ``old`` and ``new``. The lock is held.

    Raises:
        FileChangedError: FILE holds something else by now, and keeps it; so does the record.
        OutputError: the disk refused.
    """
    checkout.store(after.file, *([new] if old is None else [new, old]))
    if old != new:
        intent = Intent(
            after.file,
            after,
            "" if old is None else digest_of(old),
            digest_of(new),
            os.path.basename(disk.name_beside(local.target)),
        )
        sweep_beside(checkout, local)
        with writing(local.name):
            _write(checkout, intent)
            try:
                exchanged = _exchanged(local, intent, old, new)
            except OSError:
                _give_up(checkout, local, intent)
                raise
            if not exchanged:
                kept = _abandon(checkout, local, intent)
                raise FileChangedError(
                    f"{local.name} was saved by somebody else in this moment; it was left as it is"
                    + "".join(f"; what was saved just before is kept in {os.path.relpath(name)}" for name in kept),
                    reason="edited",
                    hint="repeat the command",
                )
            checkout.save(after)
            _done(checkout, local, intent)
    else:
        checkout.save(after)


def move_file(checkout: Checkout, record: Record, local: Local, to: Local) -> None:
    """Rename FILE and its record; a FILE that has the new name already keeps it. The lock is held.

    Raises:
        InputError: there is something of the new name.
        OutputError: the disk refused.
    """
    after = replace(record, file=checkout.relative(to))
    intent = Intent(after.file, after, moved_from=record.file)
    with writing(to.name):
        _write(checkout, intent)
        checkout.save(after, *(checkout.body(record, digest) for digest in record.digests()))
        try:
            if os.path.exists(local.target) or not os.path.exists(to.target):
                disk.rename_new(local.target, to.target)
        except OSError as error:
            _undo_move(checkout, intent)
            if isinstance(error, FileExistsError):
                raise InputError(f"{to.name} exists already", hint="give another name, or move it away first") from None
            raise
        _finish_move(checkout, intent)


# ── intents ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def pending(checkout: Checkout) -> list[Intent]:
    """Every change that was begun and neither finished nor undone."""
    folder = checkout.inside("intents")
    places = [os.path.join(folder, name) for name in names_in(folder) if _PLACE.fullmatch(name)]
    with reading(folder):
        texts = [(place, disk.read(place)) for place in places]
    return [_intent(text, place) for place, text in texts if text]


_PLACE = re.compile(r"[0-9a-f]{40}\.json")


def recover(checkout: Checkout, undoes: Undoes) -> Iterator[str]:
    """Finish or undo every change that was begun; a sentence about each. The lock is held.

    ``undoes``, told a text before and after a change and what FILE holds now, says whether that lacks the change.
    """
    checkout.sweep()
    for intent in pending(checkout):
        with writing(intent.file):
            for file in filter(None, [intent.file, intent.moved_from]):
                _check_folder(checkout, file)
            yield _settle_move(checkout, intent) if intent.moved_from else _settle(checkout, intent, undoes)


def late_saves(checkout: Checkout, record: Record) -> Iterator[str]:
    """Keep what was written to a replaced file through a descriptor that was opened before; where it is kept."""
    folder = checkout.folder_of(record.file)
    for name in os.listdir(folder):
        if name.startswith(REPLACED):
            place = os.path.join(folder, name)
            body = disk.read(place)
            if body is not None and digest_of(body) != name[len(REPLACED) :]:
                yield checkout.keep(record.file, body, "late")
            disk.remove(place)


def _write(checkout: Checkout, intent: Intent) -> None:
    disk.make_folder(checkout.inside("intents"))
    fields = asdict(intent) | {"after": json.loads(to_json(intent.after))}
    disk.put(_place(checkout, intent), json.dumps(fields).encode())


def _intent(text: bytes, name: str) -> Intent:
    try:
        fields = json.loads(text)
        after = from_json(json.dumps(fields.pop("after")).encode(), name)
        intent = typed(Intent, {**fields, "after": after})
        if not _is_sound(intent, os.path.basename(name)):
            raise ValueError(name)
    except MALFORMED:
        raise CheckoutError(
            f"{name} is damaged, so it is not known what was begun with its file",
            hint=f"look at the file and at those named {disk.BESIDE}* beside it, and remove {name}",
        ) from None
    return intent


def _is_sound(intent: Intent, name: str) -> bool:
    """Whether it names nothing but its file and what lies beside that; a checkout may come from anywhere."""
    names = [intent.file, *filter(None, [intent.moved_from])]
    beside = not intent.beside or (intent.beside.startswith(disk.BESIDE) and "/" not in intent.beside)
    is_its_own = (intent.file, f"{key_of(intent.file)}.json") == (intent.after.file, name)
    return is_its_own and beside and all(map(is_inside, names)) and bool(intent.beside) != bool(intent.moved_from)


def _check_folder(checkout: Checkout, file: str) -> None:
    """Refuse to change a file behind a link of folders: what is tracked never lies there."""
    folder = os.path.dirname(os.path.join(os.path.realpath(checkout.root), file))
    if os.path.realpath(folder) != folder:
        raise CheckoutError(
            f"{file} lies behind a link now, so what was begun with it is neither finished nor undone",
            hint=f"see what became of {folder}, and remove {checkout.inside('intents', key_of(file))}.json",
        )


def _place(checkout: Checkout, intent: Intent) -> str:
    return checkout.inside("intents", f"{key_of(intent.file)}.json")


def _forget(checkout: Checkout, intent: Intent) -> None:
    disk.remove(_place(checkout, intent))
    disk.sync_folder(checkout.inside("intents"))


# ── the exchange ────────────────────────────────────────────────────────────────────────────────────────────────────


def _exchanged(local: Local, intent: Intent, old: bytes | None, new: bytes) -> bool:
    """Exchange FILE; False when something else than ``old`` came out, which then stands in FILE again."""
    beside, aside = _names(local.target, intent)
    if old is None:
        disk.write_new(beside, new)
        return _linked(beside, local.target)
    try:
        like = os.stat(local.target)
    except FileNotFoundError:
        return False
    disk.write_new(beside, new, like)
    # Looked at once more, so that what somebody saved is seldom out of FILE, and never long: who reads it meanwhile
    # would go on from another text than they have written.
    if disk.read(local.target) != old or not disk.swap(beside, local.target, aside):
        return False
    out = disk.read(beside)
    if out != old:
        return _put_back(local.target, beside, aside, new, out or b"")
    disk.sync_folder(os.path.dirname(local.target))
    return True


def _put_back(target: str, beside: str, aside: str, was_in: bytes, out: bytes) -> bool:
    """Exchange again until what comes out is what was put in: then FILE holds the newest that anybody saved."""
    while disk.swap(beside, target, aside):
        came = disk.read(beside)
        if came is None or came == was_in:
            break
        was_in, out = out, came
    return False


def _linked(beside: str, target: str) -> bool:
    try:
        disk.rename_new(beside, target)
    except FileExistsError:
        return False
    disk.sync_folder(os.path.dirname(target))
    return True


def _names(target: str, intent: Intent) -> tuple[str, str]:
    beside = os.path.join(os.path.dirname(target), intent.beside)
    return beside, beside + "-aside"


def _done(checkout: Checkout, local: Local, intent: Intent) -> None:
    """Clean up after a finished change; the replaced file stays a while, for whoever still writes to it."""
    beside, aside = _names(local.target, intent)
    if intent.old:
        try:
            os.rename(beside, os.path.join(checkout.folder_of(intent.file), REPLACED + intent.old))
        except OSError:  # another file system, or gone already
            disk.remove(beside)
    disk.remove(beside)
    disk.remove(aside)
    _forget(checkout, intent)


def _abandon(checkout: Checkout, local: Local, intent: Intent) -> list[str]:
    """Clean up after a change that did not happen.

    Whatever is left and is neither old nor new is kept for good; the names under which it is.
    """
    kept = []
    for name in _names(local.target, intent):
        body = disk.read(name)
        if body is not None and digest_of(body) not in (intent.old, intent.new):
            kept.append(checkout.keep(intent.file, body, "saved"))
        disk.remove(name)
    _forget(checkout, intent)
    return kept


def _give_up(checkout: Checkout, local: Local, intent: Intent) -> None:
    """Clean up where the disk refused and FILE is as it was; else it stays begun, and the next command looks at it."""
    with suppress(OSError):
        _restore_layout(local.target, intent)
        if (_digest(local.target) or "") == intent.old:
            _abandon(checkout, local, intent)


# ── after a crash ───────────────────────────────────────────────────────────────────────────────────────────────────


def _settle(checkout: Checkout, intent: Intent, undoes: Undoes) -> str:
    """Finish or undo one replacement, by what FILE and the file beside it hold."""
    local = checkout.local(intent.after)
    target = os.path.join(checkout.root, intent.file)
    _restore_layout(target, intent)
    beside, _ = _names(target, intent)
    here, other = _digest(target), _digest(beside)
    if checkout.load_file(intent.file) == intent.after or _was_exchanged(intent, here, other):
        checkout.save(intent.after)
        _done(checkout, local, intent)
        return f"finished the interrupted change of {local.name}"
    if here == intent.new and other is not None:
        _take_back(checkout, intent, target)
    elif _is_edit_of_new(checkout, intent, target, (here, other), undoes):
        checkout.save(intent.after)
        _abandon(checkout, local, intent)
        return f"finished the interrupted change of {local.name}; what was saved in between is kept in .mergepub/kept"
    _abandon(checkout, local, intent)
    return f"undid the interrupted change of {local.name}"


def _take_back(checkout: Checkout, intent: Intent, target: str) -> None:
    """An editor had saved just before the exchange: that comes back.

    Whoever opened FILE since the crash has the new text; that is remembered like a pull, the other way round, and what
    comes back is kept besides, for such an editor may be saved over it.
    """
    beside, aside = _names(target, intent)
    saved, new = disk.read(beside) or b"", checkout.body(intent.after, intent.new)
    checkout.keep(intent.file, saved, "saved")
    record = checkout.load_file(intent.file)
    if record is not None:
        brought = replace(record, base=intent.after.base).bringing(new, saved)
        base = checkout.body(intent.after, intent.after.base.digest)
        checkout.save(replace(record, brought=brought), new, saved, base)
    disk.swap(beside, target, aside)
    disk.sync_folder(os.path.dirname(target))


def _is_edit_of_new(
    checkout: Checkout, intent: Intent, target: str, digests: tuple[str | None, str | None], undoes: Undoes
) -> bool:
    """Whether FILE was edited after the exchange, though something was saved just before it.

    Then it holds an edit of the new text; or else whoever saved before has saved again.
    """
    here, other = digests
    if here in (None, intent.old) or other in (None, intent.new):
        return False
    old, new = checkout.body(intent.after, intent.old), checkout.body(intent.after, intent.new)
    return not undoes(old, new, disk.read(target) or b"")


def _was_exchanged(intent: Intent, here: str | None, other: str | None) -> bool:
    """Whether FILE is the new text, or an edit of it: then the old one came out of its place."""
    if not intent.old:
        return here == intent.new
    return other == intent.old if other is not None else here == intent.new


def _restore_layout(target: str, intent: Intent) -> None:
    """Undo, or finish, a swap that was made of single renames and was cut off."""
    beside, aside = _names(target, intent)
    if not os.path.exists(aside):
        return
    if not os.path.exists(target):
        os.rename(aside, target)
    elif os.path.exists(beside) and os.path.samefile(beside, target):
        os.rename(aside, beside)


def _digest(name: str) -> str | None:
    body = disk.read(name)
    return None if body is None else digest_of(body)


def _settle_move(checkout: Checkout, intent: Intent) -> str:
    old, new = (os.path.join(checkout.root, name) for name in (intent.moved_from, intent.file))
    if os.path.exists(new) and (not os.path.exists(old) or os.path.samefile(old, new)):
        _finish_move(checkout, intent)
        return f"finished the interrupted rename of {intent.moved_from}"
    _undo_move(checkout, intent)
    return f"undid the interrupted rename of {intent.moved_from}"


def _finish_move(checkout: Checkout, intent: Intent) -> None:
    old = os.path.join(checkout.root, intent.moved_from)
    disk.remove(old)
    disk.sync_folder(os.path.dirname(old))
    disk.sync_folder(os.path.dirname(os.path.join(checkout.root, intent.file)))
    checkout.forget(intent.moved_from)
    _forget(checkout, intent)


def _undo_move(checkout: Checkout, intent: Intent) -> None:
    checkout.forget(intent.file)
    _forget(checkout, intent)
