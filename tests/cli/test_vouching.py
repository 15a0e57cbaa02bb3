"""Tokens and hostile projects: a secret goes to the host that its holder named, never to one that files brought."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stores.scripted_server import ScriptedServer, document_reply

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

SECRET = "mp_c0ffee-do-not-tell"
PROJECT = Path("mergepub.toml")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A store that somebody's project names; it answers every GET."""
    started = ScriptedServer([document_reply(b"text\n")])
    yield started
    started.close()


@pytest.fixture(autouse=True)
def user(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own configuration file, which does not exist yet; a token is in the environment and no store."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.delenv("MERGEPUB_STORE")
    monkeypatch.setenv("MERGEPUB_TOKEN", SECRET)
    file = tmp_path / "xdg" / "mergepub" / "mergepub.toml"
    file.parent.mkdir(parents=True)
    return file


def secrets(server: ScriptedServer) -> list[str | None]:
    return [request.headers.get("authorization") for request in server.requests]


def named_by_project(server: ScriptedServer) -> None:
    PROJECT.write_text(f'store = "{server.url}"\n')


def test_a_token_of_the_environment_never_goes_to_a_store_that_the_project_names(
    mergepub: Runner, server: ScriptedServer
) -> None:
    named_by_project(server)
    refused = mergepub("fetch", "/a", "--json")
    assert refused.status == 2
    assert server.requests == []
    assert SECRET not in refused.err
    error = json.loads(refused.out)["error"]
    assert "MERGEPUB_TOKEN is not sent to 127.0.0.1" in error["message"]
    assert "export MERGEPUB_TOKEN_HOST=127.0.0.1" in error["hint"]


@pytest.mark.parametrize("how", ["variable", "flag", "user"])
def test_nor_does_a_token_file_whoever_names_it(
    how: str, mergepub: Runner, server: ScriptedServer, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MERGEPUB_TOKEN")
    named_by_project(server)
    token = Path("token").absolute()
    token.write_text(SECRET)
    flags = ["--token-file", str(token)] if how == "flag" else []
    if how == "variable":
        monkeypatch.setenv("MERGEPUB_TOKEN_FILE", str(token))
    if how == "user":
        user.write_text(f'token-file = "{token}"\n')
    assert mergepub("fetch", "/a", *flags).status == 2
    assert server.requests == []


def test_a_file_that_the_project_names_is_not_sent_to_its_store(
    mergepub: Runner, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MERGEPUB_TOKEN")
    Path("private").write_text(SECRET)
    PROJECT.write_text(f'store = "{server.url}"\ntoken-file = "private"\n')
    assert mergepub("fetch", "/a").status == 2
    assert server.requests == []


@pytest.mark.parametrize("how", ["store flag", "store variable", "user's store", "host flag", "host variable", "port"])
def test_it_does_where_the_user_named_the_store_or_the_host(
    how: str, mergepub: Runner, server: ScriptedServer, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_by_project(server)
    flags: list[str] = []
    if how == "store flag":
        flags = ["--store", server.url]
    elif how == "store variable":
        monkeypatch.setenv("MERGEPUB_STORE", f"{server.url}/elsewhere")
        monkeypatch.setenv("MERGEPUB_FETCH_STORE", server.url)
    elif how == "user's store":
        user.write_text(f'store = "{server.url}"\n')
    elif how == "host flag":
        flags = ["--token-host", "127.0.0.1"]
    elif how == "host variable":
        monkeypatch.setenv("MERGEPUB_TOKEN_HOST", "docs.example.org 127.0.0.1")
    else:
        user.write_text(f'token-host = ["{server.url.removeprefix("http://")}"]\n')
    done = mergepub("fetch", "/a", *flags)
    assert done.status == 0, done.err
    assert secrets(server) == [f"Bearer {SECRET}"]


@pytest.mark.parametrize("host", ["127.0.0.2", "127.0.0.1:1", "0.0.1", "127.0.0.1.example.org"])
def test_another_host_or_port_is_another(
    host: str, mergepub: Runner, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_by_project(server)
    monkeypatch.setenv("MERGEPUB_TOKEN_HOST", host)
    assert mergepub("fetch", "/a").status == 2
    assert server.requests == []


def test_a_record_that_came_along_gets_no_token_either(
    mergepub: Runner, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mergepub("fetch", "/a", "-o", "a.md", "--store", server.url).status == 0
    asked = len(server.requests)
    for command in (["pull", "a.md"], ["push", "a.md"], ["status"], ["diff", "a.md", "--theirs"]):
        refused = mergepub(*command)
        assert refused.status != 0, command
        assert "MERGEPUB_TOKEN is not sent to" in refused.err, command
    assert len(server.requests) == asked
    monkeypatch.setenv("MERGEPUB_STORE", server.url)
    assert mergepub("pull", "a.md").status == 0


def test_netrc_holds_a_secret_for_one_host_and_needs_no_word_but_its_default_is_for_none(
    mergepub: Runner, server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named_by_project(server)
    netrc = tmp_path / "netrc"
    netrc.touch(0o600)
    netrc.write_text("machine 127.0.0.1 login bot password from-netrc\n")
    assert mergepub("fetch", "/a").status == 0
    netrc.write_text("default login bot password from-netrc\n")
    monkeypatch.delenv("MERGEPUB_TOKEN")
    assert mergepub("fetch", "/a").status == 0
    assert secrets(server) == ["Bearer from-netrc", None]


def test_without_a_token_an_open_store_of_a_project_is_used(
    mergepub: Runner, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MERGEPUB_TOKEN")
    named_by_project(server)
    assert mergepub("fetch", "/a").status == 0
    assert secrets(server) == [None]


def test_a_password_of_the_environment_goes_to_no_database_that_the_project_names(
    mergepub: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    PROJECT.write_text('store = "postgresql://db.example.org/docs"\n')
    refused = mergepub("fetch", "/a")
    assert (refused.status, "PGPASSWORD is not sent to db.example.org" in refused.err) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        'token-host = ["evil.example"]\n',
        '[fetch]\ntoken-host = ["evil.example"]\n',
        "[serve]\nopen-to-everyone = true\n",
        '[resolve]\ntool = "evil $MERGED"\n',
    ],
)
def test_a_project_cannot_say_whom_its_user_trusts_nor_bring_commands(text: str, mergepub: Runner, user: Path) -> None:
    PROJECT.write_text(text)
    refused = mergepub("config")
    assert (refused.status, "cannot come from a project's file" in refused.err) == (2, True)
    PROJECT.unlink()
    user.write_text(text)
    assert mergepub("config").status == 0
