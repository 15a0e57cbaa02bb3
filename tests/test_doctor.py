"""The proof of a store, against honest stores and against stores that are wrong on purpose."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from mergepub.doctor import look_at, prove
from mergepub.documents import Document, Receipt, Version
from mergepub.errors import DeniedError, MergepubError, UnavailableError
from mergepub.stores.memory import MemoryStore
from tests.stores.test_wrong_stores import Decodes, ForgetsReplays, LastWriterWins, TextMode

if TYPE_CHECKING:
    from mergepub.findings import Finding


def checks(findings: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.verdict for finding in findings}


def test_an_honest_store_passes_every_step_and_is_left_clean() -> None:
    store = MemoryStore()
    findings = list(prove(store))
    assert checks(findings) == dict.fromkeys(("bytes", "swap", "retry", "history", "delete", "clean-up"), "ok")
    assert list(store.list()) == []
    left = [row.path for row in store.list(deleted=True)]
    assert len(left) == 1
    assert left[0].startswith("/mergepub-doctor/")
    assert "history stays" in findings[-1].message


def test_every_proof_has_a_document_of_its_own_in_the_folder_asked_for() -> None:
    store = MemoryStore()
    for _ in range(2):
        list(prove(store, "/docs/"))
    assert [row.path.rpartition("/")[0] for row in store.list(deleted=True)] == ["/docs", "/docs"]


class DeletesAnything(MemoryStore):
    """Deletes whatever version was expected."""

    def delete(self, path: str, expected: Version, **labels: Any) -> Receipt:
        return super().delete(path, self.fetch(path).version, **labels)


class AnswersTheHead(MemoryStore):
    """Answers every version with the newest body."""

    def fetch(self, path: str, version: int | None = None) -> Document:
        return super().fetch(path)


class RefusesEverybody(MemoryStore):
    """Once two writers come at the same time, neither gets through."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        if expected.number == 1:
            expected = Version(99)
        return super().publish(path, body, expected, **labels)


class LosesTheRace(MemoryStore):
    """Compares, and writes once both writers have compared."""

    def __init__(self) -> None:
        super().__init__()
        self.both = threading.Barrier(2, timeout=10)
        self.one_by_one = threading.Lock()

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        if expected.number == 1 and self.fetch(path).version.number == 1:
            self.both.wait()
            with self.one_by_one:
                return super().publish(path, body, self.fetch(path).version, **labels)
        return super().publish(path, body, expected, **labels)


@pytest.mark.parametrize(
    ("store", "check"),
    [
        (LastWriterWins, "swap"),
        (LosesTheRace, "swap"),
        (RefusesEverybody, "swap"),
        (TextMode, "bytes"),
        (Decodes, "bytes"),
        (DeletesAnything, "delete"),
        (AnswersTheHead, "history"),
    ],
)
def test_a_store_that_breaks_a_promise_fails_the_step_that_tests_it(store: type[MemoryStore], check: str) -> None:
    findings = list(prove(store()))
    failure = next(finding for finding in findings if finding.verdict == "fail")
    assert (failure.check, failure.status) == (check, 3)
    assert "do not publish here" in str(failure.hint)


class ForgetsAtOnce(ForgetsReplays):
    """Takes the repetition of the newest publish for another one."""

    def publish(self, path: str, body: bytes, expected: Version, **labels: Any) -> Receipt:
        receipt = MemoryStore.publish(self, path, body, expected, **labels)
        if not receipt.replayed:
            return receipt
        return MemoryStore.publish(self, path, body + b" ", self.fetch(path).version, **labels)


def test_a_store_that_does_not_recognise_a_repetition_fails() -> None:
    failure = next(finding for finding in prove(ForgetsAtOnce()) if finding.verdict == "fail")
    assert (failure.check, failure.status) == ("retry", 3)


class ReadOnly(MemoryStore):
    """Lets nobody publish."""

    def publish(self, *_: object, **__: object) -> Receipt:
        raise DeniedError("the token reader does not allow publish")


def test_a_token_that_may_not_publish_is_a_warning_that_names_the_way_out() -> None:
    first, *rest = prove(ReadOnly())
    assert (first.verdict, "--scratch" in str(first.hint)) == ("warn", True)
    assert [finding.check for finding in rest] == ["clean-up"]


class GoesAway(MemoryStore):
    """Is gone after the first publish."""

    def fetch(self, path: str, version: int | None = None) -> Document:
        raise UnavailableError("the store cannot be reached")


def test_what_cannot_be_cleaned_up_is_told_with_the_command_to_type() -> None:
    *_, failure, left = prove(GoesAway())
    assert (failure.verdict, failure.status) == ("fail", 4)
    assert (left.check, left.verdict) == ("clean-up", "warn")
    assert "mergepub delete /mergepub-doctor/" in str(left.hint)


@pytest.mark.parametrize(("error", "status"), [(UnavailableError("gone"), 4), (DeniedError("no"), 3)])
def test_a_store_that_cannot_be_read_fails_with_its_own_status(error: MergepubError, status: int) -> None:
    class Shut(MemoryStore):
        def list(self, *_: object, **__: object) -> Any:
            raise error

    finding = look_at(Shut())
    assert (finding.verdict, finding.status) == ("fail", status)
    assert finding.hint
