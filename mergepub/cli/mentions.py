"""Unresolved branches, mentioned on standard error by every verb that touches their document."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mergepub.cli.streams import say
from mergepub.errors import MergepubError
from mergepub.outcomes import Published

if TYPE_CHECKING:
    from mergepub.outcomes import Outcome
    from mergepub.stores.contract import BranchStore, Store

MOST = 5
"""Documents that are named in one mention."""


def mention(store: Store, prefix: str) -> None:
    """Say which documents at or below ``prefix`` have branches that nobody has decided about, and what to type next.

    A mention is a courtesy: where it cannot be found out, nothing is said.
    """
    if not store.capabilities.branches:
        return
    try:
        found = cast("BranchStore", store).unresolved(prefix, limit=MOST + 1)
    except MergepubError:
        return
    if found:
        from mergepub.status_branches import unresolved_hints

        for line in unresolved_hints(found[:MOST]):
            say(line)
        if len(found) > MOST:
            say("and there are more; next: mergepub branches PATH for each")


def mention_after(store: Store, path: str, outcome: Outcome) -> None:
    """The same of one document after a write; where the store has counted with its answer, no question goes out."""
    count = outcome.open_branches if isinstance(outcome, Published) else None
    if count is None:
        mention(store, path)
    elif count:
        from mergepub.histories import Unresolved
        from mergepub.status_branches import unresolved_hints

        for line in unresolved_hints([Unresolved(path, count, "")]):
            say(line)
