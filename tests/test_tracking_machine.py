"""Random histories of two people who edit, pull, push, publish and resolve while everything fails that can.

Whatever happens: no edit is ever reverted, lost or doubled.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from mergepub.stores import open_store
from tests.tracking_world import World, random_history

people = st.integers(0, 1)
paths = st.sampled_from([*World.paths, World.paths[0], World.paths[0]])
spots = st.sampled_from(range(12))
kinds = st.sampled_from(["insert", "insert", "replace", "drop"])
edits = st.lists(st.tuples(people, kinds, spots), min_size=1, max_size=3)
fuses = st.one_of(st.none(), st.sampled_from(range(70)))
losses = st.sampled_from([(), (), (), ("answer", "request"), ("request", "answer"), ("request", "request"),
                          ("late", "late"), ("answer", "answer"), ("request", "late")])  # fmt: skip
middles = st.sampled_from([None, None, "rename", "in place"])


class Tracking(RuleBasedStateMachine):
    """Rules are what people do; what fails in a command is drawn with it."""

    @initialize(exchanges=st.booleans())
    def begin(self, exchanges):
        self.patch = pytest.MonkeyPatch()
        self.world = World(self.patch, exchanges=exchanges)

    def teardown(self):
        if hasattr(self, "world"):
            try:
                self.world.finish()
            finally:
                self.patch.undo()
                self.world.close()

    def at(self, person):
        return self.world.people[person]

    def edit(self, path, edits):
        for person, kind, spot in edits:
            self.world.edit(self.at(person), path, kind, spot)

    @rule(path=paths, edits=edits)
    def edits_alone(self, path, edits):
        self.edit(path, edits)

    @rule(person=people, path=paths)
    def open_editor(self, person, path):
        self.world.open_editor(self.at(person), path)

    @rule(person=people, path=paths, spot=spots)
    def save_editor(self, person, path, spot):
        self.world.save_editor(self.at(person), path, spot)

    @rule(person=people, path=paths, edits=edits, fuse=fuses, middle=middles)
    def pull(self, person, path, edits, fuse, middle):
        self.edit(path, edits)
        self.world.pull(self.at(person), path, fuse=fuse, middle=middle)

    @rule(person=people, path=paths, edits=edits, update=st.booleans(), fuse=fuses, loss=losses, middle=middles,
          policy=st.sampled_from(["merge", "merge", "fail"]))  # fmt: skip
    def push(self, person, path, edits, update, fuse, loss, middle, policy):  # noqa: PLR0917 - passed by name
        self.edit(path, edits)
        self.world.push(self.at(person), path, update=update, policy=policy, fuse=fuse, losses=loss, middle=middle)

    @rule(person=people, path=paths, edits=edits, fuse=fuses, loss=losses, middle=middles,
          policy=st.sampled_from(["merge", "candidate"]))  # fmt: skip
    def publish_into_the_file(self, person, path, edits, fuse, loss, middle, policy):  # noqa: PLR0917 - as above
        self.edit(path, edits)
        self.world.publish_into(self.at(person), path, policy=policy, fuse=fuse, losses=loss, middle=middle)

    @rule(person=people, path=paths, fuse=fuses, loss=losses, middle=middles)
    def resolve(self, person, path, fuse, loss, middle):
        self.world.resolve(self.at(person), path, fuse=fuse, losses=loss, middle=middle)

    @rule(person=people, path=paths, fuse=fuses, middle=middles)
    def fetch(self, person, path, fuse, middle):
        self.world.fetch(self.at(person), path, fuse=fuse, middle=middle)

    @rule()
    def let_late_requests_arrive(self):
        self.world.store.deliver()

    @invariant()
    def nothing_is_lost(self):
        if hasattr(self, "world"):
            self.world.check_nothing_is_lost()


TestTracking = Tracking.TestCase
TestTracking.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("seed", range(1000, 1008))
def test_histories_on_a_store_in_a_file_lose_nothing(seed, tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/store.sqlite")
    random_history(seed, steps=30, store=store)
    store.close()
