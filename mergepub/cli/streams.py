"""Bytes in and out: files, standard input, standard output, diagnostics on standard error.

Bodies pass through here and through nothing else: no text layer. No click, no policy, and no import beyond ``os`` and
``sys``, for the fast path pays for every one: the error tree is imported where something fails.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # what typing calls by this name, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Piece = bytes | memoryview

INTERRUPTED = 130
AT_ONCE = 512  # pieces in one call; systems take 1024
PART = 1 << 17  # bytes; what is read next takes the place of what was, in the processor's nearer memory too

given: dict[str, str] = {}
"""``store`` and ``token-file`` where flags of this call named them; what is said of commands repeats them."""


def read_file(name: str, limit: int | None = None) -> bytes:
    """The bytes of the file ``name``, read in one allocation; at most ``limit`` + 1 of them where a limit is given.

    Raises:
        InputError: naming the file, when it is missing, a directory or unreadable.
    """
    try:
        with open(name, "rb", buffering=0) as file:  # noqa: PTH123 - pathlib costs the fast path milliseconds
            return file.readall() if limit is None else _read_at_most(file.fileno(), limit + 1)
    except (OSError, ValueError) as error:
        from mergepub.cli.nearest import file_meant
        from mergepub.errors import InputError

        raise InputError(f"cannot read {name}: {why(error)}", hint=file_meant(name, error)) from None


def size_of(name: str) -> int:
    """The bytes of the regular file ``name``; -1 where it is none, or nothing can be found out about it."""
    try:
        found = os.stat(name)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return -1
    return found.st_size if found.st_mode & 0o170000 == 0o100000 else -1  # what `stat` calls S_ISREG


def parts_of(name: str, size: int = PART) -> Iterator[bytes]:
    """The parts of a regular file, one after the other; it is open for as long as they are asked for.

    They can be left off: where the name is that of an open file (``/dev/stdin``), whoever reads it later on finds all
    of it.

    Raises:
        OSError: when it cannot be opened, or read on.
    """
    with open(name, "rb", buffering=0) as file:  # noqa: PTH123 - as above
        at = os.lseek(file.fileno(), 0, os.SEEK_CUR)
        while part := os.pread(file.fileno(), size, at):
            at += len(part)
            yield part


def read_stdin(limit: int) -> bytes:
    """All of standard input, at most ``limit`` + 1 bytes; on a terminal that is said on standard error first.

    Raises:
        InputError: when standard input is closed or cannot be read.
    """
    try:
        if os.isatty(0):
            say("mergepub: reading the body from standard input; end it with Ctrl-D on a line of its own")
        return _read_at_most(0, limit + 1)
    except OSError as error:
        from mergepub.errors import InputError

        raise InputError(f"cannot read standard input: {why(error)}", hint="give the name of a file") from None


def _read_at_most(fd: int, count: int) -> bytes:
    chunks: list[bytes] = []
    while count > 0 and (chunk := _read_some(fd, count)):
        chunks.append(chunk)
        count -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _read_some(fd: int, count: int) -> bytes:
    while True:
        try:
            return os.read(fd, min(count, 1 << 20))
        except BlockingIOError:  # somebody made it non-blocking
            import select

            select.select([fd], [], [])


def write_stdout(*pieces: Piece) -> None:
    """Write ``pieces`` to standard output, all of them. A reader that went away is no error: the rest is dropped.

    Raises:
        OutputError: when it cannot be written (a full disk, a closed descriptor).
    """
    try:
        write_all(1, *pieces)
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        from mergepub.errors import OutputError

        raise OutputError(f"cannot write to standard output: {why(error)}") from None


def silence_stdout() -> None:
    """Point standard output at nothing, so that what is still buffered for it cannot fail at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    if null != 1:
        os.close(null)


def write_all(fd: int, *pieces: Piece) -> None:
    """Write all of ``pieces`` to ``fd``, one after the other, however little each call takes; large ones uncopied."""
    for start in range(0, len(pieces), AT_ONCE):
        some = pieces[start : start + AT_ONCE]
        written = _patiently(os.writev, fd, some)
        if written < sum(map(len, some)):
            _write_rest(fd, some, written)


def _write_rest(fd: int, pieces: Sequence[Piece], written: int) -> None:
    for piece in pieces:
        rest = memoryview(piece)[written:]
        written = max(0, written - len(piece))
        while rest:
            rest = rest[_patiently(os.write, fd, rest) :]


def _patiently(write: Callable[[int, Any], int], fd: int, what: Any) -> int:
    """One write; to a descriptor that somebody made non-blocking, as soon as it takes something."""
    while True:
        try:
            return write(fd, what)
        except BlockingIOError:
            import select

            select.select([], [fd], [])


def check_output(name: str) -> None:
    """Find out before any work is done that ``name`` can be written, without touching it; note what it is now.

    Raises:
        OutputError: naming the file and what stands in the way.
    """
    nameless = "\0" in name or name in ("", "-") or name.endswith("/")
    trouble = "that is no file name" if nameless else _trouble_with(os.path.realpath(name))
    if trouble:
        from mergepub.errors import OutputError

        raise OutputError(f"cannot write {name}: {trouble}", hint="name a file in a directory that can be written to")
    target = os.path.realpath(name)
    _checked[target] = _signature(target)


def _trouble_with(target: str) -> str | None:
    folder = os.path.dirname(target)  # noqa: PTH120 - pathlib costs the fast path milliseconds
    if os.path.isdir(target):  # noqa: PTH112 - as above
        return "it is a directory"
    if not os.path.isdir(folder):  # noqa: PTH112 - as above
        return f"there is no directory {folder}"
    if _is_special(target):
        return None if os.access(target, os.W_OK) else "it cannot be written to"
    if _is_store(target):
        return "it is a store of documents"
    probe = _name_beside(target)
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # only doing it tells
    except OSError as error:
        return why(error)
    finally:
        _remove(probe)
    return None


def _is_store(target: str) -> bool:
    """Whether a SQLite store is there: no body may take the place of all documents."""
    try:
        with open(target, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head.endswith(b"MPub")


def replace_file(name: str, *pieces: Piece, instead_of: bytes | None = None) -> None:
    """Make ``pieces`` the content of ``name``, whole or not at all: written beside it, synced, renamed over it.

    Mode and owner are kept; of a symbolic link the target is replaced. What is no regular file (a pipe, a device) is
    written to directly. ``instead_of``: what the file held when it was read; it is replaced only if it still does, and
    where ``check_output`` has looked at it, only if nobody saved it since.

    Raises:
        OutputError: naming the file; it is then as it was, or as somebody else made it.
    """
    target = os.path.realpath(name)
    try:
        if _is_special(target):
            _write_special(target, pieces)
        else:
            _exchange(target, pieces, instead_of)
    except OSError as error:
        from mergepub.errors import OutputError

        raise OutputError(
            f"cannot write {name}: {why(error)}", hint="name a file in a directory that can be written to"
        ) from None


def _is_special(target: str) -> bool:
    return os.path.exists(target) and not os.path.isfile(target)  # noqa: PTH110, PTH113 - as above


def _write_special(target: str, pieces: Sequence[Piece]) -> None:
    fd = os.open(target, os.O_WRONLY)
    try:
        write_all(fd, *pieces)
    except BrokenPipeError:
        pass  # whoever read the pipe has seen enough
    finally:
        os.close(fd)


def _exchange(target: str, pieces: Sequence[Piece], instead_of: bytes | None) -> None:
    try:
        before = os.stat(target)  # noqa: PTH116 - as above
    except FileNotFoundError:
        before = None
    beside = _name_beside(target)
    try:
        _create(beside, pieces, before)
        changed = _checked.pop(target, now := _signature(target)) != now
        if changed or (instead_of is not None and read_file(target) != instead_of):
            from mergepub.errors import OutputError

            raise OutputError(f"{target} was changed meanwhile; it was left as it is", hint="run the command again")
        os.replace(beside, target)  # noqa: PTH105 - as above
    finally:
        _remove(beside)


def _signature(target: str) -> tuple[int, int, int] | None:
    """What changes when somebody saves the file; None where there is none."""
    try:
        found = os.stat(target)  # noqa: PTH116 - as above
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


_checked: dict[str, tuple[int, int, int] | None] = {}
"""The files that were checked before the command began, as they were then: who saves one later keeps it."""


def _create(name: str, pieces: Sequence[Piece], like: os.stat_result | None) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if like else 0o666)
    try:
        write_all(fd, *pieces)
        if like:
            _dress(fd, like)
        os.fsync(fd)
    finally:
        os.close(fd)


def _name_beside(target: str) -> str:
    folder = os.path.dirname(target)  # noqa: PTH120 - as above
    return os.path.join(folder, f".mergepub-{os.urandom(8).hex()}")  # noqa: PTH118 - as above


def _remove(name: str) -> None:
    try:  # noqa: SIM105 - contextlib is an import more
        os.unlink(name)  # noqa: PTH108 - as above
    except OSError:
        pass  # it was never made, or it is the target now


def _dress(fd: int, before: os.stat_result) -> None:
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:  # noqa: SIM105 - contextlib is an import more
            os.fchown(fd, before.st_uid, before.st_gid)
        except PermissionError:
            pass  # only root gives files away; the content is what counts
    os.fchmod(fd, before.st_mode & 0o7777)


def say(line: str) -> None:
    """One line on standard error, its commands fit to be pasted; when there is no standard error, nothing."""
    if given and not line.startswith("mergepub: "):  # what is so marked tells of what was done
        from mergepub.cli.pasting import pasteable

        line = pasteable(line)
    try:  # noqa: SIM105 - contextlib is an import more
        write_all(2, f"{printable(line)}\n".encode())
    except OSError:
        pass  # there is nobody to tell


def printable(text: str) -> str:
    """``text`` on one line, with what a terminal would obey (or UTF-8 cannot hold) written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def why(error: BaseException) -> str:
    """What went wrong, in words, of an ``OSError`` or of a name that no file can have."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def complain(error: BaseException) -> None:
    """Say on standard error what went wrong and what to type next: one line each, never a trace.

    ``MERGEPUB_DEBUG=1`` shows the trace besides.
    """
    if os.environ.get("MERGEPUB_DEBUG", "") not in ("", "0"):
        sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        say("mergepub: interrupted")
        return
    from mergepub.errors import MergepubError

    if isinstance(error, MergepubError):
        say(f"mergepub: {error.message}")
        if error.hint:
            say(f"hint: {error.hint}")
        return
    say(f"mergepub: internal error: {type(error).__name__}: {error}")
    say("hint: this is a defect; run it again with MERGEPUB_DEBUG=1 and report what it prints")
