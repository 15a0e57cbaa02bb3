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
        return target in self._store or target == self._token or _holds_secret(target) or _is_of_store(target)

    def check_named(self, name: str, target: str) -> None:
        """Let everything pass that is named by itself, but for the store that it would go to.

        Raises:
            InputError: it is one of the store's files.
        """
        if target in self._store:
            raise InputError(f"{name} is a file of the store that it would be published to", hint="leave it out")


def _holds_secret(name: str) -> bool:
    return _size(name) in _SECRET_SIZES and _SECRET.fullmatch(_start(name, _SECRET_SIZES.stop)) is not None


def _is_of_store(name: str) -> bool:
    """Whether it is the database of a store, or lies beside one as SQLite's."""
    name = next((name.removesuffix(end) for end in _BESIDE if name.endswith(end)), name)
    size = _size(name)
    if size < _LEAST_PAGE or size % _LEAST_PAGE or not (header := _start(name, 72)).startswith(_DATABASE):
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
