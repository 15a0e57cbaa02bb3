"""What every store that keeps branches owes, as one class; a backend overrides the fixture ``make_store``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from mergepub.documents import ABSENT, EVENTS, Receipt, Version
from mergepub.errors import (
    BaseUnavailableError,
    BranchError,
    DocumentDeletedError,
    InputError,
    MergepubError,
    NotFoundError,
    RecreatedError,
    RejectedError,
    VersionConflictError,
)
from mergepub.histories import (
    CHOOSE,
    CONTINUE,
    REBASE,
    REJECT,
    UNDO,
    Branch,
    BranchReceipt,
    DecisionReceipt,
    DecisionRequest,
    Place,
)
from mergepub.stores.contract import BranchStore

Opener = Callable[[], BranchStore]

DOC = "/docs/guide.md"
ONE, TWO = b'{"id": "1", "type": "message"}\n', b'{"id": "2", "type": "message"}\n'
THREE = b'{"id": "3", "type": "message"}\n'


def at(number: int) -> Version:
    return Version(number)


def refusal(call: Callable[[], object]) -> MergepubError:
    with pytest.raises(MergepubError) as caught:
        call()
    return caught.value


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """All ``calls`` begun at the same moment in a thread each; their answers or errors, in order."""
    start, answers = threading.Barrier(len(calls)), [None] * len(calls)

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


class BranchSuite:
    @pytest.fixture
    def make_store(self) -> Opener:
        raise NotImplementedError("a backend says how to open it")

    @pytest.fixture
    def store(self, make_store: Opener):
        store = make_store()
        yield store
        store.close()

    @pytest.fixture
    def stores(self, make_store: Opener):
        """Six handles on the same store."""
        stores = [make_store() for _ in range(6)]
        yield stores
        for store in stores:
            store.close()

    @pytest.fixture
    def sibling(self, store: BranchStore) -> str:
        """A document at version 2 with ann's sibling of version 1."""
        store.publish(DOC, b"one\n", ABSENT)
        store.publish(DOC, b"two\n", at(1))
        return self.branch(store, b"mine\n").branch

    @staticmethod
    def branch(store: BranchStore, body: bytes, base: int = 1, author: str = "ann", **how: Any) -> BranchReceipt:
        receipt = store.branch(DOC, body, at(base), author=author, **how)
        assert isinstance(receipt, BranchReceipt)
        return receipt

    @staticmethod
    def find(store: BranchStore, name: str) -> Branch:
        return next(each for each in store.branches(DOC)[1] if each.name == name)

    @staticmethod
    def states(store: BranchStore) -> dict[str, str]:
        return {each.name: each.state for each in store.branches(DOC)[1]}

    @staticmethod
    def decide(store: BranchStore, strategy: str, head: int, seen: Place | None, **how: Any) -> DecisionReceipt:
        return store.decide(DOC, DecisionRequest(strategy, head, seen, **{"resolver": "zoe", **how}))

    # Fast-forward or sibling

    def test_a_base_that_is_the_head_is_fast_forwarded(self, store: BranchStore) -> None:
        created = store.branch(DOC, b"one\n", ABSENT, author="ann")
        forwarded = store.branch(DOC, b"two\n", at(1), author="ann")
        assert isinstance(created, Receipt)
        assert isinstance(forwarded, Receipt)
        assert (forwarded.version.number, store.fetch(DOC).body) == (2, b"two\n")
        assert [branch.name for branch in store.branches(DOC)[1]] == ["main"]

    def test_a_base_behind_the_head_becomes_a_sibling_and_the_head_stays(
        self, store: BranchStore, sibling: str
    ) -> None:
        branch = self.find(store, sibling)
        assert (branch.parent, branch.base_revision, branch.base_version) == ("main", 1, 1)
        assert (branch.state, branch.revision, branch.origins) == ("open", 1, (Place("main", 1),))
        assert [(owner.name, owner.epoch, owner.revision) for owner in branch.owners] == [("ann", 1, 1)]
        assert store.revision(DOC, sibling, 1).body == b"mine\n"
        assert (store.fetch(DOC).body, store.fetch(DOC).version.number) == (b"two\n", 2)

    def test_a_sibling_that_comes_again_is_recognised_by_its_content(self, store: BranchStore, sibling: str) -> None:
        store.publish(DOC, b"three\n", at(2))
        again = self.branch(store, b"mine\n")
        assert (again.branch, again.revision, again.replayed, again.current) == (sibling, 1, True, 3)
        assert len(store.branches(DOC)[1]) == 2

    def test_the_same_body_of_two_writers_is_one_branch_with_two_owners(self, store: BranchStore, sibling: str) -> None:
        other = self.branch(store, b"mine\n", author="bob")
        assert (other.branch, other.replayed) == (sibling, False)
        assert [owner.name for owner in self.find(store, sibling).owners] == ["ann", "bob"]

    def test_a_body_that_equals_its_base_is_no_branch(self, store: BranchStore, sibling: str) -> None:
        empty = self.branch(store, b"one\n", author="bob")
        assert (empty.unchanged, empty.base_version) == (True, 1)
        assert len(store.branches(DOC)[1]) == 2

    def test_a_sibling_of_nothing_has_no_ancestor(self, store: BranchStore, sibling: str) -> None:
        other = self.branch(store, b"from nothing\n", base=0)
        assert store.standing(DOC, other.branch).ancestors == ()

    def test_a_base_is_never_guessed(self, store: BranchStore, sibling: str) -> None:
        incarnation, digest = store.fetch(DOC, 1).incarnation, store.fetch(DOC, 1).digest
        known = {"incarnation": incarnation, "digest": digest}
        assert self.branch(store, b"other\n", **known).revision == 1
        for wrong in (known | {"digest": "0" * 64}, known | {"incarnation": "0" * 32}):
            error = refusal(lambda wrong=wrong: store.branch(DOC, b"x\n", at(1), author="ann", **wrong))
            assert isinstance(error, BaseUnavailableError | RecreatedError)
        assert isinstance(refusal(lambda: store.branch(DOC, b"x\n", at(9), author="ann")), BaseUnavailableError)
        assert len(store.branches(DOC)[1]) == 3

    def test_a_deleted_or_recreated_document_takes_no_sibling_of_an_earlier_life(
        self, store: BranchStore, sibling: str
    ) -> None:
        store.delete(DOC, at(2))
        assert isinstance(refusal(lambda: self.branch(store, b"x\n")), DocumentDeletedError)
        store.publish(DOC, b"new\n", ABSENT)
        assert isinstance(refusal(lambda: self.branch(store, b"x\n")), RecreatedError)

    def test_many_siblings_at_once_are_all_kept(self, stores: list[BranchStore], sibling: str) -> None:
        answers = at_once(
            [lambda s=store, i=i: self.branch(s, b"%d\n" % i, author=f"w{i}") for i, store in enumerate(stores)]
        )
        assert all(isinstance(answer, BranchReceipt) for answer in answers), answers
        assert len({answer.branch for answer in answers}) == 6

    # One's own branch

    def test_an_owner_extends_its_branch_and_a_repeated_extension_is_recognised(
        self, store: BranchStore, sibling: str
    ) -> None:
        first = store.extend(DOC, sibling, b"mine 2\n", author="ann", epoch=1, known=1)
        again = store.extend(DOC, sibling, b"mine 2\n", author="ann", epoch=1, known=1)
        assert (first.revision, first.replayed, again.revision, again.replayed) == (2, False, 2, True)
        assert store.extend(DOC, sibling, b"mine 3\n", author="ann").revision == 3
        assert store.extend(DOC, sibling, b"mine 2\n", author="ann", known=1).replayed
        assert store.extend(DOC, sibling, b"mine 3\n", author="ann").unchanged
        assert store.revision(DOC, sibling, 2).parents == (Place(sibling, 1),)
        assert list(store.verify(DOC)) == []

    def test_a_writer_who_does_not_know_the_end_is_refused(self, store: BranchStore, sibling: str) -> None:
        self.branch(store, b"mine\n", author="bob")
        store.extend(DOC, sibling, b"mine 2\n", author="ann")
        error = refusal(lambda: store.extend(DOC, sibling, b"bob's\n", author="bob"))
        assert (type(error), error.reason, error.exit_status) == (BranchError, "stale", 3)

    def test_a_branch_is_not_anybody_elses(self, store: BranchStore, sibling: str) -> None:
        for name in (sibling,):
            error = refusal(lambda name=name: store.extend(DOC, name, b"x\n", author="eve"))
            assert error.reason == "fenced"
        assert refusal(lambda: store.extend(DOC, "main", b"x\n", author="eve")).reason == "default"
        assert isinstance(refusal(lambda: store.extend(DOC, "none", b"x\n", author="eve")), NotFoundError)

    def test_taking_a_branch_over_fences_everybody_else_off(self, store: BranchStore, sibling: str) -> None:
        assert store.take(DOC, sibling, author="bob").epoch == 2
        assert refusal(lambda: store.extend(DOC, sibling, b"x\n", author="ann", epoch=1)).reason == "fenced"
        assert store.extend(DOC, sibling, b"bob's\n", author="bob", epoch=2).revision == 2
        # the same author elsewhere, with the epoch that it knew
        assert store.take(DOC, sibling, author="bob").epoch == 3
        assert refusal(lambda: store.extend(DOC, sibling, b"x\n", author="bob", epoch=2)).reason == "fenced"

    def test_an_abandoned_branch_stays_visible_and_does_not_grow(self, store: BranchStore, sibling: str) -> None:
        assert refusal(lambda: store.abandon(DOC, sibling, author="eve")).reason == "fenced"
        assert store.abandon(DOC, sibling, author="ann").state == "abandoned"
        assert store.abandon(DOC, sibling, author="ann").state == "abandoned"
        assert refusal(lambda: store.extend(DOC, sibling, b"x\n", author="ann")).reason == "abandoned"
        assert store.revision(DOC, sibling).body == b"mine\n"
        self.branch(store, b"mine\n", author="bob")
        assert self.find(store, sibling).state == "open"

    # Deciding

    def test_a_chosen_branch_is_the_head_and_is_extended_by_later_publishes(
        self, store: BranchStore, sibling: str
    ) -> None:
        receipt = self.decide(store, CHOOSE, 2, Place(sibling, 1), reason="newer")
        assert (receipt.head, receipt.decision.result, receipt.decision.reason) == (3, Place(sibling, 1), "newer")
        assert store.fetch(DOC).body == b"mine\n"
        assert self.states(store) == {"main": "superseded", sibling: "default"}
        store.publish(DOC, b"mine and more\n", at(3))
        assert self.find(store, sibling).revision == 2
        assert [store.fetch(DOC, n).body for n in (1, 2, 3, 4)] == [b"one\n", b"two\n", b"mine\n", b"mine and more\n"]
        assert list(store.verify(DOC)) == []

    def test_the_former_default_can_be_chosen_again(self, store: BranchStore, sibling: str) -> None:
        self.decide(store, CHOOSE, 2, Place(sibling, 1))
        self.decide(store, CHOOSE, 3, Place("main", 2))
        assert (store.fetch(DOC).body, store.fetch(DOC).version.number) == (b"two\n", 4)
        store.publish(DOC, b"three\n", at(4))
        assert self.find(store, "main").revision == 3
        assert list(store.verify(DOC)) == []

    def test_a_continuation_has_both_heads_as_parents_and_a_branch_of_its_own(
        self, store: BranchStore, sibling: str
    ) -> None:
        receipt = self.decide(store, CONTINUE, 2, Place(sibling, 1), body=b"both\n")
        assert receipt.decision.result is not None
        name = receipt.decision.result.branch
        assert store.revision(DOC, name).parents == (Place("main", 2), Place(sibling, 1))
        assert self.states(store) == {"main": "superseded", sibling: "merged", name: "default"}
        assert store.fetch(DOC).body == b"both\n"
        assert refusal(lambda: store.extend(DOC, sibling, b"x\n", author="ann")).reason == "merged"

    def test_a_rebase_appends_to_the_heads_branch(self, store: BranchStore, sibling: str) -> None:
        receipt = self.decide(store, REBASE, 2, Place(sibling, 1), body=b"rebased\n", approved=("h1", "h2"))
        assert (receipt.decision.result, receipt.decision.approved) == (Place("main", 3), ("h1", "h2"))
        assert self.states(store) == {"main": "default", sibling: "merged"}
        assert store.fetch(DOC).body == b"rebased\n"

    def test_a_rebase_may_name_as_much_as_it_likes(self, store: BranchStore, sibling: str) -> None:
        names = tuple(f"{number:036d} ä" for number in range(2000))
        decide = lambda: self.decide(store, REBASE, 2, Place(sibling, 1), body=b"rebased\n", approved=names)  # noqa: E731 - twice the same
        assert decide().decision.approved == names
        assert decide().replayed
        assert store.fetch(DOC).body == b"rebased\n"
        assert store.decisions(DOC)[0].approved == names

    def test_a_rejected_branch_stays_and_the_head_too(self, store: BranchStore, sibling: str) -> None:
        receipt = self.decide(store, REJECT, 2, Place(sibling, 1))
        assert (receipt.head, receipt.decision.result_version) == (2, None)
        assert self.states(store)[sibling] == "rejected"
        assert refusal(lambda: self.decide(store, CHOOSE, 2, Place(sibling, 1))).reason == "rejected"
        self.decide(store, UNDO, 2, None, undoes=1)
        assert self.states(store)[sibling] == "open"

    def test_a_repeated_decision_is_answered_as_before(self, store: BranchStore, sibling: str) -> None:
        for strategy, how in ((CHOOSE, {}), (CHOOSE, {})):
            first = self.decide(store, strategy, 2, Place(sibling, 1), **how)
            assert (first.head, first.decision.number) == (3, 1)
        store.publish(DOC, b"later\n", at(3))
        again = self.decide(store, CHOOSE, 2, Place(sibling, 1))
        assert (again.replayed, again.head, again.current, again.decision.number) == (True, 3, 4, 1)
        assert len(store.decisions(DOC)) == 1

    def test_a_stale_resolver_is_told(self, store: BranchStore, sibling: str) -> None:
        store.publish(DOC, b"three\n", at(2))
        for strategy, how in ((CHOOSE, {}), (CONTINUE, {"body": b"x\n"}), (REBASE, {"body": b"x\n"}), (REJECT, {})):
            error = refusal(lambda s=strategy, h=how: self.decide(store, s, 2, Place(sibling, 1), **h))
            assert isinstance(error, VersionConflictError)
            assert (error.expected, error.current, error.exit_status) == (2, 3, 3)
        store.extend(DOC, sibling, b"grown\n", author="ann")
        assert refusal(lambda: self.decide(store, CHOOSE, 3, Place(sibling, 1))).reason == "stale"
        assert store.decisions(DOC) == []
        assert store.fetch(DOC).version.number == 3

    def test_the_heads_own_branch_is_not_decided_about(self, store: BranchStore, sibling: str) -> None:
        assert refusal(lambda: self.decide(store, CHOOSE, 2, Place("main", 2))).reason == "default"
        assert isinstance(refusal(lambda: self.decide(store, CHOOSE, 2, Place("none", 1))), NotFoundError)

    def test_a_decision_needs_what_it_is_made_of(self, store: BranchStore, sibling: str) -> None:
        for request in (
            DecisionRequest("guess", 2, Place(sibling, 1)),
            DecisionRequest(CHOOSE, 2, None),
            DecisionRequest(CONTINUE, 2, Place(sibling, 1)),
            DecisionRequest(UNDO, 2, None),
        ):
            assert isinstance(refusal(lambda r=request: store.decide(DOC, r)), InputError)

    @pytest.mark.parametrize(
        ("strategy", "how", "states"),
        [
            (CHOOSE, {}, {"main": "default"}),
            (CONTINUE, {"body": b"both\n"}, {"main": "default", "merge-3": "superseded"}),
            (REBASE, {"body": b"rebased\n"}, {"main": "superseded", "undo-4": "default"}),
        ],
    )
    def test_an_undo_brings_the_former_head_back_by_a_new_version(
        self, store: BranchStore, sibling: str, strategy: str, how: dict[str, Any], states: dict[str, str]
    ) -> None:
        self.decide(store, strategy, 2, Place(sibling, 1), **how)
        receipt = self.decide(store, UNDO, 3, None, undoes=1)
        assert (receipt.head, receipt.decision.undoes, store.fetch(DOC).body) == (4, 1, b"two\n")
        assert self.states(store) == {sibling: "open"} | states
        assert {each.base_version for each in store.branches(DOC)[1] if each.name == "undo-4"} <= {2}
        assert self.decide(store, UNDO, 3, None, undoes=1).replayed
        redone = self.decide(store, UNDO, 4, None, undoes=2)
        assert (redone.head, store.fetch(DOC).body) == (5, store.fetch(DOC, 3).body)
        store.publish(DOC, b"on\n", at(5))
        assert list(store.verify(DOC)) == []
        assert [row.number for row in store.decisions(DOC)] == [3, 2, 1]

    def test_an_undo_comes_too_late_when_the_head_moved_on(self, store: BranchStore, sibling: str) -> None:
        self.decide(store, CHOOSE, 2, Place(sibling, 1))
        store.publish(DOC, b"later\n", at(3))
        assert isinstance(refusal(lambda: self.decide(store, UNDO, 3, None, undoes=1)), VersionConflictError)
        assert refusal(lambda: self.decide(store, UNDO, 4, None, undoes=1)).reason == "stale"
        assert isinstance(refusal(lambda: self.decide(store, UNDO, 4, None, undoes=7)), NotFoundError)

    def test_of_resolvers_at_once_one_wins_and_the_others_are_told(
        self, stores: list[BranchStore], sibling: str
    ) -> None:
        store = stores[0]
        names = [sibling, *(self.branch(store, b"%d\n" % i).branch for i in range(5))]
        answers = at_once(
            [lambda s=s, n=n: self.decide(s, CHOOSE, 2, Place(n, 1)) for s, n in zip(stores, names, strict=True)]
        )
        won = [answer for answer in answers if isinstance(answer, DecisionReceipt)]
        assert len(won) == 1, answers
        assert all(isinstance(answer, VersionConflictError) for answer in answers if answer not in won)
        assert len(store.decisions(DOC)) == 1
        assert store.fetch(DOC).version.number == 3

    def test_the_end_of_a_deleted_branch_is_named_by_its_own_version(self, store: BranchStore, sibling: str) -> None:
        self.decide(store, CHOOSE, 2, Place(sibling, 1))
        store.delete(DOC, at(3))
        store.publish(DOC, b"new\n", ABSENT)
        error = refusal(lambda: store.revision(DOC, sibling))
        assert isinstance(error, NotFoundError)
        assert error.tombstone == 4

    def test_branches_of_an_earlier_life_stay_listed_and_cannot_be_decided(
        self, store: BranchStore, sibling: str
    ) -> None:
        store.delete(DOC, at(2))
        assert isinstance(refusal(lambda: self.decide(store, CHOOSE, 3, Place(sibling, 1))), DocumentDeletedError)
        store.publish(DOC, b"new\n", ABSENT)
        assert [branch.name for branch in store.branches(DOC)[1]] == ["main", sibling, "main"]
        assert refusal(lambda: self.decide(store, CHOOSE, 4, Place(sibling, 1))).reason == "recreated"
        assert refusal(lambda: store.extend(DOC, sibling, b"x\n", author="ann")).reason == "recreated"
        assert refusal(lambda: store.take(DOC, sibling, author="ann")).reason == "recreated"
        assert store.revision(DOC, sibling).body == b"mine\n"
        assert store.unresolved("/") == []

    # Ancestors

    def test_three_siblings_of_one_base_are_decided_pairwise(self, store: BranchStore, sibling: str) -> None:
        second, third = self.branch(store, b"b\n").branch, self.branch(store, b"c\n").branch
        one = self.decide(store, CONTINUE, 2, Place(sibling, 1), body=b"ab\n")
        assert store.standing(DOC, second).ancestors == (Place("main", 1),)
        self.decide(store, CONTINUE, one.head, Place(second, 1), body=b"abc\n")
        self.decide(store, CHOOSE, 4, Place(third, 1))
        assert store.fetch(DOC).body == b"c\n"
        assert set(self.states(store).values()) == {"superseded", "merged", "default"}
        assert list(store.verify(DOC)) == []

    def test_after_a_criss_cross_all_common_ancestors_are_shown(self, store: BranchStore, sibling: str) -> None:
        self.decide(store, CONTINUE, 2, Place(sibling, 1), body=b"left\n")
        self.decide(store, UNDO, 3, None, undoes=1)
        self.decide(store, CONTINUE, 4, Place(sibling, 1), body=b"right\n")
        standing = store.standing(DOC, "merge-3")
        assert standing.head.place == Place("merge-5", 1)
        assert standing.ancestors == (Place("main", 2), Place(sibling, 1))

    def test_an_earlier_version_and_revision_can_be_asked_for(self, store: BranchStore, sibling: str) -> None:
        store.extend(DOC, sibling, b"grown\n", author="ann")
        self.decide(store, CHOOSE, 2, Place(sibling, 2))
        standing = store.standing(DOC, sibling, version=2, revision=1)
        assert (standing.head.place, standing.ancestors) == (Place("main", 2), (Place("main", 1),))
        assert isinstance(refusal(lambda: store.standing(DOC, sibling, version=9)), VersionConflictError)
        assert isinstance(refusal(lambda: store.standing(DOC, sibling, revision=9)), NotFoundError)

    # Finding

    def test_a_yes_to_a_write_says_how_many_branches_wait(self, store: BranchStore, sibling: str) -> None:
        head = store.fetch(DOC)
        written = store.publish(DOC, b"next\n", head.version)
        assert written.open_branches == 1
        assert store.publish(DOC, b"next\n", head.version).open_branches == 1, "of a repetition too"
        assert store.append(DOC, b"more\n", key="k").open_branches == 1
        store.abandon(DOC, sibling, author="ann")
        assert store.append(DOC, b"more\n", key="l").open_branches == 0

    def test_unresolved_branches_are_found_without_knowing_of_them(self, store: BranchStore, sibling: str) -> None:
        self.branch(store, b"more\n", author="bob")
        store.publish("/docs/other.md", b"x\n", ABSENT)
        assert [(each.path, each.count) for each in store.unresolved("/docs")] == [(DOC, 2)]
        assert store.unresolved("/docs/other.md") == []
        assert store.unresolved(DOC)[0].branch in self.states(store)
        self.decide(store, REJECT, 2, Place(sibling, 1))
        assert store.unresolved(DOC)[0].count == 1

    def test_what_is_not_there_is_not_found(self, store: BranchStore, sibling: str) -> None:
        for call in (
            lambda: store.revision(DOC, "none"),
            lambda: store.revision(DOC, sibling, 2),
            lambda: store.standing(DOC, "none"),
            lambda: store.branches("/none"),
            lambda: store.decisions("/none"),
            lambda: store.take(DOC, "none", author="ann"),
        ):
            assert isinstance(refusal(call), NotFoundError)

    # Logs of events

    def test_an_append_may_name_the_head_that_it_goes_on(self, store: BranchStore) -> None:
        store.publish(DOC, b"one\n", ABSENT)
        assert store.append(DOC, b"two\n", key="a", expected=at(1)).version.number == 2
        error = refusal(lambda: store.append(DOC, b"three\n", key="b", expected=at(1)))
        assert (type(error), error.expected, error.current) == (VersionConflictError, 1, 2)
        assert store.append(DOC, b"two\n", key="a", expected=at(1)).replayed
        assert store.append(DOC, b"three\n", key="b", expected=at(2)).version.number == 3
        store.delete(DOC, at(3))
        assert isinstance(refusal(lambda: store.append(DOC, b"x", key="c", expected=at(4))), NotFoundError)
        store.publish(DOC, b"new\n", ABSENT)
        assert isinstance(refusal(lambda: store.append(DOC, b"x", key="d", expected=at(3))), RecreatedError)

    def test_a_log_grows_at_its_end_alone(self, store: BranchStore) -> None:
        store.publish(DOC, ONE, ABSENT, kind=EVENTS)
        assert refusal(lambda: store.publish(DOC, TWO, at(1))).reason == "not-an-extension"
        assert isinstance(refusal(lambda: store.publish(DOC, ONE + b"text\n", at(1))), RejectedError)
        store.publish(DOC, ONE + TWO, at(1))
        assert refusal(lambda: store.branch(DOC, THREE, at(1), author="ann")).reason == "not-an-extension"
        sibling = self.branch(store, ONE + THREE).branch
        assert refusal(lambda: store.extend(DOC, sibling, ONE, author="ann")).reason == "not-an-extension"
        seen = Place(sibling, 1)
        for strategy in (CONTINUE, REBASE):
            error = refusal(lambda s=strategy: self.decide(store, s, 2, seen, body=ONE + THREE))
            assert error.reason == "not-an-extension"
        self.decide(store, REBASE, 2, seen, body=ONE + TWO + THREE)
        self.decide(store, UNDO, 3, None, undoes=1)
        assert store.fetch(DOC).body == ONE + TWO
        self.decide(store, CHOOSE, 4, seen)
        assert store.fetch(DOC).body == ONE + THREE
        assert store.fetch(DOC).kind == EVENTS
        assert list(store.verify(DOC)) == []
