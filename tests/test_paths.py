"""Document paths: every rule, at its edge, with the rule named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.errors import BadPathError
from mergepub.paths import MAX_PATH_BYTES, MAX_VERSION, check_path, check_prefix, is_version_segment, split_version

GOOD = [
    "/a",
    "/docs/guide.md",
    "/v",
    "/v5a",
    "/V5",
    "/vv5",
    "/v5/guide.md",
    "/docs/-",
    "/-x/guide.md",
    "/docs/...",
    "/docs/.hidden",
    "/docs/a b",
    "/docs/%2F",
    "/docs/\\",
    "/docs/v\N{ARABIC-INDIC DIGIT FIVE}",  # only ASCII digits make a version
    "/docs/caf\u00e9.md",
    "/docs/\N{PERSONAL COMPUTER}",
    "/" + "a" * (MAX_PATH_BYTES - 1),
]

BAD = [
    ("", "must start with /"),
    ("docs/guide.md", "must start with /"),
    (" /docs", "must start with /"),
    ("/", "empty segment"),
    ("//docs", "empty segment"),
    ("/docs//guide.md", "empty segment"),
    ("/docs/", "empty segment"),
    ("/.", "a . or .. segment"),
    ("/docs/./guide.md", "a . or .. segment"),
    ("/docs/..", "a . or .. segment"),
    ("/../etc/passwd", "a . or .. segment"),
    ("/docs/\0", "control character"),
    ("/docs/a\nb", "control character"),
    ("/docs/a\tb", "control character"),
    ("/docs/\x1b[31m", "control character"),
    ("/docs/\x7f", "control character"),
    ("/docs/\x85", "control character"),
    ("/docs/\x9b31m", "control character"),
    ("/docs/cafe\u0301.md", "normal form NFC"),
    ("/docs/\udcff", "valid UTF-8"),
    ("/v5", "reads as a version"),
    ("/docs/v0", "reads as a version"),
    ("/docs/v05", "reads as a version"),
    ("/docs/v5/v6", "reads as a version"),
    ("/-", "first segment is -"),
    ("/-/health", "first segment is -"),
    ("/" + "a" * MAX_PATH_BYTES, "has 1025 bytes, the limit is 1024"),
    ("/" + "\u00e9" * 512, "has 1025 bytes, the limit is 1024"),
]


@pytest.mark.parametrize("path", GOOD)
def test_a_path_that_breaks_no_rule_is_returned_as_it_is(path):
    assert check_path(path) == path


@pytest.mark.parametrize(("path", "rule"), BAD)
def test_a_bad_path_is_refused_and_the_rule_is_named(path, rule):
    with pytest.raises(BadPathError) as refused:
        check_path(path)
    assert rule in refused.value.message
    assert refused.value.exit_status == 2
    assert refused.value.hint


@pytest.mark.parametrize("path", [path for path, _ in BAD])
def test_the_message_about_a_bad_path_is_one_short_printable_line(path):
    with pytest.raises(BadPathError) as refused:
        check_path(path)
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 800


def test_a_version_form_is_split_into_document_and_number():
    assert split_version("/docs/guide.md/v5") == ("/docs/guide.md", 5)
    assert split_version(f"/docs/guide.md/v{MAX_VERSION}") == ("/docs/guide.md", MAX_VERSION)
    assert split_version("/" + "a" * (MAX_PATH_BYTES - 1) + "/v5") == ("/" + "a" * (MAX_PATH_BYTES - 1), 5)


@pytest.mark.parametrize("path", ["/docs/guide.md", "/docs/v5a", "/v5/guide.md"])
def test_a_path_without_a_version_form_is_split_into_itself_and_nothing(path):
    assert split_version(path) == (path, None)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/docs/guide.md/v0", "numbered from 1"),
        ("/docs/guide.md/v05", "numbered from 1"),
        (f"/docs/guide.md/v{MAX_VERSION + 1}", "no version is above"),
        ("/docs/guide.md/v" + "9" * 900, "no version is above"),
        ("/v5", "reads as a version"),
        ("/docs/v5/v6", "reads as a version"),
        ("/docs//v5", "empty segment"),
        ("docs/v5", "must start with /"),
        ("v5", "must start with /"),
        ("/-/v5", "first segment is -"),
    ],
)
def test_a_bad_version_form_is_refused_and_the_rule_is_named(path, rule):
    with pytest.raises(BadPathError, match=rule):
        split_version(path)


@pytest.mark.parametrize("prefix", ["/", "/docs", "/docs/", "/api/v2", "/api/v2/"])
def test_a_folder_is_a_prefix_with_or_without_its_slash_whatever_its_name(prefix):
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["", "docs", "//", "/docs//", "/../", "/a\n", "/-/list", "/" + "a" * 1024])
def test_a_prefix_that_no_document_could_have_is_refused(prefix):
    with pytest.raises(BadPathError):
        check_prefix(prefix)


@given(st.text())
def test_any_text_is_either_a_path_whose_versions_can_be_named_or_refused(text):
    try:
        path = check_path("/" + text)
    except BadPathError:
        return
    assert split_version(path) == (path, None)
    assert split_version(path + "/v7") == (path, 7)
    assert not is_version_segment(path.rpartition("/")[2])
    assert check_prefix(path) == path
