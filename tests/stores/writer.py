"""Writers that the tests start as processes of their own; each acknowledged write is one line on standard output.

    writer.py count URL PATH TIMES     add 1 to the number in PATH by compare-and-swap, TIMES times
    writer.py fill URL PATH            publish bodies of all sizes without end, until killed
    writer.py append URL PATH TIMES    append lines

A line is the version's number, a space, the digest of the body that was acknowledged.
"""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING

from mergepub.documents import Version, digest_of
from mergepub.errors import VersionConflictError
from mergepub.stores import open_store

if TYPE_CHECKING:
    from mergepub.stores.contract import Store


def acknowledge(number: int | None, body: bytes) -> None:
    # One write call: a killed process leaves a whole line or none.
    os.write(1, b"%d %s\n" % (number or 0, digest_of(body).encode()))


def count(store: Store, path: str, times: int) -> None:
    while times:
        head = store.fetch(path)
        # The name makes bodies of two writers differ: the same body from both would be one version, rightly.
        body = b"%d %d" % (int(head.body.split()[0]) + 1, os.getpid())
        try:
            receipt = store.publish(path, body, head.version)
        except VersionConflictError:
            continue
        acknowledge(receipt.version.number, body)
        times -= 1


def fill(store: Store, path: str) -> None:
    head = store.fetch(path).version
    while True:
        body = random.randbytes(random.choice((1, 100, 5_000, 200_000)))
        head = store.publish(path, body, Version(head.number)).version
        acknowledge(head.number, body)


def append(store: Store, path: str, times: int) -> None:
    for i in range(times):
        body = b"%d %d\n" % (os.getpid(), i)
        receipt = store.append(path, body, key=os.urandom(8).hex())
        acknowledge(receipt.version.number, body)


if __name__ == "__main__":
    what, url, path, *rest = sys.argv[1:]
    {"count": count, "fill": fill, "append": append}[what](open_store(url), path, *map(int, rest))
