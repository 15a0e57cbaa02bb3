"""What people look at: a diff on a terminal in colours, in a pipe as ``patch`` takes it."""

from __future__ import annotations

from mergepub.cli.answers import colourful, harmless
from mergepub.cli.streams import write_stdout
from mergepub.merge.unified import unified


def show_diff(old: bytes, new: bytes, names: tuple[bytes, bytes]) -> None:
    """Print what makes ``new`` of ``old``; nothing where they are equal.

    Raises:
        OutputError: standard output cannot be written.
    """
    lines = unified(old, new, names)
    if not colourful():
        write_stdout(*map(harmless, lines))
        return
    from mergepub.cli.diffview import diff_view
    from mergepub.cli.looks import show

    show(*diff_view(lines))
