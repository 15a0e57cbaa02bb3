"""The rules of branches by themselves: names, extensions, ancestors against a slow and obvious search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.documents import EVENTS
from mergepub.errors import BranchError, InputError, RejectedError
from mergepub.histories import Place, parse_place
from mergepub.stores.branchrules import check_extension, common_ancestors, reach, sibling_name


@pytest.mark.parametrize(("text", "wanted"), [("main", ("main", None)), ("v1-0a@12", ("v1-0a", 12))])
def test_a_place_is_a_name_and_perhaps_a_revision(text: str, wanted: tuple[str, int | None]) -> None:
    assert parse_place(text) == wanted


@pytest.mark.parametrize("text", ["", "@1", "a@", "a@0", "a@01", "a@x", "a b", "-a", "a@1@2", "a/b", "ä"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_place(text)


def test_a_sibling_is_named_by_base_and_body_alone() -> None:
    name = sibling_name(5, Place("main", 5), "ab" * 32)
    assert parse_place(name) == (name, None)
    others = {
        sibling_name(5, Place("main", 5), "cd" * 32),
        sibling_name(5, Place("main", 6), "ab" * 32),
        sibling_name(5, Place("other", 5), "ab" * 32),
    }
    assert len(others | {name}) == 4


@pytest.mark.parametrize(
    ("parent", "body", "error"),
    [
        (b"{}\n", b"{}\n{}\n", None),
        (b"{}\n", b"{}\n", None),
        (b"", b"{}\n", None),
        (b"{}\n", b"", BranchError),
        (b"{}\n", b"{} \n", BranchError),
        (b"{}", b"{}{}\n", BranchError),
        (b"{}\n", b"{}\n{}", RejectedError),
        (b"{}\n", b"{}\nx\n", RejectedError),
        (b"", b"text\n", RejectedError),
    ],
)
def test_a_log_extends_its_parent_by_whole_lines(parent: bytes, body: bytes, error: type[Exception] | None) -> None:
    check_extension("/log", "text", parent, body)
    if error is None:
        check_extension("/log", EVENTS, parent, body)
    else:
        with pytest.raises(error):
            check_extension("/log", EVENTS, parent, body)


@st.composite
def forests(draw: st.DrawFn) -> dict[str, tuple[int, tuple[Place, ...]]]:
    """Branches by name: how many revisions, and what the first one was made from (branches before it)."""
    made: dict[str, tuple[int, tuple[Place, ...]]] = {"b0": (draw(st.integers(1, 4)), ())}
    for number in range(1, draw(st.integers(1, 8))):
        names = draw(st.lists(st.sampled_from(sorted(made)), max_size=2, unique=True))
        origins = tuple(Place(name, draw(st.integers(1, made[name][0]))) for name in names)
        made[f"b{number}"] = (draw(st.integers(1, 4)), origins)
    return made


@given(forests(), st.data())
def test_all_best_common_ancestors_are_found_and_no_other(
    made: dict[str, tuple[int, tuple[Place, ...]]], data: st.DataObject
) -> None:
    def parents(place: Place) -> list[Place]:
        return [Place(place.branch, place.revision - 1)] if place.revision > 1 else list(made[place.branch][1])

    def above(place: Place) -> set[Place]:
        found, waiting = {place}, [place]
        while waiting:
            for parent in parents(waiting.pop()):
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found

    places = [Place(name, number) for name, (end, _) in made.items() for number in range(1, end + 1)]
    one, other = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(places))
    common = above(one) & above(other)
    best = {place for place in common if not any(place in above(each) - {each} for each in common)}
    assert set(common_ancestors(one, other, lambda name: made[name][1])) == best
    assert sum(reach([one], lambda name: made[name][1]).values()) == len(above(one))
