"""The conformance suite: what every store owes, as one class.

A backend's test module subclasses ``StoreConformance``, overrides the fixture ``make_store`` and states how many of the
tests its capabilities skip:

    class TestMine(StoreConformance):
        expected_skips = 0

        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda: MineStore(tmp_path / "mine")

``make_store`` gives an opener; every call of it opens one more handle on the same, at first empty, store.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from mergepub.documents import ABSENT, EVENTS, MergedFrom, Receipt, Version, digest_of
from mergepub.errors import (
    DocumentDeletedError,
    DocumentExistsError,
    InputError,
    KeyReusedError,
    MergepubError,
    NotFoundError,
    RecreatedError,
    RejectedError,
    VersionConflictError,
)
from mergepub.stores.contract import Store

Opener = Callable[[], Store]

DOC = "/docs/guide.md"
WRITER = Path(__file__).with_name("writer.py")

HOSTILE = {
    "empty": b"",
    "one newline": b"\n",
    "carriage returns": b"a\rb\r",
    "crlf": b"a\r\nb\r\n",
    "mixed endings": b"a\r\nb\nc\r\r\n",
    "no final newline": b"a\nb",
    "nul": b"a\0b\0",
    "bom": b"\xef\xbb\xbftext\n",
    "utf-16": "text\n".encode("utf-16"),
    "invalid utf-8": b"\xff\xfe\xc3\x28\xed\xa0\x80",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf".encode(),
    "every byte": bytes(range(256)) * 3,
    "markers": b"<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n",
    "ctrl-z": b"a\x1ab",
}


def needs(capability: str, *values: object) -> Callable[[Any], Any]:
    """Skip the test, naming the capability, on a store where it is none of ``values``."""

    def mark(test: Any) -> Any:
        test.needs = (*getattr(test, "needs", ()), (capability, values))
        return test

    return mark


def lacking(test: Any, store: Store) -> str | None:
    """Why ``test`` does not apply to ``store``, or None."""
    for capability, values in getattr(test, "needs", ()):
        present = getattr(store.capabilities, capability)
        if present not in values:
            return f"capability {capability}: this store has {present!r}, the test needs {values!r}"
    return None


def at(number: int) -> Version:
    return Version(number)


def numbers(store: Store, path: str = DOC) -> list[int]:
    return [revision.version for revision in store.versions(path)]


def refused(call: Callable[[], object]) -> MergepubError | None:
    """The error of ``call``, or None."""
    try:
        call()
    except MergepubError as error:
        return error
    return None


def at_once(calls: list[Callable[[], Receipt]]) -> list[Receipt | MergepubError]:
    """All ``calls`` begun at the same moment in a thread each; their answers or errors, in order."""
    start = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        start.wait()
        try:
            answers[index] = calls[index]()
        except BaseException as error:  # noqa: BLE001,RUF100 - whatever it is, the test wants to see it
            answers[index] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def started(*arguments: str) -> subprocess.Popen[bytes]:
    # Without a buffer: what is read ahead of a first line would be lost to ``acknowledged``.
    return subprocess.Popen([sys.executable, str(WRITER), *arguments], stdout=subprocess.PIPE, bufsize=0)


def acknowledged(process: subprocess.Popen[bytes]) -> list[tuple[int, str]]:
    """All whole lines that a writer wrote until its end."""
    out = process.communicate(timeout=120)[0]
    lines = [line.split() for line in out.split(b"\n")[:-1]]
    return [(int(number), digest.decode()) for number, digest in lines]


def write_in_processes(count: int, *arguments: str) -> list[tuple[int, str]]:
    """Run ``count`` writers at once; everything that was acknowledged, by version."""
    processes = [started(*arguments) for _ in range(count)]
    done = [line for process in processes for line in acknowledged(process)]
    assert [p.returncode for p in processes] == [0] * count
    return sorted(done)


class StoreConformance:
    """What every store owes."""

    expected_skips: ClassVar[int] = 0

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Opener:
        raise AssertionError("a backend's test overrides make_store")

    @pytest.fixture
    def store(self, make_store: Opener) -> Iterator[Store]:
        """A handle on a fresh store; whatever a test did to it, it verifies in the end."""
        store = make_store()
        yield store
        with suppress(NotFoundError):  # a store that was never written to may not be there
            assert list(store.verify()) == []
        store.close()

    @pytest.fixture(autouse=True)
    def _skip_what_does_not_apply(self, request: pytest.FixtureRequest, make_store: Opener) -> None:
        store = make_store()
        reason = lacking(request.function, store)
        store.close()
        if reason:
            pytest.skip(reason)

    def test_as_many_tests_are_skipped_as_the_backend_says(self, store: Store) -> None:
        tests = [getattr(type(self), name) for name in dir(type(self)) if name.startswith("test_")]
        reasons = [reason for test in tests if (reason := lacking(test, store))]
        assert len(reasons) == self.expected_skips, reasons

    # Publishing and reading

    def test_a_created_document_is_read_back_with_everything_that_names_it(self, store: Store) -> None:
        receipt = store.publish(DOC, b"one\n", ABSENT, author="ana", message="first")
        document = store.fetch(DOC)
        assert (document.path, document.body, document.version) == (DOC, b"one\n", receipt.version)
        assert (document.author, document.message, document.kind) == ("ana", "first", "text")
        assert document.digest == digest_of(b"one\n")
        assert document.incarnation == receipt.incarnation != ""
        assert (receipt.version.number, document.current) == (1, 1)
        assert (receipt.unchanged, receipt.replayed) == (False, False)

    def test_each_publish_takes_the_next_number_of_the_same_incarnation(self, store: Store) -> None:
        receipts = [store.publish(DOC, b"%d" % i, at(i)) for i in range(5)]
        assert [r.version.number for r in receipts] == [1, 2, 3, 4, 5]
        assert len({r.incarnation for r in receipts}) == 1
        assert store.fetch(DOC).body == b"4"

    def test_an_answered_version_can_be_handed_back_as_the_expected_one(self, store: Store) -> None:
        first = store.publish(DOC, b"1", ABSENT)
        second = store.publish(DOC, b"2", first.version)
        store.publish(DOC, b"3", store.fetch(DOC).version)
        assert second.version.number == 2
        assert store.fetch(DOC).version.number == 3

    def test_documents_do_not_touch_each_other(self, store: Store) -> None:
        paths = [
            "/a",
            "/a/b",
            "/a%b",
            "/a_b",
            "/aXb",
            "/it's",
            "/a?b",
            '/q"q',
            "/%s",
            "/{0}",
            "/A",
            "/ä",
            "/back\\slash",
        ]
        for path in paths:
            store.publish(path, path.encode(), ABSENT)
        assert [store.fetch(path).body for path in paths] == [path.encode() for path in paths]
        assert [store.fetch(path).current for path in paths] == [1] * len(paths)

    def test_two_documents_with_the_same_body_live_apart(self, store: Store) -> None:
        store.publish("/a", b"same", ABSENT)
        store.publish("/b", b"same", ABSENT)
        store.delete("/a", at(1))
        assert store.fetch("/b").body == b"same"
        assert store.fetch("/a", 1).body == b"same"

    @pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
    def test_bytes_come_back_as_they_went_in(self, store: Store, make_store: Opener, body: bytes) -> None:
        store.publish(DOC, body, ABSENT)
        store.publish(DOC, body + b"+", at(1))
        other = make_store()
        assert other.fetch(DOC, 1).body == body == store.fetch(DOC, 1).body
        assert other.fetch(DOC).body == body + b"+"
        other.close()

    def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_not(self, store: Store) -> None:
        limit = store.capabilities.max_bytes
        if limit is None:
            return
        store.publish("/limit", b"x" * limit, ABSENT)
        assert len(store.fetch("/limit").body) == limit
        for path, expected in (("/more", ABSENT), ("/limit", at(1))):
            error = refused(lambda path=path, expected=expected: store.publish(path, b"y" * (limit + 1), expected))
            assert isinstance(error, RejectedError)
            assert error.limit == limit
            assert str(limit) in str(error)
        assert isinstance(refused(lambda: store.append("/limit", b"z", key="k")), RejectedError)
        assert isinstance(refused(lambda: store.fetch("/more")), NotFoundError)
        assert numbers(store, "/limit") == [1]

    def test_labels_come_back_as_they_went_in(self, store: Store) -> None:
        message = "first line\nsecond: Grüße, 世界 😀\r\n\ttabbed; 'quoted' %s {}\n"
        store.publish(DOC, b"1", ABSENT, author="Zoë <zoe@example.org>", message=message, source="git:abc def")
        document, revision = store.fetch(DOC), next(store.versions(DOC))
        assert (document.author, document.message) == ("Zoë <zoe@example.org>", message)
        assert (revision.author, revision.message, revision.source) == (document.author, message, "git:abc def")

    def test_a_version_without_a_source_has_none(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        assert next(store.versions(DOC)).source is None

    @pytest.mark.parametrize(
        "labels",
        [
            {"author": "a\nversion: 99"},
            {"author": "a\rb"},
            {"author": "a\0"},
            {"author": "\x1b[31m"},
            {"author": "a\x9bb"},
            {"author": "\udc80"},
            {"message": "a\0b"},
            {"message": "\ud800"},
            {"source": "a\nb"},
        ],
        ids=repr,
    )
    def test_labels_that_would_break_a_line_or_cannot_be_stored_are_refused(
        self, store: Store, labels: dict[str, Any]
    ) -> None:
        error = refused(lambda: store.publish(DOC, b"1", ABSENT, **labels))
        assert isinstance(error, RejectedError)
        assert next(iter(labels)) in str(error)
        assert isinstance(refused(lambda: store.fetch(DOC)), NotFoundError)

    def test_times_are_utc_with_microseconds_and_never_run_backwards(self, store: Store) -> None:
        for i in range(20):
            store.publish(DOC, b"%d" % i, at(i))
        times = [revision.modified for revision in store.versions(DOC)][::-1]
        assert times == sorted(times)
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", time) for time in times)
        assert store.fetch(DOC).modified == times[-1]

    def test_the_kind_is_fixed_at_creation_and_shown(self, store: Store) -> None:
        store.publish(DOC, b"{}\n", ABSENT, kind=EVENTS)
        store.publish(DOC, b"{}\n{}\n", at(1))
        assert store.fetch(DOC).kind == store.fetch(DOC, 1).kind == EVENTS
        assert [listed.kind for listed in store.list()] == [EVENTS]
        store.delete(DOC, at(2))
        store.publish(DOC, b"text", ABSENT)
        assert store.fetch(DOC).kind == "text"
        assert store.fetch(DOC, 1).kind == EVENTS

    def test_an_unknown_kind_is_refused(self, store: Store) -> None:
        assert isinstance(refused(lambda: store.publish(DOC, b"", ABSENT, kind="poem")), RejectedError)

    # Compare-and-swap

    def test_a_stale_version_conflicts_with_both_numbers(self, store: Store) -> None:
        for i in range(3):
            store.publish(DOC, b"%d" % i, at(i))
        error = refused(lambda: store.publish(DOC, b"mine", at(1)))
        assert type(error) is VersionConflictError
        assert (error.expected, error.current) == (1, 3)

    def test_a_version_above_the_head_conflicts(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        for call in (lambda: store.publish(DOC, b"mine", at(9)), lambda: store.delete(DOC, at(9))):
            error = refused(call)
            assert type(error) is VersionConflictError
            assert (error.expected, error.current) == (9, 1)

    def test_creating_what_exists_conflicts(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        store.publish(DOC, b"2", at(1))
        error = refused(lambda: store.publish(DOC, b"mine", ABSENT))
        assert isinstance(error, DocumentExistsError)
        assert (error.expected, error.current) == (0, 2)

    def test_a_version_of_a_document_that_never_existed_is_not_found(self, store: Store) -> None:
        store.publish("/other", b"", ABSENT)
        for call in (
            lambda: store.publish(DOC, b"1", at(1)),
            lambda: store.delete(DOC, at(1)),
            lambda: store.delete(DOC, ABSENT),
            lambda: store.append(DOC, b"1", key="k"),
            lambda: store.fetch(DOC),
            lambda: store.fetch(DOC, 1),
            lambda: store.versions(DOC),
        ):
            error = refused(call)
            assert type(error) is NotFoundError
            assert error.tombstone is None
        assert [listed.path for listed in store.list(deleted=True)] == ["/other"]

    def test_versions_that_are_none_are_not_found(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        for number in (0, 2, 2**40):
            assert type(refused(lambda number=number: store.fetch(DOC, number))) is NotFoundError

    def test_a_negative_expected_version_is_bad_input(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        assert isinstance(refused(lambda: store.publish(DOC, b"2", at(-1))), InputError)
        assert isinstance(refused(lambda: store.delete(DOC, at(-1))), InputError)

    def test_a_refused_write_leaves_nothing_behind(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        before = (store.fetch(DOC), list(store.versions(DOC)))
        for call in (
            lambda: store.publish(DOC, b"x", at(7)),
            lambda: store.publish(DOC, b"x", ABSENT),
            lambda: store.publish(DOC, b"x", at(1), author="\n"),
            lambda: store.delete(DOC, at(7)),
            lambda: store.append(DOC, b"", key="k"),
        ):
            assert refused(call)
        assert (store.fetch(DOC), list(store.versions(DOC))) == before

    def test_of_threads_that_create_at_once_exactly_one_wins(self, store: Store, make_store: Opener) -> None:
        store.publish("/other", b"", ABSENT)
        handles = [make_store() for _ in range(8)]
        calls = [lambda i=i, h=h: h.publish(DOC, b"%d" % i, ABSENT) for i, h in enumerate(handles)]
        answers = at_once(calls)
        winners = [a for a in answers if isinstance(a, Receipt)]
        assert len(winners) == 1
        assert sum(isinstance(a, DocumentExistsError) for a in answers) == 7, answers
        assert store.fetch(DOC).body == b"%d" % answers.index(winners[0])
        for handle in handles:
            handle.close()

    def test_of_threads_that_create_the_whole_store_at_once_exactly_one_wins(self, make_store: Opener) -> None:
        handles = [make_store() for _ in range(8)]
        answers = at_once([lambda i=i, h=h: h.publish(DOC, b"%d" % i, ABSENT) for i, h in enumerate(handles)])
        assert sum(isinstance(a, Receipt) for a in answers) == 1, answers
        assert sum(isinstance(a, DocumentExistsError) for a in answers) == 7, answers
        assert numbers(handles[0]) == [1]
        for handle in handles:
            handle.close()

    def test_of_threads_that_publish_on_one_head_exactly_one_wins_each_round(
        self, store: Store, make_store: Opener
    ) -> None:
        store.publish(DOC, b"", ABSENT)
        handles = [store, store, make_store(), make_store()]
        for head in range(1, 9):
            calls = [lambda i=i, h=h, n=head: h.publish(DOC, b"%d %d" % (n, i), at(n)) for i, h in enumerate(handles)]
            answers = at_once(calls)
            winners = [i for i, a in enumerate(answers) if isinstance(a, Receipt)]
            assert len(winners) == 1, answers
            losers = [a for a in answers if not isinstance(a, Receipt)]
            assert all(type(e) is VersionConflictError and e.current == head + 1 for e in losers), losers
            assert store.fetch(DOC).body == b"%d %d" % (head, winners[0])
        assert numbers(store) == [*range(9, 0, -1)]
        for handle in handles[2:]:
            handle.close()

    def test_threads_that_publish_the_same_body_at_once_all_succeed_with_one_version(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        answers = at_once([lambda: store.publish(DOC, b"2", at(1))] * 6)
        assert [a.version.number for a in answers if isinstance(a, Receipt)] == [2] * 6
        assert numbers(store) == [2, 1]

    def test_of_a_delete_and_publishes_at_once_exactly_one_wins(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        answers = at_once(
            [lambda: store.delete(DOC, at(1)), *(lambda i=i: store.publish(DOC, b"x%d" % i, at(1)) for i in range(3))]
        )
        assert sum(isinstance(a, Receipt) for a in answers) == 1, answers
        assert numbers(store) == [2, 1]

    def test_threads_that_count_lose_no_count(self, store: Store) -> None:
        store.publish(DOC, b"0 -", ABSENT)

        def count(name: int) -> Receipt:
            while True:
                head = store.fetch(DOC)
                body = b"%d %d" % (int(head.body.split()[0]) + 1, name)
                with suppress(VersionConflictError):
                    return store.publish(DOC, body, head.version)

        answers = at_once([lambda i=i: count(i) for i in range(8)])
        assert sorted(a.version.number or 0 for a in answers if isinstance(a, Receipt)) == [*range(2, 10)]
        assert store.fetch(DOC).body.startswith(b"8 ")

    @needs("processes", True)
    def test_processes_that_count_lose_no_count_and_share_no_version(self, store: Store) -> None:
        store.publish(DOC, b"0 -", ABSENT)
        done = write_in_processes(4, "count", store.url, DOC, "8")
        assert [number for number, _ in done] == [*range(2, 34)]
        assert store.fetch(DOC).body.startswith(b"32 ")
        assert [r.digest for r in store.versions(DOC)][-2::-1] == [digest for _, digest in done]

    # Recognition: the answer was lost, the caller asks again

    def test_an_exact_retry_is_recognised(self, store: Store) -> None:
        first = store.publish(DOC, b"1", ABSENT)
        second = store.publish(DOC, b"2", at(1))
        again = store.publish(DOC, b"2", at(1))
        assert (again.version, again.incarnation) == (second.version, first.incarnation)
        assert (again.replayed, again.current, again.unchanged) == (True, None, False)
        assert numbers(store) == [2, 1]

    def test_an_exact_retry_is_recognised_after_the_head_moved_on(self, store: Store) -> None:
        for i in range(4):
            store.publish(DOC, b"%d" % i, at(i))
        for i in range(3):
            again = store.publish(DOC, b"%d" % i, at(i))
            assert (again.version.number, again.replayed, again.current) == (i + 1, True, 4)
        assert numbers(store) == [4, 3, 2, 1]

    def test_a_retry_counts_before_an_equal_head_does(self, store: Store) -> None:
        for i, body in enumerate((b"a", b"b", b"a")):
            store.publish(DOC, body, at(i))
        again = store.publish(DOC, b"a", ABSENT)
        assert (again.version.number, again.replayed, again.unchanged, again.current) == (1, True, False, 3)

    def test_a_retried_creation_is_recognised_by_the_first_version_of_the_present_incarnation(
        self, store: Store
    ) -> None:
        store.publish(DOC, b"old life", ABSENT)
        store.delete(DOC, at(1))
        third = store.publish(DOC, b"new life", ABSENT)
        store.publish(DOC, b"more", at(3))
        again = store.publish(DOC, b"new life", ABSENT)
        assert (again.version, again.replayed, again.current) == (third.version, True, 4)
        assert isinstance(refused(lambda: store.publish(DOC, b"old life", ABSENT)), DocumentExistsError)

    def test_the_same_body_on_another_version_is_no_retry(self, store: Store) -> None:
        for i, body in enumerate((b"a", b"b", b"c")):
            store.publish(DOC, body, at(i))
        assert type(refused(lambda: store.publish(DOC, b"b", at(2)))) is VersionConflictError
        back = store.publish(DOC, b"b", at(3))
        assert (back.version.number, back.replayed, back.unchanged) == (4, False, False)

    def test_a_retry_in_an_earlier_incarnation_is_a_conflict(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        store.publish(DOC, b"2", at(1))
        store.delete(DOC, at(2))
        assert isinstance(refused(lambda: store.publish(DOC, b"2", at(1))), DocumentDeletedError)
        store.publish(DOC, b"3", ABSENT)
        error = refused(lambda: store.publish(DOC, b"2", at(1)))
        assert isinstance(error, RecreatedError)
        assert (error.expected, error.current) == (1, 4)

    def test_a_body_equal_to_the_head_changes_nothing_whatever_version_is_expected(self, store: Store) -> None:
        for i, body in enumerate((b"a", b"b", b"c")):
            store.publish(DOC, body, at(i))
        for expected in (ABSENT, at(1), at(3), at(50)):
            same = store.publish(DOC, b"c", expected)
            assert (same.version.number, same.unchanged, same.replayed) == (3, True, False)
        assert numbers(store) == [3, 2, 1]

    def test_a_merged_publish_is_recognised_by_what_it_was_made_from(self, store: Store) -> None:
        made_from = MergedFrom(1, 2, digest_of(b"ours"))
        for i, body in enumerate((b"base", b"theirs")):
            store.publish(DOC, body, at(i))
        store.publish(DOC, b"merged", at(2), merged_from=made_from)
        again = store.publish(DOC, b"ours", at(1))
        assert (again.version.number, again.replayed, again.current, again.merged_from) == (3, True, None, made_from)
        store.publish(DOC, b"later", at(3))
        again = store.publish(DOC, b"ours", at(1))
        assert (again.version.number, again.replayed, again.current, again.merged_from) == (3, True, 4, made_from)

    def test_a_merged_publish_is_recognised_when_it_is_itself_repeated(self, store: Store) -> None:
        made_from = MergedFrom(1, 2, digest_of(b"ours"))
        for i, body in enumerate((b"base", b"theirs")):
            store.publish(DOC, body, at(i))
        store.publish(DOC, b"merged", at(2), merged_from=made_from)
        store.publish(DOC, b"later", at(3))
        again = store.publish(DOC, b"merged", at(2), merged_from=made_from)
        assert (again.version.number, again.replayed, again.current) == (3, True, 4)

    def test_a_merge_record_counts_for_its_pair_only(self, store: Store) -> None:
        made_from = MergedFrom(1, 2, digest_of(b"ours"))
        for i, body in enumerate((b"base", b"theirs")):
            store.publish(DOC, body, at(i))
        store.publish(DOC, b"merged", at(2), merged_from=made_from)
        store.publish(DOC, b"later", at(3))
        for body, expected in ((b"ours", at(2)), (b"other", at(1)), (b"ours", at(3)), (b"ours", ABSENT)):
            error = refused(lambda body=body, expected=expected: store.publish(DOC, body, expected))
            assert isinstance(error, VersionConflictError)

    def test_a_merge_of_two_creations_is_recognised(self, store: Store) -> None:
        made_from = MergedFrom(0, 1, digest_of(b"ours"))
        store.publish(DOC, b"theirs", ABSENT)
        store.publish(DOC, b"merged", at(1), merged_from=made_from)
        again = store.publish(DOC, b"ours", ABSENT)
        assert (again.version.number, again.replayed, again.merged_from) == (2, True, made_from)

    def test_a_merge_record_of_an_earlier_incarnation_does_not_count(self, store: Store) -> None:
        for i, body in enumerate((b"base", b"theirs")):
            store.publish(DOC, body, at(i))
        store.publish(DOC, b"merged", at(2), merged_from=MergedFrom(1, 2, digest_of(b"ours")))
        store.delete(DOC, at(3))
        store.publish(DOC, b"new", ABSENT)
        assert isinstance(refused(lambda: store.publish(DOC, b"ours", at(1))), RecreatedError)

    def test_history_shows_what_a_merge_was_made_from(self, store: Store) -> None:
        made_from = MergedFrom(1, 2, digest_of(b"ours"))
        for i, body in enumerate((b"base", b"theirs")):
            store.publish(DOC, body, at(i))
        store.publish(DOC, b"merged", at(2), merged_from=made_from)
        assert [revision.merged_from for revision in store.versions(DOC)] == [made_from, None, None]

    # Deleting and creating again

    def test_a_deletion_is_a_version_without_a_body(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        receipt = store.delete(DOC, at(1), author="ana", message="obsolete")
        assert (receipt.version.number, receipt.replayed) == (2, False)
        tombstone = next(store.versions(DOC))
        assert (tombstone.version, tombstone.deleted, tombstone.size) == (2, True, 0)
        assert (tombstone.author, tombstone.message) == ("ana", "obsolete")
        for call in (lambda: store.fetch(DOC), lambda: store.fetch(DOC, 2)):
            error = refused(call)
            assert type(error) is NotFoundError
            assert error.tombstone == 2
        before = store.fetch(DOC, 1)
        assert (before.body, before.current) == (b"1", 2)

    def test_deleting_compares_and_swaps(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        store.publish(DOC, b"2", at(1))
        error = refused(lambda: store.delete(DOC, at(1)))
        assert type(error) is VersionConflictError
        assert (error.expected, error.current) == (1, 2)
        assert isinstance(refused(lambda: store.delete(DOC, ABSENT)), DocumentExistsError)
        assert store.fetch(DOC).body == b"2"

    def test_a_repeated_deletion_is_recognised_until_the_document_is_created_again(self, store: Store) -> None:
        first = store.publish(DOC, b"1", ABSENT)
        store.delete(DOC, at(1))
        again = store.delete(DOC, at(1))
        assert (again.version.number, again.replayed, again.incarnation) == (2, True, first.incarnation)
        store.publish(DOC, b"3", ABSENT)
        assert isinstance(refused(lambda: store.delete(DOC, at(1))), RecreatedError)
        assert numbers(store) == [3, 2, 1]

    def test_a_deleted_document_takes_no_write_but_its_creation(self, store: Store) -> None:
        for i in range(2):
            store.publish(DOC, b"%d" % i, at(i))
        store.delete(DOC, at(2))
        for call in (
            lambda: store.publish(DOC, b"x", at(2)),
            lambda: store.publish(DOC, b"x", at(3)),
            lambda: store.publish(DOC, b"1", at(1)),
            lambda: store.publish(DOC, b"x", at(9)),
            lambda: store.delete(DOC, at(3)),
            lambda: store.delete(DOC, at(1)),
        ):
            error = refused(call)
            assert isinstance(error, DocumentDeletedError)
            assert error.current == 3
        error = refused(lambda: store.append(DOC, b"x", key="k"))
        assert type(error) is NotFoundError
        assert error.tombstone == 3
        assert numbers(store) == [3, 2, 1]

    def test_a_document_created_again_counts_on_in_a_new_incarnation(self, store: Store) -> None:
        first = store.publish(DOC, b"1", ABSENT)
        store.delete(DOC, at(1))
        third = store.publish(DOC, b"1", ABSENT)
        assert (third.version.number, third.unchanged, third.replayed) == (3, False, False)
        assert third.incarnation != first.incarnation
        assert [r.incarnation for r in store.versions(DOC)] == [third.incarnation] + [first.incarnation] * 2
        assert store.fetch(DOC, 1).incarnation == first.incarnation
        assert store.fetch(DOC).incarnation == third.incarnation

    def test_a_version_of_an_earlier_incarnation_is_recreated_never_a_plain_mismatch(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        store.delete(DOC, at(1))
        store.publish(DOC, b"3", ABSENT)
        store.publish(DOC, b"4", at(3))
        for number in (1, 2):
            for call in (
                lambda n=number: store.publish(DOC, b"x", at(n)),
                lambda n=number: store.delete(DOC, at(n)),
            ):
                error = refused(call)
                assert isinstance(error, RecreatedError)
                assert (error.expected, error.current) == (number, 4)
        assert type(refused(lambda: store.publish(DOC, b"x", at(3)))) is VersionConflictError

    def test_of_threads_that_create_again_at_once_exactly_one_wins(self, store: Store) -> None:
        store.publish(DOC, b"", ABSENT)
        store.delete(DOC, at(1))
        answers = at_once([lambda i=i: store.publish(DOC, b"%d" % i, ABSENT) for i in range(6)])
        assert sum(isinstance(a, Receipt) for a in answers) == 1, answers
        assert numbers(store) == [3, 2, 1]

    def test_no_version_ever_changes(self, store: Store) -> None:
        seen = {}

        def look() -> None:
            for revision in store.versions(DOC):
                body = None if revision.deleted else store.fetch(DOC, revision.version).body
                assert seen.setdefault(revision.version, (revision, body)) == (revision, body)

        steps: list[Callable[[], object]] = [
            lambda: store.publish(DOC, b"1", ABSENT, author="a"),
            lambda: store.publish(DOC, b"2", at(1), message="m"),
            lambda: store.append(DOC, b"3", key="k"),
            lambda: store.publish(DOC, b"4", at(3), merged_from=MergedFrom(1, 3, digest_of(b"x"))),
            lambda: store.delete(DOC, at(4)),
            lambda: store.publish(DOC, b"1", ABSENT),
            lambda: store.delete(DOC, at(6)),
            lambda: store.publish(DOC, b"1", ABSENT),
        ]
        for step in steps:
            step()
            look()
        assert sorted(seen) == [*range(1, 9)]

    # Appending

    def test_an_append_adds_to_the_end_of_whatever_the_head_is(self, store: Store) -> None:
        store.publish(DOC, b"a\n", ABSENT)
        receipt = store.append(DOC, b"b\n", key="1", author="ana", message="more")
        assert (receipt.version.number, receipt.replayed) == (2, False)
        document = store.fetch(DOC)
        assert (document.body, document.author, document.message) == (b"a\nb\n", "ana", "more")

    @pytest.mark.parametrize(
        ("head", "more", "whole"),
        [
            (b"a", b"b", b"a\nb"),
            (b"a\n", b"b", b"a\nb"),
            (b"", b"b", b"b"),
            (b"a\r\n", b"b\r\n", b"a\r\nb\r\n"),
            (b"a\r", b"b", b"a\r\nb"),
            (b"a", b"\n", b"a\n\n"),
            (b"\xff", b"\0", b"\xff\n\0"),
        ],
    )
    def test_a_newline_goes_between_only_where_the_head_lacks_one(
        self, store: Store, head: bytes, more: bytes, whole: bytes
    ) -> None:
        store.publish(DOC, head, ABSENT)
        store.append(DOC, more, key="k")
        assert store.fetch(DOC).body == whole

    def test_an_append_is_recognised_by_its_key(self, store: Store) -> None:
        first = store.publish(DOC, b"a\n", ABSENT)
        store.append(DOC, b"b\n", key="k")
        again = store.append(DOC, b"b\n", key="k")
        assert (again.version.number, again.replayed, again.current) == (2, True, None)
        store.append(DOC, b"b\n", key="l")
        again = store.append(DOC, b"b\n", key="k")
        assert (again.version.number, again.replayed, again.current) == (2, True, 3)
        store.delete(DOC, at(3))
        again = store.append(DOC, b"b\n", key="k")
        assert (again.version.number, again.replayed, again.current) == (2, True, 4)
        store.publish(DOC, b"new", ABSENT)
        again = store.append(DOC, b"b\n", key="k")
        assert (again.version.number, again.incarnation, again.current) == (2, first.incarnation, 5)
        assert store.fetch(DOC, 3).body == b"a\nb\nb\n"

    def test_an_append_key_with_another_body_is_refused(self, store: Store) -> None:
        store.publish(DOC, b"", ABSENT)
        store.append(DOC, b"b", key="k")
        assert isinstance(refused(lambda: store.append(DOC, b"c", key="k")), KeyReusedError)
        assert store.fetch(DOC).body == b"b"

    def test_append_keys_of_any_characters_are_told_apart(self, store: Store) -> None:
        keys = ["k", '"k"', "k k", "k%20k", "k%2520k", " k", "k ", "\u00fc", "u\u0308", "k,k", "k;k", "K", "%"]
        store.publish(DOC, b"", ABSENT)
        for replayed in (False, True):
            assert [store.append(DOC, b"x\n", key=key).replayed for key in keys] == [replayed] * len(keys)

    def test_an_append_key_counts_for_its_document_only(self, store: Store) -> None:
        for path in ("/a", "/b"):
            store.publish(path, b"", ABSENT)
            assert not store.append(path, b"x", key="k").replayed

    def test_an_append_of_nothing_or_without_a_key_is_refused(self, store: Store) -> None:
        store.publish(DOC, b"a", ABSENT)
        assert isinstance(refused(lambda: store.append(DOC, b"", key="k")), RejectedError)
        assert isinstance(refused(lambda: store.append(DOC, b"x", key="")), RejectedError)
        assert numbers(store) == [1]

    def test_appends_of_threads_serialise_and_all_are_kept(self, store: Store) -> None:
        store.publish(DOC, b"", ABSENT)
        answers = at_once([lambda i=i: store.append(DOC, b"%d\n" % i, key=f"k{i}") for i in range(8)])
        assert sorted(a.version.number or 0 for a in answers if isinstance(a, Receipt)) == [*range(2, 10)]
        assert sorted(store.fetch(DOC).body.split()) == [b"%d" % i for i in range(8)]

    @needs("processes", True)
    def test_appends_of_processes_serialise_and_all_are_kept(self, store: Store) -> None:
        store.publish(DOC, b"", ABSENT)
        done = write_in_processes(3, "append", store.url, DOC, "6")
        assert [number for number, _ in done] == [*range(2, 20)]
        lines = store.fetch(DOC).body.splitlines(keepends=True)
        assert sorted(digest_of(line) for line in lines) == sorted(digest for _, digest in done)

    # Durability

    @needs("processes", True)
    def test_what_was_acknowledged_survives_kill_9(self, store: Store, make_store: Opener) -> None:
        store.publish(DOC, b"", ABSENT)
        for _ in range(4):
            with started("fill", store.url, DOC) as process:
                assert process.stdout
                lines = [process.stdout.readline() for _ in range(random.randint(1, 12))]
                process.kill()
                lines += process.stdout.readlines()
            reader = make_store()
            for line in lines:
                number, digest = line.split()
                assert digest_of(reader.fetch(DOC, int(number)).body) == digest.decode()
            assert numbers(reader) == [*range(reader.fetch(DOC).current or 0, 0, -1)]
            assert list(reader.verify()) == []
            reader.close()

    def test_another_handle_sees_what_was_acknowledged(self, store: Store, make_store: Opener) -> None:
        other = make_store()
        for i in range(3):
            (store, other)[i % 2].publish(DOC, b"%d" % i, at(i))
            assert other.fetch(DOC) == store.fetch(DOC)
        other.close()
        again = make_store()
        assert list(again.versions(DOC)) == list(store.versions(DOC))
        again.close()

    # Order and paging

    def test_history_is_newest_first_and_pages_by_version(self, store: Store) -> None:
        for i in range(7):
            store.publish(DOC, b"%d" % i, at(i))
        store.delete(DOC, at(7))
        assert numbers(store) == [8, 7, 6, 5, 4, 3, 2, 1]
        assert [r.version for r in store.versions(DOC, before=5)] == [4, 3, 2, 1]
        assert [r.version for r in store.versions(DOC, limit=3)] == [8, 7, 6]
        assert [r.version for r in store.versions(DOC, before=6, limit=2)] == [5, 4]
        assert list(store.versions(DOC, before=1)) == list(store.versions(DOC, limit=0)) == []

    def test_history_says_size_and_digest(self, store: Store) -> None:
        store.publish(DOC, b"", ABSENT)
        store.publish(DOC, b"four", at(1))
        assert [(r.size, r.digest) for r in store.versions(DOC)] == [(4, digest_of(b"four")), (0, digest_of(b""))]

    def test_a_listing_is_in_code_point_order(self, store: Store) -> None:
        paths = ["/B", "/a", "/a b", "/a-b", "/a.md", "/a/b", "/a0", "/b/c/d", "/z", "/é", "/世", "/\uffee", "/😀"]
        for path in random.sample(paths, len(paths)):
            store.publish(path, b"", ABSENT)
        assert [listed.path for listed in store.list()] == sorted(paths) == paths

    def test_a_prefix_takes_the_document_and_what_lies_below(self, store: Store) -> None:
        for path in ("/doc", "/docs", "/docs/a", "/docs/b/c", "/docs-x", "/docs.md", "/docs0", "/DOCS/a", "/do_s/a"):
            store.publish(path, b"", ABSENT)

        def under(prefix: str) -> list[str]:
            return [listed.path for listed in store.list(prefix)]

        assert under("/docs") == ["/docs", "/docs/a", "/docs/b/c"]
        assert under("/docs/") == ["/docs/a", "/docs/b/c"]
        assert under("/docs/b/c") == ["/docs/b/c"]
        assert under("/none") == []
        assert under("/do_s") == ["/do_s/a"]

    def test_a_listing_pages_by_path(self, store: Store) -> None:
        paths = [f"/d{i}" for i in range(7)]
        for path in paths:
            store.publish(path, b"", ABSENT)
        pages, after = [], None
        while page := [listed.path for listed in store.list(after=after, limit=3)]:
            pages.append(page)
            after = page[-1]
        assert pages == [paths[:3], paths[3:6], paths[6:]]
        assert list(store.list(limit=0)) == []

    def test_a_listing_shows_heads_and_deleted_documents_on_request(self, store: Store) -> None:
        store.publish("/a", b"1", ABSENT)
        store.publish("/b", b"1", ABSENT)
        store.publish("/b", b"2", at(1))
        store.delete("/a", at(1))
        (b,) = store.list()
        assert (b.path, b.version, b.digest, b.deleted) == ("/b", 2, digest_of(b"2"), False)
        assert b.modified == store.fetch("/b").modified
        assert [(x.path, x.version, x.deleted) for x in store.list(deleted=True)] == [("/a", 2, True), ("/b", 2, False)]

    # The rest

    def test_a_url_opens_the_store_and_holds_no_secret(self, store: Store) -> None:
        assert store.url
        assert "password" not in store.url

    def test_verify_of_one_document_or_all_finds_no_fault_in_a_sound_store(self, store: Store) -> None:
        store.publish(DOC, b"1", ABSENT)
        store.delete(DOC, at(1))
        store.publish(DOC, b"3", ABSENT)
        store.append(DOC, b"4", key="k")
        store.publish("/other", b"3", ABSENT)
        assert list(store.verify(DOC)) == list(store.verify()) == []
        assert isinstance(refused(lambda: list(store.verify("/never"))), NotFoundError)

    def test_closing_twice_is_fine(self, make_store: Opener) -> None:
        store = make_store()
        store.publish(DOC, b"1", ABSENT)
        store.close()
        store.close()
