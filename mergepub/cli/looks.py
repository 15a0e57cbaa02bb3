"""What all views on a terminal share: its width, text that cannot steer it, words that changed, and rich's way out.

Imported where a terminal is there alone. A view is made of rich's values, so that a screenshot is made of the same.
Colours are the terminal's own, never with a background, and never alone: signs, bold and underlining say the same.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from mergepub.cli.answers import colourful
from mergepub.cli.streams import write_stdout
from mergepub.merge.myers import edit_script

if TYPE_CHECKING:
    from rich.console import RenderableType

TAB = 4
STYLES = {
    "old": "red",
    "old word": "bold underline red",
    "new": "green",
    "new word": "bold underline green",
    "ours": "green",
    "ours word": "bold underline green",
    "theirs": "magenta",
    "theirs word": "bold underline magenta",
}

_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_DIGITS = 6  # of a word's number: in one text there are not more words than that
_MOST_WORDS = 4000  # in two texts; beyond, nobody looks for one word


def show(*views: RenderableType) -> None:
    """Print the views on the terminal, without an escape code where colours are not wanted.

    Raises:
        OutputError: standard output cannot be written.
    """
    console = Console(
        file=io.StringIO(), force_terminal=colourful(), width=width(), highlight=False, markup=False, emoji=False
    )
    with console.capture() as captured:
        for view in views:
            console.print(view, soft_wrap=isinstance(view, Text))
    write_stdout(captured.get().encode("utf-8", "backslashreplace"))


def width() -> int:
    """Columns of the terminal, as it is now."""
    return get_terminal_size().columns


def visible(body: bytes) -> str:
    """One line, or a part of one, as a terminal may have it: what it would obey is written as an escape."""
    text = body.rstrip(b"\n").decode("utf-8", "backslashreplace").expandtabs(TAB)
    return text if text.isprintable() else "".join(c if _is_plain(c) else _escape(c) for c in text)


def _is_plain(char: str) -> bool:
    return char.isprintable() or char in "\u00a0\u3000"  # blanks that writers use


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def lines_of(body: bytes) -> list[str]:
    """Every line of a body, visible; the last one says so where it has no end."""
    lines = body.split(b"\n")
    end = lines.pop()
    return [visible(line) for line in lines] + ([f"{visible(end)} (no newline at end)"] if end else [])


# ── words that changed ──────────────────────────────────────────────────────────────────────────────────────────────


Spans = list[tuple[int, int]]


def compared(old: str, new: str) -> tuple[Text, Text]:
    """Both texts in their colours, the words that differ set off."""
    before, after = changed_words(old, new)
    return set_off(old, before, "old"), set_off(new, after, "new")


def set_off(text: str, spans: Spans, kind: str) -> Text:
    """The text in the colour of its kind, with what stands in the spans set off."""
    found = Text(text, STYLES[kind])
    for start, end in spans:
        found.stylize(STYLES[f"{kind} word"], start, end)
    return found


def changed_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Where the words stand in which the texts differ; nowhere when hardly one is the same."""
    a, b = _WORD.findall(old), _WORD.findall(new)
    hunks = _word_hunks(a, b) if len(a) + len(b) <= _MOST_WORDS else []
    changed = sum(len("".join(a[a0:a1]).strip()) for a0, a1, _, _ in hunks)
    if not hunks or changed * 2 > len(old.strip()):
        return [], []
    return [_span(a, a0, a1) for a0, a1, _, _ in hunks], [_span(b, b0, b1) for _, _, b0, b1 in hunks]


def _word_hunks(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """The hunks between two lists of words, by position: each word stands as a line of digits of one length."""
    numbers: dict[str, int] = {}
    numbered = ([numbers.setdefault(word, len(numbers)) for word in words] for words in (a, b))
    texts = (b"".join(b"%0*d\n" % (_DIGITS, number) for number in words) for words in numbered)
    size = _DIGITS + 1
    return [(a0 // size, a1 // size, b0 // size, b1 // size) for a0, a1, b0, b1 in edit_script(*texts, weak_rule=False)]


def _span(words: Sequence[str], start: int, end: int) -> tuple[int, int]:
    at = len("".join(words[:start]))
    return at, at + len("".join(words[start:end]))
