"""The client's side of the wire: what it writes the service reads back, and no answer whatever makes it stumble."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.documents import Document, MergedFrom, Receipt, Version, digest_of
from mergepub.errors import InputError, MergepubError
from mergepub.paths import check_path
from mergepub.service import labels, targets
from mergepub.stores import http_wire as wire
from mergepub.stores.http_wire import Answer, Call
from requests.structures import CaseInsensitiveDict

text = st.text(st.characters(exclude_categories=["Cs"]))
plain_label = text.filter(lambda label: not set(label) & set("\r\n\0"))


@given(plain_label)
def test_the_service_reads_every_label_as_it_was(label: str) -> None:
    sent = wire.encode_label(label)
    assert sent.isascii()
    assert labels.decode_label("Mergepub-Author", sent.encode("ascii")) == label


@given(plain_label)
def test_every_label_of_the_service_is_read_as_it_was(label: str) -> None:
    assert wire.decode_label(labels.encode_label(label)) == label
    assert wire.decode_label(wire.encode_label(label)) == label


@given(st.lists(text, min_size=1).map(lambda segments: "/" + "/".join(segments)))
def test_the_service_reads_every_path_as_it_was(path: str) -> None:
    with suppress(MergepubError):
        sent = wire.quote_path(check_path(path))
        assert sent.isascii()
        assert targets.decode_path(sent.encode("ascii")) == path


@given(st.integers(0, 2**52), st.integers(0, 2**52), st.binary())
def test_the_service_reads_what_a_merge_was_made_of(base: int, theirs: int, body: bytes) -> None:
    made_from = MergedFrom(base, theirs, digest_of(body))
    headers = wire.provenance(made_from, None, "text")
    assert labels.parse_merged_from(headers["Mergepub-Merged-From"]) == made_from


def test_a_version_without_number_and_tag_cannot_be_written_on() -> None:
    assert wire.precondition(Version(5, '"abc.5"')) == {"If-Match": '"abc.5"'}
    assert wire.precondition(Version(5, "5")) == {"Mergepub-Expected-Version": "5"}
    assert wire.precondition(Version(0)) == {"Mergepub-Expected-Version": "0"}
    with pytest.raises(InputError):
        wire.precondition(Version(None))


NAMES = [
    "Content-Type",
    "ETag",
    "Last-Modified",
    "Link",
    "Location",
    "Mergepub-Author",
    "Mergepub-Current-Version",
    "Mergepub-Incarnation",
    "Mergepub-Modified",
    "Mergepub-Version",
    "Repr-Digest",
    "Retry-After",
]
values = st.one_of(
    st.sampled_from(
        [
            "application/json",
            "application/problem+json",
            "text/html",
            "5",
            "0",
            "-1",
            "99999999999999999999",
            "sha-256=::",
            "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
            '<?after=1>; rel="next"',
            "Mon, 30 Nov 2026 10:00:00 GMT",
            "Mon, 99 Nov 0000 99:00:00 +9999",
            "UTF-8''%FF",
            "²",
        ]
    ),
    st.text(st.characters(max_codepoint=255)),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
keys = st.sampled_from(["version", "unchanged", "replayed", "current-version", "merged", "detail", "reason", "limit"])
facts = st.dictionaries(keys, st.one_of(scalars, st.dictionaries(keys, scalars, max_size=2)), max_size=5)
answers = st.builds(
    Answer,
    st.sampled_from(
        [200, 201, 204, 304, 307, 400, 401, 403, 404, 408, 410, 412, 413, 418, 421, 422, 428, 429, 500, 503]
    ),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=6).map(CaseInsensitiveDict),
    st.one_of(st.binary(max_size=50), facts.map(lambda value: json.dumps(value).encode())),
)
calls = st.builds(
    Call,
    st.sampled_from(["GET", "PUT", "POST", "DELETE"]),
    st.just("/doc"),
    st.just("http://host/doc"),
    st.sampled_from([None, 0, 4]),
    st.sampled_from([None, 5]),
)


def outcome(read: Any, call: Call, answer: Answer) -> object:
    try:
        return read(call, answer)
    except MergepubError as error:
        return error


@given(calls, answers)
def test_no_answer_makes_the_client_stumble(call: Call, answer: Answer) -> None:
    """Every answer is a value in the promised form, or an error of ours with one printable line."""
    readings: list[Any] = [wire.document, wire.receipt, wire.deletion, wire.json_object]
    for value in [outcome(read, call, answer) for read in readings]:
        assert isinstance(value, MergepubError | Document | Receipt | dict)
        assert not isinstance(value, Receipt) or (value.version.number or 0) >= 1
        assert not isinstance(value, MergepubError) or str(value).isprintable()
    refused = wire.refusal(call, answer)
    assert isinstance(refused, MergepubError)
    assert str(refused).isprintable()
    assert len(str(refused)) < 1500
    assert (wire.next_link(answer) or "") in answer.headers.get("Link", "")


@given(facts)
def test_no_row_makes_the_client_stumble(row: dict[str, Any]) -> None:
    for parse in (wire.revision, wire.listed):
        with suppress(KeyError, TypeError, ValueError):
            parse(row)


NEXT = {
    "not found": (404, {}, "GET", "create it with: mergepub publish '/a b' FILE --expected-version 0"),
    "no such version": (404, {"version": 9}, "GET", "mergepub versions '/a b'"),
    "deleted": (410, {"current-version": 3}, "GET", "mergepub fetch '/a b'/v2"),
    "deleted at first": (410, {}, "GET", "mergepub versions '/a b'"),
    "a write on a deleted one": (410, {"current-version": 3}, "PUT", "mergepub versions '/a b'"),
    "another head": (412, {"current-version": 3}, "PUT", "mergepub fetch '/a b'"),
    "never existed": (412, {"current-version": 0}, "PUT", "create it with: mergepub publish '/a b'"),
    "created anew": (412, {"current-version": 3, "reason": "recreated"}, "PUT", "mergepub fetch '/a b'"),
    "deleted since": (412, {"current-version": 3, "reason": "deleted"}, "PUT", "mergepub versions '/a b'"),
    "no base": (412, {"current-version": 3, "reason": "base-unavailable"}, "PUT", "mergepub fetch '/a b'"),
    "a branch in no state": (409, {"reason": "closed"}, "POST", "see what there is: mergepub branches '/a b'"),
    "a log that does not grow": (409, {"reason": "not-an-extension"}, "PUT", "add your events to the end"),
    "a key of another append": (422, {"type": "urn:mergepub:problem:key-reused"}, "POST", "make a new key"),
    "no token": (401, {}, "GET", "set MERGEPUB_TOKEN or name a --token-file"),
    "not this one": (403, {}, "GET", "whoever runs the service"),
}


@pytest.mark.parametrize(("status", "facts", "method", "hint"), NEXT.values(), ids=NEXT.keys())
def test_every_refusal_says_what_to_type_next(status: int, facts: dict[str, Any], method: str, hint: str) -> None:
    headers = CaseInsensitiveDict({"Content-Type": "application/problem+json"})
    call = Call(method, "/a b", "http://h/a%20b", 1 if method == "PUT" else None, version=facts.get("version"))
    error = wire.refusal(call, Answer(status, headers, json.dumps({"detail": "no", **facts}).encode()))
    assert (error.hint or "").startswith(hint)
