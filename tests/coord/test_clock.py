"""Jumps of the calendar change no duration; what was stored before a restart never lasts longer for one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mergepub.coord.bounds import GRACE_SECONDS
from mergepub.coord.clock import Clock, stamp
from mergepub.coord.office import Desk, Office
from mergepub.coord.radar import ACTIVE, GRACE, Overlap
from mergepub.coord.records import Run
from mergepub.coord.surfaces import Root
from tests.coord.conftest import Hands, started

if TYPE_CHECKING:
    from mergepub.coord.state import State


def test_now_follows_what_really_passes_and_stamps_follow_the_calendar(hands: Hands) -> None:
    clock = hands.clock()
    began = clock.now()
    hands.wall += 86400
    assert clock.now() == began
    hands.steady += 5
    assert clock.now() == began + 5
    assert clock.stamp() == stamp(hands.wall)


def test_the_calendar_is_rfc_3339_in_utc() -> None:
    assert stamp(0.25) == "1970-01-01T00:00:00.250000Z"
    assert Clock().stamp().endswith("Z")


@pytest.mark.parametrize("jump", [-86400.0, 86400.0])
def test_a_jump_of_the_calendar_neither_ends_nor_lengthens_a_grace(state: State, hands: Hands, jump: float) -> None:
    a, b = sorted((started(state, "ann"), started(state, "ben")), key=lambda run: run.id)
    hands.wall += jump

    def look(office: Office) -> list[tuple[str, str]]:
        return [(peer["state"], peer["expires_at"]) for peer in office.peers_of(a.id)]

    async def scene() -> tuple[Any, Any, Any]:
        office = Office(state, Root(Path("/nowhere")), state.clock, lambda _: None, lapse=60.0)
        for run in (a, b):
            office.desks[run.id] = Desk(run)
            office.radar.join(run.id, "w")
            office.radar.observe(run.id, frozenset({"/x"}), office.clock.now())
        office.radar.observe(a.id, frozenset(), office.clock.now())
        first = look(office)
        hands.steady += GRACE_SECONDS - 1
        second = look(office)
        hands.steady += 1
        third = look(office)
        office.close()
        return first, second, third

    first, second, third = asyncio.run(scene())
    assert [each for each, _ in first] == [GRACE]
    assert second == first
    assert third == []


@pytest.mark.parametrize(("jump", "left"), [(-86400.0, GRACE_SECONDS), (300.0, 300.0), (86400.0, None)])
def test_a_grace_that_was_stored_lasts_no_longer_after_a_restart(
    state: State, hands: Hands, jump: float, left: float | None
) -> None:
    a, b = sorted((started(state), started(state)), key=lambda run: run.id)
    now = state.clock.now()
    state.keep_overlaps([Overlap(a.id, b.id, "w", GRACE, (), now, now + GRACE_SECONDS)])
    hands.wall += jump
    state.clock = hands.clock()

    async def scene() -> Overlap | None:
        office = Office(state, Root(Path("/nowhere")), state.clock, lambda _: None, lapse=60.0)
        await office.recall()
        found = office.radar.overlap(a.id, b.id, state.clock.now())
        office.close()
        return found

    found = asyncio.run(scene())
    assert (found and found.until - state.clock.now()) == (left and pytest.approx(left))


def test_overlaps_are_kept_and_forgotten(state: State) -> None:
    a, b = sorted((started(state), started(state)), key=lambda run: run.id)
    overlap = Overlap(a.id, b.id, "w", ACTIVE, ("/a", "/b"), 5.0)
    state.keep_overlaps([overlap])
    assert state.overlaps() == [overlap]
    later = Overlap(a.id, b.id, "w", GRACE, (), 5.0, 605.0)
    state.keep_overlaps([later])
    assert state.overlaps() == [later]
    state.keep_overlaps([], [(a.id, b.id)])
    assert state.overlaps() == []


def test_a_run_is_kept_with_all_that_is_known_of_it(state: State) -> None:
    made = state.start(Run("", "w", "ann", "a task", "/checkout", "/transcripts", 7))
    assert state.runs() == [made]
    state.end(made.id)
    assert state.runs() == []
    assert [(run.id, run.state) for run in state.runs(active=False)] == [(made.id, "finished")]


def test_an_overlap_with_a_run_that_has_ended_is_not_recalled(state: State) -> None:
    """A crash may come between the end of a run and that of its overlaps."""
    a, b, c = sorted((started(state) for _ in range(3)), key=lambda run: run.id)
    lasting, cut_off = (Overlap(a.id, other.id, "w", ACTIVE, ("/x",), 1.0) for other in (b, c))
    state.end(c.id)
    state.keep_overlaps([lasting, cut_off])
    assert state.overlaps() == [lasting]
