"""Is a recorded history of one document linearisable as a compare-and-swap register with versions?

In general that question is exponential. Here the register numbers its versions and every version names the operation
that made it, so the order of the writes is given and only *when* they happened is open. Write t(k) for the moment at
which version k became the head. Then:

- an attempt that made version k, from its begin a to its end b, says  a <= t(k) <= b;
- an attempt that saw version k as the head (a fetch, a conflict, unchanged, replayed, not found: it writes nothing)
  needs a moment p in [a, b] with  t(k) <= p < t(k+1).  There is one exactly when  t(k) <= b  and  a <= t(k+1).
  Attempts that write nothing do not get in each other's way, so each may have its own p;
- the moments ascend:  t(1) <= t(2) <= ...

So every constraint is a bound of one t(k), and the history is linearisable exactly when each t(k), put as early as its
lower bound and its predecessor allow, is within its upper bound: one pass. What is left is to check that every answer
is what the sequential specification says in the state that it saw. Both together are all of it: the greedy moments,
with each reader at its p, are the linearisation.

An attempt without an answer may have happened at any time after its begin, or never. That its operation did not happen
*twice* is checked as well: no two versions name the same operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.proof import attempts as a

if TYPE_CHECKING:
    from tests.proof.attempts import Attempt, Made

_FOREVER = 1 << 63
_YES = (a.MADE, a.UNCHANGED, a.REPLAYED, a.READ)


@dataclass
class _Moments:
    """Bounds of t(k), the time when version k became the head."""

    earliest: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    latest: dict[int, int] = field(default_factory=lambda: defaultdict(lambda: _FOREVER))

    def made(self, number: int, begun: int, ended: int | None) -> None:
        self.earliest[number] = max(self.earliest[number], begun)
        self.latest[number] = min(self.latest[number], _FOREVER if ended is None else ended)

    def seen(self, number: int, begun: int, ended: int) -> None:
        self.latest[number] = min(self.latest[number], ended)
        self.earliest[number + 1] = max(self.earliest[number + 1], begun)

    def faults(self, last: int) -> Iterator[str]:
        """A version that cannot have become the head in time. Version 0 is the beginning; last + 1 never comes."""
        moment = 0
        for number in range(1, last + 1):
            moment = max(moment, self.earliest[number])
            if moment > self.latest[number]:
                late = (moment - self.latest[number]) / 1e6
                yield f"version {number} was seen, or acknowledged, {late:.3f} ms before it can have become the head"
                moment = self.latest[number]


def check(attempts: Iterable[Attempt], history: Sequence[Made]) -> list[str]:
    """Why the attempts on one document, whose history became ``history`` (oldest first), are not linearisable."""
    checker = _Checker(list(attempts), history)
    return [*checker.chain_faults(), *checker.creation_faults(), *checker.answer_faults(), *checker.moment_faults()]


class _Checker:
    def __init__(self, attempts: list[Attempt], history: Sequence[Made]) -> None:
        self.attempts = attempts
        self.history = history
        self.moments = _Moments()
        self.by_operation: dict[str, list[Attempt]] = defaultdict(list)
        for attempt in attempts:
            self.by_operation[attempt.operation].append(attempt)

    def state(self, number: int | None) -> Made | None:
        """The version ``number``, None for 0 and where there is none."""
        return self.history[number - 1] if number and 1 <= number <= len(self.history) else None

    def is_there(self, number: int | None) -> bool:
        state = self.state(number)
        return state is not None and state.body is not None

    # -- the chain of versions, each made by one operation on the one before -------------------------------------------

    def chain_faults(self) -> Iterator[str]:
        seen_incarnations: set[str] = set()
        makers: dict[str, int] = {}
        for index, made in enumerate(self.history, start=1):
            if made.number != index:
                yield f"version {index} is missing; {made.number} stands in its place"
                return
            if made.operation in makers:
                yield f"{made.operation} made two versions: {makers[made.operation]} and {index}"
            makers[made.operation] = index
            before = self.state(index - 1)
            if before is None or before.body is None:
                if made.incarnation in seen_incarnations:
                    yield f"version {index} begins a new life under an old incarnation"
            elif made.incarnation != before.incarnation:
                yield f"version {index} changes the incarnation of a living document"
            seen_incarnations.add(made.incarnation)

    def creation_faults(self) -> Iterator[str]:
        for made in self.history:
            tries = [each for each in self.by_operation[made.operation] if each.kind != a.FETCH]
            if not tries:
                yield f"version {made.number} names {made.operation}, which nobody asked for"
                continue
            fault = self._step_fault(tries[0], made)
            if fault:
                yield f"version {made.number}, made by {made.operation}: {fault}"
            yield from self._bound_creation(made, tries)

    def _bound_creation(self, made: Made, tries: list[Attempt]) -> Iterator[str]:
        acknowledged = [each for each in tries if each.result == a.MADE]
        possible = acknowledged or [each for each in tries if _may_have_made(each)]
        if not possible:
            yield f"version {made.number} was made by {made.operation}, whose attempts were all refused"
            return
        ended = acknowledged[0].ended if acknowledged else None
        self.moments.made(made.number, min(each.begun for each in possible), ended)

    def _step_fault(self, attempt: Attempt, made: Made) -> str | None:
        """Why ``attempt`` cannot turn the state before ``made`` into ``made``."""
        number = made.number - 1
        before = self.state(number)
        alive = self.is_there(number)
        if attempt.kind == a.APPEND:
            wanted = _joined(before.body, attempt.body) if before and before.body is not None else None
            return None if made.body == wanted is not None else "it is not the head and the appended bytes"
        if attempt.kind == a.PUBLISH and attempt.expected == 0:
            fits = not alive
        else:
            fits = attempt.expected == number and alive
        if not fits:
            return (
                f"it expected {attempt.expected} and the head was {number}{'' if alive else ', not a living document'}"
            )
        return None if made.body == (attempt.body if attempt.kind == a.PUBLISH else None) else "other bytes are stored"

    # -- the answers ---------------------------------------------------------------------------------------------------

    def answer_faults(self) -> Iterator[str]:
        for attempt in self.attempts:
            if attempt.ended is None or attempt.result in (a.UNKNOWN, a.NOT_DONE):
                continue
            head = self._head_seen(attempt)
            fault = self._beyond(attempt, head) or self._answer_fault(attempt, head)
            if fault:
                yield f"{attempt.operation} ({attempt.kind}, answered {attempt.result}): {fault}"
            elif attempt.result != a.MADE:
                self.moments.seen(head, attempt.begun, attempt.ended)

    def moment_faults(self) -> Iterator[str]:
        return self.moments.faults(len(self.history))

    def _head_seen(self, attempt: Attempt) -> int:
        return (attempt.version if attempt.current is None else attempt.current) or 0

    def _beyond(self, attempt: Attempt, head: int) -> str | None:
        number = max(head, attempt.version or 0)
        return f"it tells of version {number}; there are {len(self.history)}" if number > len(self.history) else None

    def _answer_fault(self, attempt: Attempt, head: int) -> str | None:
        if attempt.result in _YES:
            return self._yes_fault(attempt, head)
        if self._must_replay(attempt, head):
            return f"it happened before, as the history up to {head} shows, and was not recognised"
        return None if self._no_is_right(attempt, head) else f"that is not so at version {head}"

    def _yes_fault(self, attempt: Attempt, head: int) -> str | None:
        named = self.state(attempt.version)
        if named is None or head < named.number:
            return f"version {attempt.version} was not there at version {head}"
        if attempt.incarnation not in (None, "", named.incarnation):
            return f"version {named.number} is of another incarnation"
        if attempt.kind == a.DELETE and attempt.result == a.REPLAYED:  # two deletes of one version are the same delete
            right = named.body is None and named.number == (attempt.expected or 0) + 1
        elif attempt.result == a.READ:
            right = named.body is not None and named.digest == attempt.digest
        elif attempt.result == a.UNCHANGED:
            right = named.body == attempt.body
        else:
            right = named.operation == attempt.operation
        return None if right else f"version {named.number}, made by {named.operation}, is something else"

    def _no_is_right(self, attempt: Attempt, head: int) -> bool:
        state, expected = self.state(head), attempt.expected
        if attempt.result == a.MISSING:
            return head == 0 if attempt.version is None else state is not None and state.body is None
        if attempt.result == a.DELETED:
            return state is not None and state.body is None
        if not self.is_there(head):
            return False
        base = self.state(expected)
        if attempt.result == a.EXISTS:
            return expected == 0
        if attempt.result == a.RECREATED:
            return base is not None and state is not None and base.incarnation != state.incarnation
        return attempt.result == a.CONFLICT and expected not in (0, head)

    def _must_replay(self, attempt: Attempt, head: int) -> bool:
        """Whether the version that this operation made stands in the life that the refusal saw."""
        if attempt.kind == a.FETCH or not self.is_there(head):
            return False
        state = self.state(head)
        return state is not None and any(
            made.operation == attempt.operation and made.incarnation == state.incarnation
            for made in self.history[:head]
        )


def _may_have_made(attempt: Attempt) -> bool:
    """Whether a version may come from an attempt that was not told so.

    One that the client repeated within the call was told what the repetition met: that it had happened, or that the
    document's life had ended since.
    """
    ended = (a.DELETED, a.RECREATED, a.MISSING)
    return attempt.result in (a.UNKNOWN, a.REPLAYED) or (attempt.patient and attempt.result in ended)


def _joined(body: bytes, more: bytes) -> bytes:
    return body + (b"\n" if body and not body.endswith(b"\n") else b"") + more
