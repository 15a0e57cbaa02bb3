"""How an answer leaves: block, body or JSON to standard output, the body to a file, hints to standard error.

What the answer says is ``status``'s business. Colour is for terminals; a pipe gets exactly the bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mergepub import status
from mergepub.cli.streams import check_output, complain, given, printable, replace_file, say, write_stdout
from mergepub.errors import InputError, OutputError
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.outcomes import Outcome

COLOURS = {b"ok": b"\x1b[32m", b"candidate": b"\x1b[33m", b"conflict": b"\x1b[31m"}
DIM, RESET = b"\x1b[2m", b"\x1b[0m"


@dataclass(frozen=True, slots=True)
class Form:
    """The form that an answer shall have: ``output`` names a file for the body, the rest are flags."""

    json: bool = False
    no_body: bool = False
    body_only: bool = False
    output: str | None = None

    def check(self) -> None:
        """Refuse what cannot be done, before anything is done.

        Raises:
            InputError: options that contradict each other.
            OutputError: a file that cannot be written.
        """
        if self.body_only and (self.json or self.no_body or self.output is not None):
            raise InputError("--body-only goes with none of --json, --no-body and -o", hint="give one of them")
        if self.no_body and self.output is not None:
            raise InputError(
                "-o and --no-body contradict each other", hint="-o alone: the body goes to FILE, and is not printed"
            )
        if self.output is not None:
            check_output(self.output)


def answer(outcome: Outcome, path: str, form: Form, file: str = "FILE", *, hints: Sequence[str] | None = None) -> int:
    """Give ``outcome`` in its ``form`` and return the exit status. ``hints`` take the place of the general ones.

    Raises:
        OutputError: the file or standard output cannot be written. The keys are printed even when the file cannot be:
            what was published, was.
    """
    body = None if form.no_body else status.body(outcome)
    trouble: OutputError | None = None
    if form.output is not None and body is not None:
        trouble = _written(form.output, body)
        body = None
    if form.json:
        if trouble:
            return _told(trouble, outcome)
        write_json(status.to_json(outcome, body=body is not None))
    elif form.body_only:
        write_stdout(harmless(body or b""))
    else:
        block = painted(status.block(outcome))
        write_stdout(block if body is None else b"".join((block, b"\n", harmless(body))))
    for line in status.hints(outcome, path, file) if hints is None else hints:
        say(line)
    if trouble:
        raise trouble
    return status.exit_status(outcome)


def _told(trouble: OutputError, outcome: Outcome) -> int:
    """Tell of a file that could not be written, in the one object that there may be, beside what did happen."""
    envelope = status.error_json(trouble)
    envelope["error"] |= status.fields(outcome)
    write_json(envelope)
    complain(trouble)
    return trouble.exit_status


def _written(name: str, body: bytes) -> OutputError | None:
    try:
        replace_file(name, body)
    except OutputError as error:
        return error
    return None


def write_json(answer: Mapping[str, Any]) -> None:
    """One JSON object on one line; on a terminal in ASCII, for that would obey more than JSON escapes."""
    import json

    if given:
        from mergepub.cli.pasting import with_pasteable_hints

        answer = with_pasteable_hints(answer)
    text = json.dumps(answer, ensure_ascii=os.isatty(1), separators=(", ", ": "))
    write_stdout(text.encode("utf-8", "backslashreplace") + b"\n")


def colourful() -> bool:
    """True when standard output is a terminal that takes colours and nobody asked for none."""
    return os.isatty(1) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def harmless(body: bytes) -> bytes:
    """A body as a terminal may have it: all that it would obey, but for tabs and line ends, is written as an escape.

    In a pipe, and where there is nothing to escape, it is the body itself.
    """
    if not os.isatty(1):
        return body
    text = body.decode("utf-8", "backslashreplace")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in _lines(text)).encode()


def _lines(text: str) -> list[str]:
    """Its lines; of a text whose lines end in CR LF without the CR, which does nothing there."""
    return text.replace("\r\n", "\n").split("\n")


def painted(block: bytes) -> bytes:
    """A status block with its keys dimmed and its status coloured, for a terminal; unchanged for a pipe."""
    return b"".join(map(_painted_line, block.splitlines(keepends=True))) if colourful() else block


def _painted_line(line: bytes) -> bytes:
    key, _, value = line.rstrip(b"\n").partition(b": ")
    if key == b"status":
        value = b"".join((COLOURS.get(value, b""), value, RESET))
    return b"".join((DIM, key, b":", RESET, b" ", value, b"\n"))
