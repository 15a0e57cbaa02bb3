"""The commands ``send``, ``ask``, ``reply`` and ``inbox``."""

from __future__ import annotations

import os
from typing import Any

import click

from mergepub.cli.coord.envelope import ask_run, write_result
from mergepub.cli.options import Digits, Shell, verb
from mergepub.cli.streams import read_file, read_stdin, say
from mergepub.errors import InputError


def body_options(function: Shell) -> Shell:
    """The body, in one of three ways, and the key."""
    for option in (
        click.argument("text", metavar="[TEXT]", required=False),
        click.option(
            "--idempotency-key", metavar="KEY", help="To repeat the very same call; made where it is missing."
        ),
        click.option("--body-file", metavar="FILE|-", help="The body is in FILE, or on standard input."),
        click.option("--body", metavar="TEXT", help="The body."),
    ):
        function = option(function)
    return function


def text_of(text: str | None, file: str | None, *, what: str, option: str) -> str:
    """What was given directly, or stands in a file or on standard input; its bytes are kept as they are.

    Raises:
        InputError: the file cannot be read, is no UTF-8, or is over the limit; no more than that was read.
    """
    from mergepub.coord import bounds

    if file is None:
        return text or ""
    data = read_stdin(bounds.BODY_BYTES) if file == "-" else read_file(file, bounds.BODY_BYTES)
    if len(data) > bounds.BODY_BYTES:
        raise InputError(f"the {what} has more than {bounds.BODY_BYTES} bytes", hint="say it shorter")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(f"the {what} is not UTF-8", hint=f"give a text file with {option}") from None


def _body(given: dict[str, Any]) -> str:
    ways = [name for name in ("body", "body_file", "text") if given[name] is not None]
    if len(ways) != 1:
        raise InputError(
            "give the body once: --body TEXT, --body-file FILE or -, or as the last word", hint="see --help"
        )
    text = given["body"] if given["body"] is not None else given["text"]
    return text_of(text, given["body_file"], what="body", option="--body-file")


def with_key(verb_name: str, key: str | None) -> tuple[str, Any]:
    """The key to use, and what announces it: nothing where it was given."""
    if key is not None:
        return key, None
    made = f"{verb_name}-{os.urandom(12).hex()}"
    return made, lambda: say(f"idempotency-key: {made}")


def _mail(verb_name: str, target: dict[str, str], given: dict[str, Any]) -> int:
    key, announce = with_key(verb_name, given["idempotency_key"])
    params = target | {"body": _body(given), "idempotency_key": key}
    write_result(ask_run(f"coord.{verb_name}", params, announce=announce))
    return 0


_TO = click.option("--to", required=True, metavar="RUN", help="The peer's run id; see mergepub coord status --json.")


@verb(
    "send",
    "mergepub coord send --to run-0123456789ab --body 'I am editing guide.md.'",
    "mergepub coord send --to run-0123456789ab --body-file - --idempotency-key send-1 < note.txt",
)
@_TO
@body_options
def send_command(to: str, **given: Any) -> int:
    """Send a message to a run that edits a document of this one.

    The receipt says that it is stored, not that it was read. Repeat a lost call with the same key.
    """
    return _mail("send", {"to_run_id": to}, given)


@verb("ask", "mergepub coord ask --to run-0123456789ab --body 'May I change the introduction?'")
@_TO
@body_options
def ask_command(to: str, **given: Any) -> int:
    """Ask a run that edits a document of this one a question; its reply comes to the inbox."""
    return _mail("ask", {"to_run_id": to}, given)


@verb("reply", "mergepub coord reply --question-id question-0123456789abcdef --body 'Yes.'")
@click.option("--question-id", required=True, metavar="ID", help="The question's id, from the inbox.")
@body_options
def reply_command(question_id: str, **given: Any) -> int:
    """Reply to a question; the answer goes to the run that asked."""
    return _mail("reply", {"question_id": question_id}, given)


@verb("inbox", "mergepub coord inbox --wait 30", "mergepub coord inbox --ack ack-0123456789abcdef01234567")
@click.option("--wait", type=Digits(0, 30), default=0, metavar="SECONDS", help="Wait once for mail, 0 to 30 seconds.")
@click.option("--ack", metavar="TOKEN", help="The batch with this token was read; give the next one.")
def inbox_command(wait: int, ack: str | None) -> int:
    """Read the inbox: one batch, oldest first, the same again until its token is acknowledged."""
    params: dict[str, Any] = {"wait_seconds": wait} if wait else {}
    write_result(ask_run("coord.inbox", params | ({} if ack is None else {"ack_token": ack})))
    return 0
