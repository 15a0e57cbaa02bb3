"""Every store that keeps branches, against the suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from mergepub.stores.memory import MemoryStore
from mergepub.stores.postgres import PostgresStore
from mergepub.stores.sqlite import SqliteStore
from mergepub.stores.wrappers import FaultInjecting, Retrying, RetryPolicy, lost_answer
from tests.branching.suite import BranchSuite, Opener


class TestMemory(BranchSuite):
    @pytest.fixture
    def make_store(self) -> Opener:
        store = MemoryStore()
        return lambda: store


class TestSqlite(BranchSuite):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Opener:
        return lambda: SqliteStore(tmp_path / "store.sqlite")


class TestPostgres(BranchSuite):
    @pytest.fixture
    def make_store(self, postgres_url: str) -> Opener:
        return lambda: PostgresStore(postgres_url)


class TestRetryingWhereNothingIsLost(BranchSuite):
    """The operations of branches pass through wrappers."""

    @pytest.fixture
    def make_store(self) -> Opener:
        store = MemoryStore()
        return lambda: Retrying(FaultInjecting(store), RetryPolicy.instant())


def test_a_lost_answer_costs_no_second_branch() -> None:
    inner = MemoryStore()
    store = Retrying(FaultInjecting(inner, [None, None, lost_answer(), None] * 9), RetryPolicy.instant())
    suite = BranchSuite()
    from mergepub.documents import ABSENT, Version

    store.publish("/docs/guide.md", b"one\n", ABSENT)
    store.publish("/docs/guide.md", b"two\n", Version(1))
    assert suite.branch(store, b"mine\n").replayed
    assert len(inner.branches("/docs/guide.md")[1]) == 2
