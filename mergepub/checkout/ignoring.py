"""What ``.mergepubignore`` leaves out, in the form of ``.gitignore``. Pure: text in, verdicts out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mergepub.values import dataclass

NAME = ".mergepubignore"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: names that ``pattern`` matches, relative to its file's folder, are left out, or ``again`` taken in."""

    pattern: re.Pattern[str]
    again: bool
    folders_alone: bool


def rules_of(text: str) -> list[Rule]:
    """The rules of one file, in order; the last that matches counts."""
    lines = text.removeprefix("\ufeff").split("\n")
    return [rule for line in lines if (rule := _rule(line.removesuffix("\r")))]


def verdict(rules: Iterable[Rule], name: str, *, is_folder: bool) -> bool | None:
    """Whether ``name``, relative to the rules' folder, is left out; None where no rule says anything."""
    found = None
    for rule in rules:
        if (is_folder or not rule.folders_alone) and rule.pattern.fullmatch(name):
            found = not rule.again
    return found


def _rule(line: str) -> Rule | None:
    text = _without_blanks(line)
    if not text or text.startswith("#"):
        return None
    again = text.startswith("!")
    text = text[again:]
    folders_alone = text.endswith("/")
    text = text.rstrip("/") if folders_alone else text
    if not text:
        return None
    anchored = "/" in text
    pattern = _translated(text.removeprefix("/"))
    try:
        return Rule(re.compile(pattern if anchored else f"(?:.*/)?{pattern}", re.DOTALL), again, folders_alone)
    except re.error:
        return None  # a class that is none, such as [z-a]: it matches nothing


def _without_blanks(line: str) -> str:
    """The line without blanks at its end, but for one after a backslash."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return f"{stripped} " if backslashes % 2 and stripped != line else stripped


_TOKEN = re.compile(r"^\*\*/|/\*\*$|/\*\*(?=/)|\*+|\?|\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\]|\\.|.", re.DOTALL)


def _translated(text: str) -> str:
    text = re.sub(r"\*{3,}", "**", text)
    return "".join(_piece(match.group(), at_end=match.end() == len(text)) for match in _TOKEN.finditer(text))


def _piece(piece: str, *, at_end: bool) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece == "/**":
        return "/.+" if at_end else "(?:/.*)?"
    if piece.startswith("*"):
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 1 and piece.startswith("["):
        return _class(piece)
    return re.escape(piece[1:] if len(piece) > 1 and piece.startswith("\\") else piece)


def _class(token: str) -> str:
    inner = token[1:-1]
    negated = inner[:1] in ("!", "^")
    inner = re.sub(r"\[:([a-z]+):\]", lambda named: _NAMED.get(named[1], ""), inner[negated:])
    inner = inner.replace("[", r"\[")
    inner = rf"\]{inner[1:]}" if inner.startswith("]") else inner
    return f"(?!/)[{'^' if negated else ''}{inner}]"


_NAMED = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\x5b-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
"""The classes that have names, as they stand within brackets."""
