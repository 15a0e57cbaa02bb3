"""``resolve`` with real editors on a real terminal, with tools, with editors that fail or are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from tests.cli.conftest import SCRIPT

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"
FIRST = b"one\ntwo\nthree\nfour\nfive\n"
MARKED = b"<<<<<<< ours\neins\n=======\nONE\n>>>>>>> theirs\ntwo\nTHREE\nfour\nFIVE\n"
TIMEOUT = 30


@pytest.fixture
def conflicted(mergepub: Runner, scratch: Path) -> Path:
    """``guide.md`` in conflict with version 2 on its first line."""
    mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST)
    mergepub("fetch", GUIDE, "-o", "guide.md")
    Path("guide.md").write_bytes(b"eins\ntwo\nthree\nfour\nFIVE\n")
    mergepub("publish", GUIDE, "--expected-version", "1", stdin=b"ONE\ntwo\nTHREE\nfour\nfive\n")
    assert mergepub("pull", "guide.md").status == 3
    assert Path("guide.md").read_bytes() == MARKED
    return Path("guide.md")


def editor(name: str, code: str) -> str:
    """A program that gets the file's name; ``code`` sees ``file`` and ``body``."""
    script = Path(name)
    lines = [
        f"#!{sys.executable}",
        "import os, pathlib, signal, subprocess, sys, time",
        "file = pathlib.Path(sys.argv[1])",
        "body = file.read_bytes()",
        code,
    ]
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o755)
    return str(script.absolute())


MEND = (
    "file.write_bytes(b''.join(l for l in body.splitlines(True) if l[:7] not in (b'<<<<<<<', b'=======', b'>>>>>>>')))"
)
MENDED = b"eins\nONE\ntwo\nTHREE\nfour\nFIVE\n"


def on_terminal(*arguments: str, **variables: str) -> pexpect.spawn:
    environment = {**os.environ, "TERM": "xterm", **variables}
    return pexpect.spawn(str(SCRIPT), list(arguments), env=environment, timeout=TIMEOUT, dimensions=(24, 100))


def ended(child: pexpect.spawn) -> tuple[int, bytes]:
    shown = child.read()
    child.close()
    return child.exitstatus, shown


def head(mergepub: Runner) -> bytes:
    return mergepub("fetch", GUIDE, "--body-only").out


def left_over() -> list[str]:
    return sorted(file.name for file in Path().iterdir() if file.name.startswith(("guide.", ".mergepub-")))


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed; scripted editors take its place below")
def test_vim_on_a_terminal(conflicted: Path, mergepub: Runner):
    # Without F vim stops at a file name that is wider than the screen.
    child = on_terminal("resolve", "guide.md", VISUAL="vim -u NONE -i NONE -n --cmd 'set shortmess+=F'")
    child.expect("<<<<<<< ours")
    child.send(":g/^[<=>]\\{7}/d\r")
    child.send(":wq\r")
    status, shown = ended(child)
    assert (status, b"version" in shown) == (0, True)
    assert conflicted.read_bytes() == head(mergepub) == MENDED
    assert left_over() == ["guide.md"]


def test_visual_comes_before_editor_and_may_hold_arguments(conflicted: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv(
        "VISUAL", f"{editor('mend', 'file = pathlib.Path(sys.argv[-1]); body = file.read_bytes(); ' + MEND)} -f"
    )
    Path("-f").write_bytes(b"")
    assert mergepub("resolve", "guide.md", "-m", "Mended").out == b"status: ok\nversion: 3\n"
    assert head(mergepub) == MENDED


def test_an_editor_gets_a_copy_below_the_folder_of_the_file_hidden_and_with_its_suffix(
    conflicted: Path, mergepub: Runner, monkeypatch
):
    look = f"folder = file.parent; seen = (str(folder.parent), folder.name[:10], file.suffix, body == {MARKED!r}); "
    saved = "pathlib.Path('seen').write_text(str(seen)); file.with_name(file.name + '~').write_bytes(body); "
    monkeypatch.setenv("EDITOR", editor("look", look + saved + MEND))
    assert mergepub("resolve", "guide.md").status == 0
    assert Path("seen").read_text() == str((str(Path.cwd()), ".mergepub-", ".md", True))
    assert left_over() == ["guide.md"], "an editor's backup of the copy goes with it"


@pytest.mark.parametrize(
    "code", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGTERM)"]
)
def test_an_editor_that_fails_or_is_killed_publishes_nothing(code, conflicted: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("EDITOR", editor("fail", code))
    result = mergepub("resolve", "guide.md")
    assert (result.status, result.out) == (3, b"")
    assert "nothing was published" in result.err
    assert "open it again: mergepub resolve guide.md" in result.err
    assert conflicted.read_bytes() == MARKED
    assert mergepub("versions", GUIDE).out.count(b"\n") == 2


def test_what_a_failing_editor_had_written_is_kept(conflicted: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("EDITOR", editor("fail", "file.write_bytes(b'half\\n' + body); sys.exit(1)"))
    result = mergepub("resolve", "guide.md")
    place = result.err.rpartition("is kept in ")[2].partition(";")[0]
    assert Path(place).read_bytes() == b"half\n" + MARKED
    assert conflicted.read_bytes() == MARKED


def test_a_block_that_was_left_is_refused_with_its_line_and_no_work_is_lost(
    conflicted: Path, mergepub: Runner, monkeypatch
):
    monkeypatch.setenv("EDITOR", editor("part", "file.write_bytes(b'new\\n' + body)"))
    result = mergepub("resolve", "guide.md")
    assert result.status == 3
    assert "line 2 of guide.md still belongs to a conflict block" in result.err
    assert conflicted.read_bytes() == b"new\n" + MARKED
    assert mergepub("status", "guide.md").out.startswith(b"in conflict at line 2")
    monkeypatch.setenv("EDITOR", editor("mend", MEND))
    assert mergepub("resolve", "guide.md").status == 0
    assert head(mergepub) == b"new\n" + MENDED


def test_leaving_the_editor_without_saving_is_no_resolution(conflicted: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("EDITOR", "true")
    result = mergepub("resolve", "guide.md")
    assert (result.status, "line 1 of guide.md" in result.err) == (3, True)
    assert conflicted.read_bytes() == MARKED


@pytest.mark.parametrize(
    ("value", "words"), [("", "neither VISUAL nor EDITOR"), ("no-such-editor --x", "cannot be started")]
)
def test_no_editor_is_said(value, words, conflicted: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("EDITOR", value)
    monkeypatch.delenv("VISUAL", raising=False)
    result = mergepub("resolve", "guide.md")
    assert (result.status, words in result.err) == (2, True)
    assert conflicted.read_bytes() == MARKED


def test_ctrl_c_belongs_to_the_editor(conflicted: Path, mergepub: Runner):
    waits = (
        "signal.signal(signal.SIGINT, lambda *_: ("
        + MEND
        + ", sys.exit(0))); print('ready', flush=True); time.sleep(30)"
    )
    child = on_terminal("resolve", "guide.md", EDITOR=editor("waits", waits), VISUAL="")
    child.expect("ready")
    child.sendintr()
    status, _ = ended(child)
    assert status == 0
    assert head(mergepub) == MENDED


def test_an_editor_that_ctrl_c_ends_publishes_nothing(conflicted: Path, mergepub: Runner):
    child = on_terminal(
        "resolve", "guide.md", EDITOR=editor("waits", "print('ready', flush=True); time.sleep(30)"), VISUAL=""
    )
    child.expect("ready")
    child.sendintr()
    status, _ = ended(child)
    assert status == 3
    assert conflicted.read_bytes() == MARKED


def test_a_file_saved_while_the_editor_is_open_is_kept_and_so_is_the_mended_text(
    conflicted: Path, mergepub: Runner, monkeypatch
):
    monkeypatch.setenv("EDITOR", editor("slow", f"pathlib.Path('guide.md').write_bytes(b'other\\n' + body); {MEND}"))
    result = mergepub("resolve", "guide.md")
    assert (result.status, "was changed while it was being mended" in result.err) == (3, True)
    assert conflicted.read_bytes() == b"other\n" + MARKED
    place = result.err.partition("is kept in ")[2].split("\n")[0]
    assert Path(place).read_bytes() == MENDED


def test_the_head_moves_on_while_the_editor_is_open(conflicted: Path, mergepub: Runner, monkeypatch):
    """First it merges; then it overlaps, and the editor opens again with the newer version."""
    newer = b"ONE\ntwo\nTHREE\nfour\nfuenf\n"
    call = [str(SCRIPT), "publish", GUIDE, "--expected-version", "2"]
    publish = (
        "seen = pathlib.Path('seen'); n = len(seen.read_bytes()) if seen.exists() else 0; "
        "seen.write_bytes(b'x' * (n + 1)); "
        f"n or subprocess.run({call}, stdout=subprocess.DEVNULL, input={newer!r}, check=True); "
    )
    monkeypatch.setenv("EDITOR", editor("mend", publish + MEND))
    result = mergepub("resolve", "guide.md")
    assert (result.status, "version 3 was published meanwhile, and overlaps again" in result.err) == (0, True)
    assert Path("seen").read_bytes() == b"xx"
    assert head(mergepub) == conflicted.read_bytes() == b"eins\nONE\ntwo\nTHREE\nfour\nFIVE\nfuenf\n"


def test_the_lock_is_not_held_while_the_editor_is_open(conflicted: Path, mergepub: Runner, monkeypatch):
    call = [str(SCRIPT), "fetch", GUIDE, "-o", "second.md"]
    other = f"subprocess.run({call}, stdout=subprocess.DEVNULL, check=True); "
    monkeypatch.setenv("EDITOR", editor("mend", other + MEND))
    assert mergepub("resolve", "guide.md").status == 0
    assert Path("second.md").read_bytes().startswith(b"ONE")


def test_a_parked_document_gets_its_markers_in_the_editor(mergepub: Runner, scratch: Path, monkeypatch):
    mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST)
    mergepub("fetch", GUIDE, "-o", "guide.md")
    mergepub("publish", GUIDE, "--expected-version", "1", stdin=FIRST.replace(b"one", b"ONE"))
    monkeypatch.setenv("EDITOR", editor("mend", MEND))
    assert mergepub("resolve", "guide.md").err == "mergepub: guide.md merged without overlap: nothing to resolve\n"
    mergepub("fetch", f"{GUIDE}/v1", "-o", "guide.md")
    Path("guide.md").write_bytes(FIRST.replace(b"one", b"eins"))
    assert mergepub("push", "guide.md").status == 3
    assert mergepub("resolve", "guide.md").status == 0
    assert head(mergepub) == b"eins\nONE\ntwo\nthree\nfour\nfive\n"


def test_an_old_editor_over_a_file_in_conflict_brings_the_markers_back(conflicted: Path, mergepub: Runner, monkeypatch):
    """Its text has no markers and nothing of theirs: it is merged with theirs anew, not published."""
    conflicted.write_bytes(b"eins\ntwo\nthree\nfour\nFIVE!\n")
    monkeypatch.setenv("EDITOR", editor("mend", MEND))
    assert mergepub("resolve", "guide.md").status == 0
    assert head(mergepub) == b"eins\nONE\ntwo\nTHREE\nfour\nFIVE!\n"


# ── tools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_git_mergetool_by_its_name(conflicted: Path, mergepub: Runner, monkeypatch):
    tool = 'cat "$BASE" "$LOCAL" "$REMOTE" > seen; cp "$MERGED" marked; printf "tool\\n" > "$MERGED"'
    Path("config").write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(Path("config").absolute()))
    subprocess.run(["git", "config", "--global", "mergetool.mine.cmd", tool], check=True)
    result = mergepub("resolve", "guide.md", "--tool", "other")
    assert (result.status, "mergetool.other.cmd" in result.err) == (2, True)
    assert mergepub("resolve", "guide.md", "--tool", "mine").status == 0
    ours, theirs = b"eins\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nTHREE\nfour\nfive\n"
    assert Path("seen").read_bytes() == FIRST + ours + theirs
    assert Path("marked").read_bytes() == MARKED
    assert head(mergepub) == b"tool\n"
    assert left_over() == ["guide.md"]


def test_a_command_with_merged_in_it_is_a_tool(conflicted: Path, mergepub: Runner):
    result = mergepub("resolve", "guide.md", "--tool", 'cat "$LOCAL" "$REMOTE" > "$MERGED"; exit 3')
    assert (result.status, "the tool ended with status 3" in result.err) == (3, True)
    assert mergepub("resolve", "guide.md", "--tool", 'cat "$LOCAL" "$REMOTE" > "$MERGED"').status == 0
    assert head(mergepub) == b"eins\ntwo\nthree\nfour\nFIVE\nONE\ntwo\nTHREE\nfour\nfive\n"


def test_a_killed_resolve_leaves_the_conflict_as_it_is(conflicted: Path, mergepub: Runner, monkeypatch):
    waits = editor("waits", "pathlib.Path('ready').touch(); time.sleep(30)")
    child = subprocess.Popen([SCRIPT, "resolve", "guide.md"], env={**os.environ, "EDITOR": waits, "VISUAL": ""})
    give_up = time.monotonic() + TIMEOUT
    while not Path("ready").exists():
        assert time.monotonic() < give_up
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert conflicted.read_bytes() == MARKED
    assert mergepub("resolve", "guide.md", "--union").status == 0
    assert head(mergepub) == b"ONE\neins\ntwo\nTHREE\nfour\nFIVE\n"


@pytest.mark.parametrize(
    ("left", "line"),
    [
        (b"eins\n=======\nONE\n", 2),
        (b"eins\n||||||| base\nONE\n", 2),
        (b"<<<<<<< ours\neins\n", 1),
        (b"ONE\n>>>>>>> theirs\r\n", 2),
    ],
)
def test_a_single_marker_that_was_forgotten_is_refused_with_its_line(left, line, conflicted: Path, mergepub: Runner):
    conflicted.write_bytes(left)
    refused = mergepub("resolve", "guide.md", "--mark-resolved")
    assert (refused.status, f"line {line} of guide.md" in refused.err) == (3, True)
    assert mergepub("versions", GUIDE).out.count(b"\n") == 2


def test_a_heading_that_looks_like_a_marker_can_be_meant(conflicted: Path, mergepub: Runner):
    conflicted.write_bytes(b"Numbers\n=======\neins\nONE\n")
    refused = mergepub("resolve", "guide.md", "--mark-resolved")
    assert (refused.status, "--allow-markers" in refused.err) == (3, True)
    assert mergepub("resolve", "guide.md", "--mark-resolved", "--allow-markers").status == 0
    assert head(mergepub) == b"Numbers\n=======\neins\nONE\n"


@pytest.mark.parametrize("code", ["file.write_bytes(b'')", "file.write_bytes(b' \\n')"])
def test_an_editor_that_leaves_nothing_publishes_nothing(code, conflicted: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("EDITOR", editor("empties", code))
    refused = mergepub("resolve", "guide.md")
    assert (refused.status, "left nothing" in refused.err) == (3, True)
    assert conflicted.read_bytes() == MARKED
    conflicted.write_bytes(b"")
    assert mergepub("resolve", "guide.md", "--mark-resolved").status == 0, "an empty FILE is a body like any other"


def test_whatever_an_editor_makes_of_the_copy_nothing_stays_beside(conflicted: Path, mergepub: Runner, monkeypatch):
    monkeypatch.setenv("EDITOR", editor("folder", "file.unlink(); file.mkdir(); (file / 'x').touch()"))
    refused = mergepub("resolve", "guide.md")
    assert (refused.status, "Is a directory" in refused.err) == (3, True)
    assert left_over() == ["guide.md"]


def test_an_editor_with_an_open_quote_and_a_tool_without_a_name_are_bad_input(
    conflicted: Path, mergepub: Runner, monkeypatch
):
    monkeypatch.setenv("EDITOR", "vim 'x")
    assert "open quote" in mergepub("resolve", "guide.md").err
    assert "--tool is empty" in mergepub("resolve", "guide.md", "--tool", "").err
    assert conflicted.read_bytes() == MARKED
