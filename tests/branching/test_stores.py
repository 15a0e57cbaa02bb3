"""Every store that keeps branches, against the suite."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from mergepub.documents import ABSENT, Version
from mergepub.errors import DocumentDeletedError, UnknownOutcomeError
from mergepub.histories import CHOOSE, DecisionRequest, Place
from mergepub.stores.http import HttpStore
from mergepub.stores.memory import MemoryStore
from mergepub.stores.postgres import PostgresStore
from mergepub.stores.sqlite import SqliteStore
from mergepub.stores.wrappers import FaultInjecting, Retrying, RetryPolicy, lost_answer
from tests.branching.suite import BranchSuite, Opener, refusal
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


@pytest.mark.parametrize("kept", ["file", "http"])
def test_every_refusal_says_what_to_type_next(kept: str, served: tuple[HttpService, Path]) -> None:
    service, file = served
    store = SqliteStore(file) if kept == "file" else HttpStore(service.url, policy=RetryPolicy.instant())
    path = f"/docs/hints {kept}.md"
    store.publish(path, b"one\n", ABSENT)
    store.publish(path, b"two\n", Version(1))
    name = store.branch(path, b"mine\n", Version(1), author="ann").branch  # type: ignore[union-attr]  # a sibling
    calls = {
        f"branch take {quote(path)} {name}": lambda: store.extend(path, name, b"x\n", author="eve"),
        f"branches {quote(path)}": lambda: store.revision(path, "none"),
        f"branches {quote(path)} ": lambda: store.revision(path, name, 7),
        f"branches {quote(path)}  ": lambda: store.decide(path, DecisionRequest(CHOOSE, 1, Place(name, 1))),
        f"branches {quote(path)}   ": lambda: store.decide(path, DecisionRequest(CHOOSE, 2, Place("main", 2))),
        "publish /none FILE --expected-version 0": lambda: store.branches("/none"),
    }
    for wanted, call in calls.items():
        hint = refusal(call).hint or ""
        assert hint.endswith(f"mergepub {wanted.rstrip()}"), (wanted, hint)
    store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_clock_that_is_set_back_puts_nothing_before_what_it_follows(kind: str, tmp_path: Path) -> None:
    times = (f"2026-01-01T00:00:{second:02}.000000Z" for second in range(50, 0, -1))
    clock = times.__next__
    store = MemoryStore(clock=clock) if kind == "memory" else SqliteStore(tmp_path / "store.sqlite", clock=clock)
    suite, path = BranchSuite(), "/docs/guide.md"
    store.publish(path, b"one\n", ABSENT)
    store.publish(path, b"two\n", Version(1))
    names = [suite.branch(store, b"%d\n" % i).branch for i in range(2)]
    for name in names:
        suite.decide(store, "reject", 2, Place(name, 1))
    times_of = [row.modified for row in reversed(store.decisions(path))]
    assert times_of == sorted(times_of)
    assert all(store.revision(path, name).modified >= store.revision(path, "main", 1).modified for name in names)
    assert list(store.verify()) == []
    store.close()


def test_a_create_whose_answer_was_lost_brings_no_deleted_document_back(
    served: tuple[HttpService, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _ = served
    store, other = (HttpStore(service.url, policy=RetryPolicy.instant()) for _ in range(2))
    exchange, lost = store._exchange, [True]

    def loses(*call: Any) -> Any:
        answer = exchange(*call)
        if lost:
            lost.pop()
            other.delete("/docs/gone.md", Version(1))
            raise UnknownOutcomeError("the connection was reset")
        return answer

    monkeypatch.setattr(store, "_exchange", loses)
    error = refusal(lambda: store.branch("/docs/gone.md", b"one\n", ABSENT, author="ann"))
    assert isinstance(error, DocumentDeletedError)
    assert [row.deleted for row in other.versions("/docs/gone.md")] == [True, False]
    store.close()
    other.close()


class TestHttp(BranchSuite):
    """The same promises through one service, each test on a store of its own: the file is removed after each."""

    @pytest.fixture
    def make_store(self, served: tuple[HttpService, Path]):
        service, file = served
        yield lambda: HttpStore(service.url, policy=RetryPolicy.instant())
        for each in file.parent.glob(f"{file.name}*"):
            each.unlink()
