"""Every store that keeps branches, against the suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from mergepub.documents import ABSENT, Version
from mergepub.stores.http import HttpStore
from mergepub.stores.memory import MemoryStore
from mergepub.stores.postgres import PostgresStore
from mergepub.stores.sqlite import SqliteStore
from mergepub.stores.wrappers import FaultInjecting, Retrying, RetryPolicy, lost_answer
from tests.branching.suite import BranchSuite, Opener
from tests.stores.http_service import HttpService


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
    store.publish("/docs/guide.md", b"one\n", ABSENT)
    store.publish("/docs/guide.md", b"two\n", Version(1))
    assert suite.branch(store, b"mine\n").replayed
    assert len(inner.branches("/docs/guide.md")[1]) == 2


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    file = tmp_path_factory.mktemp("served") / "store.sqlite"
    service = HttpService(f"sqlite:///{file}").start()
    yield service, file
    service.remove()


class TestHttp(BranchSuite):
    """The same promises through one service, each test on a store of its own: the file is removed after each."""

    @pytest.fixture
    def make_store(self, served: tuple[HttpService, Path]):
        service, file = served
        yield lambda: HttpStore(service.url, policy=RetryPolicy.instant())
        for each in file.parent.glob(f"{file.name}*"):
            each.unlink()
