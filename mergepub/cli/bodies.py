"""Where bodies come from: a file or standard input, whole and within the limit."""

from __future__ import annotations

from mergepub.calm import when_calm
from mergepub.cli.streams import read_file, read_stdin
from mergepub.errors import InputError, RejectedError
from mergepub.stores.contract import MAX_BODY


def read_body(file: str, *, allow_empty: bool) -> bytes:
    """The bytes of ``file``, or of standard input when it is ``-``.

    Args:
        file: a file name, or ``-``.
        allow_empty: take an empty body from standard input or a named pipe. One whose producer failed is empty; an
            empty file is a body like any other.

    Raises:
        InputError: the file cannot be read, or standard input (or another pipe) is empty.
        RejectedError: the body is over the limit; no more than that was read.
    """
    body = read_stdin(MAX_BODY) if file == "-" else when_calm(file, lambda: read_file(file, MAX_BODY))
    if len(body) > MAX_BODY:
        raise RejectedError(
            f"{_name(file)} holds more than {MAX_BODY} bytes, the limit of a body",
            limit=MAX_BODY,
            hint="split the document",
        )
    if not body and not allow_empty and _is_pipe(file):
        raise InputError(
            f"{_name(file)} is empty; a command that should have written it may have failed",
            hint="pass --allow-empty if an empty body is meant",
        )
    return body


def _is_pipe(file: str) -> bool:
    from pathlib import Path

    return file == "-" or Path(file).is_fifo()


def _name(file: str) -> str:
    return "standard input" if file == "-" else file
