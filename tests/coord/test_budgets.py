"""Token buckets with a clock of the test's own."""

from __future__ import annotations

import pytest
from mergepub.coord import bounds
from mergepub.coord.budgets import Bucket


@pytest.mark.parametrize(
    ("bound", "burst", "wait"),
    [(bounds.SENDS, 5, 5.0), (bounds.READS, 10, 1.0), (bounds.LINES, 30, 1.0)],
    ids=["sends", "reads", "lines"],
)
def test_each_budget_gives_its_burst_and_then_one_at_a_time(bound: tuple[int, float], burst: int, wait: float) -> None:
    bucket = Bucket(*bound)
    assert [bucket.take(100.0) for _ in range(burst)] == [None] * burst
    assert bucket.take(100.0) == pytest.approx(wait)
    assert bucket.take(100.0 + wait / 2) == pytest.approx(wait / 2)
    assert bucket.take(100.0 + wait) is None
    assert bucket.take(100.0 + wait) == pytest.approx(wait)


def test_a_long_rest_gives_no_more_than_the_burst() -> None:
    bucket = Bucket(5, 1 / 5)
    bucket.take(0.0)
    assert [bucket.take(1e9) for _ in range(6)] == [None] * 5 + [pytest.approx(5.0)]


def test_a_clock_that_goes_back_gives_nothing_and_blocks_nothing() -> None:
    bucket = Bucket(2, 1.0)
    assert [bucket.take(1000.0) for _ in range(2)] == [None, None]
    assert bucket.take(10.0) == pytest.approx(1.0)
    assert bucket.take(11.0) is None
