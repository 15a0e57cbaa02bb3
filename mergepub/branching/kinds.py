"""Documents that are logs of events, before anything is written to them: what they may hold and who may not merge them.

Which kind a document is, is asked only of bodies that could be events; every other body the store refuses by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mergepub.calls import insist
from mergepub.documents import EVENTS, TEXT
from mergepub.errors import InputError, NotFoundError
from mergepub.events import parse_events

if TYPE_CHECKING:
    from mergepub.documents import Listed
    from mergepub.stores.contract import Store

MERGING = ("merge", "candidate")


def is_events(store: Store, path: str, body: bytes, kind: str | None = None) -> Listed | bool:
    """Whether ``body`` goes into a log of events: the log's head where there is one, else whether it begins one.

    Raises:
        InputError: ``kind`` is another than the document's, or it would be a log and ``body`` breaks a rule of events.
    """
    if body and not body.startswith(b"{") and kind is None:
        return False
    head = head_of(store, path)
    if head is not None and kind not in (None, head.kind):
        raise InputError(
            f"{path} is a document of {head.kind}, which is fixed until it is deleted", hint="leave --kind out"
        )
    if (head.kind if head is not None else kind or TEXT) != EVENTS:
        return False
    parse_events(body)
    return True if head is None else head


def head_of(store: Store, path: str) -> Listed | None:
    """The head of ``path`` without its body; None where there is no document now."""
    try:
        return next((row for row in insist(lambda: list(store.list(path, limit=1))) if row.path == path), None)
    except NotFoundError:
        return None  # there is no store yet
