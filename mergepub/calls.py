"""Making one call to a store until it is answered. Every call here may be repeated: reads change nothing, and writes
are recognised by content or key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mergepub.errors import ContentionError, InputError, UnavailableError, UnknownOutcomeError

if TYPE_CHECKING:
    from mergepub.stores.contract import BranchStore, Store

_SAME_CALL = 16  # how often one call is repeated when the store says that something else moved
_T = TypeVar("_T")


def insist(call: Callable[[], _T]) -> _T:
    """Make one call; the very same again while something else moves, and once more when no clear answer came.

    Raises:
        UnknownOutcomeError: still no clear answer; never mistaken for a no.
    """
    try:
        return _while_moving(call)
    except UnknownOutcomeError as unknown:
        try:
            return _while_moving(call)
        except UnavailableError:
            raise unknown from None


def _while_moving(call: Callable[[], _T]) -> _T:
    for _ in range(_SAME_CALL - 1):
        try:
            return call()
        except ContentionError:
            continue
    return call()


def branching(store: Store) -> BranchStore:
    """``store`` as one that keeps branches.

    Raises:
        InputError: it does not.
    """
    if not store.capabilities.branches:
        raise InputError(
            f"the store {store.url} keeps no branches", hint="use --on-conflict merge, or --on-conflict candidate"
        )
    return store  # type: ignore[return-value]  # the capability says that it has the operations of branches
