"""What the runs of a checkout edit, as the tracking in it says; and when to look.

``Pace`` is pure and decides when; ``Looker`` looks; ``Watch`` tells that something changed, where the package
watchfiles is there and the system lets it. Without it, and besides, there is a look at every longest interval.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mergepub.checkout import Checkout
from mergepub.checkout.home import HOME
from mergepub.checkout.records import from_json
from mergepub.documents import digest_of
from mergepub.errors import MergepubError

if TYPE_CHECKING:
    from mergepub.checkout import Record

_FRESH_NS = 50_000_000
"""A file touched so shortly before it was read may change again without its times telling."""

_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EINTR}


@dataclass(slots=True)
class Pace:
    """When the next look is due; all times are seconds of one clock.

    After a change, once it has been ``quiet``; but not within ``least`` of the last look, and never later than ``most``
    after it.
    """

    quiet: float = 0.1
    least: float = 0.3
    most: float = 10.0
    looked: float = 0.0
    changed: float | None = None

    def note_change(self, now: float) -> None:
        """Something changed."""
        self.changed = now

    def note_look(self, now: float) -> None:
        """A look begins, at what changed until now."""
        self.looked, self.changed = now, None

    def due(self) -> float:
        """The time of the next look."""
        latest = self.looked + self.most
        if self.changed is None:
            return latest
        return min(latest, max(self.changed + self.quiet, self.looked + self.least))


Signature = tuple[int, ...]


@dataclass(slots=True)
class _Tracked:
    """One record, and whether its file differed from its base when it had this signature."""

    signature: Signature
    record: Record
    file: Signature = ()
    differs: bool = False


class Looker:
    """Finds a checkout's document set again and again; only what changed is read. For one thread at a time."""

    def __init__(self, root: str) -> None:
        self._checkout = Checkout(root)
        self._tracked: dict[str, _Tracked] = {}  # by the key of the record
        self._keys: dict[str, str] = {}  # the file's whole name -> that key
        self._folders: Counter[str] = Counter()  # those that tracked files lie in, near and far
        self._own = tuple(self._checkout.inside(name) + os.sep for name in ("files", "queue"))
        self._above = {root, self._checkout.home, *(own[:-1] for own in self._own)}

    def look(self, changed: Collection[str] | None = None) -> frozenset[str]:
        """The paths of the documents that are edited here or queued.

        Args:
            changed: the names of files that may have changed since the last look; None for all of them.

        Raises:
            OSError: the system could not look: too many open files, a disk that fails. Nothing is known then.
        """
        if changed is None or any(map(self._holds_many, changed)):
            self._look_at_all()
        else:
            self._look_at(changed)
        edited = {each.record.path for each in self._tracked.values() if each.differs}
        return frozenset(edited | queued(self._checkout))

    def concerns(self, name: str) -> bool:
        """Whether a change of the file or folder ``name`` may change what is edited here. Safe for any thread."""
        return name in self._keys or name.startswith(self._own) or self._holds_many(name)

    def _holds_many(self, name: str) -> bool:
        return name in self._folders or name in self._above

    def _look_at_all(self) -> None:
        keys = set(_names(self._checkout.inside("files")))
        for key in self._tracked.keys() - keys:
            self._forget(key)
        for key in keys:
            self._refresh(key)

    def _look_at(self, changed: Collection[str]) -> None:
        records = self._own[0]
        keys = {name[len(records) :].partition(os.sep)[0] for name in changed if name.startswith(records)}
        keys |= {self._keys[name] for name in changed if name in self._keys}
        for key in keys:
            self._refresh(key)

    def _refresh(self, key: str) -> None:
        name = self._checkout.inside("files", key, "record.json")
        signature = _signature(name)
        known = self._tracked.get(key)
        if not signature:
            self._forget(key)
        elif known is None or known.signature != signature or _is_fresh(signature):
            self._read(key, name, signature)
        if key in self._tracked:
            self._compare(self._tracked[key])

    def _read(self, key: str, name: str, signature: Signature) -> None:
        try:
            with open(name, "rb") as file:
                record = from_json(file.read(), name)
        except (OSError, MergepubError) as error:
            _check_lasting(error)
            self._forget(key)  # gone in this moment, or damaged: every other command says so
            return
        self._forget(key)
        self._tracked[key] = _Tracked(signature, record)
        self._keys[self._file_of(record)] = key
        self._folders.update(self._folders_of(record))

    def _forget(self, key: str) -> None:
        known = self._tracked.pop(key, None)
        if known:
            self._keys.pop(self._file_of(known.record), None)
            self._folders.subtract(self._folders_of(known.record))
            self._folders += Counter()  # without those that hold nothing any more

    def _file_of(self, record: Record) -> str:
        return os.path.join(self._checkout.root, record.file)

    def _folders_of(self, record: Record) -> list[str]:
        parts = record.file.split("/")[:-1]
        return [os.path.join(self._checkout.root, *parts[: count + 1]) for count in range(len(parts))]

    def _compare(self, tracked: _Tracked) -> None:
        name = self._file_of(tracked.record)
        signature = _signature(name)
        if signature and signature == tracked.file and not _is_fresh(signature):
            return
        tracked.differs = bool(signature) and _digest(name) not in {tracked.record.base.digest, ""}
        tracked.file = signature


def queued(checkout: Checkout) -> set[str]:
    """The documents with a publish in the checkout's queue; a damaged entry hides no other."""
    folder = checkout.inside("queue")
    names = [name for name in _names(folder) if not name.startswith(".")]  # those are half added, or half gone
    return {path for name in names for path in _path_in(os.path.join(folder, name, "entry.json"))}


def _path_in(name: str) -> set[str]:
    try:
        with open(name, "rb") as file:
            path = json.loads(file.read())["path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        _check_lasting(error)
        return set()  # sent in this moment, or damaged: sync says so
    return {path} if isinstance(path, str) else set()


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        _check_lasting(error)
        return []


def _signature(name: str) -> Signature:
    """What tells that a file changed, () where there is none."""
    try:
        found = os.stat(name)
    except OSError as error:
        _check_lasting(error)
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _is_fresh(signature: Signature) -> bool:
    return time.time_ns() - max(signature[:2]) < _FRESH_NS


def _digest(name: str) -> str:
    """The digest of a file's bytes, "" where it cannot be read."""
    try:
        with open(name, "rb") as file:
            return digest_of(file.read())
    except OSError as error:
        _check_lasting(error)
        return ""


def _check_lasting(error: Exception) -> None:
    """Raise what says nothing about the file: a look that meets it has seen nothing."""
    if isinstance(error, OSError) and error.errno in _PASSING:
        raise error


class Watch:
    """Calls ``changed`` with the names of files that changed below ``root``, from a thread of its own.

    The names are empty once at first: from then on nothing is missed, and what changed before is not known.
    """

    def __init__(self, root: str, changed: Callable[[set[str]], None]) -> None:
        self._root = root
        self._changed = changed
        self._over = threading.Event()
        self.works = False

    def start(self) -> bool:
        """Begin; False where this cannot be had here, and only looking from time to time is left."""
        try:
            import watchfiles  # noqa: F401, PLC0415 - an extra
        except ImportError:
            return False
        self.works = True
        threading.Thread(target=self._run, name=f"watch {self._root}", daemon=True).start()
        return True

    def stop(self) -> None:
        """End it; nothing is told from then on."""
        self._over.set()

    def _run(self) -> None:
        from watchfiles import watch  # noqa: PLC0415 - an extra

        begun = False
        try:
            for changes in watch(
                self._root,
                watch_filter=lambda _, name: _matters(name, self._root),
                debounce=50,
                step=10,
                stop_event=self._over,
                rust_timeout=500,
                yield_on_timeout=True,  # the first time out tells that it has begun
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                if self._over.is_set():
                    return
                if changes or not begun:
                    self._changed({name for _, name in changes} if begun else set())
                begun = True
        except Exception:  # the system's limits, a root that is gone: looking goes on without
            self.works = False


def _matters(name: str, root: str) -> bool:
    first, _, rest = os.path.relpath(name, root).partition(os.sep)
    if first == HOME:
        return not rest or rest.startswith(("files", "queue"))
    return first != ".git"
