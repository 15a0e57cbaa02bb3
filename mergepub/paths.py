"""Document paths such as ``/docs/guide.md`` and their version form ``/docs/guide.md/v5``: parse and validate.

Nothing here touches the file system or a store; local file names live elsewhere.
"""

from __future__ import annotations

from mergepub.errors import BadPathError

MAX_PATH_BYTES = 1024
MAX_VERSION = 2**53 - 1
"""The highest version number: what every JSON reader keeps exactly."""

_SHOWN = 120  # characters of a bad path that a message repeats


def check_path(path: str) -> str:
    """Return ``path`` when it is a valid document path.

    Raises:
        BadPathError: naming the first rule that the path breaks.
    """
    rule = _broken_path_rule(path)
    if rule:
        meant = _straightened(path)
        meant = meant.rpartition("/")[0] if _broken_name_rule(meant) else meant
        known = None if _broken_path_rule(meant) or meant == path else f"did you mean {meant}?"
        raise _bad_path(path, rule, hint=known or "use a path such as /docs/guide.md")
    return path


def split_version(path: str) -> tuple[str, int | None]:
    """Split ``/docs/guide.md/v5`` into ``("/docs/guide.md", 5)``; a path without ``/vN`` gives ``(path, None)``.

    Raises:
        BadPathError: when the document part breaks a rule, or the number has a leading zero, is 0 or no version ever
            reaches it.
    """
    head, _, last = path.rpartition("/")
    if not (head and is_version_segment(last)):
        return check_path(path), None
    check_path(head)
    if last[1] == "0":
        raise _bad_path(path, "versions are numbered from 1 without leading zeros", hint=f"try {head}/v1")
    if len(last) > len(str(MAX_VERSION)) + 1 or int(last[1:]) > MAX_VERSION:
        raise _bad_path(path, f"no version is above {MAX_VERSION}", hint=f"try {head}, the head")
    return head, int(last[1:])


def is_version_segment(segment: str) -> bool:
    """True for ``v`` followed by ASCII digits only."""
    return len(segment) > 1 and segment[0] == "v" and segment[1:].isascii() and segment[1:].isdigit()


def check_prefix(prefix: str) -> str:
    """Return ``prefix`` when it can start a document path (``/``, ``/docs``, ``/docs/``, ``/api/v2``).

    Raises:
        BadPathError: naming the rule that it breaks.
    """
    rule = None if prefix == "/" else _broken_rule(prefix.removesuffix("/"))
    if rule:
        meant = _straightened(prefix)
        known = None if _broken_rule(meant) else f"did you mean {meant}?"
        raise _bad_path(prefix, rule, hint=known or "use / for everything, or a folder such as /docs")
    return prefix


def _straightened(path: str) -> str:
    """``path`` with the slash that it lacks and without those that are too many."""
    return "/" + "/".join(filter(None, path.split("/")))


def _bad_path(path: str, rule: str, *, hint: str) -> BadPathError:
    shown = path if len(path) <= _SHOWN else path[:_SHOWN] + "…"
    return BadPathError(f"bad path {shown!r}: {rule}", hint=hint)


def _broken_path_rule(path: str) -> str | None:
    return _broken_rule(path) or _broken_name_rule(path)


def _broken_rule(path: str) -> str | None:
    if not path.startswith("/"):
        return "it must start with /"
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        return "it must be valid UTF-8"
    if size > MAX_PATH_BYTES:
        return f"it has {size} bytes, the limit is {MAX_PATH_BYTES}"
    return _broken_character_rule(path) or _broken_segment_rule(path[1:].split("/"))


def _broken_character_rule(path: str) -> str | None:
    # C1 controls are refused with the C0 ones: a terminal obeys both.
    if any(c < " " or "\x7f" <= c <= "\x9f" for c in path):
        return "it holds a control character"
    if not path.isascii():
        import unicodedata  # noqa: PLC0415 - only a path outside ASCII needs its tables

        if not unicodedata.is_normalized("NFC", path):
            return "it must be in Unicode normal form NFC"
    return None


def _broken_segment_rule(segments: list[str]) -> str | None:
    if "" in segments:
        return "it holds an empty segment (// or a trailing /)"
    if "." in segments or ".." in segments:
        return "it holds a . or .. segment"
    if segments[0] == "-":
        return "its first segment is -, which is reserved"
    return None


def _broken_name_rule(path: str) -> str | None:
    """The one rule that a document has and a folder has not: ``/api/v2`` may hold documents and cannot be one."""
    last = path.rpartition("/")[2]
    return f"its last segment {last} reads as a version" if is_version_segment(last) else None
