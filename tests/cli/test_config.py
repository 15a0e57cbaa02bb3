"""Configuration files, variables and flags together, and the verb ``config`` that shows which of them counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import present

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

PROJECT = Path("mergepub.toml")


@pytest.fixture(autouse=True)
def user(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own configuration file, which does not exist yet; no variable names a store."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("MERGEPUB_STORE")
    file = tmp_path / "xdg" / "mergepub" / "mergepub.toml"
    file.parent.mkdir(parents=True)
    return file


def effective(mergepub: Runner, *arguments: str) -> dict[str, tuple[Any, str]]:
    answer = json.loads(mergepub(*arguments, "config", "--json").out)
    return {row["name"]: (row["value"], row["source"]) for row in answer["result"]["settings"]}


def test_a_flag_counts_before_a_variable_before_the_project_before_the_user(
    mergepub: Runner, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used(*flags: str) -> str:
        return mergepub("fetch", "/a", *flags).err.partition(".sqlite")[0].rpartition("/")[2]

    user.write_text('store = "/nowhere/user.sqlite"\n')
    assert used() == "user"
    PROJECT.write_text('store = "project.sqlite"\n')
    assert used() == "project"
    monkeypatch.setenv("MERGEPUB_STORE", "variable.sqlite")
    assert used().endswith("variable")
    assert used("--store", "flag.sqlite").endswith("flag")


def test_a_project_is_found_from_below_and_its_relative_names_start_in_it(
    mergepub: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    PROJECT.write_text('store = "docs.sqlite"\n')
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    assert mergepub("publish", "/a", "--expected-version", "0", stdin=b"x\n").status == 0
    assert present() == []
    assert Path("../../docs.sqlite").exists()


def test_a_name_that_starts_at_home_does(mergepub: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    PROJECT.write_text('store = "~/docs.sqlite"\ntoken-file = "~/token"\n')
    found = effective(mergepub)
    assert found["store"][0] == str(tmp_path / "me" / "docs.sqlite")
    assert found["token-file"][0] == str(tmp_path / "me" / "token")


def test_options_of_a_table_reach_their_command_alone(guide_in: Runner) -> None:
    PROJECT.write_text(
        'store = "s.sqlite"\n[publish]\nfavour-path = ["*.md=union"]\non-conflict = "merge"\nretries = 2\n'
    )
    result = guide_in("publish", "/docs/guide.md", "--expected-version", "1", stdin=b"eins\ntwo\n")
    assert (result.status, b"favour: union" in result.out) == (0, True)
    assert (
        guide_in("publish", "/docs/guide.md", "--expected-version", "1", "--on-conflict", "fail", stdin=b"z").status
        == 3
    )


@pytest.fixture
def guide_in(mergepub: Runner) -> Runner:
    for expected, body in (("0", b"one\ntwo\n"), ("1", b"ONE\ntwo\n")):
        flags = ("--expected-version", expected, "--store", "s.sqlite")
        assert mergepub("publish", "/docs/guide.md", *flags, stdin=body).status == 0
    return mergepub


def test_a_flag_of_a_command_can_be_configured_and_turned_off_by_a_variable(
    mergepub: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    PROJECT.write_text("json = true\n")
    assert mergepub("list", "/none", "--store", "s.sqlite").out.startswith(b'{"schema_version"')
    monkeypatch.setenv("MERGEPUB_LIST_JSON", "0")
    assert not mergepub("list", "/none", "--store", "s.sqlite").out.startswith(b"{")


def test_merge_takes_defaults_from_a_file_as_from_flags(mergepub: Runner) -> None:
    for name, body in (("ours", b"a\n"), ("base", b"b\n"), ("theirs", b"c\n")):
        Path(name).write_bytes(body)
    call = ("merge", "-p", "ours", "base", "theirs")
    assert b"|||||||" not in mergepub(*call).out
    PROJECT.write_text('[merge]\nstyle = "diff3"\n')
    assert b"||||||| base\nb\n" in mergepub(*call).out
    PROJECT.write_text("[merge]\nstile = 1\n")
    assert mergepub(*call).status == 255


def test_a_token_file_of_the_configuration_is_below_every_token_of_the_environment(
    process: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    PROJECT.write_text('store = "http://127.0.0.1:9"\ntoken-file = "secrets/none"\n')
    result = process("fetch", "/a")
    assert (result.status, str(tmp_path / "secrets" / "none") in result.err) == (2, True)
    monkeypatch.setenv("MERGEPUB_TOKEN", "secret")
    assert "secrets/none" not in process("fetch", "/a").err
    monkeypatch.delenv("MERGEPUB_TOKEN")
    monkeypatch.setenv("MERGEPUB_TOKEN_FILE", "other")
    assert "token file other" in process("fetch", "/a").err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("retrys = 3", "retrys is no option"),
        ("[publish]\nretrys = 3", "[publish] retrys is no option of mergepub publish"),
        ("[publich]\nretries = 3", "[publich] is no command's table"),
        ('[publish]\nretries = "3"', "[publish] retries is '3', but it takes a whole number"),
        ("[publish]\nretries = 0", "retries = 0: 0 is not between 1 and"),
        ('style = "pretty"', "style = 'pretty': 'pretty' is not one of"),
        ("[publish]\nours = true", "ours cannot be configured"),
        ('token = "mp_c0ffee"', "token holds a secret in clear"),
        ("retries", "is not TOML"),
        pytest.param("a = " + "[" * 100_000, "is not TOML", id="nested too deeply"),
        ("\udc80", "is not TOML"),
    ],
)
def test_what_a_file_cannot_say_is_bad_input_naming_file_and_key(mergepub: Runner, text: str, said: str) -> None:
    PROJECT.write_bytes(text.encode("utf-8", "surrogateescape"))
    for call in (("publish", "/a"), ("config",)):
        result = mergepub(*call, stdin=b"x")
        assert (result.status, result.out) == (2, b"")
        assert f"{PROJECT.resolve()}" in result.err
        assert said in result.err
        assert "mp_c0ffee" not in result.err


def test_a_mistake_about_another_command_stops_that_command_and_config_alone(mergepub: Runner) -> None:
    PROJECT.write_text("[publish]\nretrys = 3\n")
    assert mergepub("list", "--store", "s.sqlite").status == 4  # nothing is published yet
    assert mergepub("config").status == 2


def test_help_and_version_need_no_sound_configuration(mergepub: Runner) -> None:
    PROJECT.write_text("=")
    assert mergepub("publish", "--help").status == 0
    assert mergepub("--version").status == 0
    assert mergepub("--help").status == 0


def test_config_shows_each_value_with_its_source(
    mergepub: Runner, user: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    user.write_text('author = "ann@home"\n[token.create]\nexpires = "90d"\n')
    PROJECT.write_text('store = "docs.sqlite"\n[publish]\nretries = 5\nfavour-path = ["*.md=union"]\n')
    monkeypatch.setenv("MERGEPUB_AUTHOR", "bo@desk")
    monkeypatch.delenv("MERGEPUB_AUTHOR")
    monkeypatch.setenv("MERGEPUB_LIST_LIMIT", "7")
    found = effective(mergepub)
    project = str(PROJECT.resolve())
    assert found["store"] == (str(tmp_path / "docs.sqlite"), project)
    assert found["publish.retries"] == (5, project)
    assert found["publish.favour-path"] == (["*.md=union"], project)
    assert found["publish.author"] == ("ann@home", str(user))
    assert found["token.create.expires"] == ("90d", str(user))
    assert found["list.limit"] == ("7", "MERGEPUB_LIST_LIMIT")
    assert found["publish.on-conflict"] == ("fail", "default")
    assert "publish.ours" not in found
    assert effective(mergepub, "--store", "flag.sqlite")["store"] == ("flag.sqlite", "--store")


def test_config_names_the_general_variable_where_that_one_counts(mergepub: Runner, monkeypatch) -> None:
    monkeypatch.setenv("MERGEPUB_AUTHOR", "bo@desk")
    monkeypatch.setenv("MERGEPUB_STORE", "postgresql://me:mp_c0ffee@db/docs")
    found = effective(mergepub)
    assert found["publish.author"] == ("bo@desk", "MERGEPUB_AUTHOR")
    assert found["store"] == ("postgresql://me:***@db/docs", "MERGEPUB_STORE")


def test_config_masks_secrets(mergepub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPUB_TOKEN", "mp_c0ffee")
    for form in ([], ["--json"], ["--changed"]):
        result = mergepub("config", *form)
        assert b"mp_c0ffee" not in result.out
        assert b"***" in result.out


def test_config_of_one_command_with_what_was_changed_alone(mergepub: Runner, monkeypatch) -> None:
    PROJECT.write_text("[publish]\nretries = 5\n[list]\nlimit = 3\n")
    monkeypatch.delenv("MERGEPUB_AUTHOR")
    lines = mergepub("config", "publish", "--changed").out.decode().splitlines()
    assert [line.split() for line in lines] == [["publish.retries", "5", str(PROJECT.resolve())]]
    assert b"list.limit" in mergepub("config").out


@pytest.mark.parametrize(
    ("asked", "settings"),
    [
        (["branch"], {"branch.show.diff", "branch.take.author", "branch.abandon.author"}),
        (["branch", "show"], {"branch.show.diff"}),
        (["publish.retries"], {"publish.retries"}),
        (["publish", "retries"], {"publish.retries"}),
        (["retries"], {"publish.retries", "push.retries", "revert.retries"}),
        (["publish.store"], set()),
    ],
)
def test_config_shows_a_command_or_a_setting(asked, settings, mergepub: Runner) -> None:
    lines = mergepub("config", *asked).out.decode().splitlines()
    found = {line.split()[0] for line in lines} - {"store"}
    ends = {"retries", "author", "diff"}
    assert {name for name in found if name.rpartition(".")[2] in ends} == settings


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (["publsh"], "did you mean mergepub config publish?"),
        (["branch", "shw"], "did you mean mergepub config branch.show?"),
        (["publish.retris"], "did you mean mergepub config publish.retries?"),
        (["on_conflict"], "did you mean mergepub config on-conflict?"),
        (["xyzzy"], "mergepub config shows them all"),
        (["publish.ours"], "did you mean"),  # of one call, never a setting
    ],
)
def test_config_of_what_is_none_names_the_nearest(asked, hint, mergepub: Runner) -> None:
    result = mergepub("config", *asked)
    assert (result.status, result.out) == (2, b"")
    first, second = result.err.splitlines()
    assert first == f"mergepub: there is no command or setting {'.'.join(asked)!r}"
    assert second.startswith(f"hint: {hint}")


def test_every_option_has_the_variable_of_its_long_name(mergepub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wrong in {"MERGEPUB_PUSH_FORMAT": "xml", "MERGEPUB_PUSH_JOBS": "x", "MERGEPUB_PUSH_RETRIES": "0"}.items():
        monkeypatch.setenv(name, wrong)
        refused = mergepub("push", "guide.md", "--prefix", "/docs")
        assert (refused.status, "Invalid value" in refused.err) == (2, True), name
        monkeypatch.delenv(name)
