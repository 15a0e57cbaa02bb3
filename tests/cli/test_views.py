"""The views on a real terminal: what they show, wide and narrow, with and without colours, and what no body can do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from tests.cli.conftest import SCRIPT

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
EVIL = b"red \x1b[31m bell \x07 title \x1b]0;x\x07 csi \xc2\x9b31m back \x08\x08 \xff bidi \xe2\x80\xae\n"


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "TERM": "xterm-256color", **variables}


def on_terminal(*arguments: str, columns: int = 100, **variables: str) -> str:
    child = pexpect.spawn(
        str(SCRIPT),
        list(arguments),
        env=environment(**variables),
        timeout=60,
        dimensions=(24, columns),
        encoding="utf-8",
    )
    shown = child.read()
    child.close()
    assert child.exitstatus in (0, 3), shown
    return shown.replace("\r\n", "\n")


def bare(shown: str) -> str:
    return ESCAPE.sub("", shown)


def cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


@pytest.fixture
def conflicted(mergepub: Runner) -> Path:
    """page.md: line 3 overlaps with version 2, line 5 was edited here, line 7 there."""
    file = Path("page.md")
    file.write_text("Backups\n\nEvery Sunday we save all of it.\n\nKept for thirty days.\n\n漢字かな alpha\n")
    assert mergepub("push", "page.md", "--prefix", "/").status == 0
    theirs = file.read_text().replace("Sunday", "night").replace("alpha", "beta")
    mergepub("publish", "/page.md", "--expected-version", "1", stdin=theirs.encode())
    file.write_text(file.read_text().replace("Sunday", "Friday").replace("thirty", "ninety"))
    return file


# ── diff ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_diff_sets_off_the_words_that_changed(conflicted: Path):
    shown = on_terminal("diff", "page.md")
    assert "\x1b[31mEvery \x1b[0m\x1b[1;4;31mSunday\x1b[0m\x1b[31m we save" in shown
    assert "\x1b[32mEvery \x1b[0m\x1b[1;4;32mFriday\x1b[0m\x1b[32m we save" in shown
    plain = subprocess.run([SCRIPT, "diff", "page.md"], capture_output=True, check=True, text=True).stdout
    assert bare(shown) == plain.expandtabs(4)


def test_a_diff_in_a_pipe_is_what_patch_takes(conflicted: Path):
    ours = conflicted.read_bytes()
    patch = subprocess.run([SCRIPT, "diff", "page.md"], capture_output=True, check=True).stdout
    subprocess.run(["patch", "-R", "-p1", "-s"], input=patch, check=True)
    assert b"Sunday" in conflicted.read_bytes()
    subprocess.run(["patch", "-p1", "-s"], input=patch, check=True)
    assert conflicted.read_bytes() == ours


def test_the_other_comparisons_are_shown_too(conflicted: Path):
    assert "+Every night we" in bare(on_terminal("diff", "page.md", "--theirs"))
    assert "<<<<<<< ours" in bare(on_terminal("diff", "page.md", "--merged"))


def test_lines_that_share_hardly_a_word_are_shown_whole(mergepub: Runner):
    for version, text in enumerate((b"one two three\n", b"vier\n")):
        mergepub("publish", "/a", "--expected-version", str(version), stdin=text)
    assert "\x1b[31m-\x1b[0m\x1b[31mone two three\x1b[0m" in on_terminal("diff", "/a")


def test_a_missing_newline_is_said(mergepub: Runner):
    for version, text in enumerate((b"one\n", b"one")):
        mergepub("publish", "/a", "--expected-version", str(version), stdin=text)
    assert bare(on_terminal("diff", "/a")).endswith("-one\n+one\n\\ No newline at end of file\n")


# ── conflicts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_conflicts_stand_side_by_side_with_the_base_in_the_middle(conflicted: Path):
    shown = bare(on_terminal("show-conflict", "page.md", columns=120))
    assert "page.md, line 3: conflict 1 of 1" in shown
    assert re.search(r"^yours +base v1 +theirs v2 *$", shown, re.M)
    assert re.search(r"^Every Friday .* Every Sunday .* Every night we save all of it\. *$", shown, re.M)
    assert shown.endswith("next: mergepub resolve page.md\n")


def test_before_a_pull_and_after_it_the_same_conflict_is_shown(conflicted: Path, mergepub: Runner):
    before = on_terminal("show-conflict", "page.md")
    assert mergepub("pull", "page.md").status == 3
    assert on_terminal("show-conflict", "page.md") == before


def test_a_narrow_terminal_gets_them_one_below_the_other(conflicted: Path):
    shown = bare(on_terminal("show-conflict", "page.md", columns=40))
    assert "yours:\n  Every Friday we save all of it.\nbase v1:\n  Every Sunday" in shown


def test_the_width_is_that_of_the_moment(conflicted: Path):
    shell = pexpect.spawn("sh", env=environment(PS1="> "), timeout=60, dimensions=(24, 110), encoding="utf-8")
    shell.expect("> ")
    for columns, expected in ((110, r"yours +\S* *base v1"), (50, "yours:"), (90, r"yours +\S* *base v1")):
        shell.setwinsize(24, columns)
        shell.sendline(f"{SCRIPT} show-conflict page.md")
        shell.expect("next: [^\n]*\n")
        assert re.search(expected, bare(shell.before))
        longest = max(cells(line.rstrip()) for line in bare(shell.before).splitlines() if "show-conflict" not in line)
        assert longest <= columns
        shell.expect("> ")
    shell.sendeof()
    shell.close()


def test_wide_characters_keep_the_columns_aligned(mergepub: Runner):
    file = Path("wide.md")
    file.write_text("漢字 eins zwei\n")
    mergepub("push", "wide.md", "--prefix", "/")
    mergepub("publish", "/wide.md", "--expected-version", "1", stdin="漢字漢字漢 eins zwei\n".encode())
    file.write_text("カナ eins zwei\n")
    lines = bare(on_terminal("show-conflict", "wide.md", columns=90)).splitlines()
    heading = next(line for line in lines if line.startswith("yours"))
    row = next(line for line in lines if line.startswith("カナ"))
    for name, text in (("base v1", "漢字 "), ("theirs v2", "漢字漢字漢 ")):
        assert cells(heading[: heading.index(name)]) == cells(row[: row.index(text)])


def test_a_pipe_gets_blocks_with_the_base_and_json_every_text(conflicted: Path, process: Runner):
    result = process("show-conflict", "page.md")
    assert result.out.decode() == (
        "<<<<<<< ours\nEvery Friday we save all of it.\n||||||| base\nEvery Sunday we save all of it.\n"
        "=======\nEvery night we save all of it.\n>>>>>>> theirs\n"
    )
    answer = json.loads(process("show-conflict", "page.md", "--json").out)["result"]
    assert (answer["marked"], answer["their-version"]) == (False, 2)
    assert answer["conflicts"] == [
        {
            "line": 3,
            "ours": "Every Friday we save all of it.\n",
            "base": "Every Sunday we save all of it.\n",
            "theirs": "Every night we save all of it.\n",
        }
    ]


def test_without_a_conflict_that_is_said(conflicted: Path, mergepub: Runner):
    mergepub("pull", "page.md")
    text = re.sub(r"<{7}.*?>{7} theirs\n", "Mended.\n", conflicted.read_text(), flags=re.DOTALL)
    conflicted.write_text(text)
    result = mergepub("show-conflict", "page.md")
    assert (result.status, result.out) == (0, b"")
    assert "no conflict block is left" in result.err
    assert "--mark-resolved" in result.err
    assert mergepub("resolve", "page.md", "--mark-resolved").status == 0
    assert "in no conflict" in mergepub("show-conflict", "page.md").err
    assert mergepub("show-conflict", "untracked.md").status == 2


def test_resolve_shows_the_conflict_before_the_editor_opens(conflicted: Path, mergepub: Runner):
    mergepub("pull", "page.md")
    shown = bare(on_terminal("resolve", "page.md", EDITOR="echo opened"))
    assert re.search(r"base v1.*Every Sunday.*opened", shown, re.DOTALL)


# ── status ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_status_is_a_table_and_on_a_narrow_terminal_a_list(conflicted: Path):
    shown = on_terminal("status")
    assert re.search(r"^state +file +made from *$", bare(shown), re.M)
    assert "\x1b[1;31medited here, newer there: would conflict" in shown
    assert bare(on_terminal("status", columns=40)) == (
        "page.md\n  edited here, newer there: would conflict\n  /page.md/v1\n"
    )


# ── nothing but text ────────────────────────────────────────────────────────────────────────────────────────────────

VIEWS = (["diff", "page.md"], ["show-conflict", "page.md"], ["status"], ["diff", "page.md", "--theirs"])


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_nobody_gets_an_escape_code_who_wants_none(variables: dict[str, str], conflicted: Path):
    for view in VIEWS:
        assert "\x1b" not in on_terminal(*view, **variables)


def test_a_pipe_never_gets_one(conflicted: Path, process: Runner, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for view in (*VIEWS, ["push", "page.md"], ["pull", "page.md"]):
        result = process(*view)
        assert b"\x1b" not in result.out + result.err.encode()


def test_no_view_has_a_background(conflicted: Path):
    for view in VIEWS:
        for codes in re.findall(r"\x1b\[([0-9;]*)m", on_terminal(*view)):
            assert not {int(code or 0) for code in codes.split(";")} & {7, *range(40, 50), *range(100, 108)}


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}], ids=str)
def test_no_body_steers_the_terminal(variables: dict[str, str], mergepub: Runner):
    file = Path("page.md")
    file.write_bytes(b"one\n")
    mergepub("push", "page.md", "--prefix", "/")
    mergepub("publish", "/page.md", "--expected-version", "1", stdin=b"two " + EVIL)
    file.write_bytes(b"three " + EVIL)
    calls = (["fetch", "/page.md"], ["fetch", "/page.md", "--body-only"], *VIEWS)
    for call in calls:
        shown = bare(on_terminal(*call, **variables))
        assert shown.isprintable() or all(c.isprintable() or c in "\n\t" for c in shown), (call, shown)
        assert call == ["status"] or "bell" in shown
    assert on_terminal("diff", "page.md", "--json", **variables).strip().isprintable()


# ── the progress bar ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bar_grows_on_a_terminal_also_over_a_resize_and_nothing_of_it_stays(scratch: Path):
    Path("site").mkdir()
    for number in range(150):
        (scratch / "site" / f"{number}.md").write_text(f"{number}\n")
    command = ["push", "site", "--prefix", "/", "--jobs", "2"]
    child = pexpect.spawn(str(SCRIPT), command, env=environment(), timeout=60, dimensions=(24, 100), encoding="utf-8")
    child.expect(r"Pushing.*\d+/150")
    child.setwinsize(24, 40)
    child.expect("150 published, 0 merged, 0 unchanged, 0 conflicted, 0 failed")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert "Pushing" not in on_terminal("push", "site", TERM="dumb")


def test_ctrl_c_ends_a_push_cleanly_and_the_next_one_does_the_rest(scratch: Path, mergepub: Runner):
    Path("site").mkdir()
    for number in range(300):
        (scratch / "site" / f"{number}.md").write_text(f"{number}\n")
    command = ["push", "site", "--prefix", "/", "--jobs", "2"]
    child = pexpect.spawn(str(SCRIPT), command, env=environment(), timeout=60, encoding="utf-8")
    child.expect(r"Pushing.*\d+/300")
    child.sendintr()
    child.expect("interrupted")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    result = mergepub("push", "site", "--prefix", "/")
    assert result.status == 0
    counts = dict(reversed(part.split()) for part in result.out.decode().splitlines()[-1].split(", "))
    assert int(counts["published"]) + int(counts["unchanged"]) == 300


def test_rich_is_imported_for_terminals_alone(conflicted: Path):
    probe = (
        "import sys, os; from mergepub.__main__ import main; sys.argv = ['mergepub', *sys.argv[1:]]; main(); "
        "os.write(2, b'RICH' if 'rich' in sys.modules else b'')"
    )
    for view in (*VIEWS, ["push", "page.md"]):
        done = subprocess.run([sys.executable, "-c", probe, *view], capture_output=True, check=False)
        assert b"RICH" not in done.stderr
