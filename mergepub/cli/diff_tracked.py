"""``diff FILE``: a tracked file beside its base, its base beside the head, or itself beside their merge."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mergepub import status
from mergepub.checkout import locate
from mergepub.cli.answers import Form, answer, write_json
from mergepub.cli.show import show_diff
from mergepub.cli.streams import say
from mergepub.cli.tracked import Stores, record_of
from mergepub.errors import MergepubError
from mergepub.outcomes import Refused
from mergepub.tracking.differing import Comparison, What, compare
from mergepub.tracking.work import Work

if TYPE_CHECKING:
    import click


def path_of(file: str) -> str | None:
    """The document that is tracked in ``file``, None where nothing is, or nothing that can be read."""
    try:
        checkout, local = locate(file)
        record = checkout.load(local)
    except MergepubError:
        return None
    return record.path if record else None


def tracked_diff(context: click.Context, file: str, what: What, *, json: bool) -> int:
    """Show one comparison of ``file`` and return the exit status.

    Raises:
        MergepubError: as ``tracking.differing.compare``; the file is not tracked.
    """
    checkout, local = locate(file)
    record = record_of(checkout, local)
    found = compare(Work(Stores(context).of(record), checkout, local, record), what)
    if isinstance(found, Refused):
        return answer(found, record.path, Form(json))
    if json:
        write_json(status.envelope(_facts(found, file, record.path, record.file)))
    else:
        show_diff(found.old, found.new, _names(found, record.file))
        if found.conflicts:
            say(f"your edits overlap with theirs in {found.conflicts} marked place" + "s" * (found.conflicts != 1))
    return 0


def _names(found: Comparison, file: str) -> tuple[bytes, bytes]:
    """Names that ``patch -p1`` takes in the checkout's top folder, and what they are where a time may stand."""
    name = os.fsencode(file)
    return _header(b"a/" + name, found.old_name), _header(b"b/" + name, found.new_name)


def _header(name: bytes, what: str) -> bytes:
    return b"%s\t%s" % (_quoted(name), what.encode())


def _quoted(name: bytes) -> bytes:
    """The name, in quotes where a line of a diff could not hold it as it is; ``patch`` and ``git apply`` undo that."""
    if not any(byte < 32 or byte in b'"\\\x7f' for byte in name):
        return name
    return b'"%s"' % b"".join(_escaped(byte) for byte in name)


def _escaped(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\%c" % byte
    return b"\\%03o" % byte if byte < 32 or byte == 127 else b"%c" % byte


def _facts(found: Comparison, file: str, path: str, inside: str) -> dict[str, Any]:
    from mergepub.merge.unified import unified

    text = b"".join(unified(found.old, found.new, _names(found, inside)))
    facts: dict[str, Any] = {"status": "ok", "file": file, "path": path, "from": found.old_name, "to": found.new_name}
    if found.conflicts:
        facts["conflicts"] = found.conflicts
    return facts | {"unchanged": not text} | status.json_text("diff", text)
