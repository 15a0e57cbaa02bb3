"""What a proof records: one attempt at a time of calling a store, and the document's history at the end.

An *operation* is one call with its arguments; its id travels as the message of what it makes, so that every version
names the operation that made it. An *attempt* is one time of making that call. Bodies are made from the id and are not
recorded. Times are nanoseconds of the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass

FETCH, PUBLISH, APPEND, DELETE = "fetch", "publish", "append", "delete"

# Results of an attempt:
MADE = "made"  # a new version
UNCHANGED = "unchanged"
REPLAYED = "replayed"
READ = "read"
CONFLICT = "conflict"
EXISTS = "exists"
DELETED = "deleted"
RECREATED = "recreated"
MISSING = "missing"
NOT_DONE = "not-done"  # an error that says that nothing happened
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Attempt:
    """One attempt: asked at ``begun``, answered at ``ended`` (None: never) with ``result``.

    ``patient``: through a handle that repeats by itself, so that the answer may be that of a repetition.

    ``version`` is what the answer names, ``current`` the head that it tells of; both None where it tells nothing.
    """

    operation: str
    path: str
    kind: str
    begun: int
    expected: int | None = None
    size: int = 0
    ended: int | None = None
    result: str = UNKNOWN
    version: int | None = None
    current: int | None = None
    digest: str | None = None
    incarnation: str | None = None
    patient: bool = False

    @property
    def body(self) -> bytes:
        """What a publish or append sends."""
        return body_of(self.operation, self.size)

    def to_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Attempt:
        return cls(**json.loads(line))


@dataclass(frozen=True)
class Made:
    """One version of the final history, and the operation that its message names."""

    number: int
    operation: str
    body: bytes | None  # None is a tombstone
    digest: str
    incarnation: str


def body_of(operation: str, size: int) -> bytes:
    """``size`` bytes and a little more that no other operation sends; lines, so that it looks like a document."""
    words = random.Random(operation).randbytes(size // 2).hex()
    lines = [words[start : start + 70] for start in range(0, len(words), 70)]
    return "\n".join([f"by {operation}", *lines, ""]).encode()
