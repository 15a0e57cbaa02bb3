"""A diff on a terminal: the lines of the unified form in colours, the words that changed set off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from mergepub.cli.looks import STYLES, compared, visible


def diff_view(lines: Iterable[bytes]) -> Iterator[Text]:
    """The lines of a unified diff, each as text with its colours."""
    removed: list[bytes] = []
    added: list[bytes] = []
    for number, line in enumerate(_single(lines)):
        mark = line[:1] if number > 1 else b""
        if mark == b"-" and not added:
            removed.append(line)
        elif mark == b"+":
            added.append(line)
        elif mark != b"\\":
            yield from _change(removed, added)
            removed, added = ([line] if mark == b"-" else []), []
            if mark != b"-":
                yield _plain(line, mark)
        else:
            (added or removed).append(line)
    yield from _change(removed, added)


def _single(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Every line by itself, the remark about a missing newline too."""
    for line in lines:
        yield from line.removesuffix(b"\n").split(b"\n")


def _plain(line: bytes, mark: bytes) -> Text:
    return Text(visible(line), {b"": "bold", b"@": "cyan"}.get(mark, ""))


def _change(removed: list[bytes], added: list[bytes]) -> Iterator[Text]:
    """Lines that gave way to others, each compared with its counterpart; the more of one kind stand alone."""
    pairs = [compared(visible(old[1:]), visible(new[1:])) for old, new in zip(removed, added, strict=False)]
    for number, line in enumerate(removed):
        yield _line(line, pairs[number][0] if number < len(pairs) else None, "old")
    for number, line in enumerate(added):
        yield _line(line, pairs[number][1] if number < len(pairs) else None, "new")


def _line(line: bytes, text: Text | None, style: str) -> Text:
    if line.startswith(b"\\"):
        return Text(visible(line), "dim")
    return Text.assemble((line[:1].decode(), STYLES[style]), text or (visible(line[1:]), STYLES[style]))
