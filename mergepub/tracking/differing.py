"""What a tracked file is to be compared with: its base, the head, their merge. Writes nothing, prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mergepub.checkout.records import NO_DOCUMENT
from mergepub.outcomes import Refused
from mergepub.publishing import DEFAULT_MERGE
from mergepub.tracking.pulling import merge_with
from mergepub.tracking.work import head_of, is_exactly, number_of
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.documents import Document
    from mergepub.tracking.work import Work

What = Literal["ours", "theirs", "merged"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two bodies and what they are: "base vN", "vN", "here", "merged". ``conflicts``: marked places in ``new``."""

    old: bytes
    new: bytes
    old_name: str
    new_name: str
    conflicts: int = 0


def compare(work: Work, what: What = "ours") -> Comparison | Refused:
    """Base against FILE (ours), base against the head (theirs), or FILE against what a pull would make of it (merged).

    Raises:
        InputError: FILE is gone.
        NotFoundError: the document never existed.
        UnavailableError: the store gave no clear answer.
    """
    base = work.record.base
    before = f"base v{base.version}"
    if what == "ours":
        return Comparison(b"" if base == NO_DOCUMENT else work.base_body, work.read(), before, "here")
    head = head_of(work.store, work.record)
    if isinstance(head, Refused):
        return head
    if what == "theirs":
        return Comparison(work.base_body, head.body, before, f"v{number_of(head)}")
    return _merged(work, head)


def _merged(work: Work, head: Document) -> Comparison | Refused:
    ours = work.read()
    if is_exactly(work.record.base, number_of(head)):
        return Comparison(ours, ours, "here", "merged")  # nothing is newer there
    merged = merge_with(work, work.record.base, ours, head, DEFAULT_MERGE)
    if isinstance(merged, Refused):
        return merged
    return Comparison(ours, merged.body, "here", "merged", merged.conflicts)
