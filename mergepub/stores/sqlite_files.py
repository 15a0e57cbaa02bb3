"""How the file of a SQLite store comes into being: made beside its place, and put there whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


@contextmanager
def draft_beside(file: str) -> Iterator[str]:
    """A name beside ``file`` to make the store under; folders that are missing are made, private to the user.

    In the end what stands under that name is gone; an exception takes the folders that were made away again.
    """
    place = Path(file)
    draft = place.with_name(f".{place.name}.{os.urandom(6).hex()}")
    with _directories(place.parent), _draft(draft):
        yield str(draft)


def linked(draft: str, file: str) -> bool:
    """Give ``draft`` its final name as well; False when another process was first.

    Raises:
        OSError: there can be no file there.
    """
    try:
        os.link(draft, file)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        Path(file).touch()  # a file system without links: an empty file is filled in place
        return False
    _sync_directory(Path(file).parent)
    return True


def leftover(file: str) -> str | None:
    """A log with no ``file`` to it, as left by a deleted one; None where there is none.

    SQLite would play it back into whatever gets that name next, or throw it away. The logs are looked at first: whoever
    makes a store in the meantime has its file before its log.
    """
    for log in (f"{file}-wal", f"{file}-journal"):
        if _size(log) > 0 and (_size(file) < 0 or (log.endswith("-wal") and _size(file) == 0)):
            return log
    return None


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except FileNotFoundError:
        return -1


@contextmanager
def _directories(directory: Path) -> Iterator[None]:
    """Make ``directory`` and its parents, private to the user; an exception takes those that were made away again."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):  # the first that is not there, or not empty, ends it
            for each in missing:
                each.rmdir()
        raise


@contextmanager
def _draft(file: Path) -> Iterator[None]:
    """Whatever happens, ``file`` and the files that SQLite puts beside it are gone in the end."""
    try:
        yield
    finally:
        for side in ("", "-wal", "-shm", "-journal"):
            file.with_name(file.name + side).unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
