"""A publish whose answer goes into the tracked FILE itself (``-o FILE``): what FILE and its base become.

Prints nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mergepub import publishing
from mergepub.checkout.replacing import replace_file
from mergepub.outcomes import Candidate, Outcome, Overlap
from mergepub.tracking.pulling import enter_conflict
from mergepub.tracking.work import exactly

if TYPE_CHECKING:
    from mergepub.documents import Document
    from mergepub.tracking.work import Work


def take_output(work: Work, outcome: Outcome) -> None:
    """Write the body of the answer to FILE, which was just published.

    A marked body puts FILE in conflict; a candidate is FILE with the head merged in, like after a pull; a published
    merge was written back already.

    Raises:
        FileChangedError: FILE was saved meanwhile, and stays as it is.
    """
    if work.last is None:
        return
    ours, base = work.last
    record = replace(work.record, base=base)
    if isinstance(outcome, Overlap):
        enter_conflict(work, ours, record, _version(work, outcome.current_version), outcome, here=ours)
    elif isinstance(outcome, Candidate):
        head = _version(work, outcome.their_version)
        after = replace(record, base=exactly(head), brought=record.bringing(ours, outcome.body))
        work.checkout.store(after.file, head.body)
        replace_file(work.checkout, work.local, ours, outcome.body, after)
        work.record = after


def _version(work: Work, version: int) -> Document:
    return publishing.fetch(work.store, work.record.path, version).document
