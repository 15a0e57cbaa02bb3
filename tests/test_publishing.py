"""The publishing loop: every row of the situation table, every policy, contention to the number, lost answers."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from mergepub import publishing, status
from mergepub.documents import EVENTS, MergedFrom, Version, digest_of
from mergepub.errors import (
    BadPathError,
    ContentionError,
    DeniedError,
    InputError,
    NotFoundError,
    RejectedError,
    UnavailableError,
    UnknownOutcomeError,
    UnresolvedMarkersError,
    VersionConflictError,
)
from mergepub.outcomes import (
    Candidate,
    Contention,
    MergeAttempt,
    MergeFacts,
    Mismatch,
    Overlap,
    Published,
    Refused,
)
from mergepub.publishing import MergeOptions, append, delete, fetch, publish
from mergepub.stores.memory import MemoryStore
from mergepub.stores.wrappers import FaultInjecting, Retrying, RetryPolicy, contention, lost_answer, lost_request

PATH = "/docs/guide.md"
BASE = b"one\n\ntwo\n\nthree\n"
OURS = BASE.replace(b"one", b"ONE")
THEIRS = BASE.replace(b"three", b"THREE")
BOTH = OURS.replace(b"three", b"THREE")
OVERLAPPING = BASE.replace(b"one", b"uno")
BLOCK = b"<<<<<<< ours\nmine\n=======\nyours\n>>>>>>> theirs\n"


class Around:
    """A store around a store; a test replaces the one method it is about."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)


class Restless(Around):
    """Another writer publishes before each of our publishes, ``times`` times, changing the last line only."""

    def __init__(self, store, times=1000):
        super().__init__(store)
        self.times = times

    def publish(self, path, body, expected, **kw):
        if self.times:
            self.times -= 1
            head = self._store.fetch(path)
            self._store.publish(path, head.body.rstrip(b"\n") + b"!\n", head.version, author="other")
        return self._store.publish(path, body, expected, **kw)


class LosesAnswers(Around):
    """The ``lost`` first writes happen, and their answer never arrives; ``afterwards`` is done in between."""

    def __init__(self, store, lost=1, afterwards=lambda store: None):
        super().__init__(store)
        self.lost = lost
        self.afterwards = afterwards
        self.keys = []

    def publish(self, *args, **kw):
        return self._lose(self._store.publish(*args, **kw))

    def delete(self, *args, **kw):
        return self._lose(self._store.delete(*args, **kw))

    def append(self, *args, **kw):
        self.keys.append(kw["key"])
        return self._lose(self._store.append(*args, **kw))

    def _lose(self, receipt):
        if not self.lost:
            return receipt
        self.lost -= 1
        self.afterwards(self._store)
        raise UnknownOutcomeError("the connection was reset")


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def moved(store):
    """A document at version 6; version 5 is what the caller's edit was made from, 6 is theirs."""
    seed(store, 5)
    publish(store, PATH, THEIRS, 5, author="other")
    return store


def seed(store, versions):
    """Versions 1 to ``versions``, the last of which is BASE."""
    for number in range(versions - 1):
        publish(store, PATH, b"draft %d\n" % number, number)
    publish(store, PATH, BASE, versions - 1)


def history(store):
    return [revision.version for revision in store.versions(PATH)]


def head(store):
    return store.fetch(PATH)


# ── publish without a mismatch ──────────────────────────────────────────────────────────────────────────────────────


def test_a_publish_at_the_head_makes_the_next_version(store):
    assert publish(store, PATH, BASE, 0) == Published(1)
    assert publish(store, PATH, OURS, 1, author="Ann", message="why", source="c0ffee") == Published(2)
    newest = next(store.versions(PATH))
    assert (newest.author, newest.message, newest.source) == ("Ann", "why", "c0ffee")
    assert head(store).body == OURS


def test_a_body_that_the_head_has_already_makes_no_version(moved):
    assert publish(moved, PATH, THEIRS, 6) == Published(6, unchanged=True)
    assert publish(moved, PATH, THEIRS, 3, on_conflict="merge") == Published(6, unchanged=True)
    assert history(moved)[0] == 6


def test_an_exact_retry_is_recognised_also_after_the_head_moved_on(store):
    seed(store, 5)
    assert publish(store, PATH, OURS, 5) == Published(6)
    assert publish(store, PATH, OURS, 5) == Published(6, replayed=True)
    publish(store, PATH, THEIRS, 6)
    publish(store, PATH, BASE, 7)
    assert publish(store, PATH, OURS, 5) == Published(6, replayed=True, current_version=8)
    assert history(store)[0] == 8


# ── the policies ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_fail_reports_the_mismatch_and_writes_nothing(moved):
    assert publish(moved, PATH, OURS, 5) == Mismatch(5, 6)
    assert publish(moved, PATH, OURS, 0) == Mismatch(0, 6)
    assert history(moved)[0] == 6


def test_merge_publishes_the_merge_of_base_ours_and_theirs(moved):
    heard = []
    outcome = publish(
        moved, PATH, OURS, 5, on_conflict="merge", author="Ann", message="why", source="c0ffee", on_event=heard.append
    )
    assert outcome == Published(7, MergeFacts(5, 6), body=BOTH)
    assert head(moved).body == BOTH
    newest = next(moved.versions(PATH))
    assert newest.merged_from == MergedFrom(5, 6, digest_of(OURS))
    assert (newest.author, newest.message, newest.source) == ("Ann", "why", "c0ffee")
    assert heard == [MergeAttempt(1, 5, 6, 0)]


def test_a_repeated_merged_publish_is_answered_as_the_first_time(moved):
    first = publish(moved, PATH, OURS, 5, on_conflict="merge")
    again = publish(moved, PATH, OURS, 5, on_conflict="merge")
    assert again == dataclasses.replace(first, replayed=True)
    publish(moved, PATH, BASE, 7)
    assert publish(moved, PATH, OURS, 5) == dataclasses.replace(first, replayed=True, current_version=8)
    assert history(moved)[0] == 8


def test_overlap_publishes_nothing_and_answers_with_the_marked_body(moved):
    publish(moved, PATH, OVERLAPPING, 6)
    outcome = publish(moved, PATH, OURS, 5, on_conflict="merge")
    marked = b"<<<<<<< ours\nONE\n=======\nuno\n>>>>>>> theirs\n\ntwo\n\nthree\n"
    assert outcome == Overlap(5, 7, 1, 7, marked)
    assert history(moved)[0] == 7


def test_merge_options_reach_the_merge(moved):
    publish(moved, PATH, OVERLAPPING, 6)
    options = MergeOptions(style="diff3", labels=("mine", "old", "yours"), marker_size=9)
    outcome = publish(moved, PATH, OURS, 5, on_conflict="merge", merge_options=options)
    assert outcome.marker_size == 9
    assert outcome.body.startswith(b"<<<<<<<<< mine\nONE\n||||||||| old\none\n=========\nuno\n>>>>>>>>> yours\n")


@pytest.mark.parametrize("options", [MergeOptions(style="html"), MergeOptions(labels=("a\nb", "", ""))])
def test_a_bad_merge_option_is_refused_before_anything_is_written(store, options):
    with pytest.raises(InputError):
        publish(store, PATH, BASE, 0, merge_options=options)
    assert not list(store.list())


def test_sides_without_a_final_newline_are_told(store):
    publish(store, PATH, b"a\n", 0)
    publish(store, PATH, b"b", 1)
    outcome = publish(store, PATH, b"c\n", 1, on_conflict="merge")
    assert outcome.unterminated == ("theirs",)
    assert status.hints(outcome, PATH)[0] == "theirs: no newline at end"


def test_a_merge_that_equals_theirs_publishes_nothing(store):
    seed(store, 5)
    publish(store, PATH, BOTH, 5)
    publish(store, PATH, BOTH + b"four\n", 6)
    sent = []

    class Watched(Around):
        def publish(self, path, body, expected, **kw):
            sent.append(body)
            return self._store.publish(path, body, expected, **kw)

    outcome = publish(Watched(store), PATH, OURS, 5, on_conflict="merge")
    assert outcome == Published(7, MergeFacts(5, 7), unchanged=True, body=BOTH + b"four\n")
    assert sent == [OURS]
    assert history(store)[0] == 7


def test_expected_zero_merges_against_an_empty_base(store):
    publish(store, PATH, b"theirs\n", 0)
    outcome = publish(store, PATH, b"ours\n", 0, on_conflict="merge")
    assert isinstance(outcome, Overlap)
    assert (outcome.your_version, outcome.current_version) == (0, 1)
    union = publish(store, PATH, b"ours\n", 0, on_conflict="merge", favour="union")
    assert union.merge == MergeFacts(0, 1, 1, "union")


def test_candidate_answers_with_the_clean_merge_and_publishes_nothing(moved):
    outcome = publish(moved, PATH, OURS, 5, on_conflict="candidate")
    assert outcome == Candidate(5, 6, 6, BOTH)
    assert history(moved)[0] == 6
    assert publish(moved, PATH, outcome.body, outcome.publish_at) == Published(7)


def test_candidate_publishes_where_there_is_no_mismatch(moved):
    assert publish(moved, PATH, BOTH, 6, on_conflict="candidate") == Published(7)


def test_candidate_answers_an_overlap_as_merge_does(moved):
    publish(moved, PATH, OVERLAPPING, 6)
    assert publish(moved, PATH, OURS, 5, on_conflict="candidate") == publish(moved, PATH, OURS, 5, on_conflict="merge")


@pytest.mark.parametrize(
    ("favour", "start"), [("ours", b"ONE\n\n"), ("theirs", b"uno\n\n"), ("union", b"uno\nONE\n\n")]
)
def test_a_favour_settles_conflicts_and_says_how_many_theirs_first_in_a_union(moved, favour, start):
    publish(moved, PATH, OVERLAPPING, 6)
    ours = OURS.replace(b"two", b"TWO")
    reviewed = publish(moved, PATH, ours, 5, on_conflict="candidate", favour=favour)
    assert (reviewed.settled, reviewed.favour) == (1, favour)
    outcome = publish(moved, PATH, ours, 5, on_conflict="merge", favour=favour)
    assert outcome == Published(8, MergeFacts(5, 7, 1, favour), body=start + b"TWO\n\nthree\n")
    assert head(moved).body == outcome.body == reviewed.body


def test_a_favour_that_had_nothing_to_settle_is_not_named(moved):
    outcome = publish(moved, PATH, OURS, 5, on_conflict="merge", favour="union")
    assert outcome.merge == MergeFacts(5, 6, 0, None)


# ── contention ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("retries", "current"), [(1, 7), (3, 9), (5, 11)])
def test_with_no_writer_resting_a_caller_at_5_ends_with_contention_after_its_retries(store, retries, current):
    seed(store, 5)
    heard = []
    outcome = publish(Restless(store), PATH, OURS, 5, on_conflict="merge", retries=retries, on_event=heard.append)
    assert outcome == Contention(5, current, retries)
    assert [(e.attempt, e.base_version, e.their_version) for e in heard] == [
        (n, 5, 5 + n) for n in range(1, retries + 1)
    ]


def test_a_caller_at_5_sees_6_at_the_first_answer_and_then_7_8_9(store):
    seed(store, 5)
    seen = []

    class Watched(Restless):
        def publish(self, path, body, expected, **kw):
            try:
                return super().publish(path, body, expected, **kw)
            finally:
                seen.append((expected.number, self._store.fetch(path).version.number))

    outcome = publish(Watched(store), PATH, OURS, 5, on_conflict="merge")
    assert seen == [(5, 6), (6, 7), (7, 8), (8, 9)]
    assert status.block(outcome) == (
        b"status: conflict\nyour-version: 5\ncurrent-version: 9\nmergeable: false\nreason: contention\nretries: 3\n"
    )
    assert status.exit_status(outcome) == 3


def test_the_last_attempt_may_win(store):
    seed(store, 5)
    outcome = publish(Restless(store, times=3), PATH, OURS, 5, on_conflict="merge")
    assert outcome == Published(9, MergeFacts(5, 8), body=OURS.rstrip() + b"!!!\n")


def test_every_attempt_starts_from_the_callers_own_base_and_body(store):
    """The second writer takes the first one's edit back: merging on from the lost attempt would bring it in again."""
    seed(store, 5)
    bodies = [THEIRS, BASE + b"four\n"]

    class Scripted(Around):
        def publish(self, path, body, expected, **kw):
            if bodies:
                self._store.publish(path, bodies.pop(0), self._store.fetch(path).version)
            return self._store.publish(path, body, expected, **kw)

    outcome = publish(Scripted(store), PATH, OURS, 5, on_conflict="merge")
    assert outcome == Published(8, MergeFacts(5, 7), body=OURS + b"four\n")


def test_a_race_lost_to_the_very_same_merge_is_a_success(store):
    seed(store, 5)
    bodies = [THEIRS, BOTH]

    class Scripted(Around):
        def publish(self, path, body, expected, **kw):
            if bodies:
                self._store.publish(path, bodies.pop(0), self._store.fetch(path).version)
            return self._store.publish(path, body, expected, **kw)

    outcome = publish(Scripted(store), PATH, OURS, 5, on_conflict="merge")
    assert outcome == Published(7, MergeFacts(5, 6), replayed=True, body=BOTH)
    assert history(store)[0] == 7


@pytest.mark.parametrize("retries", [0, -1])
def test_retries_are_one_or_more(moved, retries):
    with pytest.raises(InputError, match="retries"):
        publish(moved, PATH, OURS, 5, on_conflict="merge", retries=retries)


# ── the situation table ─────────────────────────────────────────────────────────────────────────────────────────────

MERGING = pytest.mark.parametrize("policy", ["merge", "candidate"])
EVERY = pytest.mark.parametrize("policy", ["fail", "merge", "candidate"])


@MERGING
def test_an_expected_version_above_the_head_has_no_base(moved, policy):
    assert publish(moved, PATH, OURS, 9, on_conflict=policy) == Refused(9, 6, "base-unavailable")
    assert history(moved)[0] == 6


def test_an_expected_version_above_the_head_is_a_plain_mismatch_under_fail(moved):
    assert publish(moved, PATH, OURS, 9) == Mismatch(9, 6)


@MERGING
def test_a_base_that_the_store_does_not_keep_any_more_is_never_guessed(moved, policy):
    class Forgets(Around):
        def fetch(self, path, version=None):
            if version == 5:
                raise NotFoundError("version 5 is gone")
            return self._store.fetch(path, version)

    assert publish(Forgets(moved), PATH, OURS, 5, on_conflict=policy) == Refused(5, 6, "base-unavailable")


@EVERY
def test_a_document_deleted_since_is_a_conflict_with_the_tombstones_version(moved, policy):
    delete(moved, PATH, 6)
    assert publish(moved, PATH, OURS, 5, on_conflict=policy) == Refused(5, 7, "deleted")
    assert publish(moved, PATH, OURS, 7, on_conflict=policy) == Refused(7, 7, "deleted")


@EVERY
def test_a_document_recreated_since_is_never_merged(moved, policy):
    delete(moved, PATH, 6)
    publish(moved, PATH, BASE, 0)
    assert publish(moved, PATH, OURS, 5, on_conflict=policy) == Refused(5, 8, "recreated")
    assert publish(moved, PATH, OURS, 7, on_conflict=policy) == Refused(7, 8, "recreated")
    assert history(moved)[0] == 8


@MERGING
@pytest.mark.parametrize("expected", [5, 7])
def test_a_recreated_document_is_noticed_by_its_incarnation_where_the_store_cannot_tell(moved, policy, expected):
    delete(moved, PATH, 6)
    publish(moved, PATH, BASE, 0)

    class Vague(Around):
        def publish(self, path, body, expected, **kw):
            raise VersionConflictError("412", expected=expected.number, current=None)

    assert publish(Vague(moved), PATH, OURS, expected, on_conflict=policy) == Refused(expected, 8, "recreated")


def test_a_conflict_that_does_not_name_the_head_is_looked_up(moved):
    class Vague(Around):
        def publish(self, path, body, expected, **kw):
            raise VersionConflictError("412", expected=expected.number, current=None)

    assert publish(Vague(moved), PATH, OURS, 5) == Mismatch(5, 6)
    assert publish(Vague(moved), PATH, OURS, 5, on_conflict="merge", retries=2) == Contention(5, 6, 2)
    delete(moved, PATH, 6)
    assert publish(Vague(moved), PATH, OURS, 5, on_conflict="merge") == Refused(5, 7, "deleted")


@pytest.mark.parametrize("recreate", [False, True])
@pytest.mark.parametrize("when", ["before the head is fetched", "before the merge is published"])
def test_a_deletion_in_the_middle_of_the_loop_is_noticed(moved, when, recreate):
    class Cut(Around):
        calls = 0

        def publish(self, path, body, expected, **kw):
            self.calls += 1
            try:
                if self.calls == 2 and when == "before the merge is published":
                    self.cut()
                return self._store.publish(path, body, expected, **kw)
            finally:
                if self.calls == 1 and when == "before the head is fetched":
                    self.cut()

        def cut(self):
            self._store.delete(PATH, Version(6))
            if recreate:
                self._store.publish(PATH, b"another life\n", Version(0))

    outcome = publish(Cut(moved), PATH, OURS, 5, on_conflict="merge")
    assert outcome == (Refused(5, 8, "recreated") if recreate else Refused(5, 7, "deleted"))


@MERGING
@pytest.mark.parametrize("nul", ["base", "ours", "theirs"])
def test_a_real_merge_of_a_body_with_a_nul_byte_is_refused(store, policy, nul):
    bodies = {"base": BASE, "ours": OURS, "theirs": THEIRS}
    bodies[nul] += b"\0"
    publish(store, PATH, bodies["base"], 0)
    publish(store, PATH, bodies["theirs"], 1)
    assert publish(store, PATH, bodies["ours"], 1, on_conflict=policy) == Refused(1, 2, "binary")
    assert history(store)[0] == 2


def test_a_nul_byte_is_no_matter_where_no_merge_is_needed(store):
    assert publish(store, PATH, b"\0", 0, on_conflict="merge") == Published(1)
    assert publish(store, PATH, b"\0\0", 1, on_conflict="merge") == Published(2)
    assert publish(store, PATH, b"\0", 2) == Published(3)
    assert publish(store, PATH, b"\0", 2, on_conflict="merge").replayed
    # ours == base: theirs is the answer, whatever the bytes
    assert publish(store, PATH, b"\0\0", 2, on_conflict="merge").unchanged


@EVERY
def test_events_are_never_merged_by_line(store, policy):
    one, two, other = (b'{"id": "%s", "type": "message"}\n' % name for name in (b"1", b"2", b"0"))
    store.publish(PATH, one, Version(0), kind=EVENTS)
    store.publish(PATH, one + two, Version(1))
    wanted = Mismatch(1, 2) if policy == "fail" else Refused(1, 2, "events")
    assert publish(store, PATH, one + other, 1, on_conflict=policy) == wanted


@EVERY
def test_a_document_that_never_existed_is_not_found(store, policy):
    with pytest.raises(NotFoundError) as missing:
        publish(store, PATH, OURS, 5, on_conflict=policy)
    assert missing.value.exit_status == 4
    assert not list(store.list(deleted=True))


def test_fetching_a_deleted_document_names_the_tombstone_and_how_to_read_the_one_before(moved):
    delete(moved, PATH, 6)
    for version in (None, 7):
        with pytest.raises(NotFoundError, match="7") as missing:
            fetch(moved, PATH, version)
        assert missing.value.tombstone == 7
        assert missing.value.exit_status == 4
        assert f"{PATH}/v6" in missing.value.message + missing.value.hint


@pytest.mark.parametrize("policy", ["fail", "merge"])
def test_a_body_over_the_limit_is_refused_before_it_is_sent(policy):
    class Unreachable(Around):
        def publish(self, *args, **kw):
            raise AssertionError("sent")

        append = publish

    small = Unreachable(MemoryStore(max_body=16))
    for call in (
        lambda: publish(small, PATH, b"x" * 17, 0, on_conflict=policy),
        lambda: append(small, PATH, b"x" * 17),
    ):
        with pytest.raises(RejectedError, match=r"17 bytes.* 16 ") as refused:
            call()
        assert (refused.value.limit, refused.value.exit_status) == (16, 2)


def test_a_merge_over_the_limit_is_refused_and_named(store):
    small = MemoryStore(max_body=len(BASE) + 6)
    publish(small, PATH, BASE, 0)
    publish(small, PATH, BASE + b"4444\n", 1)
    with pytest.raises(RejectedError, match="merged body") as refused:
        publish(small, PATH, b"0000\n" + BASE, 1, on_conflict="merge")
    assert refused.value.limit == len(BASE) + 6
    assert history(small)[0] == 2


def test_a_store_without_a_limit_takes_everything(moved):
    class Limitless(Around):
        capabilities = dataclasses.replace(MemoryStore().capabilities, max_bytes=None)

    assert publish(Limitless(moved), PATH, OURS, 6) == Published(7)


@pytest.mark.parametrize("path", ["docs", "/docs/", "/docs/v5", "/-/x", "/a\n"])
def test_a_bad_path_is_refused_by_every_verb(moved, path):
    for call in (
        lambda: publish(moved, path, BASE, 0),
        lambda: append(moved, path, b"x"),
        lambda: delete(moved, path, 1),
        lambda: fetch(moved, path, 1),
    ):
        with pytest.raises(BadPathError):
            call()


@pytest.mark.parametrize("expected", [-1, 2**53])
def test_a_number_that_no_version_has_is_refused(moved, expected):
    for call in (
        lambda: publish(moved, PATH, OURS, expected),
        lambda: delete(moved, PATH, expected),
        lambda: fetch(moved, PATH, expected),
    ):
        with pytest.raises(InputError, match="no version"):
            call()


def test_an_unknown_policy_is_refused(moved):
    with pytest.raises(InputError, match="no policy"):
        publish(moved, PATH, OURS, 5, on_conflict="force")


# ── the guard against unresolved conflicts ──────────────────────────────────────────────────────────────────────────


@EVERY
@pytest.mark.parametrize("expected", [5, 6])
def test_a_body_with_an_unresolved_conflict_is_refused_before_anything_is_written(moved, policy, expected):
    with pytest.raises(UnresolvedMarkersError, match="line 3 ") as refused:
        publish(moved, PATH, b"one\n\n" + BLOCK + BASE, expected, on_conflict=policy)
    assert (refused.value.line, refused.value.exit_status) == (3, 2)
    assert "--allow-markers" in refused.value.hint
    assert history(moved)[0] == 6


def test_creating_a_document_with_an_unresolved_conflict_is_refused(store):
    with pytest.raises(UnresolvedMarkersError):
        publish(store, PATH, BLOCK, 0)
    assert publish(store, PATH, BLOCK, 0, allow_markers=True) == Published(1)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_a_block_that_stands_in_the_base_or_in_theirs_does_not_count(store, ending):
    block = BLOCK.replace(b"\n", b"\r\n") if ending == b"\r\n" else BLOCK[: None if ending else -1]
    publish(store, PATH, b"about conflicts:\n" + BLOCK, 0, allow_markers=True)
    assert publish(store, PATH, b"All about conflicts:\n" + block, 1) == Published(2)
    publish(store, PATH, b"nothing\n", 2)
    publish(store, PATH, BASE, 3)
    assert isinstance(publish(store, PATH, b"All:\n" + block, 2), Mismatch)
    with pytest.raises(UnresolvedMarkersError, match="line 2 "):
        publish(store, PATH, b"All:\n" + block, 3)


def test_a_block_that_only_theirs_holds_does_not_count(store):
    publish(store, PATH, BASE, 0)
    publish(store, PATH, BASE + BLOCK, 1, allow_markers=True)
    assert publish(store, PATH, OURS + BLOCK, 1) == Mismatch(1, 2)
    assert publish(store, PATH, OURS + BLOCK, 1, on_conflict="merge").body == OURS + BLOCK


def test_a_block_is_known_by_whole_lines_alone(store):
    publish(store, PATH, b"x" + BLOCK, 0)
    with pytest.raises(UnresolvedMarkersError, match="line 1 "):
        publish(store, PATH, BLOCK, 1)


def test_a_second_block_counts_though_the_first_is_known(store):
    publish(store, PATH, BLOCK + b"text\n", 0, allow_markers=True)
    other = BLOCK.replace(b"mine", b"my own")
    with pytest.raises(UnresolvedMarkersError, match="line 7 "):
        publish(store, PATH, BLOCK + b"text\n" + other, 1)


def test_lines_that_only_look_like_a_part_of_a_block_are_text(store):
    body = b"Title\n=======\n\n<<<<<<< \n>>>>>>> x\n"
    assert publish(store, PATH, body, 0) == Published(1)


def test_base_and_head_are_fetched_for_the_guard_only_when_there_is_a_block(moved):
    asked = []

    class Counting(Around):
        def fetch(self, path, version=None):
            asked.append(version)
            return self._store.fetch(path, version)

    publish(Counting(moved), PATH, BASE + b"<<<<<<< not a block\n", 6)
    assert asked == []
    with pytest.raises(UnresolvedMarkersError):
        publish(Counting(moved), PATH, BLOCK, 6)
    assert asked == [6, None]


# ── lost answers and other doubts ───────────────────────────────────────────────────────────────────────────────────


def other_writer(store):
    now = store.fetch(PATH)
    store.publish(PATH, now.body + b"more\n", now.version, author="other")


@pytest.mark.parametrize("named", [6, None])
def test_a_store_that_contradicts_itself_is_no_success_either(moved, named):
    class Confused(Around):
        def publish(self, path, body, expected, **kw):
            raise VersionConflictError("412", expected=expected.number, current=named)

        def fetch(self, path, version=None):
            if version is None:
                raise NotFoundError("404")
            return self._store.fetch(path, version)

    with pytest.raises(NotFoundError):
        publish(Confused(moved), PATH, OURS, 5, on_conflict="merge")


def test_a_publish_whose_answer_is_lost_is_published_once(store):
    seed(store, 5)
    assert publish(LosesAnswers(store), PATH, OURS, 5) == Published(6, replayed=True)
    assert history(store)[0] == 6


def test_a_lost_answer_is_recognised_also_after_the_head_moved_on(store):
    seed(store, 5)
    lossy = LosesAnswers(store, afterwards=other_writer)
    assert publish(lossy, PATH, OURS, 5, on_conflict="merge") == Published(6, replayed=True, current_version=7)
    assert history(store)[0] == 7


@pytest.mark.parametrize(("afterwards", "current"), [(lambda store: None, None), (other_writer, 8)])
def test_a_lost_answer_of_a_merged_publish_is_recognised(moved, afterwards, current):
    outcome = publish(LosesAnswers(moved, afterwards=afterwards), PATH, OURS, 5, on_conflict="merge")
    assert outcome == Published(7, MergeFacts(5, 6), replayed=True, current_version=current, body=BOTH)
    assert history(moved).count(7) == 1
    assert history(moved)[0] == (current or 7)


FAULTS = {"-": lambda: None, "answer": lost_answer, "request": lost_request, "contention": contention}


@pytest.mark.parametrize("script", list(itertools.product(FAULTS, repeat=4)), ids=".".join)
def test_whatever_goes_wrong_on_the_way_a_merged_publish_happens_once(moved, script):
    """One fault or none for each call to the store: first publish, base, head, publish of the merge, repetitions."""
    faulty = FaultInjecting(moved, [FAULTS[name]() for name in script])
    for _ in range(4):
        try:
            outcome = publish(faulty, PATH, OURS, 5, on_conflict="merge")
            break
        except UnknownOutcomeError:
            assert history(moved)[0] <= 7
    assert (outcome.version, outcome.merge, outcome.body) == (7, MergeFacts(5, 6), BOTH)
    assert history(moved) == [7, 6, 5, 4, 3, 2, 1]


def test_a_retrying_store_hides_lost_answers_altogether(moved):
    faulty = FaultInjecting(moved, [lost_request(), None, None, None, lost_answer(), lost_answer()])
    outcome = publish(Retrying(faulty, RetryPolicy.instant()), PATH, OURS, 5, on_conflict="merge")
    assert outcome == Published(7, MergeFacts(5, 6), replayed=True, body=BOTH)
    assert history(moved)[0] == 7


def test_without_any_answer_the_outcome_stays_unknown_and_repeating_the_command_settles_it(store):
    seed(store, 5)
    with pytest.raises(UnknownOutcomeError) as unknown:
        publish(LosesAnswers(store, lost=2), PATH, OURS, 5)
    assert unknown.value.exit_status == 4
    assert publish(store, PATH, OURS, 5) == Published(6, replayed=True)


def test_an_unknown_outcome_is_not_turned_into_a_no_by_a_store_that_is_then_unreachable(store):
    seed(store, 5)

    class Dies(LosesAnswers):
        def publish(self, *args, **kw):
            if self.lost:
                return super().publish(*args, **kw)
            raise UnavailableError("connection refused")

    with pytest.raises(UnknownOutcomeError):
        publish(Dies(store), PATH, OURS, 5)


@pytest.mark.parametrize("error", [UnavailableError("down"), DeniedError("no"), RejectedError("no"), OSError("bug")])
def test_anything_but_a_clear_yes_is_never_a_success(moved, error):
    class Broken(Around):
        def publish(self, *args, **kw):
            raise error

        append = delete = fetch = publish

    for call in (
        lambda: publish(Broken(moved), PATH, OURS, 6),
        lambda: append(Broken(moved), PATH, b"x"),
        lambda: delete(Broken(moved), PATH, 6),
        lambda: fetch(Broken(moved), PATH),
    ):
        with pytest.raises(type(error)) as raised:
            call()
        assert raised.value is error


def test_the_same_call_is_repeated_while_something_else_moves_in_the_store(moved):
    class Busy(Around):
        busy = 15

        def publish(self, *args, **kw):
            if self.busy:
                self.busy -= 1
                raise ContentionError("something else moved")
            return self._store.publish(*args, **kw)

    assert publish(Busy(moved), PATH, OURS, 6) == Published(7)

    Busy.busy = 1000
    with pytest.raises(ContentionError):
        publish(Busy(moved), PATH, BASE, 7)
    assert history(moved)[0] == 7


# ── fetch, append, delete ───────────────────────────────────────────────────────────────────────────────────────────


def test_fetch_answers_with_the_head_or_a_version_in_either_form(moved):
    assert fetch(moved, PATH).document.body == THEIRS
    assert fetch(moved, PATH, 5).document.body == BASE
    assert fetch(moved, f"{PATH}/v5") == fetch(moved, PATH, 5)
    with pytest.raises(NotFoundError):
        fetch(moved, PATH, 7)


def test_append_adds_to_whatever_the_head_is(store):
    publish(store, PATH, b"one", 0)
    assert append(store, PATH, b"two\n", author="Ann") == Published(2)
    assert append(store, PATH, b"two\n") == Published(3)
    assert head(store).body == b"one\ntwo\ntwo\n"


def test_an_append_whose_answer_is_lost_happens_once_under_one_key(store):
    publish(store, PATH, b"one\n", 0)
    lossy = LosesAnswers(store, afterwards=other_writer)
    assert append(lossy, PATH, b"two\n") == Published(2, replayed=True, current_version=3)
    assert head(store).body == b"one\ntwo\nmore\n"
    assert len(lossy.keys) == 2
    assert len(set(lossy.keys)) == 1
    append(lossy, PATH, b"two\n")
    assert len(set(lossy.keys)) == 2


def test_an_append_under_a_key_of_the_callers_own_is_repeated_safely(store):
    publish(store, PATH, b"one\n", 0)
    assert append(store, PATH, b"two\n", key="k") == Published(2)
    assert append(store, PATH, b"two\n", key="k") == Published(2, replayed=True)


def test_append_refuses_an_empty_body_and_a_missing_or_deleted_document(moved):
    with pytest.raises(InputError, match="empty"):
        append(moved, PATH, b"")
    with pytest.raises(NotFoundError):
        append(moved, "/docs/other.md", b"x")
    delete(moved, PATH, 6)
    with pytest.raises(NotFoundError) as missing:
        append(moved, PATH, b"x")
    assert missing.value.tombstone == 7


def test_delete_is_a_compare_and_swap(moved):
    assert delete(moved, PATH, 5) == Mismatch(5, 6, deleting=True)
    assert delete(moved, PATH, 9) == Mismatch(9, 6, deleting=True)
    assert delete(moved, PATH, 6, author="Ann", message="old") == Published(7)
    assert delete(moved, PATH, 6) == Published(7, replayed=True)
    assert delete(moved, PATH, 5) == Refused(5, 7, "deleted")
    publish(moved, PATH, BASE, 0)
    assert delete(moved, PATH, 6) == Refused(6, 8, "recreated")


def test_a_delete_whose_answer_is_lost_happened_once(moved):
    assert delete(LosesAnswers(moved), PATH, 6) == Published(7, replayed=True)
    assert history(moved)[0] == 7


def test_delete_names_a_version_and_an_existing_document(moved):
    with pytest.raises(InputError, match="nothing to delete"):
        delete(moved, PATH, 0)
    with pytest.raises(NotFoundError):
        delete(moved, "/docs/other.md", 1)


def test_a_store_that_does_not_number_its_versions_is_refused_rather_than_guessed(moved):
    class Tokens(Around):
        def publish(self, *args, **kw):
            return dataclasses.replace(self._store.publish(*args, **kw), version=Version(None, "W1"))

    with pytest.raises(publishing.InvalidStoreError):
        publish(Tokens(moved), PATH, OURS, 6)
