"""The program's own files, which no push of a folder means: those of the store and those with secrets of tokens.

Its configuration is left out where folders are walked, ``checkout.walking``, for a rule there may take it in.
"""

from __future__ import annotations

import os
import re

_SECRET = re.compile(rb"mergepub_[0-9a-f]{16}_[0-9a-f]{64}\r?\n?")
_SIZES = range(90, 93)
"""How large a file with a secret alone is, in bytes: others are not opened."""

_BESIDE = ("", "-wal", "-shm", "-journal")
"""How the names end of what SQLite keeps for a store, after the file's own."""


class OwnFiles:
    """The files of the store at ``url``, the one that holds the token of this command, and whatever holds a secret."""

    def __init__(self, url: str) -> None:
        _, _, store = url.partition("sqlite:///")
        names = [store + end for end in _BESIDE] if store else []
        token = os.environ.get("MERGEPUB_TOKEN_FILE")
        self._targets = frozenset(map(os.path.realpath, [*names, *([token] if token else [])]))

    def __contains__(self, target: str) -> bool:
        """Whether the file ``target``, links being resolved, is one of them."""
        return target in self._targets or _holds_secret(target)


def _holds_secret(name: str) -> bool:
    try:
        if os.stat(name).st_size not in _SIZES:  # noqa: PTH116 - ten thousand files may be asked about
            return False
        with open(name, "rb") as file:  # noqa: PTH123 - as above
            return _SECRET.fullmatch(file.read(_SIZES.stop)) is not None
    except OSError:
        return False  # whoever publishes it says what is wrong with it
