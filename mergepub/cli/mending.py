"""Letting somebody mend a conflict: an editor, or a git mergetool, on copies beside FILE. Bytes in, bytes out."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mergepub.checkout import disk
from mergepub.checkout.home import reading
from mergepub.checkout.leftovers import MERGED, copies_beside
from mergepub.errors import CheckoutError, InputError

if TYPE_CHECKING:
    from mergepub.checkout import Local
    from mergepub.tracking.resolving import Conflict


class MendingFailedError(CheckoutError):
    """The editor or tool ended with an error; ``text`` is what it left, None where it changed nothing."""

    text: bytes | None = None


def edited(local: Local, conflict: Conflict) -> bytes:
    """The marked body as it is left by ``$VISUAL`` or ``$EDITOR``.

    Raises:
        InputError: no editor is set, or it cannot be started.
        MendingFailedError: it ended with an error.
    """
    words = editor_words()
    with copies_beside(local, {MERGED: conflict.marked}) as copies:
        return _run([*words, copies[MERGED]], copies, conflict, what="editor")


def editor_words() -> list[str]:
    """``$VISUAL`` or ``$EDITOR`` in words.

    Raises:
        InputError: neither is set, or its quotes are open.
    """
    value = next((os.environ[key] for key in ("VISUAL", "EDITOR") if os.environ.get(key, "").strip()), None)
    if value is None:
        raise InputError(
            "neither VISUAL nor EDITOR names an editor",
            hint="set one, or settle the conflict with --ours, --theirs, --union, or mend FILE and say --mark-resolved",
        )
    try:
        return shlex.split(value)
    except ValueError:
        raise InputError(f"the editor {value!r} has an open quote", hint="mend VISUAL or EDITOR") from None


def mended_by_tool(local: Local, conflict: Conflict, tool: str) -> bytes:
    """MERGED as a git mergetool leaves it.

    ``tool`` is a name with ``mergetool.<name>.cmd`` in git's configuration, or such a command itself, which names
    ``$MERGED``; ``$BASE``, ``$LOCAL`` and ``$REMOTE`` are files too.

    Raises:
        InputError: git's configuration does not know the tool, or it cannot be started.
        MendingFailedError: it ended with an error.
    """
    command = tool if "$MERGED" in tool else _configured(tool)
    bodies = {"BASE": conflict.base, "LOCAL": conflict.ours, "REMOTE": conflict.theirs, MERGED: conflict.marked}
    with copies_beside(local, bodies) as copies:
        return _run(["sh", "-c", command], copies, conflict, what="tool")


def _configured(tool: str) -> str:
    try:
        asked = ["git", "config", "--get", f"mergetool.{tool}.cmd"]
        done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except OSError:
        done = None
    command = done.stdout.decode(errors="surrogateescape").strip() if done and done.returncode == 0 else ""
    if not command:
        raise InputError(
            f"git's configuration holds no command for the tool {tool!r}",
            hint=f"git config --global {shlex.quote(f'mergetool.{tool}.cmd')} "
            + shlex.quote(f'{shlex.quote(tool)} "$LOCAL" "$BASE" "$REMOTE" "$MERGED"'),
        )
    return command


def _run(command: Sequence[str], copies: dict[str, str], conflict: Conflict, *, what: str) -> bytes:
    try:
        with _interrupts_for_the_child():
            code = subprocess.call(command, env={**os.environ, **copies})
    except OSError as error:
        raise InputError(
            f"the {what} {command[0]!r} cannot be started: {error.strerror}",
            hint="set VISUAL or EDITOR, or give --tool",
        ) from None
    with reading(copies[MERGED]):
        text = disk.read(copies[MERGED])
    text = conflict.marked if text is None else text
    if code == 0 and not text.strip() and conflict.ours.strip() and conflict.theirs.strip():
        raise MendingFailedError(
            f"the {what} left nothing; nothing was published, and the file is in conflict as before",
            reason="in-conflict",
        )
    if code != 0:
        ended = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        failed = MendingFailedError(
            f"the {what} {ended}; nothing was published, and the file is in conflict as before", reason="in-conflict"
        )
        failed.text = text if text != conflict.marked else None
        raise failed
    return text


@contextmanager
def _interrupts_for_the_child() -> Iterator[None]:
    """Leave Ctrl-C to the program in the foreground; ignoring it would make that one ignore it too."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
