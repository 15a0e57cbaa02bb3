"""The table of status blocks: exact bytes, JSON and exit status of every row; what a person reads beside it."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub import status
from mergepub.documents import EVENTS, Document, Listed, MergedFrom, Revision, Version, digest_of
from mergepub.errors import (
    InputError,
    NotFoundError,
    RecreatedError,
    RejectedError,
    ThrottledError,
    UnresolvedMarkersError,
)
from mergepub.outcomes import (
    Candidate,
    Contention,
    Fetched,
    MergeFacts,
    Mismatch,
    Overlap,
    Published,
    Refused,
)

DIGEST = digest_of(b"text\n")


def document(author="Ann", body=b"text\n", kind="text"):
    return Document("/d", body, Version(5), DIGEST, "f00d", author, "why", "2026-01-02T03:04:05Z", kind, 5)


MERGE = MergeFacts(5, 6)
MERGED_7 = b"status: ok\nversion: 7\nmerged: true\nbase-version: 5\ntheir-version: 6\n"
UNION = MergeFacts(5, 6, 2, "union")

ROWS = {
    "published": (Published(6), b"status: ok\nversion: 6\n", None, 0),
    "unchanged": (Published(6, unchanged=True), b"status: ok\nversion: 6\nunchanged: true\n", None, 0),
    "replayed": (Published(6, replayed=True), b"status: ok\nversion: 6\nreplayed: true\n", None, 0),
    "replayed, moved on": (
        Published(6, replayed=True, current_version=9),
        b"status: ok\nversion: 6\nreplayed: true\ncurrent-version: 9\n",
        None,
        0,
    ),
    "merged": (
        Published(7, MERGE, body=b"merged\n"),
        b"status: ok\nversion: 7\nmerged: true\nbase-version: 5\ntheir-version: 6\n",
        b"merged\n",
        0,
    ),
    "merged, unchanged": (
        Published(6, MERGE, unchanged=True, body=b""),
        b"status: ok\nversion: 6\nmerged: true\nbase-version: 5\ntheir-version: 6\nunchanged: true\n",
        b"",
        0,
    ),
    "merged, replayed, moved on": (
        Published(7, MERGE, replayed=True, current_version=8, body=b"merged\n"),
        MERGED_7 + b"replayed: true\ncurrent-version: 8\n",
        b"merged\n",
        0,
    ),
    "favoured": (
        Published(7, UNION, body=b"merged\n"),
        b"status: ok\nversion: 7\nmerged: true\nbase-version: 5\ntheir-version: 6\nsettled: 2\nfavour: union\n",
        b"merged\n",
        0,
    ),
    "favoured, replayed, moved on": (
        Published(7, UNION, replayed=True, current_version=9, body=b"merged\n"),
        MERGED_7 + b"replayed: true\ncurrent-version: 9\nsettled: 2\nfavour: union\n",
        b"merged\n",
        0,
    ),
    "favour asked for, nothing to settle": (
        Published(7, MergeFacts(5, 6, 0, "union"), body=b"merged\n"),
        b"status: ok\nversion: 7\nmerged: true\nbase-version: 5\ntheir-version: 6\n",
        b"merged\n",
        0,
    ),
    "fetched": (
        Fetched(document()),
        b"status: ok\nversion: 5\nincarnation: f00d\ndigest: " + DIGEST.encode() + b"\nauthor: Ann\n"
        b"modified: 2026-01-02T03:04:05Z\n",
        b"text\n",
        0,
    ),
    "fetched, no author, no text": (
        Fetched(document(author="", body=b"")),
        b"status: ok\nversion: 5\nincarnation: f00d\ndigest: " + DIGEST.encode() + b"\nauthor: \n"
        b"modified: 2026-01-02T03:04:05Z\n",
        b"",
        0,
    ),
    "fetched, events": (
        Fetched(document(kind=EVENTS)),
        b"status: ok\nversion: 5\nincarnation: f00d\ndigest: " + DIGEST.encode() + b"\nkind: events\nauthor: Ann\n"
        b"modified: 2026-01-02T03:04:05Z\n",
        b"text\n",
        0,
    ),
    "mismatch": (Mismatch(5, 6), b"status: conflict\nyour-version: 5\ncurrent-version: 6\n", None, 3),
    "overlap": (
        Overlap(5, 6, 2, 7, b"<<<<<<< ours\n"),
        b"status: conflict\nyour-version: 5\ncurrent-version: 6\nmergeable: false\nconflicts: 2\n",
        b"<<<<<<< ours\n",
        3,
    ),
    "overlap, longer markers": (
        Overlap(5, 6, 2, 9, b"<<<<<<<<< ours\n"),
        b"status: conflict\nyour-version: 5\ncurrent-version: 6\nmergeable: false\nconflicts: 2\nmarker-size: 9\n",
        b"<<<<<<<<< ours\n",
        3,
    ),
    "contention": (
        Contention(5, 9, 3),
        b"status: conflict\nyour-version: 5\ncurrent-version: 9\nmergeable: false\nreason: contention\nretries: 3\n",
        None,
        3,
    ),
    **{
        reason: (
            Refused(5, 9, reason),
            f"status: conflict\nyour-version: 5\ncurrent-version: 9\nreason: {reason}\n".encode(),
            None,
            3,
        )
        for reason in ("base-unavailable", "deleted", "recreated", "binary", "events")
    },
    "candidate": (
        Candidate(5, 6, 6, b"merged\n"),
        b"status: candidate\nbase-version: 5\ntheir-version: 6\npublish-at: 6\n",
        b"merged\n",
        3,
    ),
    "candidate, favoured": (
        Candidate(5, 6, 6, b"merged\n", 1, "ours"),
        b"status: candidate\nbase-version: 5\ntheir-version: 6\npublish-at: 6\nsettled: 1\nfavour: ours\n",
        b"merged\n",
        3,
    ),
}

rows = pytest.mark.parametrize(("outcome", "block", "body", "code"), ROWS.values(), ids=ROWS)


@rows
def test_every_outcome_has_exactly_these_bytes_and_this_exit_status(outcome, block, body, code):
    assert status.block(outcome) == block
    assert status.body(outcome) == body
    assert status.exit_status(outcome) == code


@rows
def test_json_holds_the_same_keys_in_the_same_order_with_native_values(outcome, block, body, code):
    envelope = json.loads(json.dumps(status.to_json(outcome)))
    assert list(envelope) == ["schema_version", "ok", "result" if code == 0 else "error"]
    assert envelope["schema_version"] == "1"
    assert envelope["ok"] is (code == 0)
    inner = envelope["result" if code == 0 else "error"]
    if code:
        assert inner.pop("code") == code
        assert inner.pop("message") == status.sentence(outcome)
    assert inner.pop("body", None) == (None if body is None else body.decode())
    assert [f"{key}: {json.dumps(value).strip(chr(34))}" for key, value in inner.items()] == block.decode().splitlines()


@rows
def test_json_without_the_body_is_the_same_but_for_the_body(outcome, block, body, code):
    whole, bare = status.to_json(outcome), status.to_json(outcome, body=False)
    for envelope in (whole, bare):
        (envelope.get("result") or envelope["error"]).pop("body", None)
    assert whole == bare


@rows
def test_everything_that_is_not_a_plain_success_ends_with_the_next_command_to_type(outcome, block, body, code):
    lines = status.hints(outcome, "/docs/a guide.md")
    if code == 0:
        assert lines == []
    else:
        assert lines[-1].startswith("next: mergepub ")
        assert "'/docs/a guide.md" in lines[-1]
        assert status.sentence(outcome).endswith(".")


def test_a_body_that_is_not_utf8_travels_in_base64():
    body = b"\xff\xfe text"
    result = status.to_json(Fetched(document(body=body)))["result"]
    assert "body" not in result
    assert base64.b64decode(result["body_base64"]) == body


def test_the_next_command_never_sends_a_stale_file_at_the_version_that_the_conflict_named():
    assert status.hints(Mismatch(5, 6), "/d")[-1] == (
        "next: mergepub publish /d FILE --expected-version 5 --on-conflict merge"
    )
    assert status.hints(Mismatch(0, 6), "/d")[-1] == "next: mergepub fetch /d"
    assert status.hints(Mismatch(9, 6), "/d")[-1] == "next: mergepub fetch /d"
    assert status.hints(Mismatch(5, 6, deleting=True), "/d")[-1] == "next: mergepub fetch /d"
    assert status.hints(Contention(5, 9, 3), "/d", "g.md")[-1] == (
        "next: mergepub publish /d g.md --expected-version 5 --on-conflict merge"
    )


def test_what_was_merged_is_published_at_the_version_it_was_merged_against():
    assert status.hints(Overlap(5, 6, 1, 7, b""), "/d")[-1] == "next: mergepub publish /d FILE --expected-version 6"
    assert status.hints(Candidate(5, 6, 6, b""), "/d")[-1] == "next: mergepub publish /d FILE --expected-version 6"


def test_a_deleted_document_is_read_at_the_version_before_its_tombstone():
    assert status.hints(Refused(5, 9, "deleted"), "/d")[-1] == "next: mergepub fetch /d/v8"


def test_sides_without_a_final_newline_are_named():
    outcome = Overlap(5, 6, 1, 7, b"", ("ours", "theirs"))
    assert status.hints(outcome, "/d")[:2] == ["ours: no newline at end", "theirs: no newline at end"]


@given(st.text(st.characters()))
def test_no_author_can_forge_or_break_a_line_of_the_block(author):
    block = status.block(Fetched(document(author=author))).decode("utf-8")
    lines = block.splitlines()
    assert [line.split(": ", 1)[0] for line in lines] == [
        "status",
        "version",
        "incarnation",
        "digest",
        "author",
        "modified",
    ]
    if author.isprintable():
        assert lines[4] == f"author: {author}"


def test_control_bytes_in_an_author_are_shown_escaped():
    assert b"author: a\\nstatus: ok\\x1b[31m\\x9b\n" in status.block(
        Fetched(document(author="a\nstatus: ok\x1b[31m\x9b"))
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InputError("no.", hint="do"), {"code": 2, "message": "no.", "hint": "do"}),
        (UnresolvedMarkersError("no.", line=3), {"code": 2, "message": "no.", "line": 3}),
        (RejectedError("no.", limit=16), {"code": 2, "message": "no.", "limit": 16}),
        (NotFoundError("no.", tombstone=7), {"code": 4, "message": "no.", "tombstone": 7}),
        (ThrottledError("no.", after=1.5), {"code": 4, "message": "no.", "retry-after": 1.5}),
        (
            RecreatedError("no.", expected=5, current=7),
            {"code": 3, "message": "no.", "your-version": 5, "current-version": 7, "reason": "recreated"},
        ),
        (KeyboardInterrupt(), {"code": 130, "message": "KeyboardInterrupt"}),
        (ZeroDivisionError("division by zero"), {"code": 1, "message": "division by zero"}),
    ],
)
def test_an_error_is_an_envelope_with_its_code_and_its_data(error, expected):
    assert status.error_json(error) == {"schema_version": "1", "ok": False, "error": expected}
    assert status.exit_status_of(error) == expected["code"]


def test_a_history_has_the_names_of_the_service():
    plain = Revision(1, DIGEST, 5, "Ann", "why", "2026-01-02T03:04:05Z", "f00d")
    tomb = Revision(2, "", 0, "Ann", "gone", "2026-01-02T03:04:06Z", "f00d", deleted=True)
    merged = Revision(
        3, DIGEST, 5, "Bo", "", "2026-01-02T03:04:07Z", "beef", merged_from=MergedFrom(1, 2, "ab"), source="c0ffee"
    )
    row = {"version": 1, "digest": DIGEST, "size": 5, "author": "Ann", "message": "why"}
    row |= {"modified": "2026-01-02T03:04:05Z"}
    assert status.versions_json([plain]) == {"versions": [row]}
    assert status.revision_json(tomb)["deleted"] is True
    assert status.revision_json(merged) | {"merged-from": {"base": 1, "theirs": 2, "digest": "ab"}} == (
        status.revision_json(merged)
    )
    assert status.revision_json(merged)["source"] == "c0ffee"
    assert status.envelope(status.versions_json([])) == {"schema_version": "1", "ok": True, "result": {"versions": []}}


def test_a_listing_has_the_names_of_the_service():
    assert status.list_json([Listed("/d", 3, DIGEST, "t"), Listed("/e", 4, "", "t", deleted=True)]) == {
        "documents": [
            {"path": "/d", "version": 3, "digest": DIGEST, "modified": "t", "kind": "text"},
            {"path": "/e", "version": 4, "digest": "", "modified": "t", "kind": "text", "deleted": True},
        ]
    }


def test_a_version_of_a_system_that_does_not_count_shows_its_token():
    tokened = Document("/d", b"", Version(None, "W1"), DIGEST, "", "", "", "t")
    assert status.fields(Fetched(tokened))["version"] == "W1"
