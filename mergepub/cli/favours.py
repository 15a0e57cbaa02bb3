"""``--favour-path GLOB=union``: which documents have their conflicts settled, told by glob patterns.

The patterns are those of ignore files: without a slash one matches the last segment, with one it is anchored at the
root; ``*`` stays within a segment, ``**`` as a whole segment stands for any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from mergepub.errors import InputError


def favour_for(path: str, rules: Iterable[str]) -> Literal["union"] | None:
    """The favour that ``rules`` (each ``GLOB=union``) give to the document ``path``.

    Raises:
        InputError: a rule that is none, also when another rule would match.
    """
    globs = [_glob_of(rule) for rule in rules]
    return "union" if any(matches(path, glob) for glob in globs) else None


def _glob_of(rule: str) -> str:
    glob, equals, favour = rule.rpartition("=")
    if not (glob and equals and favour == "union"):
        raise InputError(f"bad --favour-path {rule!r}", hint="write it as GLOB=union, such as 'CHANGES*=union'")
    try:
        matches("/", glob)
    except re.error as error:
        raise InputError(f"bad pattern {glob!r}: {error}", hint="write it as in an ignore file") from None
    return glob


def matches(path: str, glob: str) -> bool:
    """True when the document path matches the pattern."""
    if "/" not in glob:
        return _segment(glob).fullmatch(path.rpartition("/")[2]) is not None
    globs = glob.strip("/").split("/") + ["**"] * glob.endswith("/")
    if globs[-1] == "**":
        globs.append("*")  # what lies below a folder, not the folder
    return _all_match(path[1:].split("/"), globs)


def _all_match(segments: list[str], globs: list[str]) -> bool:
    """Whether the globs match the segments, one for one but for ``**``; no backtracking, whatever the pattern.

    After each round ``tail[j]`` says whether ``globs[j:]`` match the segments from the present one on.
    """
    patterns = [None if glob == "**" else _segment(glob) for glob in globs]
    tail = [False] * len(globs) + [True]
    for segment in reversed(segments):
        new = [False] * len(tail)
        for j in reversed(range(len(globs))):
            pattern = patterns[j]
            new[j] = tail[j] or new[j + 1] if pattern is None else tail[j + 1] and bool(pattern.fullmatch(segment))
        tail = new
    return tail[0]


def _segment(glob: str) -> re.Pattern[str]:
    return re.compile("".join(_translated(part) for part in _PARTS.findall(glob)), re.DOTALL)


_PARTS = re.compile(r"\\.|\[[!^]?\]?[^]]*\]|\*+|.", re.DOTALL)


def _translated(part: str) -> str:
    if part[0] == "*":
        return ".*"
    if part == "?":
        return "."
    if part[0] == "[" and len(part) > 1:
        inner = part[1:-1].replace("\\", r"\\").replace("[", r"\[").replace("&", r"\&").replace("~", r"\~")
        return f"[^{inner[1:]}]" if inner[0] in "!^" else f"[{inner}]"
    return re.escape(part[1:] if part[0] == "\\" and len(part) > 1 else part)
