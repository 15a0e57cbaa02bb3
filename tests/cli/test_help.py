"""Every command's help, and the examples in it, which are run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from mergepub.cli.app import SECTIONS, VERBS
from mergepub.cli.app import mergepub as group
from tests.cli.conftest import SCRIPT

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

# They need a port, a daemon, a database server, or the name of a branch.
ELSEWHERE = re.compile("mergepub serve|mergepub coord|postgresql://|BRANCH|DECISION")
EXAMPLE = re.compile(r"^ +\$ (.+)$", re.MULTILINE)


def help_of(*names: str) -> str:
    done = subprocess.run([SCRIPT, *names, "--help"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def pages_of(verb: str) -> list[str]:
    """The help pages of a verb that have examples: its own, or those of the verbs below it."""
    command = group.get_command(click.Context(group), verb)
    below = command.commands if isinstance(command, click.Group) else None
    return [help_of(verb, name) for name in below] if below else [help_of(verb)]


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_a_help_with_an_example_of_itself(verb):
    for page in pages_of(verb):
        examples = EXAMPLE.findall(page.partition("Examples:")[2])
        assert examples
        assert all(f"mergepub {verb}" in example for example in examples)
    assert EXAMPLE.findall(help_of(verb).partition("Examples:")[2])


def put_in_conflict(name: str, guide: bytes) -> None:
    subprocess.run([SCRIPT, "fetch", "/docs/guide.md", "-o", name], capture_output=True, check=True)
    Path(name).write_bytes(guide.replace(b"five", b"FIVE"))
    subprocess.run([SCRIPT, "publish", "/docs/guide.md", name], capture_output=True, check=True)
    subprocess.run([SCRIPT, "fetch", "/docs/guide.md/v2", "-o", name], capture_output=True, check=True)
    Path(name).write_bytes(guide.replace(b"five", b"5"))
    assert subprocess.run([SCRIPT, "pull", name], capture_output=True, check=False).returncode == 3


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_in_the_help_work(verb, guide: bytes, monkeypatch):
    monkeypatch.setenv("PATH", f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}")
    Path("guide.md").write_bytes(b"one\ntwo\nthree\nfour\nFIVE\n")
    Path("list.txt").write_bytes(b"pear\napple\n")
    Path("log.txt").write_bytes(b"all well\n")
    for name, body in (("ours", b"a\nB\nc\nd\n"), ("base", b"a\nb\nc\nd\n"), ("theirs", b"a\nb\nc\nD\n")):
        Path(f"{name}.md").write_bytes(body)
    Path("new.md").write_bytes(b"new\n")
    for name in ("tracked.md", "other.md"):
        subprocess.run([SCRIPT, "fetch", "/docs/guide.md", "-o", name], capture_output=True, check=True)
    if verb in ("resolve", "show-conflict"):
        put_in_conflict("conflicted.md", guide)
    Path("tracked.md").write_bytes(guide.replace(b"two", b"TWO"))
    for example in EXAMPLE.findall("".join(pages_of(verb))):
        if not ELSEWHERE.search(example):
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", example], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (example, done.stderr)


def test_the_help_lists_every_command_under_its_heading():
    page = help_of()
    for heading, verbs in SECTIONS.items():
        section = page.partition(f"{heading}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  ([\w-]+) ", section, re.MULTILINE) == list(verbs)


def test_no_line_of_a_help_page_is_wider_than_a_terminal_but_for_examples():
    for verb in (None, *VERBS):
        page = help_of(*([verb] if verb else []))
        assert all(len(line) <= 100 for line in page.splitlines() if "$ " not in line)


def test_numbers_and_choices_show_their_defaults():
    page = " ".join(help_of("publish").split())
    for option, default in (("--on-conflict [", "fail"), ("--retries N", "3"), ("--style [", "merge")):
        assert page.partition(option)[2].partition(" --")[0].endswith(f"[default: {default}]")
    assert " ".join(help_of("push").split()).partition("--on-conflict [")[2].partition(" --")[0].endswith("merge]")
    assert "default" not in help_of("list")


@pytest.mark.parametrize("group", ["branch", "token", "store", "coord"])
def test_a_group_lists_its_commands_with_whole_sentences(group):
    assert "..." not in help_of(group).partition("Commands:")[2].partition("Examples:")[0]


def test_every_option_explains_itself():
    context = click.Context(group)
    for verb in VERBS:
        command = group.get_command(context, verb)
        commands = command.commands.values() if isinstance(command, click.Group) else [command]
        for one in commands:
            for option in one.params:
                assert not isinstance(option, click.Option) or option.help or option.hidden, f"{verb} {option.name}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(shell, process: Runner):
    result = process("completion", shell)
    assert result.status == 0
    assert b"_MERGEPUB_COMPLETE" in result.out


def test_completion_in_bash_completes_commands_options_and_choices(scratch: Path):
    def complete(words: str) -> list[str]:
        environment = {**os.environ, "_MERGEPUB_COMPLETE": "bash_complete", "COMP_WORDS": words}
        environment["COMP_CWORD"] = str(len(words.split(" ")) - 1)
        done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=True)
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert complete("mergepub ver") == ["versions", "verify"]
    assert "--expected-version" in complete("mergepub publish --exp")
    assert complete("mergepub publish --on-conflict ca") == ["candidate"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--store", "other.sqlite", "publish", "/a", "body", "--expected-version", "0"],
        ["publish", "--store", "other.sqlite", "--expected-version", "0", "/a", "body"],
        ["publish", "/a", "--expected-version=0", "body", "--store=other.sqlite"],
        ["publish", "--expected-version", "0", "--store", "other.sqlite", "--", "/a", "body"],
    ],
    ids=" ".join,
)
def test_options_stand_anywhere(arguments, mergepub: Runner):
    Path("body").write_bytes(b"x\n")
    assert mergepub(*arguments).status == 0
    assert Path("other.sqlite").exists()
    assert not Path("store.sqlite").exists()


def test_every_option_can_be_set_in_the_environment(guide: bytes, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("MERGEPUB_PUBLISH_ON_CONFLICT", "merge")
    monkeypatch.setenv("MERGEPUB_PUBLISH_EXPECTED_VERSION", "1")
    monkeypatch.setenv("MERGEPUB_PUBLISH_FAVOUR_PATH", "*.txt=union *.md=union")
    monkeypatch.setenv("MERGEPUB_PUBLISH_AUTHOR", "ann@desk")
    result = mergepub("publish", "/docs/guide.md", stdin=b"eins\ntwo\nthree\nfour\nfive\n")
    assert (result.status, b"favour: union" in result.out) == (0, True)
    assert b"  ann@desk\n" in mergepub("versions", "/docs/guide.md", "--limit", "1").out
    assert mergepub("publish", "/docs/guide.md", "--on-conflict", "fail", stdin=b"x\n").status == 3
    monkeypatch.setenv("MERGEPUB_VERSIONS_JSON", "1")
    assert mergepub("versions", "/none").out.startswith(b'{"schema_version": "1", "ok": false')


def test_the_nearest_store_wins(mergepub: Runner, monkeypatch):
    """A flag before a variable, the verb's own before the general one."""

    def used(*before: str, after: tuple[str, ...] = ()) -> str:
        err = mergepub(*before, "fetch", "/a", *after).err
        return re.search(r"(\w+)\.db", err)[1]

    monkeypatch.setenv("MERGEPUB_STORE", "general.db")
    assert used() == "general"
    monkeypatch.setenv("MERGEPUB_FETCH_STORE", "verb.db")
    assert used() == "verb"
    assert used("--store", "early.db") == "early"
    assert used("--store", "early.db", after=("--store", "late.db")) == "late"
    assert used(after=("--store", "late.db")) == "late"


def test_a_token_file_is_nearer_than_a_token_of_the_environment(process: Runner, monkeypatch):
    monkeypatch.setenv("MERGEPUB_STORE", "http://127.0.0.1:9")
    monkeypatch.setenv("MERGEPUB_TOKEN", "secret")
    for call in (["fetch", "/a", "--token-file", "nowhere"], ["--token-file", "nowhere", "fetch", "/a"]):
        result = process(*call)
        assert (result.status, result.out) == (2, b"")
        assert "nowhere" in result.err


def test_defaults_from_a_table_are_below_variables_and_flags(guide: bytes, monkeypatch):
    """What a configuration file sets by long option name reaches the options through click's default_map."""
    command = group.get_command(click.Context(group), "publish")
    table = {"on_conflict": "merge", "retries": 7, "favour_path": ["*.md=union"]}

    def retries(*flags: str) -> tuple[str, int]:
        context = command.make_context(
            "publish", ["/a", *flags], default_map=table, auto_envvar_prefix="MERGEPUB_PUBLISH"
        )
        return context.params["on_conflict"], context.params["retries"]

    assert retries() == ("merge", 7)
    monkeypatch.setenv("MERGEPUB_PUBLISH_RETRIES", "5")
    assert retries() == ("merge", 5)
    assert retries("--retries", "4") == ("merge", 4)


def test_an_author_is_found_without_any_variable(guide: bytes, mergepub: Runner, monkeypatch):
    for name in ("MERGEPUB_AUTHOR", "LOGNAME", "USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987654)
    assert mergepub("append", "/docs/guide.md", stdin=b"x\n").status == 0
    assert f"uid-987654@{os.uname().nodename}".encode() in mergepub("versions", "/docs/guide.md", "--limit", "1").out


def test_a_defect_is_one_line_and_asks_for_a_report(guide: bytes, mergepub: Runner, monkeypatch):
    from mergepub.cli import opening

    def broken(url: str):
        raise ZeroDivisionError("what nobody foresaw")

    monkeypatch.setattr(opening, "open_store", broken)
    result = mergepub("fetch", "/a")
    assert (result.status, result.out) == (1, b"")
    assert result.err == (
        "mergepub: internal error: ZeroDivisionError: what nobody foresaw\n"
        "hint: this is a defect; run it again with MERGEPUB_DEBUG=1 and report what it prints\n"
    )
    monkeypatch.setenv("MERGEPUB_DEBUG", "1")
    assert "Traceback" in mergepub("fetch", "/a").err
