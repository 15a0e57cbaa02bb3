"""The rules of tracking, broken once each: the random histories must find it, or they prove nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mergepub.checkout import Base, disk, replacing
from mergepub.checkout.records import Record
from mergepub.documents import digest_of
from mergepub.outcomes import Published
from mergepub.tracking import arrivals, pulling, sending, stale
from tests.tracking_world import random_history

ENOUGH = 400  # histories; the slowest of the mutants needs a fraction of them


def base_is_advanced_past_what_the_file_contains(patch):
    def answered(self, outcome):
        record = self.work.record
        if isinstance(outcome, Published) and outcome.body is not None:
            base = Base(outcome.version, outcome.incarnation, digest_of(outcome.body))
            self.work.save(record.published(base), self.ours, outcome.body)
        else:
            right(self, outcome)

    right = sending._Sending.answered
    patch.setattr(sending._Sending, "answered", answered)


def the_file_is_sent_as_it_is_after_a_merge(patch):
    def published(self, base, sent=None):
        return right(self, replace(base, contained=False), sent)

    right = Record.published
    patch.setattr(Record, "published", published)


def a_merged_publish_leaves_the_old_base(patch):
    def answered(self, outcome):
        if isinstance(outcome, Published) and outcome.merge:
            self.work.save(replace(self.work.record, sent=()))
        else:
            right(self, outcome)

    right = sending._Sending.answered
    patch.setattr(sending._Sending, "answered", answered)


def what_was_sent_is_forgotten(patch):
    for module in (sending, pulling):
        patch.setattr(module, "settle", lambda work, but=None: None)


def what_can_still_arrive_is_forgotten(patch):
    patch.setattr(arrivals, "_can_arrive", lambda sent, rows: False)


def an_arrival_is_taken_for_less_than_the_file_contains(patch):
    def arrived(work, arrival):
        sent, row = arrival
        base = Base(row.version, row.incarnation, sent.ours, contained=row.digest != sent.ours)
        return work.record.published(base, sent), []

    patch.setattr(arrivals, "_arrived", arrived)


def a_conflict_moves_the_base_at_once(patch):
    def enter(work, ours, record, head, overlap, *, here):
        right(work, ours, replace(record, base=pulling.exactly(head)), head, overlap, here=here)

    right = pulling.enter_conflict
    patch.setattr(pulling, "enter_conflict", enter)


def nothing_is_compared_after_the_exchange(patch):
    patch.setattr(replacing, "_put_back", lambda *_: True)


def files_are_renamed_over(patch):
    def swap(beside, target, aside):
        disk.exchange(beside, beside)  # nothing but the moment in which editors save
        body = disk.read(target)
        disk.os.replace(beside, target)
        disk.write_new(beside, body or b"")
        return True

    patch.setattr(disk, "swap", swap)


def the_base_moves_before_the_file(patch):
    """Without what is remembered for old editors: for that looks like one, and is found out."""

    def replace_file(checkout, local, old, new, after):
        after = replace(after, brought=())
        checkout.store(after.file, new, *([] if old is None else [old]))
        checkout.save(after)
        right(checkout, local, old, new, after)

    right = replacing.replace_file
    for module in (pulling, sending):
        patch.setattr(module, "replace_file", replace_file)


def interrupted_changes_are_left_alone(patch):
    from mergepub.tracking import work

    patch.setattr(work, "recover", lambda checkout, undoes: iter(()))


def interrupted_changes_are_always_finished(patch):
    patch.setattr(replacing, "_was_exchanged", lambda *_: True)


def nobody_looks_for_old_editors(patch):
    patch.setattr(sending, "judge", lambda *_: stale.Verdict())


def an_old_editor_is_merged_from_its_bytes_though_they_are_not_published(patch):
    def bringing(self, before, after):
        changes = right(self, before, after)
        if changes == self.brought:
            return changes
        known = replace(self.base, digest=digest_of(before), contained=True)
        return (*changes[:-1], replace(changes[-1], base=known))

    right = Record.bringing
    patch.setattr(Record, "bringing", bringing)


def an_old_editor_is_merged_from_what_was_published_long_since(patch):
    def published(self, base, sent=None):
        return replace(right(self, base, sent), brought=self.brought)

    right = Record.published
    patch.setattr(Record, "published", published)


MUTANTS = {
    base_is_advanced_past_what_the_file_contains: 0,
    the_file_is_sent_as_it_is_after_a_merge: 0,
    a_merged_publish_leaves_the_old_base: 1,
    what_was_sent_is_forgotten: 4,
    what_can_still_arrive_is_forgotten: 8,
    an_arrival_is_taken_for_less_than_the_file_contains: 770,
    a_conflict_moves_the_base_at_once: 23,
    nothing_is_compared_after_the_exchange: 14,
    files_are_renamed_over: 217,
    the_base_moves_before_the_file: 15,
    interrupted_changes_are_left_alone: 0,
    interrupted_changes_are_always_finished: 18,
    nobody_looks_for_old_editors: 40,
    an_old_editor_is_merged_from_its_bytes_though_they_are_not_published: 40,
    an_old_editor_is_merged_from_what_was_published_long_since: 278,
}
"""Each with a history that is known to find it, so that the search is short."""


@pytest.mark.parametrize("break_it", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_histories_find_a_broken_rule(break_it):
    found = (seed for seed in (MUTANTS[break_it], *range(ENOUGH)) if fails(seed, break_it))
    assert next(found, None) is not None


@pytest.mark.parametrize("seed", sorted(set(MUTANTS.values())))
def test_these_histories_find_nothing_where_nothing_is_broken(seed):
    random_history(seed)


def fails(seed, break_it):
    with pytest.MonkeyPatch.context() as patch:
        break_it(patch)
        try:
            random_history(seed)
        except AssertionError:
            return True
    return False
