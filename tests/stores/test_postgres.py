"""The PostgreSQL store against the conformance suite, on a real server."""

from __future__ import annotations

import pytest
from mergepub.stores.postgres import PostgresStore
from tests.stores.conformance import Opener, StoreConformance


class TestPostgres(StoreConformance):
    expected_skips = 0

    @pytest.fixture
    def make_store(self, postgres_url: str) -> Opener:
        return lambda: PostgresStore(postgres_url)
