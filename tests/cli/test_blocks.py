"""The exact bytes and exit status of every kind of answer, through the real command line."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.cli import opening

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"
AT_1 = ("publish", GUIDE, "--expected-version", "1")
MERGE = ("--on-conflict", "merge")


def test_a_first_publish_is_version_1(process: Runner):
    result = process("publish", GUIDE, "--expected-version", "0", stdin=b"one\n")
    assert (result.status, result.out, result.err) == (0, b"status: ok\nversion: 1\n", "")


def test_an_append_says_its_version_alone(guide: bytes, process: Runner):
    result = process("append", GUIDE, stdin=b"six\n")
    assert (result.status, result.out, result.err) == (0, b"status: ok\nversion: 3\n", "")


def test_a_delete_says_the_tombstones_version(guide: bytes, process: Runner):
    result = process("delete", GUIDE, "--expected-version", "2")
    assert (result.status, result.out, result.err) == (0, b"status: ok\nversion: 3\n", "")


def test_a_merge_gives_its_body_below_an_empty_line(guide: bytes, process: Runner):
    result = process(*AT_1, *MERGE, stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    assert result.status == 0
    assert result.out == (
        b"status: ok\nversion: 3\nmerged: true\nbase-version: 1\ntheir-version: 2\n\nONE\ntwo\nthree\nfour\nFIVE\n"
    )


def test_an_unchanged_publish_makes_no_version(guide: bytes, process: Runner):
    result = process("publish", GUIDE, "--expected-version", "2", stdin=guide)
    assert (result.status, result.out) == (0, b"status: ok\nversion: 2\nunchanged: true\n")


def test_a_merge_that_equals_theirs_needs_no_publishing(guide: bytes, process: Runner):
    result = process(*AT_1, *MERGE, stdin=b"one\ntwo\nthree\nfour\nfive\n")
    assert result.status == 0
    assert result.out.startswith(b"status: ok\nversion: 2\nmerged: true\nbase-version: 1\ntheir-version: 2\nunchanged")
    assert result.out.endswith(b"unchanged: true\n\n" + guide)


def test_an_exact_retry_is_replayed_and_names_the_head_once_that_moved_on(guide: bytes, process: Runner):
    result = process(*AT_1, stdin=guide)
    assert (result.status, result.out) == (0, b"status: ok\nversion: 2\nreplayed: true\n")
    process("append", GUIDE, stdin=b"six\n")
    result = process(*AT_1, stdin=guide)
    assert (result.status, result.out) == (0, b"status: ok\nversion: 2\nreplayed: true\ncurrent-version: 3\n")


def test_a_merged_publish_is_replayed_with_its_body(guide: bytes, process: Runner):
    first = process(*AT_1, *MERGE, stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    again = process(*AT_1, *MERGE, stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    assert again.status == 0
    assert again.out == first.out.replace(b"\n\n", b"\nreplayed: true\n\n")


@pytest.mark.parametrize(
    ("options", "favour", "first"),
    [
        (["--favour-path", "*.md=union"], b"union", b"ONE\neins\n"),
        (["--ours"], b"ours", b"eins\n"),
        (["--theirs", "--favour-path", "*.md=union"], b"theirs", b"ONE\n"),
    ],
)
def test_a_favoured_merge_says_how_many_conflicts_it_settled(options, favour, first, guide: bytes, process: Runner):
    result = process(*AT_1, *MERGE, *options, stdin=b"eins\ntwo\nthree\nfour\nFIVE\n")
    assert result.status == 0
    assert result.out == (
        b"status: ok\nversion: 3\nmerged: true\nbase-version: 1\ntheir-version: 2\nsettled: 1\nfavour: "
        + favour
        + b"\n\n"
        + first
        + b"two\nthree\nfour\nFIVE\n"
    )


def test_a_fetch_gives_the_document_with_its_names(guide: bytes, process: Runner):
    result = process("fetch", GUIDE)
    block, _, body = result.out.partition(b"\n\n")
    assert (result.status, body) == (0, guide)
    digest = hashlib.sha256(guide).hexdigest()
    assert re.fullmatch(
        rf"status: ok\nversion: 2\nincarnation: \w+\ndigest: {digest}\nauthor: tess@desk\nmodified: 20\S+Z",
        block.decode(),
    )


def test_a_fetch_of_a_version_gives_that_one(guide: bytes, process: Runner):
    result = process("fetch", f"{GUIDE}/v1")
    assert result.out.startswith(b"status: ok\nversion: 1\n")
    assert result.out.endswith(b"\n\none\ntwo\nthree\nfour\nfive\n")


def test_body_only_and_no_body_are_the_two_halves(guide: bytes, process: Runner):
    whole = process("fetch", GUIDE).out
    head, body = process("fetch", GUIDE, "--no-body").out, process("fetch", GUIDE, "--body-only").out
    assert head + b"\n" + body == whole
    assert body == guide


def test_an_empty_body_still_has_its_empty_line(process: Runner):
    process("publish", "/empty", "--expected-version", "0", "--allow-empty")
    assert process("fetch", "/empty").out.endswith(b"Z\n\n")
    assert process("fetch", "/empty", "--body-only").out == b""


def test_a_mismatch_is_told_with_both_versions_and_the_next_command(guide: bytes, process: Runner):
    result = process(*AT_1, stdin=b"other\n")
    assert (result.status, result.out) == (3, b"status: conflict\nyour-version: 1\ncurrent-version: 2\n")
    assert result.err.endswith(f"next: mergepub publish {GUIDE} FILE --expected-version 1 --on-conflict merge\n")


def test_an_overlap_gives_the_marked_body(guide: bytes, process: Runner):
    result = process(*AT_1, *MERGE, stdin=b"eins\ntwo\nthree\nfour\nfive\n")
    assert result.status == 3
    assert result.out == (
        b"status: conflict\nyour-version: 1\ncurrent-version: 2\nmergeable: false\nconflicts: 1\n\n"
        b"<<<<<<< ours\neins\n=======\nONE\n>>>>>>> theirs\ntwo\nthree\nfour\nfive\n"
    )
    assert result.err.endswith(f"next: mergepub publish {GUIDE} RESULT --expected-version 2\n")


def test_an_overlap_with_other_markers_says_their_size(guide: bytes, process: Runner):
    options = [
        "--marker-size",
        "9",
        "--style",
        "diff3",
        "--ours-label",
        "o",
        "--base-label",
        "b",
        "--theirs-label",
        "t",
    ]
    result = process(*AT_1, *MERGE, *options, stdin=b"eins\ntwo\nthree\nfour\nfive\n")
    assert result.status == 3
    assert result.out == (
        b"status: conflict\nyour-version: 1\ncurrent-version: 2\nmergeable: false\nconflicts: 1\nmarker-size: 9\n\n"
        b"<<<<<<<<< o\neins\n||||||||| b\none\n=========\nONE\n>>>>>>>>> t\ntwo\nthree\nfour\nfive\n"
    )


def test_an_unterminated_side_is_said_on_standard_error(guide: bytes, process: Runner):
    result = process(*AT_1, *MERGE, stdin=b"eins")
    assert result.status == 3
    assert "ours: no newline at end\n" in result.err


def test_a_clean_candidate_is_given_for_review(guide: bytes, process: Runner):
    result = process(*AT_1, "--on-conflict", "candidate", stdin=b"one\ntwo\nthree\nfour\nFIVE\n")
    assert result.status == 3
    assert result.out == (
        b"status: candidate\nbase-version: 1\ntheir-version: 2\npublish-at: 2\n\nONE\ntwo\nthree\nfour\nFIVE\n"
    )
    assert result.err.endswith(f"next: mergepub publish {GUIDE} RESULT --expected-version 2\n")
    assert process("versions", GUIDE).out.count(b"\n") == 2


def test_contention_names_the_last_head_and_the_attempts(guide: bytes, mergepub: Runner, monkeypatch):
    """With no writer resting, a caller ends after three merges: each finds one more version at the head."""
    plain = opening.open_store

    def hasty(url: str):
        store, other = plain(url), plain(url)
        publish = store.publish

        def late(path, body, expected, **labels):
            other.append(path, b"more\n", key=str(other.fetch(path).version.number))
            return publish(path, body, expected, **labels)

        store.publish = late
        return store

    monkeypatch.setattr(opening, "open_store", hasty)
    result = mergepub(
        *AT_1, *MERGE, stdin=b"eins\ntwo\nthree\nfour\nfive\n".replace(b"eins", b"one").replace(b"two", b"2")
    )
    assert result.status == 3
    assert result.out == (
        b"status: conflict\nyour-version: 1\ncurrent-version: 6\nmergeable: false\nreason: contention\nretries: 3\n"
    )
    assert "--on-conflict merge" in result.err.splitlines()[-1]


def test_a_deleted_document_is_a_conflict_with_the_tombstones_version(guide: bytes, process: Runner):
    process("delete", GUIDE, "--expected-version", "2")
    for policy in ("fail", "merge", "candidate"):
        result = process("publish", GUIDE, "--expected-version", "2", "--on-conflict", policy, stdin=b"new\n")
        assert result.status == 3
        assert result.out == b"status: conflict\nyour-version: 2\ncurrent-version: 3\nreason: deleted\n"
        assert result.err.endswith(f"next: mergepub fetch {GUIDE}/v2\n")


def test_a_document_created_anew_is_never_merged_with(guide: bytes, process: Runner):
    process("delete", GUIDE, "--expected-version", "2")
    process("publish", GUIDE, "--expected-version", "0", stdin=b"anew\n")
    result = process("publish", GUIDE, "--expected-version", "2", *MERGE, stdin=b"new\n")
    assert result.status == 3
    assert result.out == b"status: conflict\nyour-version: 2\ncurrent-version: 4\nreason: recreated\n"


def test_a_version_above_the_head_is_no_base(guide: bytes, process: Runner):
    above = ("publish", GUIDE, "--expected-version", "9")
    plain = process(*above, stdin=b"new\n")
    assert (plain.status, plain.out) == (3, b"status: conflict\nyour-version: 9\ncurrent-version: 2\n")
    merge = process(*above, *MERGE, stdin=b"new\n")
    assert merge.status == 3
    assert merge.out == b"status: conflict\nyour-version: 9\ncurrent-version: 2\nreason: base-unavailable\n"


def test_a_binary_body_gets_no_markers(guide: bytes, process: Runner):
    result = process(*AT_1, *MERGE, stdin=b"one\0\n")
    assert result.status == 3
    assert result.out == b"status: conflict\nyour-version: 1\ncurrent-version: 2\nreason: binary\n"


def test_what_is_not_there_is_exit_4(guide: bytes, process: Runner):
    for call in (("fetch", "/no"), ("fetch", f"{GUIDE}/v9"), ("versions", "/no"), ("append", "/no"), ("verify", "/no")):
        result = process(*call, stdin=b"x\n")
        assert (result.status, result.out) == (4, b""), call
        assert result.err.startswith("mergepub: ")
    assert process("publish", "/no", "--expected-version", "3", stdin=b"x\n").status == 4
    assert process("delete", "/no", "--expected-version", "3").status == 4


def test_a_fetch_of_a_deleted_document_names_the_version_before(guide: bytes, process: Runner):
    process("delete", GUIDE, "--expected-version", "2")
    result = process("fetch", GUIDE)
    assert result.status == 4
    assert f"{GUIDE}/v2" in result.err
    assert " 3" in result.err


def test_an_unresolved_body_is_refused_and_its_line_named(guide: bytes, process: Runner):
    marked = process(*AT_1, *MERGE, stdin=b"eins\ntwo\nthree\nfour\nfive\n").out.partition(b"\n\n")[2]
    result = process("publish", GUIDE, "--expected-version", "2", stdin=marked)
    assert (result.status, result.out) == (2, b"")
    assert "line 1" in result.err
    assert process("publish", GUIDE, "--expected-version", "2", "--allow-markers", stdin=marked).status == 0


def test_bodies_pass_byte_for_byte(process: Runner):
    body = bytes(range(256)) * 3 + b"\r\n\xef\xbb\xbf\xff\x85\x0c\xe2\x80\xa8\r"
    Path("body").write_bytes(body)
    process("publish", "/bytes", "body", "--expected-version", "0")
    assert process("fetch", "/bytes", "--body-only").out == body
    process("fetch", "/bytes", "-o", "copy")
    assert Path("copy").read_bytes() == body


def test_versions_are_aligned_columns_newest_first(guide: bytes, process: Runner):
    process("publish", GUIDE, "--expected-version", "2", "-m", "Say\u00e9 it", stdin=b"x\n")
    process("delete", GUIDE, "--expected-version", "3", "-m", "Gone")
    lines = process("versions", GUIDE).out.decode().splitlines()
    assert [re.sub(r"20\S+Z", "TIME", line) for line in lines] == [
        "4  TIME  deleted  tess@desk  Gone",
        "3  TIME  2        tess@desk  Say\u00e9 it",
        "2  TIME  24       tess@desk",
        "1  TIME  24       tess@desk",
    ]
    assert process("versions", GUIDE, "--limit", "1").out.decode().splitlines() == lines[:1]


def test_lists_are_by_path_and_below_a_prefix(guide: bytes, process: Runner):
    for path in ("/docs/a.md", "/docs2", "/zoo"):
        process("publish", path, "--expected-version", "0", stdin=b"x\n")
    process("delete", "/zoo", "--expected-version", "1")

    def paths(*options: str) -> list[str]:
        return [line.split("  ", 2)[2] for line in process("list", *options).out.decode().splitlines()]

    assert paths() == ["/docs/a.md", "/docs/guide.md", "/docs2"]
    assert paths("/docs") == ["/docs/a.md", "/docs/guide.md"]
    assert paths("--deleted") == ["/docs/a.md", "/docs/guide.md", "/docs2", "/zoo (deleted)"]
    assert paths("--limit", "1") == ["/docs/a.md"]
    assert paths("/none") == []


def test_verify_says_ok_in_one_line(guide: bytes, process: Runner):
    for call in (("verify",), ("verify", GUIDE)):
        result = process(*call)
        assert (result.status, result.err) == (0, "")
        assert result.out.startswith(b"ok: ")
        assert result.out.count(b"\n") == 1


def test_verify_tells_each_fault_and_exits_3(guide: bytes, mergepub: Runner, monkeypatch):
    plain = opening.open_store

    def damaged(url: str):
        store = plain(url)
        store.verify = lambda path=None: iter(["version 1 is not what was published", "version 2 is missing"])
        return store

    monkeypatch.setattr(opening, "open_store", damaged)
    result = mergepub("verify")
    assert (result.status, result.out) == (3, b"")
    assert result.err.splitlines() == [
        "mergepub: version 1 is not what was published",
        "mergepub: version 2 is missing",
        "hint: the store was changed past mergepub, or its disk fails: go back to a copy that verifies",
    ]
    assert mergepub("verify", "--json").status == 3
