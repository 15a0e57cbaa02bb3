"""Publishing where conflicts become branches: fast-forward or sibling in one call, and growing one's own branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mergepub.branching.kinds import is_events
from mergepub.calls import branching, insist
from mergepub.documents import TEXT, Receipt, Version
from mergepub.errors import BranchError, VersionConflictError
from mergepub.events import parse_events
from mergepub.outcomes import Branched, Published, Refused
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.histories import BranchReceipt
    from mergepub.stores.contract import Store


def publish_or_branch(
    store: Store,
    path: str,
    body: bytes,
    expected: int,
    *,
    author: str = "",
    message: str = "",
    source: str | None = None,
    incarnation: str | None = None,
    digest: str | None = None,
    kind: str = TEXT,
) -> Published | Branched | Refused:
    """Publish ``body``, an edit of version ``expected``; where others published since, keep it as a sibling.

    ``incarnation`` and ``digest`` are what the writer recorded of its base.

    Raises:
        NotFoundError: ``expected`` is not 0 and the document never existed.
        UnavailableError: the store gave no clear answer.
    """
    keeper = branching(store)
    try:
        receipt = insist(
            lambda: keeper.branch(
                path,
                body,
                Version(expected),
                author=author,
                message=message,
                source=source,
                incarnation=incarnation,
                digest=digest,
                kind=kind,
            )
        )
    except VersionConflictError as conflict:
        return Refused(expected, conflict.current or 0, conflict.reason or "base-unavailable")
    except BranchError as refused:
        raise explained(refused, body) from refused
    return _published(receipt) if isinstance(receipt, Receipt) else _branched(receipt)


def extend(
    store: Store,
    path: str,
    branch: str,
    body: bytes,
    *,
    author: str = "",
    message: str = "",
    epoch: int | None = None,
    known: int | None = None,
) -> Branched:
    """Add a revision to the end of one's own branch; ``epoch`` and ``known`` are what the writer recorded of it.

    Raises:
        BranchError: fenced off, not open, or the branch has another end than the writer knows.
        InputError: a body that breaks a rule of events.
        NotFoundError: no such document or branch.
    """
    check_path(path)
    is_events(store, path, body)
    keeper = branching(store)
    try:
        receipt = insist(
            lambda: keeper.extend(path, branch, body, author=author, message=message, epoch=epoch, known=known)
        )
    except BranchError as refused:
        raise explained(refused, body) from refused
    return _branched(receipt, growing=True)  # type: ignore[return-value]  # a branch that grows is never a publish


def explained(refused: BranchError, body: bytes) -> BranchError:
    """``refused`` itself, unless the body is none for a log of events in the first place.

    Raises:
        InputError: it is not, naming the line and the rule.
    """
    if refused.reason == "not-an-extension":
        parse_events(body)
    return refused


def _published(receipt: Receipt) -> Published:
    number = receipt.version.number or 0
    current = receipt.current if receipt.replayed and receipt.current != number else None
    return Published(
        number,
        unchanged=receipt.unchanged,
        replayed=receipt.replayed,
        current_version=current,
        incarnation=receipt.incarnation,
        open_branches=receipt.open_branches,
    )


def _branched(receipt: BranchReceipt, *, growing: bool = False) -> Published | Branched:
    if receipt.unchanged and not growing:  # a branch that equals its base is no branch
        return Published(
            receipt.base_version, unchanged=True, current_version=receipt.current, incarnation=receipt.incarnation
        )
    return Branched(
        receipt.branch,
        receipt.base_version,
        receipt.current,
        receipt.revision,
        unchanged=receipt.unchanged,
        replayed=receipt.replayed,
        epoch=receipt.epoch,
        incarnation=receipt.incarnation,
    )
