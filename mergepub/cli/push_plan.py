"""Which files a push means and which documents they are: all of it checked before anything is written."""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mergepub.checkout import Checkout, Local, locate
from mergepub.checkout.git import Repository
from mergepub.checkout.home import MARKS, root_of
from mergepub.checkout.ignoring import NAME
from mergepub.checkout.walking import walk
from mergepub.cli.ownfiles import OwnFiles
from mergepub.errors import BadPathError, InputError, NotFoundError
from mergepub.paths import check_path, check_prefix
from mergepub.tracking.work import ways_out
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.cli.tracked import Stores
    from mergepub.stores.contract import Store

    Batch = tuple[Store, list[tuple[Local, str]]]


EXAMPLE = "/docs"
"""A prefix for a hint, where nothing says which it may be."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The files with their documents' paths, by checkout and by store.

    ``left_out`` counts files that were found in folders, are not tracked and go nowhere, for no prefix was given.
    ``renamed`` are sentences about untracked files that look like a tracked one which is gone, ``stray`` are links to
    files elsewhere, which were found in folders. ``prefix`` is the likely one for files that none was given for.
    """

    checkouts: list[tuple[Checkout, list[Batch]]]
    left_out: int = 0
    renamed: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()
    prefix: str = EXAMPLE

    def paths(self) -> list[str]:
        """Every document's path."""
        return [path for _, batches in self.checkouts for _, pairs in batches for _, path in pairs]

    def names(self) -> list[str]:
        """Every file's name."""
        return [local.name for _, batches in self.checkouts for _, pairs in batches for local, _ in pairs]


def plan_push(stores: Stores, names: Sequence[str], prefix: str | None, since: str | None = None) -> Plan:
    """The files that ``names``, files and folders, mean; with ``since``, those that changed since that revision.

    Raises:
        InputError: a file has no path, two files are one document, or git does not know the revision.
        NotFoundError: there is no such file.
    """
    if prefix is not None:
        check_prefix(prefix)
    planning = _Planning(stores, prefix)
    stray: list[str] = []
    own = OwnFiles(stores.given().url)
    for local, checkout, relative in _found(names, stray):
        if relative is None:
            own.check_named(local.name, local.target)
        elif local.target in own:
            continue
        if since is None or planning.changes.has(local, since):
            planning.add(local, checkout, relative)
    batches = ((checkout, list(by_store.values())) for checkout, by_store in planning.by_root.values())
    checkouts = sorted(batches, key=lambda pair: pair[0].root)
    return Plan(checkouts, planning.left_out, tuple(planning.renamed()), tuple(stray), planning.likely_prefix())


def _found(names: Sequence[str], stray: list[str]) -> Iterator[tuple[Local, Checkout, str | None]]:
    """Every file with its checkout; of those found in a folder, the path from there."""
    for name in names:
        if not os.path.isdir(name):
            checkout, local = locate(name)
            yield local, checkout, None
            continue
        roots, links = dict[str, Checkout](), list[str]()
        for relative in walk(name, links):
            local = Local(found := os.path.normpath(os.path.join(name, relative)), os.path.realpath(found))
            folder = os.path.dirname(local.target)
            if folder not in roots:
                roots[folder] = _checkout_of(folder, name)
            yield local, roots[folder], relative
        stray += [os.path.normpath(os.path.join(name, link)) for link in links]


def _checkout_of(folder: str, top: str) -> Checkout:
    """The checkout of ``folder``; where nothing above marks one, that of the folder ``top``, which was named."""
    root = root_of(folder)
    is_marked = any(os.path.exists(os.path.join(root, mark)) for mark in MARKS)
    return Checkout(root if is_marked else root_of(os.path.realpath(top)))


class _Planning:
    """A plan that grows file by file, and refuses the file that does not fit."""

    def __init__(self, stores: Stores, prefix: str | None) -> None:
        self.stores = stores
        self.prefix = prefix
        self.changes = _Changes()
        self.by_root: dict[str, tuple[Checkout, dict[str, Batch]]] = {}
        self.left_out = 0
        self._prefixes: set[str] = set()
        self._untracked: dict[str, tuple[Checkout, set[str]]] = {}
        self._documents: dict[tuple[str, str], tuple[Local, bool]] = {}
        self._paths: dict[str, tuple[str, str]] = {}

    def add(self, local: Local, checkout: Checkout, relative: str | None) -> None:
        record = checkout.load(local)
        if record is None and checkout.exists:
            self._untracked.setdefault(checkout.root, (checkout, set()))[1].add(local.target)
        if record is None and self.prefix is None and relative is not None:
            self.left_out += 1
            return
        if record and relative and record.path.endswith(f"/{relative}"):
            self._prefixes.add(record.path.removesuffix(f"/{relative}") or "/")
        store = self.stores.of(record) if record else self.stores.given()
        path = record.path if record else path_for(local, self.prefix, relative)
        if self._is_new(local, (store.url, path), is_tracked=record is not None):
            _, by_store = self.by_root.setdefault(checkout.root, (checkout, {}))
            by_store.setdefault(store.url, (store, []))[1].append((local, path))

    def likely_prefix(self) -> str:
        """Where the tracked files of the folders went, if all went below one prefix."""
        return self._prefixes.pop() if len(self._prefixes) == 1 else EXAMPLE

    def renamed(self) -> Iterator[str]:
        """A sentence about every untracked file that looks like a tracked one which is gone."""
        for checkout, untracked in self._untracked.values():
            missing = [each for each in checkout.records() if not os.path.lexists(checkout.local(each).target)]
            if missing:
                from mergepub.checkout.moved import find_moved

                found = find_moved(checkout, missing)
                known = {each.file: (checkout.local(each).name, each.path) for each in missing}
                for file, local in found.items():
                    if local.target in untracked:
                        old, path = known[file]
                        move = f"mergepub mv {shlex.quote(old)} {shlex.quote(local.name)}"
                        yield f"{local.name} looks like {old}, which was {path} and is gone; to keep it that: {move}"

    def _is_new(self, local: Local, document: tuple[str, str], *, is_tracked: bool) -> bool:
        """Whether the file is not there yet; another file of this document, or this one as another, is an error.

        Files that are both tracked in one document are none: each has a base, so they merge.
        """
        first, also_tracked = self._documents.setdefault(document, (local, is_tracked))
        is_known, known = local.target in self._paths, self._paths.setdefault(local.target, document)
        if first.target != local.target and not (is_tracked and also_tracked):
            raise InputError(
                f"{first.name} and {local.name} are both {document[1]}; nothing was published",
                hint=f"rename one of them, or name it in {NAME}",
            )
        if known != document:
            raise InputError(
                f"{local.name} is named twice, as {known[1]} and as {document[1]}; nothing was published",
                hint="name the folder or the file, not both",
            )
        return not is_known


def path_for(local: Local, prefix: str | None, relative: str | None = None) -> str:
    """The path of the document for an untracked file: ``relative``, or its path from here, after the prefix.

    Raises:
        InputError: no prefix was given, the file does not lie below the working directory, no path has such a name.
        NotFoundError: there is no such file.
    """
    if not os.path.exists(local.target):
        from mergepub.cli.nearest import file_meant

        raise NotFoundError(f"there is no file {local.name}", hint=file_meant(local.name, FileNotFoundError()))
    relative = relative or os.path.normpath(os.path.relpath(local.name))
    if prefix is None or relative.startswith(os.pardir):
        why = "no --prefix says where it goes" if prefix is None else "it does not lie below the working directory"
        raise InputError(
            f"{local.name} is not tracked, and {why}",
            hint=f"if it is new: {_first_push(local, prefix, relative)}; {ways_out('PATH', local.name)}",
        )
    return _checked(local, f"{check_prefix(prefix).rstrip('/')}/{unicodedata.normalize('NFC', relative)}")


def _first_push(local: Local, prefix: str | None, relative: str) -> str:
    """The command that pushes a new file: from its own folder, where it does not lie below this one."""
    prefix = prefix or EXAMPLE
    if not relative.startswith(os.pardir):
        return shlex.join(["mergepub", "push", local.name, "--prefix", prefix])
    folder, name = os.path.split(os.path.abspath(local.name))
    return f"cd {shlex.quote(folder)} && {shlex.join(['mergepub', 'push', name, '--prefix', prefix])}"


def _checked(local: Local, path: str) -> str:
    try:
        return check_path(path)
    except BadPathError as error:
        raise BadPathError(
            f"{local.name} can be no document: {error.message}", hint=f"rename it, or name it in {NAME}"
        ) from None


_NO_COMMIT = re.compile("0{40}|0{64}")
"""What git, its hooks and who hosts it call the commit before a new branch: since then everything changed."""


class _Changes:
    """What git says changed, asked once for each work tree."""

    def __init__(self) -> None:
        self._by_folder: dict[str, frozenset[str]] = {}
        self._by_top: dict[str, frozenset[str]] = {}

    def has(self, local: Local, since: str) -> bool:
        if _NO_COMMIT.fullmatch(since):
            return True
        folder = os.path.dirname(local.target)
        if folder not in self._by_folder:
            self._by_folder[folder] = self._asked(local, since)
        return local.target in self._by_folder[folder]

    def _asked(self, local: Local, since: str) -> frozenset[str]:
        repository = Repository.of(local)
        if repository is None:
            raise InputError(
                f"{local.name} is in no git work tree, so nothing says what changed", hint="leave --changed-since out"
            )
        if repository.top not in self._by_top:
            names = repository.changed_since(since)
            if names is None:
                raise InputError(
                    f"git does not know the revision {since!r} here",
                    hint=f"see git rev-parse {shlex.quote(since)}; in a shallow clone, git fetch --unshallow",
                )
            self._by_top[repository.top] = frozenset(names)
        return self._by_top[repository.top]
