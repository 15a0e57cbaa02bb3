"""The picture of a history: every revision in it, above what it was made from."""

from __future__ import annotations

from mergepub.branching.picture import picture, places_of
from mergepub.documents import ABSENT, Version
from mergepub.histories import CHOOSE, CONTINUE, REJECT, UNDO, DecisionRequest, Place
from mergepub.stores.memory import MemoryStore

DOC = "/docs/guide.md"


def drawn(store: MemoryStore) -> list[str]:
    versions, (_, branches), decisions = list(store.versions(DOC)), store.branches(DOC), store.decisions(DOC)
    return [f"{line.lanes}  {line.label}".rstrip() for line in picture(versions, branches, decisions)]


def history() -> tuple[MemoryStore, str]:
    store = MemoryStore()
    store.publish(DOC, b"1\n", ABSENT, author="ann")
    store.publish(DOC, b"2\n", Version(1), author="ann")
    return store, store.branch(DOC, b"x\n", Version(1), author="bob").branch


def test_a_line_is_one_lane() -> None:
    store = MemoryStore()
    store.publish(DOC, b"1\n", ABSENT, author="ann", message="begin")
    store.publish(DOC, b"2\n", Version(1), author="bob")
    assert drawn(store) == ["*  main@2  v2 bob; default", "*  main@1  v1 ann begin"]


def test_a_sibling_has_a_lane_of_its_own_down_to_its_base() -> None:
    store, name = history()
    store.extend(DOC, name, b"y\n", author="bob")
    assert drawn(store) == [
        "*  main@2  v2 ann; default",
        f"| *  {name}@1..2  open",
        "|/",
        "*  main@1  v1 ann",
    ]


def test_a_continuation_has_two_lanes_below_it() -> None:
    store, name = history()
    store.decide(DOC, DecisionRequest(CONTINUE, 2, Place(name, 1), "zoe", body=b"z\n"))
    assert drawn(store) == [
        "*  merge-3@1  v3 (decision 1: continue by zoe); default",
        "|\\",
        "* |  main@2  v2 ann; superseded",
        f"| *  {name}@1  merged",
        "|/",
        "*  main@1  v1 ann",
    ]


def test_a_revision_that_is_several_versions_stands_once() -> None:
    store, name = history()
    store.decide(DOC, DecisionRequest(CHOOSE, 2, Place(name, 1), "zoe"))
    store.decide(DOC, DecisionRequest(UNDO, 3, None, "zoe", undoes=1))
    store.decide(DOC, DecisionRequest(REJECT, 4, Place(name, 1), "zoe"))
    lines = drawn(store)
    assert lines[0] == "*  main@2  v4 (decision 2: undo of 1 by zoe); v2 ann; default"
    assert lines[1] == f"| *  {name}@1  v3 (decision 1: choose by zoe); rejected"


def test_every_revision_of_a_long_history_is_in_the_picture() -> None:
    store, _ = history()
    for i in range(5):
        head = store.fetch(DOC).version.number
        name = store.branch(DOC, b"s%d\n" % i, Version(head - 1), author="bob").branch
        store.decide(DOC, DecisionRequest(CONTINUE, head, Place(name, 1), "zoe", body=b"c%d\n" % i))
    head = store.fetch(DOC).version.number
    store.delete(DOC, Version(head))
    store.publish(DOC, b"new\n", ABSENT)
    text = "\n".join(drawn(store))
    places = places_of(list(store.versions(DOC)), store.decisions(DOC))
    assert sorted(places) == list(range(1, head + 3))
    for branch in store.branches(DOC)[1]:
        assert f"{branch.name}@{branch.revision}  " in text
    for number in places:
        assert f"v{number} " in text
