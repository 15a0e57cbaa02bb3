"""The checker of histories finds no fault where there is none, and finds it where a store is wrong on purpose."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from mergepub.documents import Document, Receipt, Version
from mergepub.errors import NotFoundError, UnknownOutcomeError
from mergepub.stores.memory import MemoryStore
from mergepub.stores.wrappers import FaultInjecting, Wrapper, lost_answer, lost_request
from tests.proof import attempts as a
from tests.proof.attempts import Attempt, Made
from tests.proof.driver import Client, history_of, settled
from tests.proof.linearizable import check

DOC = "/proof/one.md"


def publish(operation: str, expected: int, begun: int, ended: int | None, result: str, **told: Any) -> Attempt:
    return Attempt(operation, DOC, a.PUBLISH, begun, expected, 0, ended, result, **told)


def fetch(begun: int, ended: int, version: int, operation: str) -> Attempt:
    digest = made(version, operation).digest
    return Attempt(f"r{begun}", DOC, a.FETCH, begun, None, 0, ended, a.READ, version, version, digest, "i")


def made(number: int, operation: str, incarnation: str = "i") -> Made:
    body = a.body_of(operation, 0)
    return Made(number, operation, body, f"digest of {operation}", incarnation)


HISTORY = [made(1, "w1"), made(2, "w2")]
W1 = publish("w1", 0, 0, 10, a.MADE, version=1)
W2 = publish("w2", 1, 5, 20, a.MADE, version=2)


def test_a_history_in_order_has_no_fault() -> None:
    assert check([W1, W2, fetch(11, 12, 1, "w1"), fetch(13, 14, 2, "w2")], HISTORY) == []


def test_overlapping_attempts_may_have_happened_in_either_order() -> None:
    assert check([W1, W2, fetch(6, 7, 2, "w2")], HISTORY) == []


def test_a_read_of_an_old_version_after_a_newer_one_was_acknowledged_is_a_fault() -> None:
    assert check([W1, W2, fetch(21, 22, 1, "w1")], HISTORY)


def test_two_reads_that_go_back_in_time_are_a_fault() -> None:
    assert check([W1, W2, fetch(6, 7, 2, "w2"), fetch(8, 9, 1, "w1")], HISTORY)


def test_a_read_before_its_version_was_asked_for_is_a_fault() -> None:
    assert check([W1, W2, fetch(1, 4, 2, "w2")], HISTORY)


def test_an_acknowledged_version_that_is_not_there_is_a_fault() -> None:
    assert check([W1, W2], HISTORY[:1])


def test_an_unknown_attempt_may_have_happened_late_or_never() -> None:
    unknown = publish("w2", 1, 5, 7, a.UNKNOWN)
    assert check([W1, unknown], HISTORY[:1]) == []
    assert check([W1, unknown, fetch(100, 101, 1, "w1"), fetch(102, 103, 2, "w2")], HISTORY) == []


def test_a_refused_attempt_that_happened_all_the_same_is_a_fault() -> None:
    for result in (a.NOT_DONE, a.CONFLICT):
        assert check([W1, publish("w2", 1, 5, 20, result, current=1)], HISTORY)


def test_an_operation_that_made_two_versions_is_a_fault() -> None:
    again = [publish("w1", 0, 0, 10, a.MADE, version=1), publish("w1", 0, 11, 12, a.MADE, version=2)]
    assert check(again, [made(1, "w1"), made(2, "w1")])


def test_a_version_that_nobody_asked_for_and_a_hole_are_faults() -> None:
    assert check([W1], HISTORY)
    assert check([W1], [HISTORY[0], made(3, "w1")])


def test_a_swap_on_another_version_than_expected_is_a_fault() -> None:
    assert check([W1, replace(W2, expected=7)], HISTORY)


def test_other_bytes_than_were_sent_are_a_fault() -> None:
    assert check([W1, W2], [HISTORY[0], replace(HISTORY[1], body=b"other")])


def test_a_repetition_that_is_not_recognised_is_a_fault() -> None:
    conflict = publish("w2", 1, 30, 31, a.CONFLICT, current=2)
    assert check([W1, W2, replace(conflict, result=a.REPLAYED, version=2, current=None)], HISTORY) == []
    assert check([W1, W2, conflict], HISTORY)


def test_a_conflict_with_the_expected_version_itself_is_a_fault() -> None:
    assert check([W1, publish("w3", 1, 11, 12, a.CONFLICT, current=1)], HISTORY[:1])


# -- the driver on stores in memory ------------------------------------------------------------------------------------


def recorded(store_of: Callable[[MemoryStore], Any], *, operations: int = 150, clients: int = 4) -> list[str]:
    """The faults of a run of several threads on a store around one memory store."""
    truth = MemoryStore()
    record: list[Attempt] = []
    store = store_of(truth)
    workers = [
        Client(f"c{seed}", [store], seed, record.append, paths=(DOC,), pause=0.0, insist=1) for seed in range(clients)
    ]
    threads = [threading.Thread(target=worker.run, kwargs={"operations": operations}) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    attempts = settled(record)
    assert len(attempts) == operations * clients
    return check(attempts, history_of(truth, DOC))


class Slow(Wrapper):
    """Lets other threads in before and after every call."""

    def _around(self, call: Any, operation: Callable[[], Any]) -> Any:
        time.sleep(0.0002)
        answer = operation()
        time.sleep(0.0002)
        return answer


class LosingAnswers(Wrapper):
    """Every seventh call loses its answer, every eleventh never happens."""

    def __init__(self, inner: MemoryStore) -> None:
        script = [lost_answer() if i % 7 == 0 else lost_request() if i % 11 == 0 else None for i in range(5000)]
        super().__init__(FaultInjecting(inner, script))


@pytest.mark.parametrize("right", [MemoryStore, Slow, LosingAnswers])
def test_a_right_store_has_no_fault(right: Any) -> None:
    assert recorded(lambda truth: truth if right is MemoryStore else right(truth)) == []


class LastWriterWins(Slow):
    """Publishes on whatever the head is."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        head = next(self._inner.versions(path), None) if expected.number else None
        return super().publish(path, body, Version(head.version) if head and not head.deleted else expected, **labels)


class CheckThenWrite(Slow):
    """Looks first and writes second, with room for others in between."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        if not expected.number or self._inner.fetch(path).version.number != expected.number:
            return super().publish(path, body, expected, **labels)
        time.sleep(0.002)
        return self._inner.publish(path, body, self._inner.fetch(path).version, **labels)


class StaleReads(Slow):
    """Answers every third fetch with what the one before it was answered."""

    count = 0
    before: Document | None = None

    def fetch(self, path: str, version: int | None = None) -> Document:
        self.count += 1
        if version is None and self.before and self.count % 3 == 0:
            return self.before
        document = super().fetch(path, version)
        self.before = document if version is None else self.before
        return document


class ForgetsWrites(Slow):
    """Acknowledges every twentieth publish without doing it."""

    count = 0

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        self.count += 1
        if self.count % 20 == 0 and expected.number:
            return Receipt(Version(expected.number + 1), "")
        return super().publish(path, body, expected, **labels)


class ForgetsKeys(Slow):
    """Appends again when it is asked again."""

    count = 0

    def append(self, path: str, body: bytes, *, key: str, **labels: Any) -> Receipt:
        self.count += 1
        return super().append(path, body, key=f"{key}-{self.count}", **labels)


class SaysUnknownAsNo(Slow):
    """Says "nothing happened" where it did."""

    count = 0

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        receipt = super().publish(path, body, expected, **labels)
        self.count += 1
        if self.count % 10 == 0:
            raise NotFoundError("there is no such document")
        return receipt


class CutsBodies(Slow):
    """Stores one byte less, now and then."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        return super().publish(path, body[:-1] if len(body) > 1000 else body, expected, **labels)


class WritesTwice(Slow):
    """Appends twice when its first answer is slow, and loses the answer."""

    count = 0

    def append(self, path: str, body: bytes, *, key: str, **labels: Any) -> Receipt:
        self.count += 1
        if self.count % 10 == 0:
            super().append(path, body, key=f"{key}-first", **labels)
            super().append(path, body, key=key, **labels)
            raise UnknownOutcomeError("no answer")
        return super().append(path, body, key=key, **labels)


@pytest.mark.parametrize(
    "wrong",
    [
        LastWriterWins,
        CheckThenWrite,
        StaleReads,
        ForgetsWrites,
        ForgetsKeys,
        SaysUnknownAsNo,
        CutsBodies,
        WritesTwice,
    ],
)
def test_a_store_that_is_wrong_on_purpose_is_found(wrong: type[Wrapper]) -> None:
    assert recorded(wrong) != []
