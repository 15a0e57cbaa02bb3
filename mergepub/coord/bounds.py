"""The bounds of coordination, each in one place. Bytes are those of UTF-8; times are seconds."""

from __future__ import annotations

BODY_BYTES = 4096
"""Of a body, a question, a reply or a summary."""
KEY_BYTES = 256
TEXT_BYTES = 512
"""Of a task or a path as it is shown, of an id as it is taken, and of an evidence ref."""
PEERS_SHOWN = 32
FILES_SHOWN = 16
INBOX = 100
"""Unacknowledged messages of one run."""
PEERS_OPENED = 8
"""Distinct peers that a run may ever open."""
EVIDENCE_REFS = 31
"""That a caller gives; the automatic one is the thirty-second."""
WAIT_SECONDS = 30
LINE_BYTES = 64 * 1024
"""Of a request, with its newline."""
CONNECTIONS = 16
"""Of one run."""
IDLE_SECONDS = 300.0
WRITE_SECONDS = 30.0
"""That a client may take to make room for an answer."""
GRACE_SECONDS = 600.0
SOCKET_PATH_BYTES = 107

SENDS = (5, 1 / 5)
"""Burst, and tokens a second: of sends, asks and replies together; of inbox reads; of lines."""
READS = (10, 1.0)
LINES = (30, 1.0)


def cut(text: str, limit: int = TEXT_BYTES) -> str:
    """``text`` in at most ``limit`` bytes, cut on a character boundary."""
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit else encoded[:limit].decode("utf-8", "ignore")


def size(text: str) -> int:
    """The bytes of ``text``."""
    return len(text.encode("utf-8", "replace"))
