"""The radar: overlaps, grace, restarts; with times that the tests choose."""

from __future__ import annotations

from mergepub.coord.bounds import GRACE_SECONDS
from mergepub.coord.radar import ACTIVE, CLEAR, GRACE, Change, Overlap, Radar


def radar(*runs: str, known: tuple[Overlap, ...] = (), now: float = 0.0) -> Radar:
    made = Radar(known, now=now, lapse=30.0)
    for run in runs:
        workspace, _, name = run.rpartition(":")
        made.join(name, workspace or "w")
    return made


def files(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_two_runs_that_share_a_path_overlap_and_both_sides_are_told_once() -> None:
    r = radar("a", "b")
    assert r.observe("a", files("/x", "/y"), 1) == []
    assert r.observe("b", files("/y", "/z"), 2) == [
        Change("w", "a", "b", ACTIVE, ("/y",)),
        Change("w", "b", "a", ACTIVE, ("/y",)),
    ]
    assert r.observe("b", files("/y", "/z"), 3) == []
    assert r.observe("a", files("/y"), 4) == []
    assert [o.files for o in r.peers("a", 4)] == [("/y",)]


def test_runs_of_other_workspaces_never_overlap() -> None:
    r = radar("one:a", "two:b")
    assert r.observe("a", files("/x"), 1) + r.observe("b", files("/x"), 2) == []
    assert r.overlap("a", "b", 2) is None


def test_a_change_of_the_shared_files_is_told_and_the_same_set_is_not() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x", "/y"), 1)
    r.observe("b", files("/x"), 2)
    assert [c.files for c in r.observe("b", files("/x", "/y"), 3)] == [("/x", "/y")] * 2


def test_a_witnessed_clearing_begins_ten_minutes_of_grace() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x"), 100)
    r.observe("b", files("/x"), 100)
    assert [c.state for c in r.observe("a", files(), 110)] == [GRACE, GRACE]
    found = r.overlap("a", "b", 110)
    assert found is not None
    assert (found.state, found.files, found.until) == (GRACE, (), 110 + GRACE_SECONDS)
    assert r.overlap("a", "b", 110 + GRACE_SECONDS - 0.001)
    assert r.overlap("a", "b", 110 + GRACE_SECONDS) is None
    assert r.peers("b", 110 + GRACE_SECONDS) == []


def test_a_grace_that_is_over_is_told_once() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x"), 100)
    r.observe("b", files("/x"), 100)
    r.observe("a", files(), 110)
    assert r.expire(110 + GRACE_SECONDS - 1) == []
    assert [c.state for c in r.expire(110 + GRACE_SECONDS)] == [CLEAR, CLEAR]
    assert r.expire(110 + GRACE_SECONDS + 1) == []


def test_an_overlap_that_returns_during_grace_is_active_again() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x"), 1)
    r.observe("b", files("/x"), 2)
    r.observe("a", files(), 3)
    assert [c.state for c in r.observe("a", files("/x"), 4)] == [ACTIVE, ACTIVE]


def test_a_clearing_found_after_a_pause_counts_from_the_last_look() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x"), 100)
    r.observe("b", files("/x"), 100)
    r.observe("a", files(), 300)
    found = r.overlap("a", "b", 300)
    assert found is not None
    assert found.until == 100 + GRACE_SECONDS


def test_a_clearing_found_after_a_pause_longer_than_grace_is_clear_at_once() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x"), 100)
    r.observe("b", files("/x"), 100)
    assert [c.state for c in r.observe("a", files(), 100 + GRACE_SECONDS)] == [CLEAR, CLEAR]
    assert r.peers("a", 100 + GRACE_SECONDS) == []


KNOWN = Overlap("a", "b", "w", ACTIVE, ("/x",), seen=50)


def test_after_a_restart_an_overlap_stands_until_both_were_looked_at() -> None:
    r = radar("a", "b", known=(KNOWN,), now=100)
    assert r.observe("a", files(), 101) == []
    found = r.overlap("a", "b", 101)
    assert found is not None
    assert (found.state, found.files) == (ACTIVE, ("/x",))


def test_after_a_restart_an_overlap_that_lasts_is_not_told_again() -> None:
    r = radar("a", "b", known=(KNOWN,), now=100)
    assert r.observe("a", files("/x"), 101) + r.observe("b", files("/x"), 102) == []


def test_after_a_restart_a_clearing_counts_from_the_last_known_overlap() -> None:
    r = radar("a", "b", known=(KNOWN,), now=100)
    r.observe("a", files(), 101)
    assert [c.state for c in r.observe("b", files("/x"), 102)] == [GRACE, GRACE]
    found = r.overlap("a", "b", 102)
    assert found is not None
    assert found.until == 50 + GRACE_SECONDS


def test_a_grace_survives_a_restart_and_never_grows_when_the_clock_went_back() -> None:
    grace = Overlap("a", "b", "w", GRACE, (), seen=5000, until=5600)
    r = radar("a", "b", known=(grace,), now=10)
    found = r.overlap("a", "b", 10)
    assert found is not None
    assert found.until == 10 + GRACE_SECONDS
    assert radar(known=(grace,), now=5700).overlap("a", "b", 5700) is None


def test_a_run_that_ends_takes_its_overlaps_along() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x"), 1)
    r.observe("b", files("/x"), 2)
    assert [(c.run, c.state) for c in r.leave("a")] == [("a", CLEAR), ("b", CLEAR)]
    assert r.peers("b", 3) == []


def test_what_is_stored_of_an_overlap_says_when_both_sides_were_last_known() -> None:
    r = radar("a", "b")
    r.observe("a", files("/x"), 1)
    r.observe("b", files("/x"), 2)
    r.observe("b", files("/x"), 9)
    r.observe("a", files("/x"), 12)
    assert [o.seen for o in r.overlaps()] == [12]


def test_peers_are_the_active_ones_first() -> None:
    r = radar("a", "b", "c")
    r.observe("a", files("/x", "/y"), 1)
    r.observe("b", files("/x"), 1)
    r.observe("c", files("/y"), 1)
    r.observe("b", files(), 2)
    assert [(o.peer_of("a"), o.state) for o in r.peers("a", 3)] == [("c", ACTIVE), ("b", GRACE)]
