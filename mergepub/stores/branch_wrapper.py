"""The operations of ``BranchStore`` through a wrapper: each goes through its ``_around`` like every other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from mergepub.documents import Receipt, Version
    from mergepub.histories import (
        Branch,
        BranchReceipt,
        BranchRevision,
        Decision,
        DecisionReceipt,
        DecisionRequest,
        HeadPlace,
        Standing,
        Unresolved,
    )
    from mergepub.stores.contract import BranchStore, Store

T = TypeVar("T")


class BranchWrapper:
    """Branches of the inner store; where it keeps none, nobody who asks its capabilities comes here."""

    _inner: Store

    def _passed(
        self, name: str, path: str, operation: Callable[[BranchStore], T], *, writes: bool = False, **facts: Any
    ) -> T:
        from mergepub.stores.wrappers import Call  # noqa: PLC0415 - that module builds on this one

        around = cast("Callable[[Call, Callable[[], T]], T]", getattr(self, "_around"))  # noqa: B009 - the wrapper's own
        return around(Call(name, path, writes=writes, **facts), lambda: operation(cast("BranchStore", self._inner)))

    def branch(self, path: str, body: bytes, expected: Version, **how: Any) -> Receipt | BranchReceipt:
        """See ``BranchStore.branch``."""
        facts = {"size": len(body), "expected": expected.number}
        return self._passed("branch", path, lambda s: s.branch(path, body, expected, **how), writes=True, **facts)

    def extend(self, path: str, branch: str, body: bytes, **how: Any) -> BranchReceipt:
        """See ``BranchStore.extend``."""
        return self._passed("extend", path, lambda s: s.extend(path, branch, body, **how), writes=True, size=len(body))

    def branches(self, path: str) -> tuple[HeadPlace, list[Branch]]:
        """See ``BranchStore.branches``."""
        return self._passed("branches", path, lambda s: s.branches(path))

    def revision(self, path: str, branch: str, revision: int | None = None) -> BranchRevision:
        """See ``BranchStore.revision``."""
        return self._passed("revision", path, lambda s: s.revision(path, branch, revision))

    def standing(self, path: str, branch: str, *, version: int | None = None, revision: int | None = None) -> Standing:
        """See ``BranchStore.standing``."""
        return self._passed("standing", path, lambda s: s.standing(path, branch, version=version, revision=revision))

    def unresolved(self, prefix: str = "/", *, limit: int = 1000) -> list[Unresolved]:
        """See ``BranchStore.unresolved``."""
        return self._passed("unresolved", prefix, lambda s: s.unresolved(prefix, limit=limit))

    def take(self, path: str, branch: str, *, author: str) -> Branch:
        """See ``BranchStore.take``."""
        return self._passed("take", path, lambda s: s.take(path, branch, author=author), writes=True)

    def abandon(self, path: str, branch: str, *, author: str, epoch: int | None = None) -> Branch:
        """See ``BranchStore.abandon``."""
        return self._passed("abandon", path, lambda s: s.abandon(path, branch, author=author, epoch=epoch), writes=True)

    def decide(self, path: str, request: DecisionRequest) -> DecisionReceipt:
        """See ``BranchStore.decide``."""
        return self._passed("decide", path, lambda s: s.decide(path, request), writes=True)

    def decisions(self, path: str, *, before: int | None = None, limit: int | None = None) -> list[Decision]:
        """See ``BranchStore.decisions``."""
        return self._passed("decisions", path, lambda s: s.decisions(path, before=before, limit=limit))
