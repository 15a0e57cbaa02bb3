"""The verb ``mcp`` where there is no tool server to speak of: without the extra, without a client, interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import SCRIPT, present

if TYPE_CHECKING:
    from tests.cli.conftest import Runner


def test_without_the_extra_the_error_names_it(mergepub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name in ("mcp", "mergepub.mcp") or name.startswith("mcp.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = mergepub("mcp")
    assert (result.status, result.out) == (2, b"")
    assert 'pip install "mergepub[mcp]"' in result.err


def test_the_end_of_standard_input_ends_it_and_nothing_is_made(process: Runner) -> None:
    pytest.importorskip("mcp", reason="the tool server is an extra")
    result = process("mcp")
    assert (result.status, result.out) == (0, b"")
    assert present() == []


def test_an_interrupt_ends_it_with_130_and_no_trace() -> None:
    pytest.importorskip("mcp", reason="the tool server is an extra")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([SCRIPT, "mcp"], **pipes) as server:
        assert server.stderr is not None
        assert b"tools for sqlite:///" in server.stderr.readline()
        server.send_signal(signal.SIGINT)
        assert server.stdin is not None
        said = server.stderr.read()
        assert server.wait(30) == 130
    assert said == b"mergepub: interrupted\n"
