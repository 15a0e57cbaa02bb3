"""Stores with coordination's tables, on both databases, and clocks that the tests turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from mergepub.coord.clock import Clock
from mergepub.coord.records import Run
from mergepub.coord.state import State
from mergepub.stores import open_store

if TYPE_CHECKING:
    from mergepub.stores.sql import SqlStore


@dataclass
class Hands:
    """What a test's clock shows: seconds of the epoch, and steady seconds."""

    wall: float = 1_800_000_000.0
    steady: float = 1000.0

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.steady)

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture(params=["sqlite", "postgresql"])
def coord_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def state(coord_url: str, hands: Hands) -> Iterator[State]:
    store = cast("SqlStore", open_store(coord_url))
    made = State(store, "/data", hands.clock())
    made.open()
    yield made
    store.close()


def started(state: State, member: str = "m", workspace: str = "w") -> Run:
    return state.start(Run("", workspace, member, "a task", "/checkout"))
