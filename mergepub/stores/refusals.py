"""How a backend says no: one function per refusal, so that every backend says it in the same words.

Also the checks that need no store: size and labels. Nothing here reads or writes documents.
"""

from __future__ import annotations

from shlex import quote

from mergepub.documents import EVENTS, TEXT, Version
from mergepub.errors import (
    BaseUnavailableError,
    DocumentDeletedError,
    DocumentExistsError,
    InputError,
    KeyReusedError,
    NotFoundError,
    RecreatedError,
    RejectedError,
    VersionConflictError,
)

NEW_KEY = "make a new key for each append"
"""What to do where the key of an append stands for another one."""


def number_of(expected: Version) -> int:
    """The number of ``expected``, for stores that count their versions.

    Raises:
        InputError: it has no number, or a negative one.
    """
    if expected.number is None or expected.number < 0:
        raise InputError("this store counts its versions: give the expected version as a number, 0 for none")
    return expected.number


def check_write(body: bytes, limit: int | None, *, author: str, message: str, source: str | None = None) -> None:
    """Refuse a body over ``limit`` bytes and labels that could not be stored or shown on one line.

    Raises:
        RejectedError: naming the limit, or the label and the rule.
    """
    if limit is not None and len(body) > limit:
        raise RejectedError(
            f"the body has {len(body)} bytes, the store takes {limit} at most", limit=limit, hint="split the document"
        )
    _check_label("author", author, one_line=True)
    _check_label("source", source or "", one_line=True)
    _check_label("message", message, one_line=False)


def check_kind(kind: str) -> None:
    """Refuse a kind of document that does not exist.

    Raises:
        RejectedError: naming the kinds.
    """
    if kind not in (TEXT, EVENTS):
        raise RejectedError(f"there is no kind {kind!r}: a document is {TEXT} or {EVENTS}")


def check_append(body: bytes, key: str) -> None:
    """Refuse an append of nothing, and one without a usable key.

    Raises:
        RejectedError: naming what is missing.
    """
    if not body:
        raise RejectedError("an append needs at least one byte", hint="was the input empty by mistake?")
    if not key:
        raise RejectedError("an append needs a key, made once per command")
    _check_label("key", key, one_line=True)


def _check_label(name: str, label: str, *, one_line: bool) -> None:
    if "\0" in label:
        raise RejectedError(f"the {name} holds a NUL byte; take it out")
    if one_line and any(c < " " or "\x7f" <= c <= "\x9f" for c in label):
        raise RejectedError(f"the {name} {label!r} holds a control character; it must be one plain line")
    try:
        label.encode("utf-8")
    except UnicodeEncodeError:
        raise RejectedError(f"the {name} {label!r} is not valid UTF-8") from None


def never_existed(path: str) -> NotFoundError:
    """There is no document at ``path`` and never was."""
    return NotFoundError(f"there is no document {path}", path=path, hint=creation(path))


def creation(path: str) -> str:
    """What to type where there is no document at ``path``."""
    return f"create it with: mergepub publish {quote(path)} FILE --expected-version 0"


def no_such_version(path: str, version: int, head: int) -> NotFoundError:
    """``path`` exists, up to ``head``, and has no ``version``."""
    return NotFoundError(
        f"{path} has no version {version}; its newest is {head}", hint=f"mergepub versions {quote(path)}"
    )


def is_tombstone(path: str, version: int) -> NotFoundError:
    """``version`` of ``path`` is a tombstone: it has no body."""
    return NotFoundError(
        f"{path} was deleted at version {version}",
        tombstone=version,
        hint=f"mergepub fetch {quote(path)}/v{version - 1}",
    )


def deleted(path: str, expected: int, tombstone: int) -> DocumentDeletedError:
    """The write builds on ``expected``, and the document is deleted."""
    return DocumentDeletedError(
        f"{path} was deleted at version {tombstone}",
        expected=expected,
        current=tombstone,
        hint=f"to create it again: mergepub publish {quote(path)} FILE --expected-version 0",
    )


def mismatch(path: str, expected: int, head: int, first: int) -> VersionConflictError:
    """The head is not ``expected``; ``first`` is the first version of the head's incarnation."""
    hint = f"mergepub fetch {quote(path)}"
    if expected == 0:
        return DocumentExistsError(f"{path} exists, at version {head}", expected=0, current=head, hint=hint)
    if expected < first:
        return recreated(path, expected, head)
    text = f"{path} is at version {head}, the write builds on version {expected}"
    return VersionConflictError(text, expected=expected, current=head, hint=hint)


def recreated(path: str, expected: int, head: int) -> RecreatedError:
    """The write builds on a version of another incarnation than the head's."""
    text = f"{path} was deleted and created again since version {expected}; it is at version {head} now"
    return RecreatedError(text, expected=expected, current=head, hint=f"mergepub fetch {quote(path)}")


def other_base(path: str, expected: int, head: int) -> BaseUnavailableError:
    """Version ``expected`` is not there, or is not what the writer recorded under that number."""
    return BaseUnavailableError(
        f"version {expected} of {path} is not the one that the write builds on; the head is version {head}",
        expected=expected,
        current=head,
        hint=f"mergepub fetch {quote(path)}",
    )


def other_append(key: str) -> KeyReusedError:
    """The append key was used before, with another body."""
    return KeyReusedError(f"the append key {key} was used for another body", hint=NEW_KEY)
