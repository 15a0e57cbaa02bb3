"""Tracked files that were renamed without mergepub: which untracked file is the one that is missing. Reads alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from mergepub.checkout.home import Local
from mergepub.checkout.records import EMPTY
from mergepub.checkout.walking import walk
from mergepub.documents import digest_of
from mergepub.errors import MergepubError
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.checkout.home import Checkout
    from mergepub.checkout.records import Record

MOST_FILES = 20_000
"""More files of a checkout are not looked through."""

MOST_READ = 200
"""More files are not read for one that is missing: those of its size first, then those of its name and its folder."""

ALIKE = 0.6
"""The part of their lines that two texts must share to be one that was edited and renamed."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    local: Local
    file: str
    size: int


def find_moved(checkout: Checkout, missing: Iterable[Record]) -> dict[str, Local]:
    """What the files of these records, which are gone, look to be called now; by the names in the records.

    Each file that is tracked nowhere is taken once: for a record with just its bytes before one with similar ones.
    """
    missing = list(missing)
    if not missing:
        return {}
    tracked = {record.file for record in checkout.records()}
    here = [each for each in _files(checkout) if each.file not in tracked]
    scored = sorted(
        ((-score, record.file, each) for record in missing for score, each in _scores(checkout, record, here)),
        key=lambda row: (row[0], row[1], row[2].file),
    )
    found: dict[str, Local] = {}
    taken: set[str] = set()
    for _, file, each in scored:
        if file not in found and each.file not in taken:
            found[file] = each.local
            taken.add(each.file)
    return found


def _files(checkout: Checkout) -> Iterator[_Candidate]:
    with suppress(MergepubError):  # a folder that cannot be read: what was found before it is what there is
        for inside in islice(walk(checkout.root), MOST_FILES):
            name = os.path.join(checkout.root, inside)
            local = Local(os.path.relpath(name), os.path.realpath(name))
            with suppress(FileNotFoundError):  # it went away while it was looked at
                yield _Candidate(local, checkout.relative(local), os.stat(local.target).st_size)


def _scores(checkout: Checkout, record: Record, here: list[_Candidate]) -> Iterator[tuple[float, _Candidate]]:
    if record.base.digest == EMPTY:
        return  # every empty file is like it
    try:
        base = checkout.body(record, record.base.digest)
        lines = Counter(base.splitlines())
        for each in _likely(record.file, len(base), here):
            body = each.local.read() or b""
            alike = 1.0 if digest_of(body) == record.base.digest else _likeness(lines, Counter(body.splitlines()))
            if alike >= ALIKE:
                yield alike, each
    except MergepubError:
        return  # damaged, or unreadable: it is like nothing


def _likely(file: str, size: int, here: list[_Candidate]) -> list[_Candidate]:
    """The candidates worth reading, the likeliest first."""
    near = [each for each in here if size <= 2 * each.size and each.size <= 2 * size]

    def rank(each: _Candidate) -> tuple[bool, bool, bool]:
        same_name = os.path.basename(each.file) == os.path.basename(file)
        return each.size != size, not same_name, os.path.dirname(each.file) != os.path.dirname(file)

    return sorted(near, key=rank)[:MOST_READ]


def _likeness(a: Counter[bytes], b: Counter[bytes]) -> float:
    whole = max(a.total(), b.total())
    return (a & b).total() / whole if whole else 0.0
