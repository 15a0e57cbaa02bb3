"""Undoing one publish, over a store in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mergepub import delete, publish
from mergepub.documents import Receipt, Version
from mergepub.errors import InputError, NotFoundError
from mergepub.outcomes import Contention, MergeFacts, Outcome, Overlap, Published, Refused
from mergepub.reverting import revert
from mergepub.stores.memory import MemoryStore

PATH = "/docs/guide.md"
FIRST = b"one\ntwo\nthree\nfour\nfive\n"


def store_of(*bodies: bytes) -> MemoryStore:
    store = MemoryStore()
    for number, body in enumerate(bodies):
        assert publish(store, PATH, body, number) == Published(number + 1)
    return store


def head_of(store: MemoryStore) -> bytes:
    return store.fetch(PATH).body


def test_reverting_the_head_publishes_the_version_before_it() -> None:
    store = store_of(FIRST, FIRST.replace(b"two", b"TWO"))
    assert revert(store, PATH, 2) == Published(3)
    assert head_of(store) == FIRST
    assert next(store.versions(PATH)).message == "Revert version 2"


def test_what_others_changed_since_stays() -> None:
    second = FIRST.replace(b"two", b"TWO")
    store = store_of(FIRST, second, second.replace(b"five", b"FIVE"))
    outcome = revert(store, PATH, 2, author="ann@home", message="Too early")
    body = FIRST.replace(b"five", b"FIVE")
    assert outcome == Published(4, MergeFacts(2, 1), body=body)
    assert head_of(store) == body
    row = next(store.versions(PATH))
    assert (row.author, row.message) == ("ann@home", "Too early")


def test_where_it_was_changed_again_nothing_is_published_and_both_stand_in_the_body() -> None:
    store = store_of(FIRST, FIRST.replace(b"two", b"TWO"), FIRST.replace(b"two", b"2"))
    outcome = revert(store, PATH, 2)
    assert isinstance(outcome, Overlap)
    assert (outcome.your_version, outcome.current_version, outcome.conflicts) == (2, 3, 1)
    assert outcome.body == FIRST.replace(b"two\n", b"<<<<<<< v3\n2\n=======\ntwo\n>>>>>>> v1\n")
    assert store.fetch(PATH).version.number == 3


def test_reverting_what_is_reverted_already_changes_nothing() -> None:
    second = FIRST.replace(b"two", b"TWO")
    store = store_of(FIRST, second, second.replace(b"five", b"FIVE"))
    revert(store, PATH, 2)
    outcome = revert(store, PATH, 2)
    assert isinstance(outcome, Published)
    assert (outcome.version, outcome.unchanged) == (4, True)


def test_a_revert_can_be_reverted_and_the_first_one_done_again() -> None:
    second = FIRST.replace(b"two", b"TWO")
    store = store_of(FIRST, second, second.replace(b"five", b"FIVE"))
    for number, word in ((2, b"two"), (4, b"TWO"), (2, b"two"), (6, b"TWO")):
        outcome = revert(store, PATH, number)
        assert isinstance(outcome, Published)
        assert (outcome.replayed, outcome.unchanged) == (False, False)
        assert head_of(store) == FIRST.replace(b"two", word).replace(b"five", b"FIVE")


def test_the_first_version_cannot_be_reverted_and_the_hint_is_to_delete() -> None:
    store = store_of(FIRST, FIRST + b"six\n")
    with pytest.raises(InputError, match="version 1 created") as caught:
        revert(store, PATH, 1)
    assert caught.value.hint == f"delete the document: mergepub delete {PATH} --expected-version 2"


def test_nor_can_the_first_of_a_new_life_or_a_deletion() -> None:
    store = store_of(FIRST)
    delete(store, PATH, 1)
    with pytest.raises(InputError, match="its deletion") as caught:
        revert(store, PATH, 2)
    assert "--expected-version 0" in str(caught.value.hint)
    publish(store, PATH, b"anew\n", 0)
    with pytest.raises(InputError, match="version 3 created"):
        revert(store, PATH, 3)


def test_a_version_of_an_earlier_life_or_of_a_deleted_document_is_refused() -> None:
    store = store_of(FIRST, FIRST + b"six\n")
    delete(store, PATH, 2)
    assert revert(store, PATH, 2) == Refused(2, 3, "deleted")
    publish(store, PATH, b"anew\n", 0)
    assert revert(store, PATH, 2) == Refused(2, 4, "recreated")


def test_what_is_no_text_is_refused_only_where_it_takes_a_merge() -> None:
    store = store_of(b"\0a\n", b"\0b\n")
    assert revert(store, PATH, 2) == Published(3)
    publish(store, PATH, b"\0c\n", 3)
    assert revert(store, PATH, 2) == Refused(2, 4, "binary")


def test_events_are_not_rewritten() -> None:
    store = MemoryStore()
    store.publish(PATH, b"{}\n", Version(0), kind="events")
    store.append(PATH, b"{}\n", key="k")
    assert revert(store, PATH, 2) == Refused(2, 2, "events")


@pytest.mark.parametrize("number", [3, 99])
def test_a_version_that_there_is_not_is_not_found(number: int) -> None:
    with pytest.raises(NotFoundError):
        revert(store_of(FIRST, FIRST + b"six\n"), PATH, number)


def test_no_attempt_at_all_is_bad_input() -> None:
    for bad in ({"number": 0}, {"number": 2, "retries": 0}):
        with pytest.raises(InputError):
            revert(store_of(FIRST, FIRST + b"six\n"), PATH, **bad)


class Busy(MemoryStore):
    """Another writer slips in before each of the next ``rivals`` publishes."""

    rivals = 0
    slips: Callable[[], Receipt]

    def publish(self, *args: object, **how: object) -> Receipt:
        if self.rivals:
            self.rivals -= 1
            head = self.fetch(PATH)
            super().publish(PATH, head.body + b"more\n", head.version)
        return super().publish(*args, **how)


def busy(rivals: int) -> tuple[Busy, Outcome]:
    store = Busy()
    publish(store, PATH, FIRST, 0)
    publish(store, PATH, FIRST.replace(b"two", b"TWO"), 1)
    store.rivals = rivals
    return store, revert(store, PATH, 2)


def test_a_head_that_moves_meanwhile_is_merged_with_anew() -> None:
    store, outcome = busy(rivals=2)
    assert outcome == Published(5, MergeFacts(2, 1), body=FIRST + b"more\n" * 2)
    assert head_of(store) == FIRST + b"more\n" * 2


def test_after_the_retries_it_is_contention() -> None:
    assert busy(rivals=3)[1] == Contention(2, 5, 3)
