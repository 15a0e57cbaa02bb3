"""``--json``: one object for every exit status, with the block's keys and native values."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.cli import opening

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"
AT_1 = ("publish", GUIDE, "--expected-version", "1", "--json")


@pytest.fixture
def answer(mergepub: Runner):
    def run(*arguments: str, status: int, stdin: bytes = b""):
        result = mergepub(*arguments, stdin=stdin)
        assert result.status == status, result
        assert result.out.count(b"\n") == 1
        whole = json.loads(result.out)
        assert whole["schema_version"] == "1"
        assert whole["ok"] is (status == 0)
        assert list(whole) == ["schema_version", "ok", "result" if status == 0 else "error"]
        part = whole["result" if status == 0 else "error"]
        if status:
            assert part["code"] == status
            assert part["message"]
            assert "\x1b" not in part["message"]
        return part

    return run


def test_success_holds_the_keys_of_the_block_and_the_body(guide: bytes, answer):
    merged = answer(*AT_1, "--on-conflict", "merge", status=0, stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    assert merged == {
        "status": "ok",
        "version": 3,
        "merged": True,
        "base-version": 1,
        "their-version": 2,
        "body": "ONE\ntwo\nthree\nfour\nFIVE\n",
    }
    assert answer("append", GUIDE, "--json", status=0, stdin=b"x\n") == {"status": "ok", "version": 4}
    assert answer("delete", GUIDE, "--json", "--expected-version", "4", status=0) == {"status": "ok", "version": 5}


def test_a_fetch_holds_body_or_base64(guide: bytes, answer, mergepub: Runner):
    fetched = answer("fetch", GUIDE, "--json", status=0)
    assert list(fetched) == ["status", "version", "incarnation", "digest", "author", "modified", "body"]
    assert fetched["body"] == guide.decode()
    assert "body" not in answer("fetch", GUIDE, "--json", "--no-body", status=0)
    mergepub("publish", "/bytes", "--expected-version", "0", stdin=b"\xff\0")
    assert base64.b64decode(answer("fetch", "/bytes", "--json", status=0)["body_base64"]) == b"\xff\0"


def test_conflicts_hold_the_keys_of_the_block_and_the_marked_body(guide: bytes, answer):
    overlap = answer(*AT_1, "--on-conflict", "merge", status=3, stdin=b"eins\ntwo\nthree\nfour\nfive\n")
    assert list(overlap) == [
        "code", "message", "status", "your-version", "current-version", "mergeable", "conflicts", "body",
    ]  # fmt: skip
    assert (overlap["mergeable"], overlap["conflicts"]) == (False, 1)
    assert overlap["body"].startswith("<<<<<<< ours\n")
    assert answer(*AT_1, status=3, stdin=b"x\n")["current-version"] == 2
    candidate = answer(*AT_1, "--on-conflict", "candidate", status=3, stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    assert candidate["publish-at"] == 2


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["fetch", "no-slash", "--json"], 2, "start with /"),
        (["publish", "/a", "--json"], 2, "--expected-version"),
        (["publish", "/a", "--expected-version=+1", "--json"], 2, "digits"),
        (["--json", "frobnicate"], 2, "No such option"),
        (["frobnicate", "--json"], 2, "no command"),
        (["fetch", "--json"], 2, "Missing argument"),
        (["fetch", "/a", "--json", "--frobnicate"], 2, "No such option"),
        (["completion", "bash", "--json"], 2, "No such option"),
        (["publish", "/a", "nowhere", "--json", "--expected-version", "0"], 2, "cannot read nowhere"),
        (["fetch", "/a", "--json"], 4, "store"),
        (["merge", "a", "b", "c", "--json"], 255, "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_every_error_has_its_envelope(arguments, status, words, answer):
    assert words in answer(*arguments, status=status)["message"]


def test_a_store_that_is_not_ours_and_a_defect_have_their_envelopes(answer, monkeypatch):
    Path("store.sqlite").write_bytes(b"not a store of anybody, at no length at all\n" * 4)
    answer("fetch", "/a", "--json", status=3)

    def broken(url: str):
        raise ZeroDivisionError("what nobody foresaw")

    monkeypatch.setattr(opening, "open_store", broken)
    assert "nobody foresaw" in answer("fetch", "/a", "--json", status=1)["message"]


def test_rows_have_the_names_of_the_service(guide: bytes, answer):
    (newest, oldest) = answer("versions", GUIDE, "--json", status=0)["versions"]
    assert {"version", "digest", "size", "author", "message", "modified"} == set(newest)
    assert (newest["version"], oldest["version"], newest["size"]) == (2, 1, len(guide))
    (listed,) = answer("list", "--json", status=0)["documents"]
    assert set(listed) == {"path", "version", "digest", "modified", "kind"}
    assert (listed["path"], listed["version"], listed["kind"]) == (GUIDE, 2, "text")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\S+Z", listed["modified"])


def test_verify_reports_in_json(guide: bytes, answer):
    assert answer("verify", "--json", status=0) == {"status": "ok", "faults": []}


def test_json_stays_json_whatever_a_file_is_called(answer):
    message = answer("publish", "/a", "\udcff\x1b[31m\n", "--expected-version", "0", "--json", status=2)["message"]
    assert "\udcff" not in message
    assert "\n" not in message
