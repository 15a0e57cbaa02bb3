"""What a person at a terminal sees, and that none of it ever gets into a pipe."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from tests.cli.conftest import SCRIPT, present

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"


def on_terminal(*arguments: str, **variables: str) -> tuple[int, bytes]:
    """Run a command line on a terminal of its own; its status and everything it showed."""
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **variables}
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
    child = pexpect.spawn(str(SCRIPT), list(arguments), env=environment, timeout=30, dimensions=(24, 100))
    shown = child.read()
    child.close()
    return child.exitstatus, shown.replace(b"\r\n", b"\n")


def test_a_terminal_gets_the_same_lines_in_colour(guide: bytes, process: Runner):
    plain = process("fetch", GUIDE).out
    status, shown = on_terminal("fetch", GUIDE)
    assert status == 0
    assert b"\x1b[32mok\x1b[0m" in shown
    assert re.sub(rb"\x1b\[[0-9;]*m", b"", shown) == plain
    assert shown.endswith(guide)


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_nobody_gets_colours_who_asked_for_none(variables, guide: bytes, process: Runner):
    for call in (["fetch", GUIDE], ["versions", GUIDE], ["list"], ["--help"]):
        assert b"\x1b" not in on_terminal(*call, **variables)[1]
    assert on_terminal("fetch", GUIDE, **variables)[1] == process("fetch", GUIDE).out


def test_a_pipe_never_gets_an_escape_code(guide: bytes, process: Runner, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    for call in (["fetch", GUIDE], ["versions", GUIDE], ["list"], ["--help"], ["fetch", "/no"], ["fetch", "no"]):
        result = process(*call)
        assert b"\x1b" not in result.out + result.err.encode()


def test_a_terminal_gets_a_table_with_a_heading_and_no_markup_of_the_writers(guide: bytes, process: Runner):
    process("publish", GUIDE, "--expected-version", "2", "-m", "[red]see[/red] :smile:", stdin=b"x\n")
    status, shown = on_terminal("versions", GUIDE)
    assert status == 0
    assert b"version" in shown
    assert b"[red]see[/red] :smile:" in shown
    assert GUIDE.encode() in on_terminal("list")[1]


def test_waiting_for_a_body_on_a_terminal_is_said(scratch: Path):
    child = pexpect.spawn(str(SCRIPT), ["publish", "/a", "--expected-version", "0"], timeout=30)
    child.expect("reading the body from standard input; end it with Ctrl-D")
    child.sendline("typed")
    child.sendeof()
    child.expect("version: ?.*1")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert present() != []


def test_ctrl_c_on_a_terminal_is_130_and_leaves_nothing(scratch: Path):
    child = pexpect.spawn(str(SCRIPT), ["publish", "/a", "--expected-version", "0"], timeout=30)
    child.expect("reading the body")
    child.sendline("typed")
    child.sendintr()
    child.expect("mergepub: interrupted")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert present() == []


def test_file_names_cannot_steer_the_terminal(process: Runner):
    result = process("publish", "/a", "\x1b[31mred\nline", "--expected-version", "0")
    assert result.status == 2
    assert "\\x1b[31mred\\nline" in result.err
    assert "\x1b" not in result.err
