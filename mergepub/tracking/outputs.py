"""A publish whose answer goes into a tracked FILE (``-o FILE``): what FILE and its base become.

Prints nothing.
"""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

from mergepub import publishing
from mergepub.checkout import Base
from mergepub.checkout.records import NO_DOCUMENT
from mergepub.checkout.replacing import replace_file
from mergepub.documents import digest_of
from mergepub.errors import CheckoutError
from mergepub.outcomes import Candidate, Outcome, Overlap, Published
from mergepub.tracking.pulling import enter_conflict
from mergepub.tracking.work import exactly, refuse_conflict

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
    if work.last is not None and isinstance(outcome, Overlap | Candidate):
        _take(work, outcome, here=work.last[0])


def check_output(work: Work, path: str) -> None:
    """Refuse to write the answer for another body to a tracked FILE that holds anything of its own.

    Raises:
        CheckoutError: it does, is in conflict, or is tracked as another document.
    """
    name, record = work.local.name, work.record
    refuse_conflict(work.local, record, work.local.read())
    if (record.path, record.store) != (path, work.store.url):
        raise CheckoutError(
            f"{name} is tracked as {record.path} in {record.store}", reason="edited", hint="name another file"
        )
    if digest_of(work.read()) != record.base.digest:
        raise CheckoutError(
            f"{name} was edited since version {record.base.version}; nothing was published",
            reason="edited",
            hint=f"name another file, or publish it: mergepub push {quote(name)}",
        )


def take_other_output(work: Work, outcome: Outcome, body: bytes, expected: int) -> None:
    """Write the body of the answer to FILE, which was checked; ``body`` was published at version ``expected``.

    Raises:
        FileChangedError: FILE was saved meanwhile, and stays as it is.
    """
    here = work.body(work.record.base.digest)
    if isinstance(outcome, Published) and outcome.body is not None:
        base = Base(outcome.version, outcome.incarnation, digest_of(outcome.body))
        after = replace(work.record, base=base, brought=work.record.bringing(here, outcome.body), sent=())
        replace_file(work.checkout, work.local, here, outcome.body, after)
    elif isinstance(outcome, Overlap | Candidate):
        base = NO_DOCUMENT
        if expected:
            made_from = _version(work, expected)
            work.checkout.store(work.record.file, made_from.body)
            base = exactly(made_from)
        work.last = (body, base)
        _take(work, outcome, here=here)


def _take(work: Work, outcome: Overlap | Candidate, *, here: bytes) -> None:
    assert work.last is not None, "the callers have set it"
    ours, base = work.last
    record = replace(work.record, base=base)
    if isinstance(outcome, Overlap):
        head = _version(work, outcome.current_version)
        enter_conflict(work, ours, record, head, outcome, here=here)
        return
    head = _version(work, outcome.their_version)
    after = replace(record, base=exactly(head), brought=record.bringing(here, outcome.body))
    work.checkout.store(after.file, head.body)
    replace_file(work.checkout, work.local, here, outcome.body, after)
    work.record = after


def _version(work: Work, version: int) -> Document:
    return publishing.fetch(work.store, work.record.path, version).document
