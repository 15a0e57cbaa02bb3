"""Stores of documents: the contract, the backends, and the wrappers around them.

``open_store`` turns a URL into a store; a backend's module is imported when its scheme is asked for. Backends of other
people register a function ``open_url(url, *, max_body=None) -> Store`` under the entry point group ``mergepub.stores``,
named by their scheme.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from mergepub.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from mergepub.stores.contract import Store

_Opener = Callable[..., "Store"]

ENTRY_POINTS = "mergepub.stores"

# scheme -> module of the backend, extra that installs what it needs
_BACKENDS: dict[str, tuple[str, str | None]] = {
    "sqlite": ("mergepub.stores.sqlite", None),
    "memory": ("mergepub.stores.memory", None),
    "postgresql": ("mergepub.stores.postgres", "postgres"),
    "http": ("mergepub.stores.http", None),
    "https": ("mergepub.stores.http", None),
}


def open_store(url: str, *, max_body: int | None = None) -> Store:
    """The store that ``url`` names. Nothing is opened or created before the first call needs it.

    Args:
        url: ``sqlite:///relative``, ``sqlite:////absolute``, a plain path (SQLite), ``memory:``, ``postgresql://...``,
            ``http(s)://...``, or a scheme that an installed package brings.
        max_body: the largest body in bytes that the store takes, None for its default.

    Raises:
        InputError: the URL is not one, its scheme is unknown, or an extra is missing.
    """
    if not url or "\0" in url:
        raise InputError(f"bad store {url!r}", hint="give a URL such as sqlite:///store.sqlite, or a file")
    return _opener(_scheme(url))(url, max_body=max_body)


def default_url() -> str:
    """``MERGEPUB_STORE``, or the SQLite file in the user's data directory, as a URL.

    Raises:
        InputError: neither is there.
    """
    return os.environ.get("MERGEPUB_STORE") or own_url()


def own_url() -> str:
    """The SQLite file in the user's data directory, as a URL.

    Raises:
        InputError: there is no such directory.
    """
    return f"sqlite:///{_data_folder()}/store.sqlite"


def _data_folder() -> str:
    """The user's folder for data of this program."""
    system: str = sys.platform
    if system == "linux":  # as platformdirs says it, without the milliseconds of importing it
        data = os.environ.get("XDG_DATA_HOME", "").strip()
        if not data.startswith("/"):  # a relative one counts as none
            data = os.path.expanduser("~/.local/share")  # noqa: PTH111 - as well as pathlib's
        if not data.startswith("/"):
            raise InputError(
                "there is no home directory to keep documents in", hint="give --store, or set MERGEPUB_STORE"
            )
        return f"{data}/mergepub"
    from platformdirs import user_data_dir

    return user_data_dir("mergepub", appauthor=False)


def _scheme(url: str) -> str:
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)(://|:\Z)|memory:", url)
    if match:
        return (match[1] or "memory").lower()
    address = re.fullmatch(r"(https?:/)?([A-Za-z0-9.-]+:[0-9]{1,5}/?)", url)
    if address and not os.path.exists(url):  # noqa: PTH110 - as well as pathlib's
        raise InputError(
            f"bad store {url!r}: that reads as an address, not as the name of a file",
            hint=f"did you mean http://{address[2]}? a file of that name is ./{url}",
        )
    return "sqlite"


def _opener(scheme: str) -> _Opener:
    if scheme in _BACKENDS:
        module, extra = _BACKENDS[scheme]
        return _imported(module, scheme, extra)
    for point in _entry_points():
        if point.name == scheme:
            return cast("_Opener", point.load())
    known = sorted({*_BACKENDS, *(point.name for point in _entry_points())} - {"memory"})
    raise InputError(
        f"there is no store for {scheme}://; known are {', '.join(known)}, and a plain file path",
        hint=_meant(scheme, known),
    )


def _meant(scheme: str, known: list[str]) -> str:
    """Which scheme was meant. The rest of the URL may hold a secret, and is not repeated."""
    from difflib import get_close_matches

    near = get_close_matches("sqlite" if scheme == "file" else scheme, known, n=1)
    return f"did you mean {near[0]}{':///' if near == ['sqlite'] else '://'}?" if near else "name one of them"


def _imported(module: str, scheme: str, extra: str | None) -> _Opener:
    try:
        return cast("_Opener", import_module(module).open_url)
    except ModuleNotFoundError as error:
        remedy = f"the extra {extra}: pip install 'mergepub[{extra}]'" if extra else f"the package {error.name}"
        raise InputError(f"{scheme}:// needs {remedy}") from error


def _entry_points() -> list[EntryPoint]:
    from importlib.metadata import entry_points

    return list(entry_points(group=ENTRY_POINTS))
