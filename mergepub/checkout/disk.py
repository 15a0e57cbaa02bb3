"""Durable steps on files: write whole, exchange two names, find out what a name holds. Each step survives a crash.

Every change of the file system that tracking makes is made here. A file is written beside its place, synced and
renamed; a directory is synced after each change of its names.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from functools import cache
from typing import Any

BESIDE = ".mergepub-"
"""How the names of files begin that are not in their place yet."""

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def read(name: str) -> bytes | None:
    """The bytes of ``name``, None where there is no such file. One that is being written to is read anew.

    Raises:
        OSError: it is no regular file (a folder, a pipe, a device), or it cannot be read.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(fd, "rb", buffering=0) as file:
        for _ in range(_READINGS):
            before = _look(fd, name)
            file.seek(0)
            body = file.readall()
            if _look(fd, name) == before:
                break
        return body


_READINGS = 5


def _look(fd: int, name: str) -> tuple[int, int, int]:
    """What changes when the file does."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        code = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
        raise OSError(code, os.strerror(code) if code == errno.EISDIR else "it is no regular file", name)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def write_new(name: str, body: bytes, like: os.stat_result | None = None) -> None:
    """Make the new file ``name`` with ``body``, synced; with mode and owner of ``like`` where that is given."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if like else 0o666)
    try:
        rest = memoryview(body)
        while rest:
            rest = rest[os.write(fd, rest) :]
        if like:
            _dress(fd, like)
        os.fsync(fd)
    finally:
        os.close(fd)


def _dress(fd: int, like: os.stat_result) -> None:
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):  # only root gives files away; the content is what counts
            os.fchown(fd, like.st_uid, like.st_gid)
    os.fchmod(fd, like.st_mode & 0o7777)


def put(name: str, body: bytes) -> None:
    """Make ``body`` the content of ``name``, whole or not at all, durably."""
    beside = name_beside(name)
    try:
        write_new(beside, body)
        os.replace(beside, name)
    finally:
        remove(beside)
    sync_folder(os.path.dirname(name))


def make_folder(folder: str) -> None:
    """Make the folder and what is missing above it, durably."""
    if not os.path.isdir(folder):
        above = os.path.dirname(folder)
        make_folder(above)
        with suppress(FileExistsError):
            os.mkdir(folder)
        sync_folder(above)


def name_beside(name: str) -> str:
    """A new name in the folder of ``name``."""
    return os.path.join(os.path.dirname(name), f"{BESIDE}{os.urandom(8).hex()}")


def end_of(name: str) -> str:
    """The end of a file's name, short enough that something can be put before and after it."""
    return os.fsencode(name)[-_LONGEST_END:].decode("utf-8", "ignore")


_LONGEST_END = 150


def remove(name: str) -> None:
    """Remove the file ``name`` if there is one."""
    with suppress(FileNotFoundError):
        os.unlink(name)


def sync_folder(folder: str) -> None:
    """Make what was renamed, made or removed in ``folder`` durable."""
    fd = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def rename_new(old: str, new: str) -> None:
    """Give the file ``old`` the name ``new`` too, or, where a file has but one name, instead; nothing is overwritten.

    Raises:
        FileExistsError: there is something of that name.
        OSError: the folder cannot be written.
    """
    try:
        os.link(old, new)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(old, new)


def swap(beside: str, target: str, aside: str) -> bool:
    """Exchange ``beside`` and ``target``; False when somebody made or removed ``target`` in the middle.

    Where the system exchanges two names in one step, ``aside`` is not used. Elsewhere ``target`` is renamed to it and
    the other put in its place, which fails where somebody else was faster; nothing is ever overwritten.
    """
    try:
        if exchange(beside, target):
            return True
        os.rename(target, aside)
    except FileNotFoundError:
        return False
    try:
        rename_new(beside, target)
    except FileExistsError:
        return False
    os.rename(aside, beside)
    return True


def exchange(a: str, b: str) -> bool:
    """Exchange the two names in one step; False where this system cannot.

    Raises:
        OSError: one of them is missing, or the folder cannot be written.
    """
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0:
        return True
    import ctypes  # noqa: PLC0415 - most commands exchange nothing

    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), a)


@cache
def _renameat2() -> Any:
    import ctypes  # noqa: PLC0415 - as above

    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
