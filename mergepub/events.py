"""Logs of events: one JSON object a line. Parses and validates; pure, no I/O.

An event has a string ``id``, said once in a log, and a ``type``: ``message``, ``tool_call``, ``tool_result`` or any
other word. A ``tool_result`` names in ``call_id`` a ``tool_call`` that stands before it. Tool calls had effects in the
world: what that means for decisions is said where decisions are made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from mergepub.errors import InputError

TOOL_CALL = "tool_call"
TOOL_RESULT = "tool_result"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: ``line`` is its bytes with the line end, ``call`` the id of the call that a result belongs to."""

    id: str
    type: str
    call: str | None
    line: bytes

    @property
    def is_barrier(self) -> bool:
        """Whether it calls a tool or tells a call's result: never replayed by anybody."""
        return self.type in (TOOL_CALL, TOOL_RESULT)


def parse_events(body: bytes) -> list[Event]:
    """The events of a log in their order, all rules checked. An empty log has none.

    Raises:
        InputError: naming the line and the rule.
    """
    if body and not body.endswith(b"\n"):
        _refuse(body.count(b"\n") + 1, "its line is not ended: a log grows by whole lines")
    seen: set[str] = set()
    calls: set[str] = set()
    events = []
    for number, line in enumerate(body.split(b"\n")[:-1], start=1):
        event = _event(number, line)
        if event.id in seen:
            _refuse(number, f"the id {event.id!r} stands in the log already")
        if event.type == TOOL_RESULT and event.call not in calls:
            _refuse(number, f"the tool_call {event.call!r} of this tool_result does not stand before it")
        seen.add(event.id)
        if event.type == TOOL_CALL:
            calls.add(event.id)
        events.append(event)
    return events


def after(events: Iterable[Event], known: Iterable[Event]) -> list[Event]:
    """The ``events`` whose ids none of ``known`` has, in their order."""
    ids = {event.id for event in known}
    return [event for event in events if event.id not in ids]


def _event(number: int, line: bytes) -> Event:
    if not line.startswith(b"{"):
        _refuse(number, "it is no JSON object; an event is one object on a line of its own")
    try:
        facts = json.loads(line.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _refuse(number, f"it is no JSON object ({error})")
    name, kind = facts.get("id"), facts.get("type")
    if not isinstance(name, str) or not name:
        _refuse(number, 'it has no "id", a string that is not empty')
    if not isinstance(kind, str) or not kind:
        _refuse(number, 'it has no "type", a word such as message, tool_call or tool_result')
    call = facts.get("call_id")
    if kind == TOOL_RESULT and (not isinstance(call, str) or not call):
        _refuse(number, 'it is a tool_result and names no "call_id"')
    return Event(name, kind, call if kind == TOOL_RESULT else None, line + b"\n")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    facts = dict(pairs)
    if len(facts) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return facts


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _refuse(number: int, rule: str) -> NoReturn:
    raise InputError(
        f"line {number} of the events: {rule}",
        hint='write lines such as {"id": "e1", "type": "message", "text": "..."}',
    )
