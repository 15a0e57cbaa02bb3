"""What people look at: a diff on a terminal in colours, in a pipe as ``patch`` takes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mergepub.cli.answers import DIM, RESET, colourful
from mergepub.cli.streams import printable, write_stdout
from mergepub.merge.unified import unified

COLOURS = {b"-": b"\x1b[31m", b"+": b"\x1b[32m", b"@": b"\x1b[36m"}


def show_diff(old: bytes, new: bytes, names: tuple[bytes, bytes]) -> None:
    """Print what makes ``new`` of ``old``; nothing where they are equal.

    Raises:
        OutputError: standard output cannot be written.
    """
    lines = unified(old, new, names)
    write_stdout(*(_painted(lines) if colourful() else lines))


def _painted(lines: Iterable[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        colour = DIM if number < 2 else COLOURS.get(line[:1], b"")
        text = printable(line.rstrip(b"\n").decode("utf-8", "backslashreplace").replace("\t", "    "))
        yield b"".join((colour, text.encode(), RESET if colour else b"", b"\n"))
