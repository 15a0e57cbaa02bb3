"""A mistyped path: what was meant is named, a folder for a document is told to be one, an empty list is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.cli.nearest import name_nearest
from mergepub.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

CALLS = {
    "fetch": ["fetch", "/docs/giude.md"],
    "a version": ["fetch", "/docs/giude.md/v1"],
    "versions": ["versions", "/docs/giude.md"],
    "log": ["log", "/docs/giude.md"],
    "diff": ["diff", "/docs/giude.md", "v1", "v2"],
    "verify": ["verify", "/docs/giude.md"],
    "append": ["append", "/docs/giude.md"],
    "delete": ["delete", "/docs/giude.md", "--expected-version", "1"],
    "publish": ["publish", "/docs/giude.md", "--expected-version", "1"],
    "merge": ["publish", "/docs/giude.md", "--expected-version", "1", "--on-conflict", "merge"],
    "branches": ["branches", "/docs/giude.md"],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_the_nearest_document_is_named(call, guide: bytes, mergepub: Runner):
    result = mergepub(*call, stdin=b"x\n")
    assert (result.status, result.out) == (4, b"")
    assert result.err == (
        "mergepub: there is no document /docs/giude.md\n"
        "hint: did you mean /docs/guide.md? else create it with: "
        "mergepub publish /docs/giude.md FILE --expected-version 0\n"
    )


def test_a_document_in_a_mistyped_folder_is_found_too(guide: bytes, mergepub: Runner):
    assert "did you mean /docs/guide.md?" in mergepub("fetch", "/dosc/guide.md").err


def test_a_folder_in_the_place_of_a_document_is_told_to_be_one(guide: bytes, mergepub: Runner):
    assert mergepub("fetch", "/docs").err.endswith("hint: /docs is a folder of documents: mergepub list /docs\n")


def test_where_nothing_is_near_the_list_is_named(guide: bytes, mergepub: Runner):
    place = f"mergepub list shows what is in sqlite:///{Path.cwd()}/store.sqlite"
    hint = f"hint: {place}; create it with: mergepub publish /zzz FILE --expected-version 0\n"
    assert mergepub("fetch", "/zzz").err.endswith(hint)


def test_json_has_the_same_hint(guide: bytes, mergepub: Runner):
    assert (
        "did you mean /docs/guide.md?" in json.loads(mergepub("fetch", "/docs/giude.md", "--json").out)["error"]["hint"]
    )


def test_a_document_that_is_there_and_a_store_that_cannot_list_add_nothing():
    class Store:
        def list(self, prefix: str, *, limit: int):
            if prefix != "/there":
                raise UnavailableError("not now")
            yield from [type("Row", (), {"path": "/there"})]

    for path in ("/there", "/elsewhere", None):
        error = NotFoundError("nothing", path=path, hint="look")
        name_nearest(Store(), error)  # type: ignore[arg-type]  # no more of it is needed
        assert error.hint == "look"


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("/nowhere", "there is no document at or below /nowhere\nhint: mergepub list shows what is in STORE\n"),
        ("/doc", "there is no document at or below /doc\nhint: mergepub list /docs shows what is there\n"),
        ("/dcos/", "there is no document at or below /dcos/\nhint: mergepub list /docs shows what is there\n"),
    ],
)
def test_a_list_of_nothing_says_so_and_is_no_error(prefix, said, guide: bytes, mergepub: Runner):
    said = said.replace("STORE", f"sqlite:///{Path.cwd()}/store.sqlite")
    result = mergepub("list", prefix)
    assert (result.status, result.out, result.err) == (0, b"", f"mergepub: {said}")
    result = mergepub("list", prefix, "--json")
    assert (result.status, json.loads(result.out)["result"], result.err) == (0, {"documents": []}, f"mergepub: {said}")


def test_a_store_without_documents_says_how_to_make_one(mergepub: Runner):
    assert mergepub("store", "init").status == 0
    assert mergepub("list").err.splitlines() == [
        "mergepub: there are no documents yet",
        "hint: mergepub publish /docs/guide.md FILE --expected-version 0",
    ]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("giude.md", "did you mean guide.md?"),
        ("note", "did you mean notes?"),
        ("notes/todi.md", "did you mean notes/todo.md?"),
        ("xyzzy", "give the name of a readable file"),
    ],
)
def test_a_push_names_the_nearest_file_or_folder(name, hint, mergepub: Runner):
    Path("notes").mkdir()
    for file in ("guide.md", "notes/todo.md"):
        Path(file).write_bytes(b"x\n")
    for options in ([], ["--prefix", "/docs"]):
        result = mergepub("push", name, *options)
        assert (result.status, result.out) == (4, b"")
        assert result.err == f"mergepub: there is no file {name}\nhint: {hint}\n"


@pytest.mark.parametrize("verb", ["pull", "status", "diff", "resolve", "show-conflict", "mv"])
def test_the_nearest_tracked_file_is_named(verb, guide: bytes, mergepub: Runner):
    Path("giude.md.orig").touch()  # nearer, and not tracked
    mergepub("fetch", "/docs/guide.md", "-o", "guide.md")
    to = ["other.md"] if verb == "mv" else []
    result = mergepub(verb, "giude.md", *to)
    assert (result.status, result.out) == (2, b"")
    assert "\nhint: did you mean guide.md? else start to track a document in it: mergepub fetch " in result.err
    assert "did you mean" not in mergepub(verb, "xyzzy", *to).err
    Path("giude.md").touch()
    assert "did you mean" not in mergepub(verb, "giude.md", *to).err


@pytest.mark.parametrize("verb", ["fetch", "versions", "log", "branches", "verify", "append", "delete"])
def test_a_tracked_file_in_the_place_of_a_document_names_that(verb, guide: bytes, mergepub: Runner):
    mergepub("fetch", "/docs/guide.md", "-o", "my copy.md")
    Path("other.md").touch()
    hint = "my copy.md is a file that is tracked as a document: did you mean /docs/guide.md?"
    result = mergepub(verb, "my copy.md", "--json")
    assert (result.status, result.err.splitlines()[-1]) == (2, f"hint: {hint}")
    assert json.loads(result.out)["error"]["hint"] == hint
    assert mergepub(verb, "other.md").err.endswith("hint: did you mean /other.md?\n")
    for record in Path(".mergepub/files").glob("*/record.json"):
        record.write_bytes(b"damaged")
    assert mergepub(verb, "my copy.md").err.endswith("hint: did you mean /my copy.md?\n")
