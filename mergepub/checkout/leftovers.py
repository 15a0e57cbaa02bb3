"""What a killed command left beside files: drafts, and folders with copies that somebody was mending.

They are swept a day later, when a command writes to their folder anyway. Nothing that a person may have written goes
with them: that is kept in ``.mergepub/kept``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mergepub.checkout import disk
from mergepub.checkout.home import Checkout, Local, writing

DAY = 24 * 3600.0
MERGED = "MERGED"
"""The copy in which somebody mends."""

_OURS = re.compile(re.escape(disk.BESIDE) + r"[0-9a-f]{16}(-aside)?")


@contextmanager
def copies_beside(local: Local, bodies: dict[str, bytes]) -> Iterator[dict[str, str]]:
    """Copies in a hidden folder beside the file, by what they are, with its suffix so that editors know what it is.

    The folder and whatever an editor leaves in it are gone afterwards. While it is held, nobody sweeps it.

    Raises:
        OutputError: the disk refused.
    """
    folder = disk.name_beside(local.target)
    stem, suffix = os.path.splitext(os.path.basename(local.target))
    names = {kind: os.path.join(folder, f"{disk.end_of(stem)}.{kind.lower()}{suffix[:20]}") for kind in bodies}
    with writing(local.name):
        os.mkdir(folder, 0o700)
    held = os.open(folder, os.O_RDONLY)
    try:
        _hold(held)
        with writing(local.name):
            for kind, body in bodies.items():
                disk.write_new(names[kind], body)
        yield names
    finally:
        os.close(held)
        _remove_folder(folder)


def sweep_beside(checkout: Checkout, local: Local) -> None:
    """Sweep the folder of a file that is about to be written. The lock is held, and nothing of it is half done."""
    folder = os.path.dirname(local.target)
    if folder in _swept:
        return
    _swept.add(folder)
    long_ago = time.time() - DAY
    with suppress(OSError), os.scandir(folder) as found:
        for entry in [each for each in found if _OURS.fullmatch(each.name)]:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < long_ago:
                    _sweep(checkout, entry)


_swept: set[str] = set()
"""The folders that this process has swept; one look at each is enough."""


def _sweep(checkout: Checkout, entry: os.DirEntry[str]) -> None:
    if entry.is_file(follow_symlinks=False):
        if entry.name.endswith("-aside"):
            _keep(checkout, entry.path)
        disk.remove(entry.path)
    elif entry.is_dir(follow_symlinks=False):
        held = os.open(entry.path, os.O_RDONLY)
        try:
            if _hold(held):
                for name in os.listdir(entry.path):
                    if f".{MERGED.lower()}" in name:
                        _keep(checkout, os.path.join(entry.path, name))
                _remove_folder(entry.path)
        finally:
            os.close(held)


def _hold(fd: int) -> bool:
    import fcntl  # noqa: PLC0415 - most commands have nothing to hold but the checkout's lock

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _keep(checkout: Checkout, name: str) -> None:
    body = disk.read(name)
    if body:
        checkout.keep(os.path.basename(name), body, "left")


def _remove_folder(folder: str) -> None:
    import shutil  # noqa: PLC0415 - as above

    shutil.rmtree(folder, ignore_errors=True)
