"""Hints are there to be pasted: the command that is named works, on the same store, with the same names."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

DOC = "/docs/guide.md"


def command_in(said: str) -> list[str]:
    """The words of the command that ends what was said, without the program's name."""
    words = shlex.split(said.rpartition("mergepub ")[2])
    assert words, said
    return words


# ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("before", [True, False], ids=["before the verb", "after it"])
def test_the_store_that_a_flag_named_is_in_the_next_command(before: bool, mergepub: Runner) -> None:
    flag = ("--store", "my other.sqlite")

    def publish(expected: str, body: bytes) -> str:
        call = ("publish", DOC, "--expected-version", expected)
        return mergepub(*flag, *call, stdin=body).err if before else mergepub(*call, *flag, stdin=body).err

    assert publish("0", b"one\n") == ""
    assert publish("1", b"two\n") == ""
    said = publish("1", b"three\n")
    url = f"sqlite:///{Path('my other.sqlite').absolute()}"
    assert f"next: mergepub --store '{url}' publish {DOC} " in said
    Path("FILE").write_bytes(b"three\n")
    assert mergepub(*command_in(said)).status == 3  # of an overlap: it is the store that was meant


def test_errors_name_the_store_and_the_token_file_too_also_in_json(mergepub: Runner) -> None:
    assert mergepub("publish", DOC, "--expected-version", "0", "--store", "other.sqlite", stdin=b"x\n").status == 0
    told = mergepub("fetch", "/nothing", "--store", "other.sqlite", "--token-file", "secret.txt", "--json")
    url, file = f"sqlite:///{Path('other.sqlite').absolute()}", Path("secret.txt").absolute()
    flags = f"--store {url} --token-file {file}"
    create = f"create it with: mergepub {flags} publish /nothing FILE --expected-version 0"
    hint = f"mergepub {flags} list shows what is in {url}; {create}"
    assert told.err.splitlines()[-1] == f"hint: {hint}"
    assert json.loads(told.out)["error"]["hint"] == hint


def test_a_store_of_the_environment_is_not_repeated(guide: bytes, mergepub: Runner) -> None:
    assert "; create it with: mergepub publish /nothing" in mergepub("fetch", "/nothing").err


def test_doctor_and_serve_name_the_store(mergepub: Runner) -> None:
    assert b" --store sqlite:///" in mergepub("doctor", "--store", "other.sqlite").out
    said = mergepub("serve", "--host", "0.0.0.0", "--port", "0", "--store", "other.sqlite").err
    assert f"mergepub --store sqlite:///{Path('other.sqlite').absolute()} token create --name NAME" in said


def test_a_command_that_shows_its_help_needs_no_store(mergepub: Runner) -> None:
    told = mergepub("versions", DOC, "--limit", "x", "--store", "other.sqlite")
    assert told.err.endswith("hint: mergepub versions --help shows how it is called\n")
    told = mergepub("token", "revoke", "--store", "other.sqlite")
    assert f"such as: mergepub --store sqlite:///{Path.cwd()}/other.sqlite token revoke CI; " in told.err
    assert told.err.endswith("; mergepub token revoke --help shows how it is called\n")


def test_a_delete_of_a_version_that_is_none_says_to_look(guide: bytes, mergepub: Runner) -> None:
    told = mergepub("delete", DOC, "--expected-version", "9")
    assert "nothing was deleted. Look at that.\nnext: mergepub fetch" in told.err


def test_no_hint_ever_holds_a_secret(mergepub: Runner) -> None:
    url = "postgresql://ann:geheim@127.0.0.1:9/docs?password=geheim&connect_timeout=1"
    for call in (("fetch", "/nothing"), ("publish", "/nothing", "--json"), ("doctor", "--json")):
        told = mergepub(*call, "--store", url, stdin=b"x\n")
        assert "geheim" not in told.out.decode() + told.err


# ── commands that lead somewhere ────────────────────────────────────────────────────────────────────────────────────


def test_what_to_do_with_an_untracked_file_is_no_circle(guide: bytes, mergepub: Runner) -> None:
    Path("my guide.md").write_bytes(guide.replace(b"five", b"FIVE"))
    for call in (("fetch", DOC, "-o", "my guide.md"), ("pull", "my guide.md"), ("push", "my guide.md")):
        said = mergepub(*call).err
        assert "mergepub pull" not in said
        assert "'my guide.md' --expected-version N --on-conflict merge" in said
    said = mergepub("fetch", DOC, "-o", "my guide.md").err
    assert mergepub(*command_in(said)).status == 0
    assert Path("my guide.md.head").read_bytes() == guide
    merge = said[said.index("publish /") :].partition(";")[0].replace(" N ", " 1 ")
    assert mergepub(*shlex.split(merge)).status == 0


def test_the_way_out_for_a_tracked_file_ends_in_the_command(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("fetch", DOC, "-o", "my guide.md").status == 0
    Path("my guide.md").write_bytes(guide.replace(b"five", b"FIVE"))
    assert command_in(mergepub("fetch", DOC, "-o", "my guide.md").err) == ["pull", "my guide.md"]
    wrong = mergepub("publish", DOC, "my guide.md", "--expected-version", "1").err
    assert command_in(wrong) == ["pull", "my guide.md"]
    assert mergepub("delete", DOC, "--expected-version", "2").status == 0
    gone = mergepub("push", "my guide.md")
    assert gone.status == 3
    assert "next: to create it anew: mergepub publish" in gone.err
    assert mergepub(*command_in(gone.err)).status == 0
    Path("my guide.md").unlink()
    assert mergepub(*command_in(mergepub("pull", "my guide.md").err)).status == 0
    assert Path("my guide.md").read_bytes().endswith(b"FIVE\n")


def test_paths_with_blanks_are_quoted(mergepub: Runner) -> None:
    assert mergepub("publish", "/a b.md", "--expected-version", "0", stdin=b"x\n").status == 0
    assert mergepub(*command_in(mergepub("fetch", "/a b.md/v9").err)).status == 0
    assert command_in(mergepub("fetch", "/c d.md").err) == ["publish", "/c d.md", "FILE", "--expected-version", "0"]


def test_a_file_in_the_place_of_a_path_is_told_how_to_publish_it(guide: bytes, mergepub: Runner) -> None:
    Path("a b.md").write_bytes(b"x\n")
    assert command_in(mergepub("publish", "a b.md").err) == ["publish", "/a b.md", "a b.md"]
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    assert command_in(mergepub("publish", "guide.md").err) == ["push", "guide.md"]


def test_the_queue_of_another_folder_is_named_where_the_command_is_typed(guide: bytes, mergepub: Runner) -> None:
    Path("my notes").mkdir()
    Path("my notes/mergepub.toml").touch()
    Path("my notes/new.md").write_bytes(b"new\n")
    queued = mergepub("publish", "/new.md", "my notes/new.md", "--expected-version", "0", "--queue")
    assert queued.err.splitlines()[-1] == "next: cd 'my notes' && mergepub sync"
    assert "nothing waits" in mergepub("sync").err or f"there is no queue in {Path.cwd()}" in mergepub("sync").err
    with contextlib.chdir("my notes"):
        assert mergepub("sync").out.endswith(b"1 sent, 0 waiting\n")
        assert mergepub("sync").err == f"mergepub: nothing waits in the queue of {Path.cwd()}\n"


def test_the_next_command_merges_by_the_rules_that_were_given(guide: bytes, mergepub: Runner) -> None:
    Path("mine.md").write_bytes(b"MINE\ntwo\nthree\nfour\nfive\n")
    said = mergepub("publish", DOC, "mine.md", "--expected-version", "1", "--favour-path", "*.md=union").err
    assert mergepub(*command_in(said)).status == 0
    assert mergepub("fetch", DOC, "--body-only").out.startswith(b"ONE\nMINE\n")
    assert mergepub("fetch", f"{DOC}/v1", "-o", "old.md").status == 0
    Path("old.md").write_bytes(b"OLD\ntwo\nthree\nfour\nfive\n")
    said = mergepub("publish", DOC, "old.md", "--favour-path", "*.md=union").err
    assert mergepub(*command_in(said)).status == 0


def test_what_was_refused_before_it_was_sent_is_not_said_to_be_on_its_way(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    Path("guide.md").write_bytes(b"x" * ((16 << 20) + 1))
    assert "bytes" in mergepub("push", "guide.md").err
    assert mergepub("status").out == b"edited here  guide.md  /docs/guide.md/v2\n"
