"""Wrong moves of somebody who uses this for the first time: each is answered with what to do instead."""

from __future__ import annotations

import os
import shlex
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import SCRIPT, present
from tests.stores.scripted_server import ScriptedServer, document_reply, problem, reply

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

DOC = "/docs/guide.md"

CALLS = {
    "nothing": ([], "Missing command.", "mergepub --help lists the commands"),
    "a group alone": (["token"], "Missing command.", "mergepub token --help lists the commands"),
    "a command that a group lacks": (["store", "innit"], "No such command", "mergepub store --help lists the commands"),
    "a group of groups": (["coord"], "Missing command.", "mergepub coord --help lists the commands"),
    "a command without its document": (
        ["fetch"],
        "Missing argument",
        f"such as: mergepub fetch {DOC}; mergepub fetch --help shows how it is called",
    ),
    "an option before its command": (
        ["--limit", "1", "list"],
        "No such option",
        "options of a command go after its name",
    ),
    "words without quotes": (["publish", DOC, "guide.md", "fix", "typo"], "extra arguments", "need quotes"),
    "what others call it": (["ls"], "there is no command 'ls'", "did you mean mergepub list?"),
    "the version as a command": (["version"], "there is no command", "did you mean mergepub --version?"),
    "an option without its value": (
        ["publish", DOC, "guide.md", "--expected-version"],
        "requires an argument",
        "mergepub publish --help shows how it is called",
    ),
    "a version as an argument": (
        ["fetch", DOC, "v1"],
        "unexpected extra argument",
        f"a version is the end of the path: mergepub fetch {DOC}/v1",
    ),
    "a number as an argument": (
        ["fetch", DOC, "2"],
        "unexpected extra argument",
        f"a version is the end of the path: mergepub fetch {DOC}/v2",
    ),
    "a version as an option": (
        ["fetch", DOC, "--version", "1"],
        "No such option",
        "a version is the end of the path: mergepub fetch PATH/vN",
    ),
    "something else too many": (
        ["fetch", DOC, "x"],
        "unexpected extra",
        "mergepub fetch --help shows how it is called",
    ),
    "a file before the document": (
        ["publish", "guide.md", DOC, "--expected-version", "0"],
        "it must start with /",
        f"the document comes first, then the file: mergepub publish {DOC} guide.md",
    ),
    "a path without its slash": (["fetch", "docs/guide.md"], "it must start with /", f"did you mean {DOC}?"),
    "a path with a slash at its end": (["fetch", f"{DOC}/"], "empty segment", f"did you mean {DOC}?"),
    "a prefix without its slash": (["list", "docs"], "it must start with /", "did you mean /docs?"),
    "a path beyond mending": (["fetch", "a/../b"], "it must start with /", "use a path such as /docs/guide.md"),
    "a mistyped file": (
        ["publish", DOC, "giude.md", "--expected-version", "0"],
        "cannot read giude.md",
        "did you mean guide.md?",
    ),
    "a mistyped file in a folder": (
        ["append", DOC, "notes/todi.md"],
        "cannot read notes/todi.md",
        "did you mean notes/todo.md?",
    ),
    "a mistyped folder": (["append", DOC, "notse/todo.md"], "cannot read", "check the name of the folder notse"),
    "a name like no other": (["append", DOC, "xyzzy"], "cannot read xyzzy", "give the name of a readable file"),
    "a pull that is to settle": (["pull", "guide.md", "--ours"], "No such option", "mergepub resolve FILE --ours"),
    "a version of a history": (["log", f"{DOC}/v1"], "reads as a version", f"did you mean {DOC}?"),
    "a name like a version's": (["publish", "/v1", "guide.md"], "reads as a version", "use a path such as"),
    "a scratch folder without its slash": (["doctor", "--scratch", "x"], "it must start with /", "did you mean /x?"),
    "no body, and where to": (
        ["fetch", DOC, "-o", "a.md", "--no-body"],
        "contradict",
        "-o alone: the body goes to FILE",
    ),
    "a folder": (["append", DOC, "notes"], "Is a directory", "mergepub push publishes whole folders"),
}


@pytest.mark.parametrize(("call", "said", "hint"), CALLS.values(), ids=CALLS.keys())
def test_a_wrong_call_is_answered_with_the_right_one(call, said, hint, mergepub: Runner):
    Path("guide.md").write_bytes(b"x\n")
    Path("notes").mkdir()
    Path("notes/todo.md").write_bytes(b"x\n")
    result = mergepub(*call)
    assert (result.status, result.out) == (2, b"")
    first, second = result.err.splitlines()
    assert said in first
    assert second.startswith("hint: ")
    assert hint in second


def test_a_tracked_file_is_not_published_as_another_document_by_mistake(guide: bytes, mergepub: Runner, monkeypatch):
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    Path("guide.md").write_bytes(guide.replace(b"two", b"TWO"))
    told = mergepub("publish", "/docs/giude.md", "guide.md")
    assert (told.status, told.out) == (2, b"")
    assert f"guide.md is tracked as another document, {DOC}\n" in told.err
    elsewhere = mergepub("publish", DOC, "guide.md", "--store", "other.sqlite")
    assert f"guide.md is tracked from another store, sqlite:///{Path.cwd()}/store.sqlite\n" in elsewhere.err
    command = told.err.splitlines()[-1].rpartition("mergepub ")[2]
    assert mergepub(*shlex.split(command)).out == b"status: ok\nversion: 3\n"


@pytest.mark.parametrize("policy", ["merge", "candidate", "branch"])
def test_a_version_that_was_never_published_is_said_to_be_none(policy, guide: bytes, mergepub: Runner):
    result = mergepub("publish", DOC, "--expected-version", "99", "--on-conflict", policy, stdin=b"x\n")
    assert result.out == b"status: conflict\nyour-version: 99\ncurrent-version: 2\nreason: base-unavailable\n"
    assert result.err.startswith("There is no version 99: the document stands at version 2; nothing was done.")
    assert result.err.endswith(f"next: mergepub fetch {DOC}\n")


def test_json_says_the_next_command_on_standard_error_too(guide: bytes, mergepub: Runner):
    result = mergepub("publish", DOC, "--expected-version", "1", "--json", stdin=b"x\n")
    assert result.err.endswith(f"next: mergepub publish {DOC} FILE --expected-version 1 --on-conflict merge\n")


# ── which store ─────────────────────────────────────────────────────────────────────────────────────────────────────

URLS = {
    "host:8080": "did you mean http://host:8080? a file of that name is ./host:8080",
    "127.0.0.1:8470": "did you mean http://127.0.0.1:8470?",
    "http:/localhost:80": "did you mean http://localhost:80?",
    "postgres://ann:geheim@host/docs": "did you mean postgresql://?",
    "sqlite3:///docs.sqlite": "did you mean sqlite:///?",
    "file:///docs.sqlite": "did you mean sqlite:///?",
    "sqlite://docs.sqlite": "write sqlite:///relative or sqlite:////absolute",
    "gopher://docs": "name one of them",
    "http://host?docs": "use https://HOST",
    "http://host:99999": "use https://HOST",
}


@pytest.mark.parametrize("url", URLS)
def test_a_url_that_is_nearly_one_is_mended(url, mergepub: Runner):
    result = mergepub("publish", DOC, "--expected-version", "0", "--store", url, stdin=b"x\n")
    assert (result.status, result.out) == (2, b"")
    assert URLS[url] in result.err.splitlines()[-1]
    assert "geheim" not in result.err
    assert present() == []


def test_a_file_whose_name_reads_as_an_address_is_still_a_store(mergepub: Runner):
    assert mergepub("publish", DOC, "--expected-version", "0", "--store", "./host:80", stdin=b"x\n").status == 0
    assert mergepub("fetch", DOC, "--store", "host:80", "--body-only").out == b"x\n"


def test_a_folder_that_is_made_with_a_new_store_is_told(scratch: Path, mergepub: Runner):
    call = ("publish", DOC, "--store", "tpyo/docs.sqlite", "--expected-version")
    missing = mergepub(*call, "1", stdin=b"x\n")
    assert missing.status == 4
    assert f"there is no store {scratch}/tpyo/docs.sqlite yet, nor the folder {scratch}/tpyo\n" in missing.err
    assert mergepub(*call, "0", stdin=b"x\n").err == (
        f"mergepub: made the folder {scratch}/tpyo with a new store in it, sqlite:///{scratch}/tpyo/docs.sqlite\n"
    )
    assert mergepub(*call, "1", stdin=b"y\n").err == ""


def test_the_folder_of_the_default_store_is_made_without_a_word(scratch: Path, mergepub: Runner, monkeypatch):
    monkeypatch.delenv("MERGEPUB_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(scratch / "data"))
    assert mergepub("publish", DOC, "--expected-version", "0", stdin=b"x\n").err == ""
    assert Path("data/mergepub/store.sqlite").exists()


@contextmanager
def served(*script: object) -> Iterator[ScriptedServer]:
    server = ScriptedServer(list(script))
    try:
        yield server
    finally:
        server.close()


NO_SERVICE = problem(404, detail="there is no /docs/-/health in this store")


def test_a_folder_in_the_url_of_a_service_is_refused_before_anything_is_sent(mergepub: Runner):
    with served(NO_SERVICE) as server:
        url = server.url
        result = mergepub("publish", "/guide.md", "--expected-version", "0", "--store", f"{url}/docs", stdin=b"x\n")
    assert (result.status, result.out) == (2, b"")
    assert f"there is no service at {url}/docs" in result.err
    assert result.err.endswith(f"hint: is the store {url}? the folder is part of the document's path: /docs/...\n")
    assert [each.target for each in server.requests] == ["/docs/-/health"]


def test_a_service_below_a_path_is_used_there(mergepub: Runner):
    health = reply(200, b'{"status": "ok"}', kind="application/json")
    with served(health, document_reply(b"x\n")) as server:
        assert mergepub("fetch", DOC, "--body-only", "--store", f"{server.url}/docs").out == b"x\n"
    assert [each.target for each in server.requests] == ["/docs/-/health", f"/docs{DOC}"]


@pytest.mark.parametrize(
    "call", [("fetch", DOC), ("publish", DOC, "--expected-version", "0")], ids=lambda call: call[0]
)
def test_tls_where_there_is_none_is_answered_with_plain_http(call, mergepub: Runner, monkeypatch):
    from mergepub.stores.wrappers import RetryPolicy

    monkeypatch.setattr("mergepub.stores.http.RetryPolicy", RetryPolicy.instant)
    with plain_http() as place:
        result = mergepub(*call, "--store", f"https://{place}", stdin=b"x\n")
    assert (result.status, result.out) == (4, b"")
    assert result.err.endswith(f"hint: is it plain HTTP there? http://{place}\n")


@contextmanager
def plain_http() -> Iterator[str]:
    """Answers whatever comes as a server does that expects HTTP."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_where_nobody_listens_the_doctor_is_named_for_that_store(mergepub: Runner, monkeypatch):
    from mergepub.stores.wrappers import RetryPolicy

    monkeypatch.setattr("mergepub.stores.http.RetryPolicy", RetryPolicy.instant)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can listen there either
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = mergepub("fetch", DOC, "--store", url)
    assert result.status == 4
    assert f"mergepub --store {url} doctor" in result.err


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (None, "name a file that you can read, with --token-file or MERGEPUB_TOKEN_FILE, or set MERGEPUB_TOKEN"),
        (b"", "write the secret into it"),
        (b"two words", "give the secret alone"),
    ],
)
def test_a_token_file_that_is_none_says_what_to_do(content, hint, mergepub: Runner):
    if content is not None:
        Path("my.token").write_bytes(content)
    result = mergepub("fetch", DOC, "--store", "http://127.0.0.1:9", "--token-file", "my.token")
    assert result.status == 2
    assert hint in result.err.splitlines()[-1]


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o400, 0), (0o640, 1), (0o644, 1)])
def test_a_token_that_others_can_read_is_warned_of_once(mode, warned, mergepub: Runner, monkeypatch):
    Path("my token").write_text("mergepub_secret")
    Path("my token").chmod(mode)
    with served(document_reply(b"x\n")) as server:
        result = mergepub("fetch", DOC, "--body-only", "--store", server.url, "--token-file", "my token")
        assert (result.status, result.out) == (0, b"x\n")
        assert result.err.count("next: chmod 600 'my token'") == warned
        monkeypatch.setenv("MERGEPUB_TOKEN", "mergepub_another")
        assert mergepub("fetch", DOC, "--body-only", "--store", server.url).err == ""


def test_a_secret_written_where_others_can_read_it_is_warned_of(monkeypatch):
    monkeypatch.setenv("PATH", f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}")
    create = "mergepub token create --allow 'publish:/docs/**' --name"
    for script, warned in ((f"umask 022; {create} a > a.token", 1), (f"umask 077; {create} b > b.token", 0)):
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert done.stderr.count("chmod 600") == warned
    done = subprocess.run(["bash", "-c", f"{create} c | cat"], capture_output=True, text=True, check=True)
    assert "chmod" not in done.stderr


@pytest.mark.parametrize(
    ("secret", "hint"), [("", "set MERGEPUB_TOKEN or name a --token-file"), ("mp_wrong", "where this token was found")]
)
def test_a_token_that_is_refused_is_told_from_one_that_is_missing(secret, hint, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("MERGEPUB_TOKEN", secret)
    with served(problem(401)) as server:
        result = mergepub("fetch", DOC, "--store", server.url)
    assert result.status == 3
    assert hint in result.err.splitlines()[-1]


RULES = {
    "docs": "--allow 'publish:/docs/**'",
    "reed:/docs/**": "--allow 'publish:/docs/**'",
    "read:docs/**": "--allow 'read:/docs/**'",
    "read:/docs**": "in one segment write *",
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_none_is_answered_with_one(rule, mergepub: Runner):
    result = mergepub("token", "create", "--name", "ana", "--allow", rule)
    assert (result.status, result.out) == (2, b"")
    assert RULES[rule] in result.err.splitlines()[-1]


def test_a_store_without_tokens_says_how_to_make_one(mergepub: Runner):
    listed = mergepub("token", "list")
    assert (listed.status, listed.out) == (0, b"")
    command = listed.err.splitlines()[-1].removeprefix("hint: mergepub ")
    assert mergepub(*shlex.split(command)).status == 0


# ── what is not there yet ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_document_that_nothing_was_decided_about_says_so(guide: bytes, mergepub: Runner):
    result = mergepub("decisions", DOC)
    assert (result.status, result.out) == (0, b"")
    assert result.err == f"mergepub: nothing has been decided about {DOC} yet\nhint: mergepub branches {DOC}\n"


def test_outside_a_run_its_commands_say_how_to_begin_one(scratch: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("MERGEPUB_RUN_DIR", str(scratch / "run"))
    for call in (["inbox"], ["status", "--json"], ["send", "--to", "run-0123456789ab", "Hello."]):
        result = mergepub("coord", *call)
        assert result.status == 4
        assert "mergepub coord run --task" in result.err.splitlines()[-1]
    assert mergepub("coord", "status").err.endswith("hint: mergepub coord skill says the same in prose\n")
    assert mergepub("coord", "send", "Hello.").err.endswith("hint: mergepub coord send --help shows how it is called\n")


# ── a store that somebody tampered with ─────────────────────────────────────────────────────────────────────────────


def test_bytes_for_a_name_in_a_store_are_a_fault_and_no_trace(guide: bytes, mergepub: Runner):
    with sqlite3.connect("store.sqlite") as database:
        database.execute("UPDATE branches SET name = x'00'")
    database.close()
    found = mergepub("verify")
    assert (found.status, found.out) == (3, b"")
    assert f"mergepub: {DOC}: " in found.err
    assert "the column name of branches holds a value of the type blob, not text" in found.err
    assert found.err.splitlines()[-1].startswith("hint: ")
    for call in (("publish", DOC, "--expected-version", "2"), ("append", DOC), ("fetch", DOC), ("log", DOC)):
        result = mergepub(*call, stdin=b"x\n")
        assert result.status in {0, 3}
        assert "internal error" not in result.err
        assert "Traceback" not in result.err
