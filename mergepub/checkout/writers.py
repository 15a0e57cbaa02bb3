"""What a writer here knows of its branches: epoch and end of each, kept in ``.mergepub/branches/``.

A branch that was taken over elsewhere has a higher epoch there; the one that is kept here is then refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from hashlib import sha256
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.checkout import disk
from mergepub.checkout.home import writing
from mergepub.checkout.records import MALFORMED
from mergepub.errors import CheckoutError

if TYPE_CHECKING:
    from mergepub.checkout.home import Checkout

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes to which branch."""

    store: str
    path: str
    branch: str
    author: str

    @property
    def key(self) -> str:
        """The name under which it is kept."""
        fields = "\0".join((self.store, self.path, self.branch, self.author))
        return sha256(fields.encode("utf-8", "surrogateescape")).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class End:
    """The epoch that a writer holds, and the revision that it knew last as the branch's end.

    ``base_version`` is what the branch was made from, 0 where that is not known.
    """

    incarnation: str
    epoch: int
    revision: int
    base_version: int = 0


def load_end(checkout: Checkout, writer: Writer) -> End | None:
    """What is kept of a writer, None where nothing is.

    Raises:
        CheckoutError: the record is damaged.
    """
    name = _name(checkout, writer)
    text = disk.read(name)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        numbers = (int(fields["epoch"]), int(fields["revision"]), int(fields.get("base_version", 0)))
        return End(fields["incarnation"], *numbers)
    except MALFORMED:
        raise CheckoutError(
            f"{name} is damaged, so it is not known which end of {writer.branch} you hold",
            hint=f"start anew from the branch's present end: mergepub branch take {quote(writer.path)} {writer.branch}",
        ) from None


def save_end(checkout: Checkout, writer: Writer, end: End) -> None:
    """Keep what a writer knows; the caller holds the checkout's lock.

    Raises:
        OutputError: the disk does not take it.
    """
    name = _name(checkout, writer)
    with writing(name):
        disk.make_folder(os.path.dirname(name))
        disk.put(name, json.dumps({"format": FORMAT, **asdict(writer), **asdict(end)}, indent=1).encode() + b"\n")


def _name(checkout: Checkout, writer: Writer) -> str:
    return checkout.inside("branches", f"{writer.key}.json")
