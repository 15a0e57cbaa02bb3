"""Branches from the command line: blocks, exit statuses, what is mentioned where, and a terminal's confirmation."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from tests.cli.conftest import SCRIPT

if TYPE_CHECKING:
    from tests.cli.conftest import Result, Runner

DOC = "/docs/guide.md"
MINE = b"one\ntwo\nthree\nfour\nFIVE\n"
BOTH = b"ONE\ntwo\nthree\nfour\nFIVE\n"


def publish(mergepub: Runner, body: bytes, *options: str, path: str = DOC) -> Result:
    return mergepub("publish", path, *options, stdin=body)


def fields(result: Result) -> dict[str, str]:
    block = result.out.partition(b"\n\n")[0].decode()
    return dict(line.split(": ", 1) for line in block.splitlines())


def result_of(answer: Result) -> dict:
    envelope = json.loads(answer.out)
    return envelope.get("result") or envelope["error"]


@pytest.fixture
def branch(guide: bytes, mergepub: Runner) -> str:
    """A sibling of version 1, beside version 2; its name."""
    answer = publish(mergepub, MINE, "--expected-version", "1", "--on-conflict", "branch")
    assert answer.status == 0
    return fields(answer)["branch"]


# Publishing


def test_a_conflict_is_kept_as_a_branch(guide: bytes, mergepub: Runner) -> None:
    answer = publish(mergepub, MINE, "--expected-version", "1", "--on-conflict", "branch")
    name = fields(answer)["branch"]
    wanted = f"status: branched\nbranch: {name}\nbase-version: 1\ncurrent-version: 2\nbranch-revision: 1\n"
    assert (answer.status, answer.out) == (0, wanted.encode())
    assert f"next: mergepub branches {DOC}" in answer.err
    again = publish(mergepub, MINE, "--expected-version", "1", "--on-conflict", "branch")
    assert again.out == wanted.encode() + b"replayed: true\n"
    assert mergepub("branch", "show", DOC, f"{name}@1", "--body-only").out == MINE
    assert b"ONE" in mergepub("fetch", DOC).out


def test_a_base_that_is_the_head_is_published(guide: bytes, mergepub: Runner) -> None:
    answer = publish(mergepub, BOTH, "--expected-version", "2", "--on-conflict", "branch")
    assert answer.out == b"status: ok\nversion: 3\n"


def test_a_body_that_equals_its_base_is_no_branch(guide: bytes, mergepub: Runner) -> None:
    base = b"one\ntwo\nthree\nfour\nfive\n"
    answer = publish(mergepub, base, "--expected-version", "1", "--on-conflict", "branch")
    assert (answer.status, answer.out) == (
        0,
        b"status: ok\nversion: 1\nunchanged: true\ncurrent-version: 2\n",
    )


def test_a_recreated_document_refuses_a_base_of_its_earlier_life(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("delete", DOC, "--expected-version", "2").status == 0
    answer = publish(mergepub, MINE, "--expected-version", "1", "--on-conflict", "branch")
    assert (answer.status, fields(answer)["reason"]) == (3, "deleted")
    publish(mergepub, b"new\n", "--expected-version", "0")
    answer = publish(mergepub, MINE, "--expected-version", "1", "--on-conflict", "branch")
    assert (answer.status, fields(answer)["reason"]) == (3, "recreated")
    answer = publish(mergepub, MINE, "--expected-version", "9", "--on-conflict", "branch")
    assert (answer.status, fields(answer)["reason"]) == (3, "base-unavailable")


def test_a_writer_adds_to_its_own_branch_and_is_fenced_off_when_it_is_taken(
    branch: str, mergepub: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = publish(mergepub, MINE + b"six\n", "--branch", branch)
    assert (fields(answer)["status"], fields(answer)["branch-revision"]) == ("branched", "2")
    monkeypatch.setenv("MERGEPUB_STORE", str(tmp_path / "store.sqlite"))
    (tmp_path / "elsewhere" / ".git").mkdir(parents=True)
    (tmp_path / "elsewhere" / ".mergepub").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    taken = mergepub("branch", "take", DOC, branch)
    assert (taken.status, fields(taken)["epoch"]) == (0, "2")
    assert publish(mergepub, MINE + b"seven\n", "--branch", branch).status == 0
    monkeypatch.chdir(tmp_path)
    fenced = publish(mergepub, MINE + b"eight\n", "--branch", branch)
    assert (fenced.status, "taken over" in fenced.err) == (3, True)
    assert "mergepub branch take" in fenced.err


def test_a_checkout_that_cannot_be_written_costs_no_answer(
    guide: bytes, mergepub: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has it by then; the end that the store knows is the writer's where none is remembered."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("mergepub.checkout.disk.put", full)
        answer = publish(mergepub, MINE, "--expected-version", "1", "--on-conflict", "branch")
    assert (answer.status, fields(answer)["status"], "not remembered here" in answer.err) == (0, "branched", True)
    more = publish(mergepub, MINE + b"six\n", "--branch", fields(answer)["branch"])
    assert fields(more)["branch-revision"] == "2"


def test_a_branch_takes_no_expected_version_and_no_revision(branch: str, mergepub: Runner) -> None:
    assert publish(mergepub, b"x\n", "--branch", branch, "--expected-version", "1").status == 2
    assert publish(mergepub, b"x\n", "--branch", f"{branch}@1").status == 2
    assert publish(mergepub, b"x\n", "--branch", "none").status == 4
    assert publish(mergepub, b"x\n", "--branch", "main").status == 3


def test_an_abandoned_branch_stays_visible(branch: str, mergepub: Runner) -> None:
    assert fields(mergepub("branch", "abandon", DOC, branch))["state"] == "abandoned"
    assert f"abandoned  {branch}@1".encode() in mergepub("branches", DOC).out
    assert mergepub("decide", DOC, f"{branch}@1", "--choose", "--expected-head", "2").status == 3


# Looking


def test_branches_shows_heads_ancestor_owners_and_counts(branch: str, mergepub: Runner) -> None:
    answer = mergepub("branches", DOC)
    assert answer.out.startswith(b"head: 2\nbranch: main@2\n")
    assert re.search(rf"open +{branch}@1 +main@1 +main@1 +\+1 -1 +tess@desk \(epoch 1\)", answer.out.decode())
    found = result_of(mergepub("branches", DOC, "--json", "--state", "open"))
    assert found["head"]["version"] == 2
    (row,) = found["branches"]
    assert (row["branch"], row["ancestors"], row["ahead"], row["behind"]) == (branch, ["main@1"], 1, 1)
    assert row["owners"] == [{"name": "tess@desk", "epoch": 1, "revision": 1}]


def test_on_a_narrow_terminal_a_branch_is_shown_as_it_is_typed(branch: str) -> None:
    child = pexpect.spawn(str(SCRIPT), ["branches", DOC], encoding="utf-8", timeout=20, dimensions=(24, 60))
    child.expect(rf"open .*{branch}@1 ")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_branch_shows_what_it_changed(branch: str, mergepub: Runner) -> None:
    answer = mergepub("branch", "show", DOC, branch, "--diff")
    assert answer.out.startswith(f"--- main@1\n+++ {branch}\n@@".encode())
    assert b"-five\n+FIVE\n" in answer.out
    assert f"mergepub decide {DOC} {branch}@1 --expected-head 2" in answer.err
    hunks = result_of(mergepub("branch", "show", DOC, branch, "--diff", "--json"))["hunks"]
    assert hunks == [{"id": "h1", "line": 5, "removed": "five\n", "added": "FIVE\n"}]
    assert mergepub("branch", "show", DOC, branch, "-o", "copy.md", "--no-body").status == 2
    assert mergepub("branch", "show", DOC, branch, "-o", "copy.md").status == 0
    assert Path("copy.md").read_bytes() == MINE


def test_what_is_not_there_is_exit_4(branch: str, mergepub: Runner) -> None:
    for call in (
        ["branches", "/none"],
        ["branch", "show", DOC, "none"],
        ["branch", "show", DOC, f"{branch}@2"],
        ["decide", DOC, "none@1", "--choose", "--expected-head", "2"],
        ["decide", DOC, f"{branch}@1", "--rebase", "--approve", "h7", "--expected-head", "2"],
        ["decide", DOC, "--undo", "1", "--expected-head", "2"],
        ["decisions", "/none"],
    ):
        assert mergepub(*call).status == 4, call


def test_unresolved_branches_are_mentioned_without_being_asked_for(branch: str, mergepub: Runner) -> None:
    said = f"{DOC} has 1 unresolved branch; next: mergepub branches {DOC}"
    for call in (["versions", DOC], ["list"], ["log", DOC]):
        assert said in mergepub(*call).err, call
    assert said in publish(mergepub, b"x\n", "--expected-version", "2").err
    assert said not in publish(mergepub, b"x\n", "--expected-version", "0", path="/docs/other.md").err
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    status = mergepub("status")
    assert said in status.err
    assert b"1 unresolved branch there" in status.out
    mergepub("decide", DOC, f"{branch}@1", "--reject", "--expected-head", "3")
    assert said not in mergepub("versions", DOC).err


# Deciding


def decide(mergepub: Runner, branch: str, *options: str, head: str = "2", stdin: bytes = b"") -> Result:
    return mergepub("decide", DOC, branch, *options, "--expected-head", head, stdin=stdin)


def test_a_chosen_branch_is_the_head(branch: str, mergepub: Runner) -> None:
    answer = decide(mergepub, f"{branch}@1", "--choose", "--reason", "newer")
    wanted = f"status: ok\nversion: 3\ndecision: 1\nstrategy: choose\nbranch: {branch}@1\n"
    assert (answer.status, answer.out) == (0, wanted.encode())
    assert mergepub("fetch", DOC, "--body-only").out == MINE
    again = decide(mergepub, f"{branch}@1", "--choose", "--reason", "newer")
    assert again.out == wanted.encode() + b"replayed: true\n"
    (row,) = result_of(mergepub("decisions", DOC, "--json"))["decisions"]
    assert (row["strategy"], row["version"], row["reason"], row["resolver"]) == ("choose", 3, "newer", "tess@desk")
    assert b"newer" in mergepub("decisions", DOC).out


def test_a_text_is_continued_by_its_merge_or_by_a_file(branch: str, mergepub: Runner) -> None:
    shown = decide(mergepub, f"{branch}@1", "--continue", "--dry-run")
    assert shown.out.endswith(b"dry-run: true\n\n" + BOTH)
    assert mergepub("fetch", DOC, "--no-body").out.startswith(b"status: ok\nversion: 2\n")
    assert decide(mergepub, f"{branch}@1", "--continue").status == 0
    assert mergepub("fetch", DOC, "--body-only").out == BOTH
    assert mergepub("decide", DOC, "--undo", "1", "--expected-head", "3").status == 0
    Path("mended.md").write_bytes(b"by hand\n")
    assert decide(mergepub, f"{branch}@1", "--continue", "mended.md", head="4").status == 0
    assert mergepub("fetch", DOC, "--body-only").out == b"by hand\n"


def test_a_continuation_that_overlaps_is_answered_with_the_marked_body(guide: bytes, mergepub: Runner) -> None:
    answer = publish(mergepub, b"eins\ntwo\nthree\nfour\nfive\n", "--expected-version", "1", "--on-conflict", "branch")
    name = fields(answer)["branch"]
    refused = decide(mergepub, f"{name}@1", "--continue")
    assert (refused.status, fields(refused)["status"], fields(refused)["conflicts"]) == (3, "conflict", "1")
    assert b"<<<<<<< " in refused.out
    assert "nothing was decided" in refused.err
    marked = refused.out.partition(b"\n\n")[2]
    assert decide(mergepub, f"{name}@1", "--continue", "-", stdin=marked).status == 2
    assert result_of(mergepub("decisions", DOC, "--json"))["decisions"] == []


@pytest.mark.parametrize("way", [("--continue",), ("--rebase", "--approve", "h1")], ids=["continue", "rebase"])
def test_what_follows_an_overlap_is_typed_from_the_hints_alone(way, guide: bytes, mergepub: Runner) -> None:
    body = guide.replace(b"ONE", b"eins")
    name = fields(publish(mergepub, body, "--expected-version", "1", "--on-conflict", "branch"))["branch"]
    place = ("decide", DOC, f"{name}@1")
    answer = mergepub(*place, *way, "--expected-head", "2", "--reason", "both hold")
    ends = "--expected-head 2 --reason 'both hold'"
    hint = answer.err.splitlines()[-1]
    assert hint == f"next: mergepub {' '.join([*place, *way])} -o guide.md.merged {ends}"
    answer = mergepub(*shlex.split(hint)[2:])
    told, hint = answer.err.splitlines()[-2:]
    assert told.endswith("nothing was decided. Mend the marked lines of guide.md.merged.")
    assert hint == f"next: mergepub {' '.join(place)} --continue guide.md.merged {ends}"
    assert "-o FILE" in mergepub(*place, *way, "--expected-head", "2").err  # there is one of that name by now
    Path("guide.md.merged").write_bytes(b"mended\n")
    assert mergepub(*shlex.split(hint)[2:]).out.startswith(b"status: ok\nversion: 3\n")


def test_a_rebase_replays_the_named_hunks_alone(guide: bytes, mergepub: Runner) -> None:
    answer = publish(mergepub, b"one\ntwo\nTHREE\nfour\nFIVE\n", "--expected-version", "1", "--on-conflict", "branch")
    name = fields(answer)["branch"]
    assert decide(mergepub, f"{name}@1", "--rebase").status == 2
    assert decide(mergepub, f"{name}@1", "--rebase", "--approve", "h2").status == 0
    assert mergepub("fetch", DOC, "--body-only").out == BOTH
    assert f"merged   {name}@1".encode() in mergepub("branches", DOC).out.replace(b"      ", b"   ")


def test_a_stale_resolver_is_told(branch: str, mergepub: Runner) -> None:
    publish(mergepub, b"later\n", "--expected-version", "2")
    answer = decide(mergepub, f"{branch}@1", "--choose")
    assert (answer.status, answer.out) == (3, b"")
    assert "nothing was decided" in answer.err
    publish(mergepub, MINE + b"more\n", "--branch", branch)
    assert decide(mergepub, f"{branch}@1", "--choose", head="3").status == 3
    refused = mergepub("decide", DOC, f"{branch}@1", "--choose", "--expected-head", "2", "--json")
    assert (result_of(refused)["your-version"], result_of(refused)["current-version"]) == (2, 3)


@pytest.mark.parametrize(
    "call",
    [
        ["BRANCH@1", "--choose"],
        ["BRANCH", "--choose", "--expected-head", "2"],
        ["BRANCH@1", "--expected-head", "2"],
        ["BRANCH@1", "--choose", "--reject", "--expected-head", "2"],
        ["BRANCH@1", "FILE", "--choose", "--expected-head", "2"],
        ["BRANCH@1", "--choose", "--approve", "h1", "--expected-head", "2"],
        ["--choose", "--expected-head", "2"],
        ["BRANCH@1", "--undo", "1", "--expected-head", "2"],
        ["--undo", "1"],
        ["BRANCH@x", "--choose", "--expected-head", "2"],
    ],
    ids=" ".join,
)
def test_a_decision_names_everything_or_is_exit_2(call: list[str], branch: str, mergepub: Runner) -> None:
    answer = mergepub("decide", DOC, *(word.replace("BRANCH", branch) for word in call))
    assert (answer.status, answer.out) == (2, b"")
    assert result_of(mergepub("decisions", DOC, "--json"))["decisions"] == []


@pytest.mark.parametrize(("reply", "status"), [("y", 0), ("n", 3)])
def test_on_a_terminal_both_heads_are_shown_and_confirmed(reply: str, status: int, branch: str) -> None:
    child = pexpect.spawn(str(SCRIPT), ["decide", DOC, branch, "--choose"], encoding="utf-8", timeout=20)
    child.expect(r"the head of /docs/guide.md is version 2 \(main@2\)")
    child.expect(rf"the branch {branch}@1 is open")
    child.expect(r"\[y/N\]")
    child.sendline(reply)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == status


def test_an_undo_brings_the_former_head_back(branch: str, mergepub: Runner) -> None:
    decide(mergepub, f"{branch}@1", "--choose")
    shown = mergepub("decide", DOC, "--undo", "1", "--expected-head", "3", "--dry-run")
    assert shown.out.endswith(b"\n\nONE\ntwo\nthree\nfour\nfive\n")
    undone = mergepub("decide", DOC, "--undo", "1", "--expected-head", "3")
    assert (undone.status, fields(undone)["version"], fields(undone)["decision"]) == (0, "4", "2")
    assert b"ONE" in mergepub("fetch", DOC, "--body-only").out
    assert mergepub("decide", DOC, "--undo", "1", "--expected-head", "4").status == 3


# Logs of events


LOG = "/logs/run"


def event(name: str, kind: str = "message", call: str = "") -> bytes:
    facts = {"id": name, "type": kind} | ({"call_id": call} if call else {})
    return json.dumps(facts).encode() + b"\n"


@pytest.fixture
def log(mergepub: Runner) -> bytes:
    """A log at version 2; each side has called a tool since version 1. The head's bytes."""
    first = event("a")
    second = first + event("b", "tool_call") + event("c", "tool_result", "b")
    assert publish(mergepub, first, "--expected-version", "0", "--kind", "events", path=LOG).status == 0
    assert publish(mergepub, second, "--expected-version", "1", path=LOG).status == 0
    return second


def test_a_log_says_what_it_is_and_grows_at_its_end(log: bytes, mergepub: Runner) -> None:
    lines = mergepub("fetch", LOG, "--no-body").out.decode().splitlines()
    assert [line.partition(":")[0] for line in lines][2:5] == ["incarnation", "digest", "kind"]
    assert "kind: events" in lines
    assert publish(mergepub, event("z"), "--expected-version", "2", path=LOG).status == 3
    assert publish(mergepub, log + event("a"), "--expected-version", "2", path=LOG).status == 2
    assert publish(mergepub, log + event("r", "tool_result", "nobody"), "--expected-version", "2", path=LOG).status == 2
    assert publish(mergepub, b"no events\n", "--expected-version", "2", path=LOG).status == 2
    assert publish(mergepub, log + b'{"id": "x"}\n', "--expected-version", "2", path=LOG).status == 2
    assert publish(mergepub, log, "--expected-version", "2", "--kind", "text", path=LOG).status == 2
    assert mergepub("append", LOG, stdin=event("a")).status == 2
    assert mergepub("append", LOG, stdin=b"no event\n").status == 2
    keyed = ("append", LOG, "--idempotency-key", "k1")
    assert mergepub(*keyed, stdin=event("d")).out == b"status: ok\nversion: 3\n"
    assert mergepub(*keyed, stdin=event("d")).out == b"status: ok\nversion: 3\nreplayed: true\n"


def test_a_log_is_never_merged(log: bytes, mergepub: Runner) -> None:
    edit = event("a") + event("mine")
    for policy in ("merge", "candidate"):
        answer = publish(mergepub, edit, "--expected-version", "1", "--on-conflict", policy, path=LOG)
        assert (answer.status, fields(answer)["reason"]) == (3, "events")
    answer = publish(mergepub, edit, "--expected-version", "1", "--on-conflict", "branch", path=LOG)
    assert fields(answer)["status"] == "branched"
    place = ["decide", LOG, f"{fields(answer)['branch']}@1", "--continue"]
    hint = mergepub(*place, "--expected-head", "2").err.splitlines()[-1]
    assert hint.endswith(f"mergepub {' '.join(place)} FILE --expected-head 2")
    Path("FILE").write_bytes(log + event("both"))
    assert mergepub(*shlex.split(hint.partition("mergepub ")[2])).out.startswith(b"status: ok\nversion: 3\n")


def test_tool_calls_are_barriers(log: bytes, mergepub: Runner) -> None:
    edit = event("a") + event("m") + event("t", "tool_call")
    answer = publish(mergepub, edit, "--expected-version", "1", "--on-conflict", "branch", path=LOG)
    seen = fields(answer)["branch"] + "@1"

    def run(*options: str, stdin: bytes = b"") -> int:
        return mergepub("decide", LOG, seen, *options, "--expected-head", "2", stdin=stdin).status

    events = result_of(mergepub("branch", "show", LOG, seen, "--diff", "--json"))["events"]
    assert [(row["id"], row["approvable"]) for row in events] == [("m", True), ("t", False)]
    assert run("--choose") == 3
    assert run("--rebase", "--approve", "t") == 3
    assert run("--rebase", "--approve", "a") == 4
    assert run("--continue") == 3
    assert run("--continue", "--acknowledge-effects") == 2
    assert run("--continue", "-", "--acknowledge-effects", stdin=log + event("u", "tool_call")) == 3
    assert run("--continue", "-", "--acknowledge-effects", stdin=event("a")) == 3
    assert run("--rebase", "--approve", "m", "--dry-run") == 0
    assert run("--choose", "--acknowledge-effects") == 0
    (row,) = result_of(mergepub("decisions", LOG, "--json"))["decisions"]
    assert row["acknowledged-effects"] is True
    assert mergepub("fetch", LOG, "--body-only").out == edit


def test_a_reviewed_rebase_brings_the_approved_events_alone(log: bytes, mergepub: Runner) -> None:
    edit = event("a") + event("m") + event("n") + event("t", "tool_call")
    answer = publish(mergepub, edit, "--expected-version", "1", "--on-conflict", "branch", path=LOG)
    seen = fields(answer)["branch"] + "@1"
    call = ["decide", LOG, seen, "--rebase", "--approve", "n", "--expected-head", "2"]
    assert mergepub(*call).status == 0
    assert mergepub("fetch", LOG, "--body-only").out == log + event("n")
    assert b"replayed: true" in mergepub(*call).out


# A process that dies


KILLED = """
import os, sys
from mergepub.stores import sqlite
run = sqlite.SqliteStore._write
def dies(*call, **how):
    run(*call, **how)
    os.kill(os.getpid(), 9)
sqlite.SqliteStore._write = dies
sys.argv = ["mergepub", *sys.argv[1:]]
from mergepub.__main__ import main
main()
"""


@pytest.mark.parametrize("what", ["sibling", "extension", "decision"])
def test_what_was_stored_before_a_kill_is_recognised_when_it_comes_again(
    what: str, branch: str, mergepub: Runner
) -> None:
    Path("mine.md").write_bytes(MINE + b"six\n")
    call = {
        "sibling": ["publish", DOC, "mine.md", "--expected-version", "1", "--on-conflict", "branch"],
        "extension": ["publish", DOC, "mine.md", "--branch", branch],
        "decision": ["decide", DOC, f"{branch}@1", "--choose", "--expected-head", "2"],
    }[what]
    died = subprocess.run([sys.executable, "-c", KILLED, *call], capture_output=True, check=False, env=os.environ)
    assert (died.returncode, died.stdout) == (-9, b"")
    before = mergepub("branches", DOC).out
    again = mergepub(*call)
    assert (again.status, b"replayed: true" in again.out) == (0, True)
    assert mergepub("branches", DOC).out == before
    assert mergepub("verify").status == 0
