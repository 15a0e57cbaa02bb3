"""A run's transcript: what its terminal showed last, as a ring in one file that is whole after a crash at any moment.

    magic · claimed · done · lost · 16 MiB of ring

Numbers count bytes since the run began. A write first claims what it will overwrite, then writes, then says that it is
done; so whoever reads, at whatever moment, knows which bytes are old, which are whole and which are neither.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

TRANSCRIPT_BYTES = 16 * 1024 * 1024
"""Of the ring, and of the copy that is kept as evidence."""

_MAGIC = b"mpubring"
_HEAD = struct.Struct("<8sQQQ")
_PIECE = 1024 * 1024


class Ring:
    """The writing side; a disk that fails loses bytes of the transcript and is counted, and nothing else happens."""

    def __init__(self, name: str, size: int = TRANSCRIPT_BYTES) -> None:
        """Make the file.

        Raises:
            OSError: something stands there already, or it cannot be made.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(name, flags, 0o600)
        os.fchmod(self._fd, 0o600)  # whatever the umask: the daemon reads it
        self._size = size
        self._total = self._lost = 0
        self._note(0)

    def write(self, data: bytes) -> None:
        """Add what the terminal showed."""
        skipped = max(0, len(data) - self._size)  # it would be overwritten by its own end
        try:
            self._note(self._total + len(data))
            self._put(memoryview(data)[skipped:], self._total + skipped)
            self._total += len(data)
        except OSError:
            self._lost += len(data)
        self._note_quietly()

    def close(self) -> None:
        """Write no more."""
        os.close(self._fd)

    def _put(self, data: memoryview, at: int) -> None:
        while data:
            place = at % self._size
            written = os.pwrite(self._fd, data[: self._size - place], _HEAD.size + place)
            data, at = data[written:], at + written

    def _note(self, claimed: int) -> None:
        os.pwrite(self._fd, _HEAD.pack(_MAGIC, claimed, self._total, self._lost), 0)

    def _note_quietly(self) -> None:
        try:
            self._note(self._total)
        except OSError:
            return  # what was claimed stays claimed: those bytes count as overwritten


@dataclass(frozen=True, slots=True)
class Kept:
    """What a copy of a transcript holds: its bytes, those of the whole run before it, those a failing disk lost."""

    size: int
    earlier: int
    lost: int

    @property
    def cut(self) -> bool:
        """Whether the run showed more than is kept."""
        return bool(self.earlier or self.lost)


def copy(name: str, to: int, size: int = TRANSCRIPT_BYTES) -> Kept:
    """Copy the transcript in the file ``name`` to the new file ``to``, oldest byte first, while it may grow.

    Raises:
        OSError: it cannot be read, or the copy not be written.
        ValueError: the file is no transcript.
    """
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        claimed, end, lost = _head(fd)
        start = _copy(fd, to, max(0, claimed - size), end, size)
    finally:
        os.close(fd)
    return Kept(end - start, start, lost)


def _copy(fd: int, to: int, start: int, end: int, size: int) -> int:
    """Copy the bytes from ``start`` to ``end``; the first one that could still be had."""
    at = start
    while at < end:
        piece = _piece(fd, at, end, size)
        overwritten = _head(fd)[0] - size
        if at < overwritten:  # while we read; what was copied before would leave a gap
            at = start = min(overwritten, end)
            os.ftruncate(to, 0)
            os.lseek(to, 0, os.SEEK_SET)
            continue
        at += len(piece)
        while piece:
            piece = piece[os.write(to, piece) :]
    return start


def _head(fd: int) -> tuple[int, int, int]:
    head = os.pread(fd, _HEAD.size, 0)
    if len(head) < _HEAD.size or not head.startswith(_MAGIC):
        raise ValueError("it is no transcript")
    _, claimed, done, lost = _HEAD.unpack(head)
    return claimed, done, lost


def _piece(fd: int, at: int, end: int, size: int) -> bytes:
    place = at % size
    piece = os.pread(fd, min(_PIECE, end - at, size - place), _HEAD.size + place)
    if not piece:
        raise ValueError("it is shorter than it says")
    return piece
