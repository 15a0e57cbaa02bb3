"""Random histories of a dozen writers and resolvers: what no publish, branch or decision may ever break.

- no revision or version is ever changed or removed, and every one stays reachable;
- one head at every moment, moved by a publish, an append, a delete or a decision alone;
- a tool result never precedes its call, and no event of one branch stands in another but through an approved rebase or
  a continuation;
- replaying any request changes nothing.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from mergepub.branching import deciding, sending
from mergepub.branching.deciding import How
from mergepub.documents import EVENTS, Version
from mergepub.errors import BranchError, MergepubError, VersionConflictError
from mergepub.events import parse_events
from mergepub.histories import CHOOSE, CONTINUE, REBASE, REJECT, Place
from mergepub.publishing import append, publish
from mergepub.stores.memory import MemoryStore
from mergepub.stores.postgres import PostgresStore
from mergepub.stores.sqlite import SqliteStore

DOC = "/log"
writers = st.sampled_from([f"w{i}" for i in range(12)])


class Histories(RuleBasedStateMachine):
    """One log of events, written to by twelve; every answer is checked against what was there before."""

    def make(self) -> Any:
        return MemoryStore()

    def __init__(self) -> None:
        super().__init__()
        self.store = self.make()
        self.names = itertools.count()
        self.calls: list[str] = []
        self.kept: dict[tuple[str, Place], tuple[bytes, tuple[Place, ...]]] = {}  # every revision ever seen
        self.versions: dict[int, tuple[str | None, bytes | None]] = {}
        self.allowed: set[tuple[str, str]] = set()  # (branch, event) that a rebase or a continuation brought
        self.last: Any = None
        self.moves = 0  # what may have moved the head
        publish(self.store, DOC, self.event(), 0, kind=EVENTS)
        self.moves = 1

    # What writers write

    def event(self, tool: str = "message") -> bytes:
        name = f"e{next(self.names)}"
        if tool == "tool_call":
            self.calls.append(name)
        call = f', "call_id": "{self.calls[-1]}"' if tool == "tool_result" else ""
        return b'{"id": "%s", "type": "%s"%s}\n' % (name.encode(), tool.encode(), call.encode())

    def more(self, body: bytes, tool: str) -> bytes:
        """``body`` with one more event; a result only where its call is known there."""
        known = [event.id for event in parse_events(body) if event.type == "tool_call"]
        self.calls = known or self.calls
        return body + self.event(tool if tool != "tool_result" or known else "message")

    def bodies(self) -> dict[int, bytes]:
        return {number: body for number, (_, body) in self.versions.items() if body is not None}

    def open_branches(self) -> list[Any]:
        head, branches = self.store.branches(DOC)
        return [b for b in branches if b.state == "open" and b.incarnation == head.incarnation]

    def again(self, call: Any) -> Any:
        """Do it, and do it again as after a lost answer: the second time changes nothing."""
        self.moves += 1
        answer = call()
        before = self.snapshot()
        with suppress(VersionConflictError, BranchError):
            call()
        assert self.snapshot() == before
        return answer

    def foreseen(self, call: Any, how: How) -> Any:
        """Decide, after a dry run that comes to the same and changes nothing."""
        before = self.snapshot()
        shown = self.outcome(lambda: call(replace(how, dry_run=True)))
        assert self.snapshot() == before
        if isinstance(shown, type):
            with pytest.raises(shown) as refused:
                call(how)
            raise refused.value
        decided = self.again(lambda: call(how))
        assert (shown.version, shown.branch) == (decided.version, decided.branch)
        if shown.body is not None:
            assert self.store.fetch(DOC).body == shown.body
        return decided

    @staticmethod
    def outcome(call: Any) -> Any:
        try:
            return call()
        except MergepubError as error:
            return type(error)

    def snapshot(self) -> Any:
        return self.store.branches(DOC), len(self.store.decisions(DOC)), self.store.fetch(DOC).version.number

    # Rules

    @rule(writer=writers, pick=st.integers(0, 99), tool=st.sampled_from(["message", "tool_call", "tool_result"]))
    def somebody_publishes_or_branches(self, writer: str, pick: int, tool: str) -> None:
        number, body = sorted(self.bodies().items())[pick % len(self.bodies())]
        edit = self.more(body, tool)
        self.again(lambda: publish(self.store, DOC, edit, number, on_conflict="branch", author=writer))

    @rule(writer=writers, tool=st.sampled_from(["message", "tool_call"]))
    def somebody_extends_the_head(self, writer: str, tool: str) -> None:
        head = self.store.fetch(DOC)
        edit = self.more(head.body, tool)
        self.again(lambda: publish(self.store, DOC, edit, head.version.number, author=writer))

    @rule(writer=writers)
    def somebody_appends(self, writer: str) -> None:
        body, key = self.event(), f"k{next(self.names)}"
        self.again(lambda: append(self.store, DOC, body, key=key, author=writer))

    @precondition(lambda self: self.open_branches())
    @rule(pick=st.integers(0, 99), tool=st.sampled_from(["message", "tool_call", "tool_result"]), take=st.booleans())
    def an_owner_extends_its_branch(self, pick: int, tool: str, take: bool) -> None:
        branches = self.open_branches()
        branch = branches[pick % len(branches)]
        writer = f"w{pick % 12}" if take else branch.owners[0].name
        if take:
            self.store.take(DOC, branch.name, author=writer)
        edit = self.more(self.store.revision(DOC, branch.name).body, tool)
        with suppress(BranchError):
            self.again(lambda: sending.extend(self.store, DOC, branch.name, edit, author=writer, known=branch.revision))

    @precondition(lambda self: self.open_branches())
    @rule(pick=st.integers(0, 99))
    def an_owner_gives_its_branch_up(self, pick: int) -> None:
        branches = self.open_branches()
        branch = branches[pick % len(branches)]
        if pick % 3 == 0:
            owner = max(branch.owners, key=lambda owner: owner.epoch)
            self.again(lambda: self.store.abandon(DOC, branch.name, author=owner.name))

    @rule(
        pick=st.integers(0, 99),
        strategy=st.sampled_from([CHOOSE, CONTINUE, REBASE, REJECT]),
        resolver=writers,
        stale=st.booleans(),
    )
    def somebody_decides(self, pick: int, strategy: str, resolver: str, stale: bool) -> None:
        head, branches = self.store.branches(DOC)
        branch = branches[pick % len(branches)]
        seen, expected = branch.end, head.version - (stale and head.version > 1)
        how = How(resolver, f"r{next(self.names)}", effects=True)
        file, approved = None, []
        if strategy == CONTINUE:
            file = self.more(self.store.fetch(DOC).body, "message")
        if strategy == REBASE and branch.digest is not None:  # of an earlier life may be the end, a tombstone
            events = parse_events(self.store.revision(DOC, branch.name).body)
            approved = [event.id for event in events if not event.is_barrier][-2:]
        try:
            decided = self.foreseen(
                lambda how: deciding.decide(
                    self.store, DOC, strategy, seen, expected, file=file, approved=approved, how=how
                ),
                how,
            )
        except MergepubError:
            return
        assert not (stale and head.version > 1 and decided.version == head.version + 1 and strategy != REJECT)
        if strategy == REBASE:
            self.allowed |= {(head.place.branch, name) for name in approved}

    @precondition(lambda self: self.store.decisions(DOC))
    @rule(resolver=writers, pick=st.integers(0, 19))
    def somebody_undoes_a_decision(self, resolver: str, pick: int) -> None:
        rows = self.store.decisions(DOC)
        number = rows[pick % len(rows) if pick < 5 else 0].number
        head = self.store.branches(DOC)[0].version
        with suppress(BranchError):
            how = How(resolver, f"{next(self.names)}")
            self.foreseen(lambda how: deciding.undo(self.store, DOC, number, head, how=how), how)

    @rule(pick=st.integers(0, 9))
    def the_document_is_deleted_and_created_again(self, pick: int) -> None:
        if pick == 0:
            head = self.store.fetch(DOC).version.number
            self.store.delete(DOC, Version(head))
            publish(self.store, DOC, self.event(), 0, kind=EVENTS)
            self.moves += 2
            self.allowed.clear()

    # What holds after every step

    @invariant()
    def nothing_is_changed_or_removed(self) -> None:
        head, branches = self.store.branches(DOC)
        seen = {}
        for branch in branches:
            for number in range(1, branch.revision + 1):
                if branch.incarnation == head.incarnation:
                    revision = self.store.revision(DOC, branch.name, number)
                    seen[branch.incarnation, revision.place] = (revision.body, revision.parents)
        present = {key: value for key, value in self.kept.items() if key[0] == head.incarnation}
        assert seen.items() >= present.items()
        self.kept |= seen
        versions = {row.version: (row.digest, row.deleted) for row in self.store.versions(DOC)}
        for number, (digest, _) in self.versions.items():
            assert versions[number][0] == digest
        assert sorted(versions) == list(range(1, head.version + 1))
        assert len(versions) <= self.moves + 2
        self.versions = {
            number: (digest, None if deleted else self._body(number)) for number, (digest, deleted) in versions.items()
        }

    def _body(self, number: int) -> bytes | None:
        known = self.versions.get(number)
        return known[1] if known else self.store.fetch(DOC, number).body

    @invariant()
    def there_is_one_head_and_one_default_branch(self) -> None:
        head, branches = self.store.branches(DOC)
        default = [b for b in branches if b.state == "default" and b.incarnation == head.incarnation]
        assert [b.end for b in default] == [head.place]
        assert self.store.fetch(DOC).version.number == head.version

    @invariant()
    def logs_are_valid_and_events_stay_on_their_branch(self) -> None:
        head, branches = self.store.branches(DOC)
        homes: dict[str, set[str]] = {}
        for branch in branches:
            if branch.incarnation != head.incarnation:
                continue
            events = parse_events(self.store.revision(DOC, branch.name).body)  # a result never precedes its call
            base = []
            if branch.parent and branch.base_revision:
                base = parse_events(self.store.revision(DOC, branch.parent, branch.base_revision).body)
            for event in events[len(base) :]:
                if (branch.name, event.id) not in self.allowed:
                    homes.setdefault(event.id, set()).add(branch.name)
        shared = {name: where for name, where in homes.items() if len(where) > 1}
        assert not shared, shared

    @invariant()
    def the_store_is_sound(self) -> None:
        assert list(self.store.verify(DOC)) == []

    def teardown(self) -> None:
        self.store.close()


class OnSqlite(Histories):
    def make(self) -> Any:
        self.folder = TemporaryDirectory()
        return SqliteStore(Path(self.folder.name) / "store.sqlite")

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def walk(machine: type[Histories], examples: int, steps: int) -> None:
    how = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=how)


def test_random_histories_in_memory_keep_the_invariants() -> None:
    walk(Histories, 40, 30)


def test_random_histories_in_sqlite_keep_the_invariants() -> None:
    walk(OnSqlite, 8, 20)


def test_random_histories_in_postgres_keep_the_invariants(postgres_server: Any) -> None:
    class OnPostgres(Histories):
        def make(self) -> Any:
            return PostgresStore(postgres_server.url(schema=postgres_server.fresh_name()))

    walk(OnPostgres, 3, 12)


@pytest.mark.parametrize("body", [b"", b'{"id": "x", "type": "message"}'])
def test_the_machine_would_see_a_broken_log(body: bytes) -> None:
    with pytest.raises((MergepubError, AssertionError)):
        assert parse_events(body)
