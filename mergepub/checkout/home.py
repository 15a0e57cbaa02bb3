"""The ``.mergepub/`` directory: where it lives, its lock, the records and bodies in it, and what is kept for good.

.mergepub/.gitignore          "*": git never sees the directory
.mergepub/lock                held by the one command that writes; its pid inside
.mergepub/files/KEY/          one folder a tracked file: record.json, and the bodies it names by their digests
.mergepub/intents/KEY.json    a write-back or a rename that was begun
.mergepub/kept/               bytes that a command took out of a file, for good
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from shlex import quote

from mergepub.checkout import disk
from mergepub.checkout.records import Record, damaged, from_json, is_inside, to_json
from mergepub.documents import digest_of
from mergepub.errors import CheckoutError, InputError, OutputError
from mergepub.values import dataclass

HOME = ".mergepub"
CONFIGURATION = "mergepub.toml"
MARKS = (HOME, CONFIGURATION, ".git")
"""What marks the top of a checkout, in this order of kinds."""

REPLACED = "replaced-"
"""How the names of files begin that a write-back took out of their place."""

PATIENCE = 5.0
"""Seconds to wait for another command's lock."""


@dataclass(frozen=True, slots=True)
class Local:
    """One file as a command names it: ``name`` as it was given, ``target`` where its bytes really are.

    Of a symbolic link the target is what is tracked, read and replaced.
    """

    name: str
    target: str

    def read(self) -> bytes | None:
        """Its bytes, None where there is no file.

        Raises:
            InputError: it cannot be read.
        """
        try:
            return disk.read(self.target)
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error.strerror}", hint="give the name of a file") from None

    @property
    def special(self) -> bool:
        """Whether it is there and no regular file (a pipe, a device): such a file is never tracked."""
        return os.path.exists(self.target) and not os.path.isfile(self.target)


def locate(name: str) -> tuple[Checkout, Local]:
    """The file ``name`` and the checkout that it belongs to, which may not exist yet.

    That is the nearest folder above it with a ``.mergepub``, else the nearest with a ``mergepub.toml``, else with a
    ``.git``, else the file's own.

    Raises:
        InputError: no file can have that name.
    """
    if not name or "\0" in name:
        raise InputError(f"{name!r} is no file name", hint="give the name of a file")
    local = Local(name, os.path.realpath(name))
    return Checkout(root_of(os.path.dirname(local.target))), local


def root_of(folder: str) -> str:
    """The folder whose ``.mergepub`` is responsible for what lies in ``folder``."""
    above = [folder]
    while os.path.dirname(above[-1]) != above[-1]:
        above.append(os.path.dirname(above[-1]))
    for mark in MARKS:
        for place in above:
            if os.path.exists(os.path.join(place, mark)):
                return place
    return folder


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn a failing disk into an error that names the file."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "make room on that disk, and repeat the command" if is_full else "see that it can be written to"
        raise OutputError(f"cannot write {name}: {error.strerror}", hint=hint) from None


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn what cannot be read into an error that names the file."""
    try:
        yield
    except OSError as error:
        raise CheckoutError(f"cannot read {name}: {error.strerror}", hint="see that it can be read") from None


def names_in(folder: str) -> list[str]:
    """What is in the folder, nothing where there is none.

    Raises:
        CheckoutError: it cannot be read, or is no folder.
    """
    with reading(folder):
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []


def check_real(*places: str) -> None:
    """Refuse places that are links. mergepub makes none; through one that came along it would write elsewhere.

    Raises:
        CheckoutError: one is.
    """
    for place in places:
        if os.path.islink(place):
            raise CheckoutError(
                f"{place} is a link, and leads to {os.path.realpath(place)}; nothing was written there",
                hint="see where it comes from, and remove it",
            )


class Checkout:
    """One ``.mergepub/`` directory. Reading needs no lock: records are replaced whole."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.home = os.path.join(root, HOME)

    @property
    def exists(self) -> bool:
        """Whether anything was ever tracked here."""
        return os.path.isdir(self.home)

    # ── the lock ────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def locked(self, patience: float = PATIENCE) -> Iterator[None]:
        """Hold the lock; a holder that died holds it no more.

        Raises:
            CheckoutError: another command holds it, for longer than ``patience`` seconds; its pid is named. Or the
                directory is not one that mergepub made.
        """
        check_real(self.home, *(self.inside(name) for name in names_in(self.home)))
        with writing(self.home):
            self._found()
            fd = os.open(self.inside("lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            _wait_for(fd, patience)
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
            yield
        finally:
            os.close(fd)

    def _found(self) -> None:
        if not os.path.isfile(self.inside(".gitignore")):
            disk.make_folder(self.home)
            disk.put(self.inside(".gitignore"), b"*\n")

    def sweep(self) -> None:
        """Remove what a command that was killed had not written to its end yet. The lock is held."""
        for folder in (self.home, self.inside("intents"), self.inside("kept")):
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                if name.startswith(disk.BESIDE):
                    disk.remove(os.path.join(folder, name))

    def inside(self, *names: str) -> str:
        """A name inside the directory."""
        return os.path.join(self.home, *names)

    # ── records and bodies ──────────────────────────────────────────────────────────────────────────────────────────

    def check_place(self, local: Local) -> None:
        """Refuse to track what lies in the directory itself.

        Raises:
            InputError: it does.
        """
        if local.target.startswith(os.path.join(os.path.realpath(self.home), "")):
            raise InputError(
                f"{local.name} lies in {HOME}, which holds what is remembered of other files",
                hint="name a file elsewhere",
            )

    def relative(self, local: Local) -> str:
        """The file's name as records hold it: relative to the root.

        Raises:
            InputError: it lies elsewhere.
        """
        name = os.path.relpath(local.target, self.root)
        if not is_inside(name):
            raise InputError(f"{local.name} lies outside {self.root}", hint="name a file in it")
        return name

    def local(self, record: Record) -> Local:
        """The file of a record, named as seen from the working directory."""
        target = os.path.join(self.root, record.file)
        return Local(os.path.relpath(target), os.path.realpath(target))

    def folder_of(self, file: str) -> str:
        """The folder of the record for ``file`` (relative to the root)."""
        return self.inside("files", key_of(file))

    def load(self, local: Local) -> Record | None:
        """The record of a file, None where it is not tracked.

        Raises:
            CheckoutError: the record is damaged, or a newer mergepub's.
        """
        return self.load_file(self.relative(local))

    def load_file(self, file: str) -> Record | None:
        """The record of ``file``, relative to the root; else as ``load``."""
        return self._record(key_of(file))

    def records(self) -> list[Record]:
        """Every record, by file name."""
        keys = filter(_KEY.fullmatch, names_in(self.inside("files")))  # other systems leave files of their own
        return sorted(filter(None, map(self._record, keys)), key=lambda record: record.file)

    def _record(self, key: str) -> Record | None:
        name = self.inside("files", key, "record.json")
        with reading(name):
            text = disk.read(name)
        record = None if text is None else from_json(text, name)
        if record is not None and key_of(record.file) != key:
            raise damaged(name)  # it came from elsewhere
        return record

    def save(self, record: Record, *bodies: bytes) -> None:
        """Make ``record`` the file's record, durably; ``bodies`` that it names are stored first, others dropped last.

        Raises:
            OutputError: the disk is full, the directory cannot be written.
        """
        self.store(record.file, *bodies)
        folder = self.folder_of(record.file)
        check_real(folder)
        with writing(self.home):
            disk.put(os.path.join(folder, "record.json"), to_json(record))
            self._drop_unnamed(folder, record)

    def store(self, file: str, *bodies: bytes) -> None:
        """Store bodies beside the record of ``file``, durably."""
        folder = self.folder_of(file)
        check_real(folder)
        with writing(self.home):
            disk.make_folder(folder)
            for body in bodies:
                name = os.path.join(folder, digest_of(body))
                if not os.path.exists(name):
                    disk.put(name, body)

    def _drop_unnamed(self, folder: str, record: Record) -> None:
        wanted = {"record.json", *record.digests()}
        for name in os.listdir(folder):
            if name not in wanted and not name.startswith(REPLACED):
                disk.remove(os.path.join(folder, name))

    def body(self, record: Record, digest: str) -> bytes:
        """The bytes that a record names by ``digest``.

        Raises:
            CheckoutError: they are not there, or not what they were.
        """
        if digest == digest_of(b""):
            return b""
        name = os.path.join(self.folder_of(record.file), digest)
        with reading(name):
            body = disk.read(name)
        if body is None or digest_of(body) != digest:
            raise CheckoutError(
                f"{name} is missing or damaged, so it is not known what {record.file} was made from",
                hint=f"to start anew, the file's bytes being kept: mergepub fetch {quote(record.path)} "
                f"-o {quote(record.file)} --force",
            )
        return body

    def forget(self, file: str) -> None:
        """Track ``file`` no more; its bodies go with the record."""
        folder = self.folder_of(file)
        check_real(folder)
        with writing(self.home):
            disk.remove(os.path.join(folder, "record.json"))
            with suppress(FileNotFoundError):
                for name in os.listdir(folder):
                    disk.remove(os.path.join(folder, name))
                os.rmdir(folder)

    # ── what is kept for good ───────────────────────────────────────────────────────────────────────────────────────

    def keep(self, file: str, body: bytes, what: str = "") -> str:
        """Keep ``body``, which was in ``file``, for good; the name under which it is kept."""
        stamp = time.strftime("%Y%m%dT%H%M%S")
        name = "-".join(
            part for part in (stamp, digest_of(body)[:8], what, disk.end_of(os.path.basename(file))) if part
        )
        place = self.inside("kept", name)
        with writing(self.home):
            disk.make_folder(self.inside("kept"))
            if not os.path.exists(place):
                disk.put(place, body)
        return place


_KEY = re.compile("[0-9a-f]{40}")


def key_of(file: str) -> str:
    """The name under which the record of ``file`` (relative to the root) lies."""
    return sha256(os.fsencode(file)).hexdigest()[:40]


def _wait_for(fd: int, patience: float) -> None:
    import fcntl  # noqa: PLC0415 - commands that only read take no lock

    give_up = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise _is_held(fd, patience) from None
            time.sleep(0.05)
        else:
            return


def _is_held(fd: int, patience: float) -> CheckoutError:
    pid = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
    return CheckoutError(
        f"another mergepub (pid {pid}) has been writing here for more than {patience:g} seconds; nothing was done",
        reason="locked",
        hint="wait until it has ended, and repeat the command",
    )
