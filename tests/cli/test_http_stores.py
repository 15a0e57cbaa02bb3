"""The command line on stores behind HTTP: whatever a server answers, the status is right and the file untouched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.stores import http_wire
from mergepub.stores.wrappers import RetryPolicy
from tests.stores.scripted_server import (
    HANG,
    HTML,
    NO_CLEAR_ANSWER,
    RESET,
    Committing,
    ScriptedServer,
    document_reply,
    problem,
    reply,
)

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

DOC = "/docs/guide.md"
SECRET = "mp_c0ffee-do-not-tell"
FILE = Path("guide.md")
TEXT = b"our edit\r\nwithout a final newline"

Server = Callable[..., str]


@pytest.fixture
def server() -> Iterator[Server]:
    started: list[ScriptedServer] = []

    def start(*script: object) -> str:
        started.append(ScriptedServer(list(script)))
        return started[-1].url

    yield start
    for each in started:
        each.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    timeouts = http_wire.Timeouts(connect=2, read=0.2)
    monkeypatch.setattr("mergepub.stores.http.RetryPolicy", RetryPolicy.instant)
    monkeypatch.setattr("mergepub.stores.http.Timeouts", lambda: timeouts)
    monkeypatch.setenv("MERGEPUB_TOKEN", SECRET)
    FILE.write_bytes(TEXT)


def publish(mergepub: Runner, store: str, *options: str) -> object:
    result = mergepub("publish", DOC, str(FILE), "--store", store, *options)
    assert FILE.read_bytes() == TEXT
    assert sorted(each.name for each in Path().iterdir()) == [FILE.name], "nothing is left behind"
    assert SECRET not in result.err
    assert "Traceback" not in result.err
    return result


@pytest.mark.parametrize("policy", ["fail", "merge"])
@pytest.mark.parametrize("answer", NO_CLEAR_ANSWER.values(), ids=NO_CLEAR_ANSWER.keys())
def test_a_publish_without_a_clear_answer_is_exit_4(
    mergepub: Runner, server: Server, answer: object, policy: str
) -> None:
    result = publish(mergepub, server(answer), "--expected-version", "4", "--on-conflict", policy)
    assert (result.status, result.out) == (4, b""), result.err
    assert result.err.startswith("mergepub: ")


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (reply(403, HTML, kind="text/html"), 3, "403"),
        (reply(401), 3, "MERGEPUB_TOKEN"),
        (problem(413, limit=10), 2, "10 bytes"),
        (problem(404), 4, "status 404 it is"),
        (reply(302, Location="http://elsewhere.invalid/x"), 4, "elsewhere.invalid"),
        (reply(502, HTML, kind="text/html"), 4, "Bad <b>Gateway</b>"),
    ],
)
def test_a_refusal_has_its_status_and_says_why(
    mergepub: Runner, server: Server, answer: bytes, status: int, said: str
) -> None:
    result = publish(mergepub, server(answer), "--expected-version", "4")
    assert (result.status, result.out) == (status, b"")
    assert said in result.err


@pytest.mark.parametrize("lost", [RESET, HANG, reply(200), reply(502, HTML), b""])
def test_a_publish_whose_answer_was_lost_is_repeated_and_published_once(
    mergepub: Runner, server: Server, lost: object
) -> None:
    service = Committing(DOC, lost)
    result = publish(mergepub, server(service), "--expected-version", "0")
    assert (result.status, result.out) == (0, b"status: ok\nversion: 1\nreplayed: true\n")
    assert [row.version for row in service.store.versions(DOC)] == [1]
    assert service.store.fetch(DOC).body == TEXT


@pytest.mark.parametrize("broken", [reply(500), reply(200, HTML), document_reply(b"x", 7, Repr_Digest="")])
def test_a_merge_that_cannot_read_base_or_head_publishes_nothing(
    mergepub: Runner, server: Server, broken: bytes
) -> None:
    conflict = problem(412, **{"your-version": 4, "current-version": 7})
    for script in ([conflict, broken], [conflict, document_reply(b"base\n", 4), broken]):
        result = publish(mergepub, server(*script), "--expected-version", "4", "--on-conflict", "merge")
        assert (result.status, result.out) == (4, b"")


def test_a_fetch_that_is_cut_short_replaces_no_file(mergepub: Runner, server: Server) -> None:
    cut = document_reply(b"whole\n").removesuffix(b"e\n")
    result = mergepub("fetch", DOC, "-o", str(FILE), "--store", server(cut))
    assert (result.status, result.out) == (4, b"")
    assert FILE.read_bytes() == TEXT


def test_a_url_with_a_password_is_refused_without_repeating_it(mergepub: Runner) -> None:
    result = mergepub("fetch", DOC, "--store", f"http://bot:{SECRET}@127.0.0.1:1")
    assert result.status == 2
    assert SECRET not in result.err + result.out.decode()
