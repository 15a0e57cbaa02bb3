"""``dataclass`` for frozen, slotted values, at a third of what the standard library's costs at every start.

The standard decorator compiles six methods for every class; a command has some thirty such classes, which is a fifth of
its start-up. Here the constructor alone is compiled, when the first value is made (a command makes values of few of the
classes that it loads), the other methods are shared. Whatever is not exactly a frozen,
slotted class with plain fields is left to the standard library; ``fields``, ``replace`` and ``asdict`` work on both.
"""

from __future__ import annotations

import dataclasses

TYPE_CHECKING = False  # what typing calls by this name, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - a type checker is to see the original
    from typing import Any
else:

    def dataclass(kind: type | None = None, **how: bool) -> Any:
        """As ``dataclasses.dataclass``."""
        if how != {"frozen": True, "slots": True} or kind is not None:
            return dataclasses.dataclass(kind, **how)
        return _value

    def _value(kind: type) -> type:
        if not _is_plain(kind):
            return dataclasses.dataclass(frozen=True, slots=True)(kind)
        made = dataclasses.dataclass(kind, init=False, repr=False, eq=False, slots=True)
        made.__init__ = _late_constructor(made)
        for name, method in _SHARED.items():
            if name not in kind.__dict__:
                setattr(made, name, method)
        return made


def _is_plain(kind: type) -> bool:
    """Whether its fields have plain defaults or none, and nothing is inherited or done after construction."""
    defaults = (kind.__dict__.get(name) for name in kind.__annotations__)
    return (
        kind.__bases__ == (object,)
        and kind.__doc__ is not None
        and not hasattr(kind, "__post_init__")
        and not any(isinstance(each, dataclasses.Field) and not _is_simple(each) for each in defaults)
        and not any("ClassVar" in str(annotation) for annotation in kind.__annotations__.values())
    )


def _is_simple(given: dataclasses.Field[Any]) -> bool:
    return given.default is not dataclasses.MISSING and given.init and given.kw_only is dataclasses.MISSING


def _late_constructor(kind: Any) -> Callable[..., None]:
    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807 - the name that a traceback shows
        kind.__init__ = constructor = _constructor(kind)  # threads that meet here make the same one twice
        constructor(self, *given, **named)

    return __init__


def _constructor(kind: Any) -> Callable[..., None]:
    fields = kind.__dataclass_fields__
    defaults = {f"_{name}": each.default for name, each in fields.items() if each.default is not dataclasses.MISSING}
    parameters = ", ".join(f"{name}=_{name}" if f"_{name}" in defaults else name for name in fields)
    lines = "\n".join(f"    _set(self, {name!r}, {name})" for name in fields)
    made: dict[str, Any] = {}
    # The names are those of fields, so they are identifiers; there is no text of anybody else in it.
    exec(f"def __init__(self, {parameters}):\n{lines}", {"_set": object.__setattr__, **defaults}, made)  # noqa: S102 - as said above
    constructor: Callable[..., None] = made["__init__"]
    constructor.__qualname__ = f"{kind.__qualname__}.__init__"
    constructor.__annotations__ = {name: each.type for name, each in fields.items()} | {"return": None}
    return constructor


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, each.name) for each in self.__dataclass_fields__.values() if each.compare)


def _repr(self: Any) -> str:
    shown = (each.name for each in self.__dataclass_fields__.values() if each.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _eq(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _setattr(self: Any, name: str, value: object) -> None:  # noqa: ARG001 - nothing is ever set
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:  # noqa: ARG001 - nothing is ever deleted
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _reduce(self: Any) -> tuple[type, tuple[Any, ...]]:
    return type(self), _values(self)


_SHARED = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__reduce__": _reduce,
}
