"""What each wrapper adds; that it keeps the contract is shown in test_memory.py."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from mergepub.documents import ABSENT
from mergepub.errors import (
    ContentionError,
    DeniedError,
    MergepubError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)
from mergepub.stores.contract import Capabilities
from mergepub.stores.memory import MemoryStore
from mergepub.stores.wrappers import (
    Fault,
    FaultInjecting,
    Logging,
    ReadOnly,
    Retrying,
    RetryPolicy,
    contention,
    lost_answer,
    lost_request,
)
from tests.stores.conformance import DOC, at, numbers, refused


def retrying(*script: Fault | None, attempts: int = 4) -> tuple[Retrying, MemoryStore]:
    memory = MemoryStore()
    memory.publish(DOC, b"1\n", ABSENT)
    return Retrying(FaultInjecting(memory, script), RetryPolicy.instant(attempts)), memory


WRITES: dict[str, Callable[[Retrying], object]] = {
    "publish": lambda s: s.publish(DOC, b"2", at(1)),
    "append": lambda s: s.append(DOC, b"2", key="k"),
    "delete": lambda s: s.delete(DOC, at(1)),
    "create": lambda s: s.publish("/new", b"2", ABSENT),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("fault", [lost_answer, lost_request, contention])
def test_a_disturbed_write_happens_exactly_once(
    write: Callable[[Retrying], object], fault: Callable[[], Fault]
) -> None:
    store, memory = retrying(fault(), fault())
    write(store)
    assert sum(len(numbers(memory, listed.path)) for listed in memory.list(deleted=True)) == 2
    assert list(memory.verify()) == []


def test_a_write_whose_answer_was_lost_is_answered_as_replayed_also_after_another_write() -> None:
    memory = MemoryStore()
    memory.publish(DOC, b"1", ABSENT)
    store = Retrying(
        FaultInjecting(memory, [lost_answer()]),
        RetryPolicy(sleep=lambda _: bool(memory.publish(DOC, b"3", at(2)))),  # somebody is quicker than the retry
    )
    receipt = store.publish(DOC, b"2", at(1))
    assert (receipt.version.number, receipt.replayed, receipt.current) == (2, True, 3)


@pytest.mark.parametrize("error", [UnavailableError("away"), ThrottledError("slow", after=1), ContentionError("moved")])
def test_what_may_pass_is_repeated_and_the_last_error_comes_through(error: MergepubError) -> None:
    fault = Fault("before", error)
    store, _ = retrying(fault, fault, fault)
    assert store.fetch(DOC).body == b"1\n"
    store, _ = retrying(fault, fault, fault, fault)
    assert refused(lambda: store.fetch(DOC)) is error


def test_what_cannot_pass_is_not_repeated() -> None:
    for error in (NotFoundError("none"), DeniedError("no"), VersionConflictError("moved", expected=1, current=2)):
        store, _ = retrying(Fault("before", error))
        assert refused(lambda store=store: store.publish(DOC, b"2", at(1))) is error
        assert store.fetch(DOC).body == b"1\n"


def test_listings_are_drawn_whole_so_that_a_fault_halfway_is_repeated() -> None:
    class Halfway(FaultInjecting):
        def list(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]  # breaks on purpose
            yield from super().list(*args, **kwargs)  # type: ignore[arg-type]  # breaks on purpose
            if next(self._script, None):
                raise UnavailableError("the connection broke")

    memory = MemoryStore()
    memory.publish(DOC, b"1", ABSENT)
    store = Retrying(Halfway(memory, [None, lost_answer()]), RetryPolicy.instant())
    assert [listed.path for listed in store.list()] == [DOC]


def test_a_write_of_unknown_outcome_is_not_repeated_where_no_history_could_recognise_it() -> None:
    class Forgetful(FaultInjecting):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(history="none")

    store = Retrying(Forgetful(MemoryStore(), [lost_request(), None, lost_request()]), RetryPolicy.instant())
    assert isinstance(refused(lambda: store.publish(DOC, b"1", ABSENT)), UnknownOutcomeError)
    store.publish(DOC, b"1", ABSENT)
    assert store.fetch(DOC).body == b"1"  # reading is always safe to repeat


def test_waits_grow_by_the_factor_and_throttling_is_obeyed() -> None:
    policy = RetryPolicy(first_wait=1, factor=3, longest_wait=20)
    waits = [policy.wait_for(UnavailableError("away"), attempt) for attempt in (1, 2, 3)]
    assert all(0.5 * full <= wait <= full for wait, full in zip(waits, (1, 3, 9), strict=True))
    assert all(a < b for a, b in pairwise(waits))
    assert policy.wait_for(UnavailableError("away"), 9) <= 20
    assert policy.wait_for(ThrottledError("slow", after=7), 1) == 7
    assert policy.wait_for(ThrottledError("slow", after=9999), 1) == 20


def test_one_line_is_logged_for_each_call_without_bodies_or_labels() -> None:
    lines: list[str] = []
    store = Logging(MemoryStore(), lines.append)
    store.publish(DOC, b"SECRET BODY", ABSENT, author="SECRET", message="SECRET")
    store.publish(DOC, b"SECRET BODY", ABSENT)
    store.append(DOC, b"SECRET", key="SECRET")
    store.fetch(DOC)
    list(store.versions(DOC))
    list(store.list())
    refused(lambda: store.delete(DOC, at(1), message="SECRET"))
    list(store.verify())
    told = [line.rsplit(" ", 2)[0] for line in lines]
    assert told == [
        f"publish {DOC} expected=0 bytes=11 -> version=1",
        f"publish {DOC} expected=0 bytes=11 -> version=1 replayed",
        f"append {DOC} bytes=6 -> version=2",
        f"fetch {DOC} -> version=2",
        f"versions {DOC} -> ok",
        "list / -> ok",
        f"delete {DOC} expected=1 -> VersionConflictError",
        "verify - -> ok",
    ]
    assert all(line.endswith(" ms") for line in lines)
    assert not any("SECRET" in line for line in lines)


def test_a_read_only_store_reads_and_refuses_every_write() -> None:
    memory = MemoryStore()
    memory.publish(DOC, b"1", ABSENT)
    store = ReadOnly(memory)
    assert store.fetch(DOC).body == b"1"
    assert numbers(store) == [1]
    for write in WRITES.values():
        error = refused(lambda write=write: write(store))
        assert isinstance(error, DeniedError)
        assert store.url in str(error)
    assert numbers(memory) == [1]
    assert list(memory.list(deleted=True)) == list(store.list(deleted=True))


def test_faults_come_in_the_order_of_the_script_before_or_after_the_call() -> None:
    memory = MemoryStore()
    store = FaultInjecting(memory, [lost_request(), lost_answer(), None])
    assert isinstance(refused(lambda: store.publish(DOC, b"1", ABSENT)), UnknownOutcomeError)
    assert list(memory.list()) == []
    assert isinstance(refused(lambda: store.publish(DOC, b"1", ABSENT)), UnknownOutcomeError)
    assert memory.fetch(DOC).body == b"1"
    assert store.publish(DOC, b"1", ABSENT).replayed


@pytest.mark.parametrize("wrap", [Retrying, ReadOnly, FaultInjecting, lambda s: Logging(s, print)])
def test_url_and_capabilities_pass_through(wrap: Callable[[MemoryStore], MemoryStore]) -> None:
    memory = MemoryStore("memory:x", max_body=99)
    assert (wrap(memory).url, wrap(memory).capabilities) == ("memory:x", memory.capabilities)
    wrap(memory).close()
