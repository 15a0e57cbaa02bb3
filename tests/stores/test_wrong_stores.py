"""The suite is tested: stores that are wrong on purpose must each fail the test that is there to catch them.

Every wrong store is the memory store with one promise broken; the whole suite runs against it in process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from mergepub.documents import ABSENT, Receipt, Version
from mergepub.errors import NotFoundError, VersionConflictError
from mergepub.stores import memory
from mergepub.stores.contract import MAX_BODY
from mergepub.stores.memory import MemoryStore
from tests.stores.conformance import StoreConformance, lacking

LIMIT = 100_000  # the suite writes bodies of this size; a small one keeps it quick


class LastWriterWins(MemoryStore):
    """Takes every publish, whatever it builds on."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        try:
            return super().publish(path, body, expected, **labels)
        except VersionConflictError as error:
            return super().publish(path, body, Version(error.current), **labels)


class ChecksThenWrites(MemoryStore):
    """Compares, lets go of the lock, and writes: right as long as there is one writer."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        try:
            head = self.fetch(path).version
        except NotFoundError:
            return super().publish(path, body, expected, **labels)
        time.sleep(0.002)  # where others come in
        if expected == head or expected.number == head.number:
            try:
                expected = self.fetch(path).version
            except NotFoundError:
                expected = ABSENT
        return super().publish(path, body, expected, **labels)


class TextMode(MemoryStore):
    """Reads bodies as text, with universal newlines."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        text = body.decode("utf-8", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
        return super().publish(path, text.encode("utf-8", "surrogateescape"), expected, **labels)


class Decodes(MemoryStore):
    """Takes everything for UTF-8."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        return super().publish(path, body.decode("utf-8", "replace").encode(), expected, **labels)


class ForgetsReplays(MemoryStore):
    """Takes a retry for a stale write, once the head has moved on."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        receipt = super().publish(path, body, expected, **labels)
        if receipt.replayed and receipt.current and not receipt.merged_from:
            raise VersionConflictError("stale", expected=expected.number, current=receipt.current)
        return receipt


class ForgetsMerges(MemoryStore):
    """Does not keep what a merge was made from."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        return super().publish(path, body, expected, **labels | {"merged_from": None})


class RetriesAcrossLives(MemoryStore):
    """Recognises a retry by all of history instead of the present incarnation."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        history = self._documents.get(path)
        number = expected.number or 0
        if history and number < len(history.entries) and history.entries[number].body == body:
            return Receipt(Version(number + 1), history.entries[number].incarnation, replayed=True)
        return super().publish(path, body, expected, **labels)


class ComparesHeadFirst(MemoryStore):
    """Says unchanged before it looks for a retry."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        history = self._documents.get(path)
        if history and history.head.body == body:
            return Receipt(Version(history.head.number), history.head.incarnation, unchanged=True)
        return super().publish(path, body, expected, **labels)


class ReusesNumbers(MemoryStore):
    """Forgets a deleted document when it is created again."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        history = self._documents.get(path)
        if history and history.head.body is None and not expected.number:
            del self._documents[path]
        return super().publish(path, body, expected, **labels)


class LosesTheIncarnation(MemoryStore):
    """Lets a document that is created again go on as the old one."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        receipt = super().publish(path, body, expected, **labels)
        history = self._documents[path]
        first = history.entries[0].incarnation
        history.entries[:] = [replace(entry, incarnation=first) for entry in history.entries]
        return replace(receipt, incarnation=first)


class ForgetsKeys(MemoryStore):
    """Appends again when the answer was lost."""

    def append(self, path: str, body: bytes, **labels: Any) -> Receipt:
        if path in self._documents:
            self._documents[path].keys.clear()
        return super().append(path, body, **labels)


class GluesLines(MemoryStore):
    """Appends without looking how the head ends."""

    def append(self, path: str, body: bytes, **labels: Any) -> Receipt:
        receipt = super().append(path, body, **labels)
        history = self._documents[path]
        before = history.entries[-2].body or b""
        history.entries[-1] = replace(history.entries[-1], body=before + body, digest=memory.digest_of(before + body))
        return receipt


class CutsBodies(MemoryStore):
    """Takes more than its limit and keeps what fits."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        return super().publish(path, body[: self.capabilities.max_bytes], expected, **labels)


class EditsHistory(MemoryStore):
    """Keeps the present author for all versions."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        receipt = super().publish(path, body, expected, **labels)
        entries = self._documents[path].entries
        entries[:] = [replace(entry, author=labels.get("author", "")) for entry in entries]
        return receipt


class ListsInAnyOrder(MemoryStore):
    """Lists by lower case."""

    def list(self, *args: Any, **options: Any) -> Iterator[Any]:
        return iter(sorted(super().list(*args, **options), key=lambda listed: listed.path.lower()))


class MatchesAnyPrefix(MemoryStore):
    """Takes a prefix for characters, not for segments."""

    def list(self, prefix: str = "/", **options: Any) -> Iterator[Any]:
        return (listed for listed in super().list("/", **options) if listed.path.startswith(prefix))


Suite = StoreConformance

WRONG = [
    (LastWriterWins, Suite.test_a_stale_version_conflicts_with_both_numbers),
    (LastWriterWins, Suite.test_of_threads_that_create_at_once_exactly_one_wins),
    (ChecksThenWrites, Suite.test_of_threads_that_publish_on_one_head_exactly_one_wins_each_round),
    (TextMode, Suite.test_bytes_come_back_as_they_went_in),
    (Decodes, Suite.test_bytes_come_back_as_they_went_in),
    (ForgetsReplays, Suite.test_an_exact_retry_is_recognised_after_the_head_moved_on),
    (ForgetsMerges, Suite.test_a_merged_publish_is_recognised_by_what_it_was_made_from),
    (ForgetsMerges, Suite.test_history_shows_what_a_merge_was_made_from),
    (RetriesAcrossLives, Suite.test_a_retry_in_an_earlier_incarnation_is_a_conflict),
    (ComparesHeadFirst, Suite.test_a_retry_counts_before_an_equal_head_does),
    (ReusesNumbers, Suite.test_a_document_created_again_counts_on_in_a_new_incarnation),
    (ReusesNumbers, Suite.test_no_version_ever_changes),
    (LosesTheIncarnation, Suite.test_a_version_of_an_earlier_incarnation_is_recreated_never_a_plain_mismatch),
    (ForgetsKeys, Suite.test_an_append_is_recognised_by_its_key),
    (GluesLines, Suite.test_a_newline_goes_between_only_where_the_head_lacks_one),
    (CutsBodies, Suite.test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_not),
    (EditsHistory, Suite.test_no_version_ever_changes),
    (ListsInAnyOrder, Suite.test_a_listing_is_in_code_point_order),
    (MatchesAnyPrefix, Suite.test_a_prefix_takes_the_document_and_what_lies_below),
]


def parameters(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """The keyword arguments of each case of a parametrised test."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for case in product(*(mark.args[1] for mark in marks)):
        arguments: dict[str, Any] = {}
        for mark, value in zip(marks, case, strict=True):
            names = [mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0]
            arguments.update(zip(names, [value] if isinstance(mark.args[0], str) else value, strict=True))
        yield arguments


def failures(make: Callable[[], MemoryStore]) -> set[str]:
    """The names of the suite's tests that the store of ``make`` fails."""
    failed = set()
    for name in [name for name in dir(Suite) if name.startswith("test_as_many") is False and name.startswith("test_")]:
        test = getattr(Suite, name)
        if lacking(test, make()):
            continue
        for arguments in parameters(test):
            if not passes(test, make(), arguments):
                failed.add(name)
                break
    return failed


def passes(test: Callable[..., None], store: MemoryStore, arguments: dict[str, Any]) -> bool:
    taken = {"store": store, "make_store": lambda: store} | arguments
    names = test.__code__.co_varnames[1 : test.__code__.co_argcount]
    try:
        test(Suite(), **{name: taken[name] for name in names})
    except Exception:  # whatever it fails with, it fails
        return False
    return True


def test_the_right_store_fails_nothing() -> None:
    assert failures(lambda: MemoryStore(max_body=LIMIT)) == set()
    assert MAX_BODY > LIMIT


@pytest.mark.parametrize(("wrong", "test"), WRONG, ids=lambda value: value.__name__)
def test_a_wrong_store_fails_the_test_that_is_there_to_catch_it(
    wrong: type[MemoryStore], test: Callable[..., None]
) -> None:
    assert not all(passes(test, wrong(max_body=LIMIT), arguments) for arguments in parameters(test))


@pytest.mark.parametrize("wrong", dict.fromkeys(wrong for wrong, _ in WRONG), ids=lambda value: value.__name__)
def test_a_wrong_store_is_wrong_in_one_respect_only(wrong: type[MemoryStore]) -> None:
    """So that it is the named test that catches it, and not the suite's general unease."""
    found = failures(lambda: wrong(max_body=LIMIT))
    assert 1 <= len(found) <= 20, found
