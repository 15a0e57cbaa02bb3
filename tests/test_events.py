"""Logs of events: what is one, and what every broken line is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.errors import InputError
from mergepub.events import after, parse_events

CALL = b'{"id": "c", "type": "tool_call"}\n'
RESULT = b'{"id": "r", "type": "tool_result", "call_id": "c"}\n'
MESSAGE = '{"id": "ä", "type": "message", "text": "über\\u2028"}\n'.encode()


def test_an_empty_log_has_no_events() -> None:
    assert parse_events(b"") == []


def test_events_keep_their_bytes_and_their_order() -> None:
    events = parse_events(CALL + MESSAGE + RESULT)
    assert [event.id for event in events] == ["c", "ä", "r"]
    assert b"".join(event.line for event in events) == CALL + MESSAGE + RESULT
    assert [event.is_barrier for event in events] == [True, False, True]
    assert events[2].call == "c"


@pytest.mark.parametrize(
    ("body", "line", "rule"),
    [
        (b'{"id": "a", "type": "x"}', 1, "not ended"),
        (CALL + b"\n", 2, "no JSON object"),
        (CALL + b"[]\n", 2, "no JSON object"),
        (CALL + b'{"id": \n', 2, "no JSON object"),
        (b'{"id": "a", "type": "x"}\r{}\n', 1, "no JSON object"),
        (b'{"id": "a", "type": "\xff"}\n', 1, "no JSON object"),
        (b'{"id": "a", "type": "x", "n": NaN}\n', 1, "no JSON"),
        (b'{"id": "a", "id": "b", "type": "x"}\n', 1, "twice"),
        (b"{" * 100_000 + b"\n", 1, "no JSON object"),
        (b'{"type": "x"}\n', 1, '"id"'),
        (b'{"id": "", "type": "x"}\n', 1, '"id"'),
        (b'{"id": 1, "type": "x"}\n', 1, '"id"'),
        (b'{"id": "a"}\n', 1, '"type"'),
        (b'{"id": "a", "type": []}\n', 1, '"type"'),
        (CALL + b'{"id": "r", "type": "tool_result"}\n', 2, "call_id"),
        (RESULT + CALL, 1, "does not stand before it"),
        (b'{"id": "c", "type": "message"}\n' + RESULT, 2, "does not stand before it"),
        (CALL + CALL, 2, "stands in the log already"),
    ],
)
def test_a_broken_line_is_named_with_its_rule(body: bytes, line: int, rule: str) -> None:
    with pytest.raises(InputError, match=f"^line {line} of the events: ") as refused:
        parse_events(body)
    assert rule in refused.value.message
    assert refused.value.exit_status == 2


def test_what_came_after_is_told_by_id() -> None:
    events = parse_events(CALL + RESULT)
    assert after(events, parse_events(CALL)) == events[1:]
    assert after(events, []) == events


@given(st.binary(max_size=200))
def test_whatever_the_bytes_a_log_is_read_whole_or_refused(body: bytes) -> None:
    try:
        events = parse_events(body)
    except InputError:
        return
    assert b"".join(event.line for event in events) == body
