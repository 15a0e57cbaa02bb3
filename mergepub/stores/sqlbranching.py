"""A SQL store that keeps branches: the methods of ``BranchStore``; what they do is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mergepub.stores import refusals
from mergepub.stores.sql import SqlStore, Write

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

# ruff: noqa: PLC0415 - a store that only publishes never needs branches


class SqlBranchStore(SqlStore):
    """The contract of branches on a SQL database."""

    def branch(
        self,
        path: str,
        body: bytes,
        expected: Version,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,
        incarnation: str | None = None,
        digest: str | None = None,
        kind: str = "text",
    ) -> Receipt | BranchReceipt:
        """See ``BranchStore.branch``."""
        from mergepub.stores import sqlbranches

        base = sqlbranches.Base(refusals.number_of(expected), incarnation, digest)
        refusals.check_kind(kind)
        self._check(body, author, message, source)
        write = Write(path, body, self._clock(), author, message, None, source, kind)
        return self._write(path, lambda tx: sqlbranches.publish_or_branch(tx, write, base), creates=base.number == 0)

    def extend(
        self,
        path: str,
        branch: str,
        body: bytes,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,
        epoch: int | None = None,
        known: int | None = None,
    ) -> BranchReceipt:
        """See ``BranchStore.extend``."""
        from mergepub.stores import sqlbranches

        self._check(body, author, message, source)
        write = Write(path, body, self._clock(), author, message, None, source)
        return self._write(path, lambda tx: sqlbranches.extend_branch(tx, write, branch, epoch=epoch, known=known))

    def branches(self, path: str) -> tuple[HeadPlace, list[Branch]]:
        """See ``BranchStore.branches``."""
        from mergepub.stores import sqlbranches

        return self._read(lambda tx: sqlbranches.branches(tx, path))

    def revision(self, path: str, branch: str, revision: int | None = None) -> BranchRevision:
        """See ``BranchStore.revision``."""
        from mergepub.stores import sqlbranches

        return self._read(lambda tx: sqlbranches.revision(tx, path, branch, revision))

    def standing(self, path: str, branch: str, *, version: int | None = None, revision: int | None = None) -> Standing:
        """See ``BranchStore.standing``."""
        from mergepub.stores import sqlbranches

        return self._read(lambda tx: sqlbranches.standing(tx, path, branch, version, revision))

    def unresolved(self, prefix: str = "/", *, limit: int = 1000) -> list[Unresolved]:
        """See ``BranchStore.unresolved``."""
        from mergepub.stores.sqlunresolved import unresolved

        return self._look(lambda tx: unresolved(tx, prefix, limit))

    def take(self, path: str, branch: str, *, author: str) -> Branch:
        """See ``BranchStore.take``."""
        from mergepub.stores import sqlbranches

        return self._write(path, lambda tx: sqlbranches.take(tx, path, branch, author))

    def abandon(self, path: str, branch: str, *, author: str, epoch: int | None = None) -> Branch:
        """See ``BranchStore.abandon``."""
        from mergepub.stores import sqlbranches

        return self._write(path, lambda tx: sqlbranches.abandon(tx, path, branch, author, epoch))

    def decide(self, path: str, request: DecisionRequest) -> DecisionReceipt:
        """See ``BranchStore.decide``."""
        from mergepub.stores import branchrules, sqldecisions

        branchrules.check_request(request)
        self._check(request.body or b"", request.resolver, request.reason)
        modified = self._clock()
        return self._write(path, lambda tx: sqldecisions.decide(tx, path, request, modified))

    def decisions(self, path: str, *, before: int | None = None, limit: int | None = None) -> list[Decision]:
        """See ``BranchStore.decisions``."""
        from mergepub.stores import sqldecisions

        return self._read(lambda tx: sqldecisions.decisions(tx, path, before, limit))
