"""The program's own files, which no push of a folder means: those of stores, and those with the secrets of tokens.

Its configuration is left out where folders are walked, in ``checkout.walking``, for a rule there may take it in.
"""

from __future__ import annotations

import os
import re

from mergepub.errors import InputError

_SECRET = re.compile(rb"mergepub_[0-9a-f]{16}_[0-9a-f]{64}\r?\n?")
_SECRET_SIZES = range(90, 93)
"""How large a file with a secret alone is, in bytes: others are not opened."""

_DATABASE = b"SQLite format 3\0"
_LEAST_PAGE = 512
_BESIDE = ("-wal", "-shm", "-journal")
"""How the names end of what SQLite keeps beside a database, after the database's own."""


class OwnFiles:
    """The files of the store at ``url``, the one that holds the token of this command, other stores, other secrets.

    The file of the store itself is known by its name: whoever opens and closes it beside SQLite, in one process, takes
    SQLite's locks away.
    """

    def __init__(self, url: str) -> None:
        _, _, store = url.partition("sqlite:///")
        self._store = frozenset(os.path.realpath(store + end) for end in ("", *_BESIDE)) if store else frozenset[str]()
        token = os.environ.get("MERGEPUB_TOKEN_FILE")
        self._token = os.path.realpath(token) if token else None

    def __contains__(self, target: str) -> bool:
        """Whether the file ``target``, links being resolved, is one of them."""
        if target in self._store or target == self._token:
            return True
        for end in _BESIDE:
            target = target.removesuffix(end)
        size = _size(target)
        if size in _SECRET_SIZES:
            return _SECRET.fullmatch(_start(target, _SECRET_SIZES.stop)) is not None
        return size >= _LEAST_PAGE and size % _LEAST_PAGE == 0 and _is_store(_start(target, 72))

    def check_named(self, name: str, target: str) -> None:
        """Let everything pass that is named by itself, but for the store that it would go to.

        Raises:
            InputError: it is one of the store's files.
        """
        if target in self._store:
            raise InputError(f"{name} is a file of the store that it would be published to", hint="leave it out")


def _is_store(header: bytes) -> bool:
    """Whether a database that begins so is one of ours."""
    if not header.startswith(_DATABASE):
        return False
    from mergepub.stores.sqlite import APPLICATION_ID

    return int.from_bytes(header[68:], "big") == APPLICATION_ID


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116 - ten thousand files may be asked about
    except OSError:
        return -1


def _start(name: str, count: int) -> bytes:
    try:
        with open(name, "rb") as file:  # noqa: PTH123 - as above
            return file.read(count)
    except OSError:
        return b""  # whoever publishes it says what is wrong with it
