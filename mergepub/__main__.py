"""Where the process starts: a small fast path for ``--version`` and plain ``merge``, then the whole command line.

The fast path runs before click is imported and imports next to nothing. Whatever it does not know exactly, it leaves to
click: an option it has not heard of, an abbreviation, a value out of range, a default set in the environment
or in a configuration file.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # what typing calls by this name, without importing typing
if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS: dict[str, tuple[str, object]] = {
    "-p": ("stdout", True),
    "--stdout": ("stdout", True),
    "-q": ("quiet", True),
    "--quiet": ("quiet", True),
    "--diff3": ("style", "diff3"),
    "--zdiff3": ("style", "zdiff3"),
    "--ours": ("favour", "ours"),
    "--theirs": ("favour", "theirs"),
    "--union": ("favour", "union"),
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "--style": ("merge", "diff3", "zdiff3"),
    "--adjacent": ("clean", "conflict"),
    "--granularity": ("line", "word"),
}


def main() -> int:
    """Run the command that ``sys.argv`` holds and return its exit status."""
    try:
        return _run(sys.argv[1:])
    except KeyboardInterrupt:  # while something was being imported
        os.write(2, b"mergepub: interrupted\n")
        return 130


def _run(arguments: list[str]) -> int:
    import gc

    gc.set_threshold(50_000)  # a command ends before collecting pays; what a long one leaves behind is still found
    status = _fast(arguments)
    fast = status is not None
    if status is None:
        from mergepub.cli.app import run

        status = run(arguments)
    if getattr(sys.modules["__main__"], "main", None) is main:
        _leave(status, fast)
    return status


def _leave(status: int, fast: bool) -> None:
    """End the process, which is this call alone, without tearing the interpreter down: that costs milliseconds."""
    if not fast:
        import atexit

        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                continue  # closed, or its reader went away: commands write past it, in bytes
    os._exit(status)


def _fast(arguments: list[str]) -> int | None:
    """The exit status where the arguments are known exactly, or None where click has to look at them."""
    if arguments == ["--version"]:
        return _version()
    if arguments[:1] != ["merge"]:
        return None
    parsed = plain_merge(arguments[1:])
    if parsed is None:
        return None
    from mergepub.cli.mergefile import merge_guarded

    return merge_guarded(*parsed)


def _version() -> int:
    from mergepub._version import __version__
    from mergepub.cli.streams import complain, write_stdout
    from mergepub.errors import OutputError

    try:
        write_stdout(f"mergepub {__version__}\n".encode())
    except OutputError as error:
        complain(error)
        return error.exit_status
    return 0


def plain_merge(arguments: list[str]) -> tuple[list[str], dict[str, object], list[str]] | None:
    """Parse the arguments of ``merge`` when every one of them is known exactly; None in every other case."""
    from mergepub.cli import configuration_files

    if any(name.startswith("MERGEPUB_MERGE_") for name in os.environ) or configuration_files():
        return None
    files: list[str] = []
    given: dict[str, object] = {}
    labels: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            files.extend(rest)
        elif word in _FLAGS:
            name, value = _FLAGS[word]
            given[name] = value
        elif not word.startswith("-"):
            files.append(word)
        elif not _take_value(word, rest, given, labels):
            return None
    return (files, given, labels) if len(files) == 3 else None


def _take_value(word: str, rest: Iterator[str], given: dict[str, object], labels: list[str]) -> bool:
    option, equals, value = word.partition("=")
    if option == "-L" and not equals:
        label = next(rest, None)
        labels.extend([] if label is None else [label])
        return label is not None
    if not equals:
        value = next(rest, "")
    if option in _CHOICES:
        given[option[2:]] = value
        return value in _CHOICES[option]
    if option == "--marker-size" and value.isascii() and value.isdigit() and len(value) < 5:
        given["marker_size"] = int(value)
        return 7 <= int(value) <= 1000
    return False


if __name__ == "__main__":
    sys.exit(main())
