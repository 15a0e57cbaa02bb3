"""What a mistyped name may have meant, of a document, a prefix or a file: asked once it is not there, never before."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.errors import MergepubError, NotFoundError

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

MOST = 500
"""Documents that are looked through."""


def name_nearest(store: Store, error: NotFoundError) -> None:
    """Put before the hint of ``error`` which documents its path may have meant, where that can be found out.

    A folder in the place of a document is told to be one.
    """
    path = error.path
    if path is None:
        return
    below = _listed(store, path, limit=1)
    if below == [path]:
        return  # it is there; what is missing is something of it
    if below:
        error.hint = f"{path} is a folder of documents: mergepub list {quote(path)}"
        return
    known = _beside(store, path)
    if near := get_close_matches(path, known, n=2):
        meant = f"did you mean {' or '.join(map(quote, near))}?"
        error.hint = f"{meant} else {error.hint}" if error.hint else meant
    elif known and error.hint:
        error.hint = f"mergepub list shows what is in {store.url}; {error.hint}"


def nothing_below(store: Store, prefix: str) -> list[str]:
    """What to say where no document is at or below ``prefix``: that, and where there are some."""
    if prefix == "/":
        return [
            "mergepub: there are no documents yet",
            "hint: mergepub publish /docs/guide.md FILE --expected-version 0",
        ]
    said = f"mergepub: there is no document at or below {prefix}"
    folders = {folder for path in _beside(store, prefix) for folder in _above(path)}
    near = get_close_matches(prefix.rstrip("/"), sorted(folders), n=1)
    place = f" {quote(near[0])}" if near else ""
    return [said, f"hint: mergepub list{place} shows what is {'there' if near else f'in {store.url}'}"]


def file_meant(name: str, error: Exception) -> str:
    """What to do about a file that cannot be read: take the nearest one there is, or one of the folder's."""
    if isinstance(error, IsADirectoryError):
        return "name a file in it; mergepub push publishes whole folders"
    if isinstance(error, FileNotFoundError):
        folder = Path(name).parent
        try:
            near = get_close_matches(Path(name).name, [each.name for each in folder.iterdir()], n=1)
        except OSError:
            return f"check the name of the folder {folder}"
        if near:
            return f"did you mean {folder / near[0]}?"
    return "give the name of a readable file"


def tracked_meant(name: str, tracked: Iterable[str]) -> str:
    """Which tracked file was meant by ``name``, where there is none: as the beginning of a hint, or nothing."""
    near = get_close_matches(name, sorted(tracked), n=1)
    return f"did you mean {quote(near[0])}? else " if near else ""


def _beside(store: Store, path: str) -> list[str]:
    """The documents in the folder of ``path``; where there are none, the first of all."""
    folder = path.rstrip("/").rpartition("/")[0] or "/"
    return _listed(store, folder) or _listed(store, "/")


def _listed(store: Store, prefix: str, limit: int = MOST) -> list[str]:
    try:
        return [each.path for each in islice(store.list(prefix, limit=limit), limit)]
    except MergepubError:
        return []


def _above(path: str) -> Iterable[str]:
    """The folders that ``path`` lies in, and itself."""
    while path:
        yield path
        path = path.rpartition("/")[0]
