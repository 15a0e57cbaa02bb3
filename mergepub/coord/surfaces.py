"""What coordination shows in the file system: its root, a directory and a socket a run, with exact modes.

Modes are set whatever the umask. A path that is a link, somebody else's, or not what belongs there is refused, never
followed and never replaced; so is a second daemon on the same data directory.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mergepub.coord.bounds import SOCKET_PATH_BYTES
from mergepub.errors import InputError, MergeRefusedError, UnavailableError

SOCKET = "coord3.sock"
CO_AUTHORS = "co-authors"
CONTROL = "control.sock"
OFF = "off"
"""Stands in a run's directory in place of the socket while coordination is off."""
_LONGEST_RUN = "run-" + "0" * 12


class SurfaceError(MergeRefusedError):
    """A path of the coordination directory is in no state to be used; it was left as it is."""


class Root:
    """The directories below one data directory. Nothing is made before ``open``."""

    def __init__(self, data: Path) -> None:
        self.data = Path(os.path.realpath(data))  # one name for it, whichever way it was named; links in it are refused
        self.coord = self.data / "coord"
        self.evidence = self.data / "evidence"
        self.transcripts = self.data / "transcripts"
        self.control = self.coord / CONTROL
        self._lock = -1
        self._place: tuple[int, int] | None = None

    def open(self) -> None:
        """Make the directories and take the daemon's place.

        Raises:
            SurfaceError: another daemon has it, or something else stands where a directory belongs.
            InputError: the directory's name is too long for sockets in it.
            UnavailableError: it cannot be made.
        """
        check_length(self.socket_of(_LONGEST_RUN))
        try:
            missing = [each for each in (self.data, *self.data.parents) if not each.exists()]
            for folder in reversed(missing):
                make_directory(folder, 0o700)
            for folder in (self.coord, self.evidence, self.transcripts):
                make_directory(folder, 0o700)
            self._check_data()
            self._take_lock()
        except OSError as error:
            raise UnavailableError(f"the directory {self.data} cannot be used: {error.strerror}") from error

    def close(self) -> None:
        """Give the daemon's place back."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check_data(self) -> None:
        if self.data.stat().st_uid not in (os.geteuid(), 0):  # who could exchange what is in it
            raise SurfaceError(f"{self.data} belongs to another user", hint="name another directory with --data-dir")

    def _take_lock(self) -> None:
        place = self.coord / "lock"
        if os.path.lexists(place):
            _check_ours(place, stat.S_ISREG)
        fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(fd, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = is_listened_on(self.control)  # by one whose lock somebody has removed
        except BlockingIOError:
            taken = True
        if taken:
            os.close(fd)
            raise SurfaceError(
                f"another daemon serves {self.data}", hint="stop it first, or name another directory with --data-dir"
            )
        self._lock = fd
        self._place = self._where()

    def has_place(self) -> bool:
        """Whether the directory that was opened is still the one of its name; a lock in another one locks nothing."""
        return self._place == self._where()

    def check_place(self) -> None:
        """Refuse to have served a directory that was taken away.

        Raises:
            SurfaceError: it was removed, or exchanged for another one.
        """
        if not self.has_place():
            hint = "start the daemon again: runs, mail and reports are in the store"
            raise SurfaceError(f"{self.coord} was removed or exchanged while it was served", hint=hint)

    def _where(self) -> tuple[int, int] | None:
        try:
            found = self.coord.lstat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def folder_of(self, run_id: str) -> Path:
        """The directory of one run."""
        return self.coord / run_id

    def socket_of(self, run_id: str) -> Path:
        """The v3 socket of one run."""
        return self.folder_of(run_id) / SOCKET

    def make_run(self, run_id: str) -> Path:
        """Make a run's directory, or take the one that stands; sockets of an older wire are unlinked.

        Raises:
            SurfaceError: something else stands there.
        """
        folder = self.folder_of(run_id)
        make_directory(folder, 0o755)
        for place in folder.iterdir():
            old = re.fullmatch(r"coord\d*\.sock", place.name) and place.name != SOCKET
            kind = place.lstat().st_mode
            if (old and stat.S_ISSOCK(kind)) or (place.name == OFF and stat.S_ISREG(kind)):
                place.unlink()
        return folder

    def write_co_authors(self, run_id: str, members: Iterable[str]) -> None:
        """Write the commit trailers of a run's peers; nothing happens when they stand there.

        Raises:
            SurfaceError: something else stands there.
        """
        place = self.folder_of(run_id) / CO_AUTHORS
        _put(place, "".join(f"{trailer(member)}\n" for member in sorted(set(members))))

    def say_off(self, run_id: str) -> None:
        """Note in a run's directory that coordination is off."""
        _put(self.folder_of(run_id) / OFF, "")

    def release(self, run_id: str) -> None:
        """Remove a run's directory with all that is in it."""
        shutil.rmtree(self.folder_of(run_id), ignore_errors=True)

    def release_transcript(self, run_id: str) -> None:
        """Remove a run's transcript."""
        with suppress(OSError):
            (self.transcripts / run_id).unlink(missing_ok=True)


def trailer(member: str) -> str:
    """The commit trailer that names ``member`` as a co-author."""
    name = "".join(c if c.isprintable() else " " for c in member).strip()
    if re.fullmatch(r"[^<>]+ <[^<> ]+@[^<> ]+>", name):
        return f"Co-authored-by: {name}"
    plain = re.sub(r"[<>]", "", name)
    address = (
        plain if re.fullmatch(r"[^@\s]+@[^@\s]+", plain) else f"{re.sub(r'[^A-Za-z0-9._-]+', '-', plain)}@localhost"
    )
    return f"Co-authored-by: {plain.partition('@')[0] or plain} <{address}>"


def make_directory(folder: Path, mode: int) -> None:
    """Make ``folder`` with exactly ``mode``, or give it to one of ours that stands.

    Raises:
        SurfaceError: a link, a file or somebody else's directory stands there.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        _check_ours(folder, stat.S_ISDIR)
    folder.chmod(mode)


def check_length(place: Path) -> None:
    """Refuse a socket's path that the system cannot hold.

    Raises:
        InputError: it has more than 107 bytes.
    """
    length = len(os.fsencode(place))
    if length > SOCKET_PATH_BYTES:
        raise InputError(
            f"the socket's path {place} has {length} bytes, and {SOCKET_PATH_BYTES} is the most a system takes",
            hint="name a shorter directory with --data-dir",
        )


def is_listened_on(place: Path) -> bool:
    """Whether somebody accepts connections at the socket ``place``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fsencode(place))
        except BlockingIOError:  # more wait there than find room
            return True
        except OSError:
            return False
    return True


def bind(place: Path, mode: int) -> socket.socket:
    """A listening socket at ``place`` with exactly ``mode``; one of ours that stands is replaced: its daemon is gone.

    Raises:
        SurfaceError: a link, another kind of file or somebody else's socket stands there.
        InputError: the path is too long.
    """
    check_length(place)
    if os.path.lexists(place):
        _check_ours(place, stat.S_ISSOCK)
        place.unlink()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(os.fsencode(place))
        place.chmod(mode)
        made.listen(64)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def _check_ours(place: Path, kind: object) -> None:
    found = os.lstat(place)
    assert callable(kind), "one of the tests of the module stat"
    if stat.S_ISLNK(found.st_mode):
        raise SurfaceError(f"{place} is a link", hint="move it away; nothing here follows links")
    if found.st_uid != os.geteuid():
        raise SurfaceError(f"{place} belongs to another user", hint="name another directory with --data-dir")
    if not kind(found.st_mode):
        raise SurfaceError(f"{place} is not what belongs there", hint="move it away")


def _put(place: Path, text: str) -> None:
    body = text.encode("utf-8", "replace")
    if os.path.lexists(place):
        _check_ours(place, stat.S_ISREG)
        if place.read_bytes() == body:
            place.chmod(0o444)
            return
    beside = place.with_name(f".{place.name}-{os.urandom(6).hex()}")
    try:
        beside.write_bytes(body)
        beside.chmod(0o444)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)
