"""Hints are there to be pasted: the command that is named works, on the same store, with the same names."""

from __future__ import annotations

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
    hint = f"create it with: mergepub --store {url} --token-file {file} publish /nothing FILE --expected-version 0"
    assert told.err.splitlines()[-1] == f"hint: {hint}"
    assert json.loads(told.out)["error"]["hint"] == hint


def test_a_store_of_the_environment_is_not_repeated(guide: bytes, mergepub: Runner) -> None:
    assert "hint: create it with: mergepub publish /nothing" in mergepub("fetch", "/nothing").err


def test_doctor_and_serve_name_the_store(mergepub: Runner) -> None:
    assert b" --store sqlite:///" in mergepub("doctor", "--store", "other.sqlite").out
    said = mergepub("serve", "--host", "0.0.0.0", "--port", "0", "--store", "other.sqlite").err
    assert f"mergepub --store sqlite:///{Path('other.sqlite').absolute()} token create --name NAME" in said


def test_no_hint_ever_holds_a_secret(mergepub: Runner) -> None:
    url = "postgresql://ann:geheim@127.0.0.1:9/docs?password=geheim&connect_timeout=1"
    for call in (("fetch", "/nothing"), ("publish", "/nothing", "--json"), ("doctor", "--json")):
        told = mergepub(*call, "--store", url, stdin=b"x\n")
        assert "geheim" not in told.out.decode() + told.err
