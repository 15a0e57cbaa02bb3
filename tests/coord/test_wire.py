"""Wire v3 without a socket: lines, parameters, bounds at the limit and one past it, codes and their exits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.coord import bounds, wire
from mergepub.coord.office import shown_files
from mergepub.coord.wire import CoordError, Request


def line(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "coord.status"} | fields).encode()


def code_of(text: bytes) -> tuple[int, Any]:
    with pytest.raises(CoordError) as caught:
        wire.parse(text)
    return caught.value.code, caught.value.id


@pytest.mark.parametrize(
    ("text", "code", "known_id"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe{}", -32700, None),
        (b"\x00\x01\x02 binary", -32700, None),
        (b"[" * 60_000, -32700, None),
        (b'{"a":' * 10_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"x"}', -32700, None),
        (b"1" * 10_000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"coord.status"}]', -32600, None),
        (b'"text"', -32600, None),
        (b"null", -32600, None),
        (b'{"jsonrpc":"2.0","method":"coord.status"}', -32600, None),
        (line(id=None), -32600, None),
        (line(id=True), -32600, None),
        (line(id=[1]), -32600, None),
        (line(id={}), -32600, None),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"coord.status"}', -32600, None),
        (line(jsonrpc="1.0"), -32600, 7),
        (b'{"id":7,"method":"coord.status"}', -32600, 7),
        (line(method=3), -32600, 7),
        (b'{"jsonrpc":"2.0","id":"x"}', -32600, "x"),
        (line(params=[]), -32602, 7),
        (line(params=None), -32602, 7),
        (line(params="x"), -32602, 7),
    ],
)
def test_what_is_no_request_is_told_by_its_code(text: bytes, code: int, known_id: Any) -> None:
    assert code_of(text) == (code, known_id)


def test_a_request_is_read_with_or_without_parameters() -> None:
    assert wire.parse(line()) == Request(7, "coord.status", {})
    assert wire.parse(line(params={}, id="a")) == Request("a", "coord.status", {})


GOOD: dict[str, dict[str, Any]] = {
    "coord.status": {},
    "coord.send": {"to_run_id": "r", "body": "b", "idempotency_key": "k"},
    "coord.inbox": {},
    "coord.ask": {"to_run_id": "r", "body": "b", "idempotency_key": "k"},
    "coord.reply": {"question_id": "q", "body": "b", "idempotency_key": "k"},
    "coord.report": {"outcome": "success", "summary": "s", "idempotency_key": "k"},
    "run.report": {"state": "working"},
}


def checked(method: str, **change: Any) -> dict[str, Any]:
    params = {name: value for name, value in (GOOD.get(method, {}) | change).items() if value is not ...}
    return wire.check(wire.RUN_METHODS, Request(1, method, params))


def refused(method: str, **change: Any) -> CoordError:
    with pytest.raises(CoordError) as caught:
        checked(method, **change)
    return caught.value


def test_the_set_of_methods_is_closed() -> None:
    assert set(wire.RUN_METHODS) == set(GOOD)
    assert set(wire.CAPABILITIES) == set(GOOD) - {"run.report"}
    for method in ("coord.statuss", "run.start", "radar.show", "", "coord.\ud800", "x" * 9999):
        assert refused(method).code == wire.NO_METHOD


@pytest.mark.parametrize("method", GOOD)
def test_each_method_takes_its_parameters_and_refuses_an_unknown_one(method: str) -> None:
    assert checked(method) == GOOD[method]
    error = refused(method, sender="me")
    assert error.code == wire.BAD_PARAMS
    assert error.message.startswith(f"{method}: ")


@pytest.mark.parametrize(("method", "field"), [(m, f) for m, params in GOOD.items() for f in params])
def test_each_required_parameter_is_required(method: str, field: str) -> None:
    assert refused(method, **{field: ...}).code == wire.BAD_PARAMS


MAIL = ("coord.send", "coord.ask", "coord.reply")
_TEXT = "\N{LATIN SMALL LETTER E WITH ACUTE}"

BOUNDS = [
    *[(method, "body", "x" * 4096, "x" * 4097) for method in MAIL],
    *[(method, "body", _TEXT * 2048, _TEXT * 2048 + "x") for method in MAIL],
    *[(method, "idempotency_key", "k" * 256, "k" * 257) for method in (*MAIL, "coord.report")],
    ("coord.report", "summary", "s" * 4096, "s" * 4097),
    ("coord.report", "evidence_refs", ["r"] * 31, ["r"] * 32),
    ("coord.report", "evidence_refs", ["r" * 512], ["r" * 513]),
    ("coord.inbox", "wait_seconds", 0, -1),
    ("coord.inbox", "wait_seconds", 30, 31),
    ("coord.inbox", "wait_seconds", 30.0, 30.001),
]


@pytest.mark.parametrize(("method", "field", "at", "past"), BOUNDS)
def test_each_bound_holds_at_its_limit_and_not_one_past_it(method: str, field: str, at: Any, past: Any) -> None:
    assert checked(method, **{field: at})[field] == at
    assert refused(method, **{field: past}).code == wire.BAD_PARAMS


WRONG = [
    *[(method, "body", value) for method in MAIL for value in (None, 1, [], "a\0b", "\ud800", "x\udfff")],
    *[
        (m, "idempotency_key", v)
        for m in (*MAIL, "coord.report")
        for v in ("", "a\nb", "a\rb", "a\0", 5, None, "\ud800")
    ],
    *[("coord.send", "to_run_id", value) for value in ("", None, 3, "r\0")],
    ("coord.report", "outcome", "Success"),
    ("coord.report", "outcome", "done"),
    ("coord.report", "outcome", None),
    *[("coord.report", "summary", value) for value in ("", "  \n", None, "a\0", "\ud800")],
    *[("coord.report", "evidence_refs", v) for v in (None, "r", [""], ["a\nb"], ["a\rb"], ["a\0"], [1], {})],
    *[("coord.inbox", "wait_seconds", value) for value in (None, "5", True, [])],
    ("coord.inbox", "ack_token", None),
    ("coord.inbox", "ack_token", 4),
    ("run.report", "state", "idle"),
    ("run.report", "reason", 5),
]


@pytest.mark.parametrize(("method", "field", "value"), WRONG)
def test_a_wrong_value_is_bad_parameters_and_never_internal(method: str, field: str, value: Any) -> None:
    error = refused(method, **{field: value})
    assert error.code == wire.BAD_PARAMS
    assert error.message.startswith(f"{method}: {field} ")


@pytest.mark.parametrize(
    ("codes", "status"),
    [
        ((-32700, -32600, -32601, -32602), 2),
        ((-32603,), 1),
        ((-32000, -32004), 4),
        ((-32001, -32002, -32003), 3),
    ],
)
def test_each_code_has_its_exit_status(codes: tuple[int, ...], status: int) -> None:
    assert {CoordError(code, "m: t").exit_status for code in codes} == {status}


def test_each_reason_belongs_to_its_code() -> None:
    assert {code: sorted(words) for code, words in wire.REASONS.items()} == {
        -32001: ["not-a-peer", "not-yours", "other-workspace", "stale-generation"],
        -32003: ["inbox-full", "key-reused", "not-ready", "peer-cap", "rate-limited"],
        -32004: ["finished", "no-socket", "off"],
    }


def test_a_refusal_carries_its_reason_in_data_and_no_data_without_one() -> None:
    answer = json.loads(wire.refusal(3, CoordError(-32003, "coord.send: later", "rate-limited", retry_after=2.5)))
    assert answer == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {
            "code": -32003,
            "message": "coord.send: later",
            "data": {"reason": "rate-limited", "retry_after": 2.5},
        },
    }
    assert "data" not in json.loads(wire.refusal(None, CoordError(-32700, "request: no")))["error"]


def test_an_answer_is_one_line_whatever_it_holds() -> None:
    answer = wire.result("\ud800", {"body": "a\nb\u2028c"})
    assert answer.count(b"\n") == 1
    assert json.loads(answer)["result"] == {"body": "a\nb\u2028c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 512, "a" * 512),
        ("a" * 513, "a" * 512),
        ("a" + "\u00e9" * 256, "a" + "\u00e9" * 255),
        ("\U0001f600" * 200, "\U0001f600" * 128),
    ],
)
def test_a_text_is_cut_on_a_character_boundary(text: str, expected: str) -> None:
    assert bounds.cut(text) == expected


@pytest.mark.parametrize(
    ("names", "shown", "truncated"),
    [
        ([], [], False),
        (["/b", "/a"], ["/a", "/b"], False),
        ([f"/{i:02}" for i in range(16)], [f"/{i:02}" for i in range(16)], False),
        ([f"/{i:02}" for i in range(17)], [f"/{i:02}" for i in range(16)], True),
        (["/" + "x" * 511], ["/" + "x" * 511], False),
        (["/" + "x" * 512], ["/" + "x" * 511], True),
    ],
)
def test_files_are_shown_up_to_sixteen_of_512_bytes(names: list[str], shown: list[str], truncated: bool) -> None:
    assert shown_files(names) == {"files": shown, "file_total": len(names), "files_truncated": truncated}


def refusal_code(call: Callable[[], object]) -> int | None:
    try:
        call()
    except CoordError as error:
        return error.code
    return None


@given(st.binary(max_size=400))
def test_any_bytes_are_a_request_or_a_refusal(data: bytes) -> None:
    assert refusal_code(lambda: wire.parse(data)) in (None, -32700, -32600, -32602)


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=8,
)


@given(
    st.sampled_from(sorted(GOOD)),
    st.dictionaries(st.sampled_from(["to_run_id", "body", "idempotency_key", "summary", "evidence_refs", "x"]), _JSON),
)
def test_any_parameters_are_taken_or_refused_as_bad(method: str, params: dict[str, Any]) -> None:
    assert refusal_code(lambda: wire.check(wire.RUN_METHODS, Request(1, method, params))) in (None, -32602)
