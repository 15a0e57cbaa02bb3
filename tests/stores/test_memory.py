"""The memory store, bare and in every wrapper, against the conformance suite."""

from __future__ import annotations

import pytest
from mergepub.stores import open_store
from mergepub.stores.memory import MemoryStore
from mergepub.stores.wrappers import FaultInjecting, Logging, Retrying, RetryPolicy, Wrapper, contention
from tests.stores.conformance import Opener, StoreConformance


class TestMemory(StoreConformance):
    expected_skips = 3

    @pytest.fixture
    def make_store(self) -> Opener:
        store = MemoryStore()
        return lambda: store


class TestWrapper(StoreConformance):
    expected_skips = 3

    @pytest.fixture
    def make_store(self) -> Opener:
        store = MemoryStore()
        return lambda: Wrapper(store)


class TestRetryingAroundFaults(StoreConformance):
    """Every second call is disturbed, and nobody notices."""

    expected_skips = 3

    @pytest.fixture
    def make_store(self) -> Opener:
        store = MemoryStore()
        return lambda: Retrying(FaultInjecting(store, [contention(), None] * 500), RetryPolicy.instant())


class TestLogging(StoreConformance):
    expected_skips = 3

    @pytest.fixture
    def make_store(self) -> Opener:
        store, lines = MemoryStore(), list[str]()
        return lambda: Logging(store, lines.append)


class TestFaultInjectingWithoutFaults(StoreConformance):
    expected_skips = 3

    @pytest.fixture
    def make_store(self) -> Opener:
        store = MemoryStore()
        return lambda: FaultInjecting(store)


def test_a_named_memory_store_is_one_per_name_and_an_unnamed_one_is_its_own() -> None:
    assert open_store("memory:shared") is open_store("memory:shared")
    assert open_store("memory:") is not open_store("memory:")
