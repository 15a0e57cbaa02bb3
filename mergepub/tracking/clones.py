"""Fresh clones: what a FILE was made from, told by the git history that a push recorded with its version.

A version's ``source`` names the commit that held the very bytes that were pushed. So these bytes, found again in any
clone, are a common ancestor of the clone's FILE and of that version.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mergepub.checkout import Base
from mergepub.checkout.git import Repository
from mergepub.documents import digest_of
from mergepub.errors import NotFoundError

if TYPE_CHECKING:
    from mergepub.checkout import Local
    from mergepub.stores.contract import Store


def base_from_git(store: Store, local: Local, path: str) -> tuple[Base, bytes] | None:
    """The base of a FILE without tracking: its bytes at the newest recorded commit that its history holds.

    None where there is none, and in a shallow clone, whose history cannot tell.
    """
    repository = Repository.of(local)
    if repository is None or repository.is_shallow():
        return None
    try:
        rows = list(store.versions(path))
    except NotFoundError:
        return None
    for row in rows:
        if row.incarnation != rows[0].incarnation:
            break
        if row.source and repository.is_in_history(row.source):
            body = repository.body_at(row.source, local)
            if body is None:
                return None
            return Base(row.version, row.incarnation, digest_of(body), contained=True), body
    return None


class Commits:
    """The present commits of the work trees that one command pushes from, each asked for once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Repository, str] | None] = {}

    def source_of(self, local: Local, body: bytes) -> str | None:
        """The commit to record with a push of FILE: the present one, where it holds just these bytes; else None."""
        folder = os.path.dirname(local.target)  # noqa: PTH120 - a key, as text
        if folder not in self._known:
            self._known[folder] = _present(local)
        known = self._known[folder]
        if known is None or known[0].body_at(known[1], local) != body:
            return None
        return known[1]


def _present(local: Local) -> tuple[Repository, str] | None:
    repository = Repository.of(local)
    commit = repository.head() if repository else None
    return (repository, commit) if repository and commit else None
