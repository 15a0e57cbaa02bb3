"""Values behave as frozen, slotted dataclasses do: each test runs on one made by either decorator."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, astuple, field, fields, is_dataclass, replace
from typing import Any

import pytest
from mergepub import values


@values.dataclass(frozen=True, slots=True)
class Ours:
    """A value."""

    number: int
    word: str = "w"
    inner: tuple[int, ...] | None = None
    secret: str = field(default="", repr=False, compare=False)

    @property
    def double(self) -> int:
        """Twice the number."""
        return 2 * self.number


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """A value."""

    number: int
    word: str = "w"
    inner: tuple[int, ...] | None = None
    secret: str = field(default="", repr=False, compare=False)

    @property
    def double(self) -> int:
        """Twice the number."""
        return 2 * self.number


@pytest.fixture(params=[Ours, Theirs])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_it_is_made_by_position_and_by_name_with_defaults(kind: Any) -> None:
    assert astuple(kind(1)) == (1, "w", None, "")
    assert astuple(kind(1, inner=(2,), word="x")) == (1, "x", (2,), "")
    for wrong in (kind, lambda: kind(1, "w", None, "", 5), lambda: kind(1, colour="red")):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            wrong()


def test_equal_values_of_one_class_are_equal_and_hash_alike(kind: Any) -> None:
    assert kind(1) == kind(1, "w")
    assert hash(kind(1)) == hash(kind(1, "w"))
    assert kind(1) != kind(2)
    assert kind(1, secret="s") == kind(1)
    assert hash(kind(1, secret="s")) == hash(kind(1))
    assert kind(1) != (1, "w", None)
    assert Ours(1) != Theirs(1)
    assert {kind(1): "found"}[kind(1)] == "found"


def test_it_shows_its_fields(kind: Any) -> None:
    assert repr(kind(1, secret="s")) == f"{kind.__name__}(number=1, word='w', inner=None)"


def test_nothing_can_be_set_deleted_or_added(kind: Any) -> None:
    value = kind(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'number'"):
        value.number = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'word'"):
        del value.word
    with pytest.raises((FrozenInstanceError, TypeError)):
        value.other = 1
    assert not hasattr(value, "__dict__")
    assert value == kind(1)


def test_it_is_copied_and_pickled(kind: Any) -> None:
    value = kind(1, inner=(2, 3), secret="s")
    assert copy.copy(value) == copy.deepcopy(value) == value
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert astuple(pickle.loads(pickle.dumps(value, protocol))) == astuple(value)


def test_the_tools_of_dataclasses_take_it(kind: Any) -> None:
    assert is_dataclass(kind)
    assert [each.name for each in fields(kind)] == ["number", "word", "inner", "secret"]
    assert asdict(kind(1)) == {"number": 1, "word": "w", "inner": None, "secret": ""}
    assert replace(kind(1), word="x") == kind(1, "x")
    assert kind(4).double == 8


def test_it_is_taken_apart_by_match(kind: Any) -> None:
    match kind(1, "x"):
        case kind(number, word):
            assert (number, word) == (1, "x")
        case _:
            pytest.fail("a value has the arguments of its class")


def test_what_is_not_plain_is_left_to_the_standard_library() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Special:
        """With a factory."""

        rows: list[int] = field(default_factory=list)

    @values.dataclass
    class Open:
        """Neither frozen nor slotted."""

        number: int = 0

    assert Special().rows is not Special().rows
    one = Open()
    one.number = 2
    assert one == Open(2)
