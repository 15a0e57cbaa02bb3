"""The verb ``diff``: two versions of a document; a tracked file is the business of ``diff_tracked``."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any, Literal

import click

from mergepub import publishing, status
from mergepub.cli.answers import write_json
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import VersionName, json_option, last_given, store_option, switch, verb
from mergepub.cli.show import show_diff
from mergepub.errors import InputError
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.documents import Document


def two_versions(url: str, path: str, old: int | None = None, new: int | None = None) -> tuple[Document, Document]:
    """Two versions of a document: ``new`` is the head where it is None, ``old`` the version before ``new``.

    Raises:
        InputError: there is no version before the first.
        NotFoundError: no such document or version.
    """
    with opened(url) as store:
        after = publishing.fetch(store, path, new).document
        before = _before(after) if old is None else old
        return publishing.fetch(store, path, before).document, after


def _before(document: Document) -> int:
    number = document.version.number or 0
    if number < 2:
        raise InputError(
            f"{document.path} has one version, so there is none to compare it with",
            hint=f"see it: mergepub fetch {shlex.quote(document.path)}",
        )
    return number - 1


@verb(
    "diff",
    "mergepub diff /docs/guide.md",
    "mergepub diff /docs/guide.md v1 v2 > guide.patch",
    "mergepub diff tracked.md --theirs",
)
@click.argument("path", metavar="PATH|FILE")
@click.argument("old", metavar="[vA]", type=VersionName(), required=False)
@click.argument("new", metavar="[vB]", type=VersionName(), required=False)
@switch("theirs", "FILE: what others changed since its version.")
@switch("merged", "FILE: what a pull would make of it.")
@json_option
@store_option
@click.pass_context
def diff_command(context: click.Context, /, path: str, old: int | None, new: int | None, **given: Any) -> int:
    """Show what changed between two versions of the document PATH, or in a tracked FILE.

    With vA alone, from that version to the newest; without both, what the newest changed. Of a FILE, what changed here
    since the version that it was made from. In a pipe it is a unified diff, as patch -p1 and git apply take it.
    """
    what = last_given(context, "theirs", "merged")
    if not path.startswith("/") or os.path.isfile(path):  # noqa: PTH113 - pathlib costs every command milliseconds
        from mergepub.cli.diff_tracked import path_of, tracked_diff

        if old is not None:
            versions = " ".join(f"v{each}" for each in (old, new) if each is not None)
            raise InputError(
                f"versions are those of a document, and {path} is a file",
                hint=f"name the document: mergepub diff {shlex.quote(path_of(path) or 'PATH')} {versions}",
            )
        return tracked_diff(context, path, _what(what), json=given["json"])
    check_path(path)
    if what:
        raise InputError(f"--{what} is for a tracked file, and {path} is a document", hint="name a FILE, or versions")
    before, after = two_versions(store_url(context), path, old, new)
    if given["json"]:
        write_json(status.envelope(_facts(before, after)))
    else:
        show_diff(before.body, after.body, (_name(b"a", before), _name(b"b", after)))
    return 0


def _what(option: str | None) -> Literal["ours", "theirs", "merged"]:
    return "theirs" if option == "theirs" else "merged" if option == "merged" else "ours"


def _name(side: bytes, document: Document) -> bytes:
    """A name that ``patch -p1`` takes, and the version where a time may stand."""
    return b"%s%s\tv%d" % (side, document.path.encode("utf-8"), document.version.number or 0)


def _facts(before: Document, after: Document) -> dict[str, Any]:
    from mergepub.merge.unified import unified

    text = b"".join(unified(before.body, after.body, (_name(b"a", before), _name(b"b", after))))
    facts = {"status": "ok", "path": after.path, "from": before.version.number, "to": after.version.number}
    return facts | {"unchanged": not text} | status.json_text("diff", text)
