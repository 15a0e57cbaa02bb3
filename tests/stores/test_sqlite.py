"""The SQLite store against the conformance suite, and what is SQLite's alone: the file, its creation, its locks."""

from __future__ import annotations

from pathlib import Path

import pytest
from mergepub.stores.sqlite import SqliteStore
from tests.stores.conformance import Opener, StoreConformance


class TestSqlite(StoreConformance):
    expected_skips = 0

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Opener:
        return lambda: SqliteStore(tmp_path / "store.sqlite")
