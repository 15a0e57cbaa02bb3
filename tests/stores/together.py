"""Calls of a SQL store's writing methods, made as one: what the service does with writes that come at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from mergepub.stores.groupcommit import AloneError
from mergepub.stores.sql import Order, SqlStore

Call = Callable[[], object]


def together(store: SqlStore, calls: Sequence[Call]) -> list[object]:
    """Answers or errors of ``calls``, in their order; those that need it are made alone afterwards."""
    orders = [ordered(store, call) for call in calls]
    jobs = store.write_all(orders)
    answers = [kept(job.answer) for job in jobs]
    return [
        kept(lambda order=order: store.write(order)) if isinstance(answer, AloneError) else answer  # type: ignore[misc]  # the default binds the loop's value
        for order, answer in zip(orders, answers, strict=True)
    ]


def ordered(store: SqlStore, call: Call) -> Order:
    """What ``call``, of a writing method of ``store``, would write."""
    store._write = Order  # type: ignore[assignment,method-assign]  # as SqlStore.order does on a copy
    try:
        return cast("Order", call())
    finally:
        del store._write


def kept(call: Call) -> object:
    """What ``call`` returns or raises."""
    try:
        return call()
    except Exception as error:
        return error
