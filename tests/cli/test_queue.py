"""The local queue and ``sync``: in order per document, exactly once by content, whatever is killed when."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.checkout import disk
from mergepub.errors import UnavailableError
from mergepub.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from tests.cli.conftest import Result, Runner

DOC = "/docs/guide.md"
AWAY = "http://127.0.0.1:9"


def queue(mergepub: Runner, body: bytes, *options: str, path: str = DOC) -> Result:
    answer = mergepub("publish", path, "--queue", *options, stdin=body)
    assert answer.status == 0, answer.err
    return answer


def entries(answer: Result) -> list[dict]:
    envelope = json.loads(answer.out)
    return (envelope.get("result") or envelope["error"])["entries"]


def bodies(mergepub: Runner, path: str = DOC) -> list[bytes]:
    versions = json.loads(mergepub("versions", path, "--json").out)["result"]["versions"]
    return [mergepub("fetch", f"{path}/v{row['version']}", "--body-only").out for row in reversed(versions)]


def test_a_queued_publish_is_answered_and_sent_later(guide: bytes, mergepub: Runner) -> None:
    answer = queue(mergepub, b"three\n", "--expected-version", "2")
    keys = [line.partition(":")[0] for line in answer.out.decode().splitlines()]
    assert keys == ["status", "queue-id", "base-version"]
    assert answer.out.startswith(b"status: queued\n")
    assert "next: mergepub sync" in answer.err
    assert len(bodies(mergepub)) == 2
    sent = mergepub("sync")
    assert (sent.status, sent.out.splitlines()[-1]) == (0, b"1 sent, 0 waiting")
    assert bodies(mergepub)[2:] == [b"three\n"]
    assert mergepub("sync").out == b"0 sent, 0 waiting\n"


def test_a_later_entry_is_made_from_the_former(guide: bytes, mergepub: Runner) -> None:
    queue(mergepub, b"three\n", "--expected-version", "2")
    queue(mergepub, b"four\n")
    queue(mergepub, b"new\n", "--expected-version", "0", path="/docs/new.md")
    queue(mergepub, b"five\n")
    assert mergepub("sync").status == 0
    assert bodies(mergepub)[2:] == [b"three\n", b"four\n", b"five\n"]
    assert bodies(mergepub, "/docs/new.md") == [b"new\n"]


def test_a_former_that_was_merged_is_no_base_for_what_it_did_not_hold(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    for body in (b"ONE\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nthree\nfour\nFIVE\nsix\n"):
        Path("guide.md").write_bytes(body)
        assert mergepub("publish", DOC, "guide.md", "--queue", "--on-conflict", "merge").status == 0
    assert b"queued" in mergepub("status").out
    other = b"ONE\nTWO\nthree\nfour\nfive\n"
    assert mergepub("publish", DOC, "--expected-version", "2", stdin=other).status == 0
    assert mergepub("sync").status == 0
    assert bodies(mergepub)[3:] == [b"ONE\nTWO\nthree\nfour\nFIVE\n", b"ONE\nTWO\nthree\nfour\nFIVE\nsix\n"]
    assert mergepub("pull", "guide.md").status == 0
    assert Path("guide.md").read_bytes() == b"ONE\nTWO\nthree\nfour\nFIVE\nsix\n"


def test_a_former_that_was_branched_is_followed_onto_its_branch(guide: bytes, mergepub: Runner) -> None:
    queue(mergepub, b"mine\n", "--expected-version", "1", "--on-conflict", "branch")
    queue(mergepub, b"mine, more\n", "--on-conflict", "branch")
    rows = entries(mergepub("sync", "--json"))
    assert [row["status"] for row in rows] == ["branched", "branched"]
    assert [row["branch-revision"] for row in rows] == [1, 2]
    assert mergepub("branch", "show", DOC, rows[0]["branch"], "--body-only").out == b"mine, more\n"
    assert mergepub("publish", DOC, "--branch", rows[0]["branch"], stdin=b"on\n").status == 0


def test_a_conflict_stops_its_document_and_no_other(guide: bytes, mergepub: Runner) -> None:
    queue(mergepub, b"stale\n", "--expected-version", "1")
    queue(mergepub, b"later\n")
    queue(mergepub, b"new\n", "--expected-version", "0", path="/docs/new.md")
    answer = mergepub("sync", "--json")
    assert answer.status == 3
    assert [row["result"] for row in entries(answer)] == ["stopped", "waiting", "sent"]
    assert len(bodies(mergepub)) == 2
    assert mergepub("sync").status == 3
    assert mergepub("sync", "--on-conflict", "branch").status == 0
    assert b"open" in mergepub("branches", DOC).out


def test_what_is_dropped_is_kept_and_the_next_one_starts_from_its_base(guide: bytes, mergepub: Runner) -> None:
    queue(mergepub, b"stale\n", "--expected-version", "1")
    queue(mergepub, b"later\n")
    first = entries(mergepub("sync", "--json"))[0]["queue-id"]
    assert mergepub("sync", "--drop", first).status == 0
    assert b"stale\n" in [file.read_bytes() for file in Path(".mergepub/kept").iterdir()]
    (row,) = entries(mergepub("sync", "--json"))
    assert (row["result"], row["your-version"]) == ("stopped", 1)
    assert mergepub("sync", "--drop", "none").status == 4


def test_a_store_that_is_away_leaves_everything_waiting(guide: bytes, mergepub: Runner, monkeypatch) -> None:
    monkeypatch.setenv("MERGEPUB_STORE", AWAY)
    answer = mergepub("publish", DOC, "--expected-version", "2", "--offline", stdin=b"x\n")
    assert (answer.status, answer.out.splitlines()[0]) == (0, b"status: queued")
    assert mergepub("publish", DOC, "--expected-version", "2", stdin=b"x\n").status == 4
    answer = mergepub("sync", "--json")
    assert (answer.status, [row["result"] for row in entries(answer)]) == (4, ["unreachable"])


def test_offline_can_be_configured(guide: bytes, mergepub: Runner, monkeypatch) -> None:
    Path("mergepub.toml").write_text("offline = true\n")
    monkeypatch.setenv("MERGEPUB_STORE", AWAY)
    answer = mergepub("publish", DOC, "--expected-version", "2", stdin=b"x\n")
    assert (answer.status, answer.out.splitlines()[0]) == (0, b"status: queued")


def test_a_publish_that_says_nothing_of_its_base_is_not_queued(guide: bytes, mergepub: Runner) -> None:
    answer = mergepub("publish", DOC, "--queue", stdin=b"x\n")
    assert (answer.status, "--expected-version" in answer.err) == (2, True)


def test_a_file_that_is_published_sends_what_waits_of_it_first(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    steps = [guide + b"six\n", guide + b"six\nseven\n", guide + b"six\nseven\neight\n"]
    for body, call in zip(steps, (["--queue"], [], []), strict=True):
        Path("guide.md").write_bytes(body)
        command = ["push", "guide.md"] if body == steps[2] else ["publish", DOC, "guide.md", *call]
        assert mergepub(*command).status == 0
    assert bodies(mergepub)[2:] == steps
    assert mergepub("sync").out == b"0 sent, 0 waiting\n"


def test_a_file_does_not_overtake_what_is_stopped(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    Path("guide.md").write_bytes(b"mine\n")
    assert mergepub("publish", DOC, "guide.md", "--queue").status == 0
    publish = mergepub("publish", DOC, "--expected-version", "2", stdin=b"theirs\n")
    assert publish.status == 0
    Path("guide.md").write_bytes(b"mine, more\n")
    for call in (["publish", DOC, "guide.md"], ["push", "guide.md"]):
        answer = mergepub(*call)
        assert answer.status == 3
        assert "waits in the queue" in answer.err
    assert len(bodies(mergepub)) == 3


def test_a_file_that_was_brought_back_takes_nothing_back(guide: bytes, mergepub: Runner) -> None:
    """Its base does not become what waits: without the edits it would undo them."""
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    Path("guide.md").write_bytes(guide + b"six\n")
    assert mergepub("publish", DOC, "guide.md", "--queue").status == 0
    assert mergepub("fetch", DOC, "-o", "guide.md", "--force").status == 0
    assert mergepub("sync").status == 0
    assert mergepub("push", "guide.md").status == 0
    assert mergepub("fetch", DOC, "--body-only").out == guide + b"six\n"
    assert mergepub("pull", "guide.md").status == 0
    assert Path("guide.md").read_bytes() == guide + b"six\n"


def test_how_a_publish_is_to_be_merged_is_kept(guide: bytes, mergepub: Runner) -> None:
    other = b"one\ntwo\nthree\nfour\nfive\nsix of others\n"
    assert mergepub("publish", DOC, "--expected-version", "2", stdin=other).status == 0
    queue(mergepub, guide + b"six\n", "--expected-version", "2", "--on-conflict", "merge", "--favour-path", "*=union")
    assert mergepub("sync").status == 0
    assert mergepub("fetch", DOC, "--body-only").out.endswith(b"five\nsix of others\nsix\n")


def test_a_revision_of_ones_own_branch_waits_too(guide: bytes, mergepub: Runner) -> None:
    answer = mergepub("publish", DOC, "--expected-version", "1", "--on-conflict", "branch", stdin=b"mine\n")
    name = answer.out.decode().splitlines()[1].partition(": ")[2]
    assert b"base-version: 1\n" in queue(mergepub, b"mine, 2\n", "--branch", name).out
    queue(mergepub, b"mine, 3\n", "--branch", name)
    assert [row["result"] for row in entries(mergepub("sync", "--dry-run", "--json"))] == ["waiting", "waiting"]
    rows = entries(mergepub("sync", "--json"))
    assert [(row["branch"], row["branch-revision"]) for row in rows] == [(name, 2), (name, 3)]
    queue(mergepub, b"other\n", "--expected-version", "2")
    refused = mergepub("publish", DOC, "--branch", name, "--queue", stdin=b"mine, 4\n")
    assert (refused.status, "mergepub sync" in refused.err) == (3, True)
    assert mergepub("publish", DOC, "--branch", name, stdin=b"mine, 4\n").status == 0
    assert mergepub("sync").out == b"0 sent, 0 waiting\n"
    assert mergepub("fetch", DOC, "--body-only").out == b"other\n"


def test_a_file_that_is_edited_on_while_the_store_is_away_waits_behind_itself(
    guide: bytes, mergepub: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise UnavailableError("the store cannot be reached")

    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    steps = [guide + b"six\n", guide + b"six\nseven\n"]
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "_write", away)
        for body in steps:
            Path("guide.md").write_bytes(body)
            answer = mergepub("publish", DOC, "guide.md", "--offline")
            assert answer.out.startswith(b"status: queued\n"), answer.err
    assert mergepub("sync").status == 0
    assert bodies(mergepub)[2:] == steps


def test_what_waits_for_a_branch_that_was_chosen_is_the_next_version(guide: bytes, mergepub: Runner) -> None:
    answer = mergepub("publish", DOC, "--expected-version", "1", "--on-conflict", "branch", stdin=b"mine\n")
    name = answer.out.decode().splitlines()[1].partition(": ")[2]
    queue(mergepub, b"mine, 2\n", "--branch", name)
    queue(mergepub, b"mine, 3\n", "--branch", name)
    assert mergepub("decide", DOC, f"{name}@1", "--choose", "--expected-head", "2").status == 0
    assert [row["result"] for row in entries(mergepub("sync", "--json"))] == ["sent", "sent"]
    assert bodies(mergepub)[2:] == [b"mine\n", b"mine, 2\n", b"mine, 3\n"]
    queue(mergepub, b"mine, 4\n", "--branch", name)
    assert mergepub("publish", DOC, "--expected-version", "5", stdin=b"theirs\n").status == 0
    assert [row["result"] for row in entries(mergepub("sync", "--json"))] == ["stopped"]
    assert len(bodies(mergepub)) == 6


def test_a_branch_of_a_store_that_is_away_waits(guide: bytes, mergepub: Runner, monkeypatch) -> None:
    monkeypatch.setenv("MERGEPUB_STORE", AWAY)
    answer = mergepub("publish", DOC, "--branch", "v1-0123456789ab", "--offline", stdin=b"x\n")
    assert (answer.status, answer.out.splitlines()[0]) == (0, b"status: queued")


def test_a_disk_that_is_full_keeps_nothing_and_says_so(
    guide: bytes, mergepub: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, room = disk.put, 2

    def full(name: str, content: bytes) -> None:
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        put(name, content)

    queue(mergepub, b"three\n", "--expected-version", "2")
    with monkeypatch.context() as patched:
        patched.setattr(disk, "put", full)
        answer = mergepub("publish", DOC, "--queue", stdin=b"four\n")
    assert (answer.status, answer.out, "No space left" in answer.err) == (2, b"", True)
    assert len(list(Path(".mergepub/queue").iterdir())) == 1
    queue(mergepub, b"five\n")
    assert mergepub("sync").status == 0
    assert bodies(mergepub)[2:] == [b"three\n", b"five\n"]


def test_a_damaged_entry_stops_no_other_document_and_can_be_taken_out(guide: bytes, mergepub: Runner) -> None:
    for path in ("/docs/a.md", "/docs/b.md", "/docs/c.md"):
        queue(mergepub, b"x\n", "--expected-version", "0", path=path)
    queue(mergepub, b"x, more\n", path="/docs/a.md")
    first, second, *_ = sorted(Path(".mergepub/queue").iterdir())
    (first / "entry.json").write_bytes(b"{")
    next(file for file in second.iterdir() if file.name != "entry.json").write_bytes(b"other")
    answer = mergepub("sync", "--json")
    assert answer.status == 3
    assert [row["result"] for row in entries(answer)] == ["stopped", "stopped", "sent", "waiting"]
    assert mergepub("status").status == 0
    for entry in (first, second):
        assert f"mergepub sync --drop {entry.name}" in mergepub("sync").err
        assert mergepub("sync", "--drop", entry.name).status == 0
        assert (Path(".mergepub/kept") / f"queued-{entry.name}" / "entry.json").exists()
    assert bodies(mergepub, "/docs/a.md") == [b"x, more\n"]


def test_what_a_conflict_leads_to_can_be_typed(guide: bytes, mergepub: Runner) -> None:
    queue(mergepub, b"ours\n", "--expected-version", "1")
    assert "mergepub sync --on-conflict merge" in mergepub("sync").err
    said = mergepub("sync", "--on-conflict", "merge").err
    assert "--on-conflict merge" not in said
    assert "mergepub sync --on-conflict branch" in said


KILLED = """
import os, sys
from mergepub.checkout import disk, queue
left = int(sys.argv[1])
def counted(step):
    def run(*call, **how):
        global left
        if left == 0:
            os.kill(os.getpid(), 9)
        left -= 1
        return step(*call, **how)
    return run
for name in ("put", "sync_folder", "remove", "make_folder"):
    setattr(disk, name, counted(getattr(disk, name)))
os.rename = counted(os.rename)
sys.argv = ["mergepub", *sys.argv[2:]]
from mergepub.__main__ import main
sys.exit(main())
"""


KILLED_AT_LAST = """
import os, sys
from mergepub.checkout import queue
remove = queue.remove
def dies(checkout, entry):
    if len(queue.entries(checkout)) == 1:
        os.kill(os.getpid(), 9)
    remove(checkout, entry)
queue.remove = dies
sys.argv = ["mergepub", *sys.argv[1:]]
from mergepub.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("policy", ["merge", "branch"])
def test_a_sync_that_is_killed_at_any_step_goes_on_where_it_was(policy: str, guide: bytes, mergepub: Runner) -> None:
    queue(mergepub, b"ONE\ntwo\nthree\nfour\nFIVE\n", "--expected-version", "1", "--on-conflict", policy)
    queue(mergepub, b"ONE\ntwo\nthree\nfour\nFIVE\nsix\n", "--on-conflict", policy)
    queue(mergepub, b"new\n", "--expected-version", "0", path="/docs/new.md")
    for step in range(60):
        command = [sys.executable, "-c", KILLED, str(step), "sync"]
        died = subprocess.run(command, capture_output=True, check=False, env=os.environ)
        if died.returncode == 0:
            break
        assert died.returncode == -9, died.stderr
    else:
        pytest.fail("it never came to an end")
    assert step > 3
    assert mergepub("sync").out == b"0 sent, 0 waiting\n"
    assert bodies(mergepub, "/docs/new.md") == [b"new\n"]
    if policy == "merge":
        assert bodies(mergepub)[2:] == [b"ONE\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nthree\nfour\nFIVE\nsix\n"]
    else:
        assert len(bodies(mergepub)) == 2
        (row,) = json.loads(mergepub("branches", DOC, "--state", "open", "--json").out)["result"]["branches"]
        assert row["revision"] == 2
    assert mergepub("verify").status == 0


def test_a_merge_that_was_stored_before_a_kill_is_not_merged_with_its_own_result(mergepub: Runner) -> None:
    """What was made from bytes that the head only contains: merged once more, it would conflict with itself."""
    path, merge = "/docs/list.txt", ("--on-conflict", "merge")
    assert mergepub("publish", path, "--expected-version", "0", stdin=b"c\nz\n").status == 0
    queue(mergepub, b"c\nz\nend\n", "--expected-version", "1", *merge, path=path)
    queue(mergepub, b"a\nz\nend\n", *merge, path=path)
    assert mergepub("publish", path, "--expected-version", "1", stdin=b"b\nc\nz\n").status == 0
    for _ in range(2):  # the last entry is stored, and not taken out
        died = subprocess.run([sys.executable, "-c", KILLED_AT_LAST, "sync"], capture_output=True, check=False)
        assert died.returncode == -9, died.stderr
    assert bodies(mergepub, path)[2:] == [b"b\nc\nz\nend\n", b"b\na\nz\nend\n"]
    assert mergepub("sync").out.endswith(b"\n1 sent, 0 waiting\n")
    assert len(bodies(mergepub, path)) == 4


def test_adding_that_is_killed_leaves_whole_entries_alone(guide: bytes, mergepub: Runner) -> None:
    Path("body.md").write_bytes(b"x\n")
    for step in range(12):
        command = [sys.executable, "-c", KILLED, str(step), "publish", DOC, "body.md", "--expected-version", "2"]
        died = subprocess.run([*command, "--queue"], capture_output=True, check=False, env=os.environ)
        answer = mergepub("sync", "--json")
        assert answer.status == 0, answer.err
        if died.returncode == 0:
            break
    assert bodies(mergepub)[2:] == [b"x\n"]


def test_a_file_is_not_published_past_an_earlier_text_of_it_that_waits(guide: bytes, mergepub: Runner) -> None:
    """Sent later, what was taken out of the file since would come back."""
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    file = Path("guide.md")
    file.write_bytes(guide + b"second thoughts\n")
    assert mergepub("publish", DOC, "guide.md", "--queue", "--on-conflict", "merge").status == 0
    file.write_bytes(guide.replace(b"ONE", b"1"))
    tried = mergepub("push", "guide.md", "--dry-run")
    assert (tried.status, "in the queue would be sent first" in tried.err) == (0, True)
    assert len(bodies(mergepub)) == 2
    assert mergepub("push", "guide.md").status == 0
    assert mergepub("sync").status == 0
    assert bodies(mergepub)[2:] == [guide + b"second thoughts\n", file.read_bytes()]


def test_a_file_goes_on_once_what_waited_was_sent(guide: bytes, mergepub: Runner) -> None:
    assert mergepub("fetch", DOC, "-o", "guide.md").status == 0
    file = Path("guide.md")
    file.write_bytes(guide + b"six\n")
    assert mergepub("publish", DOC, "guide.md", "--queue").status == 0
    file.write_bytes(guide + b"six\nseven\n")
    assert mergepub("sync").status == 0
    assert mergepub("push", "guide.md").status == 0
    assert bodies(mergepub)[2:] == [guide + b"six\n", guide + b"six\nseven\n"]


@pytest.mark.parametrize("what", ["entry.json", "body"])
def test_a_damaged_entry_can_be_dropped_and_is_kept(what: str, guide: bytes, mergepub: Runner) -> None:
    queue(mergepub, b"three\n", "--expected-version", "2")
    queue(mergepub, b"new\n", "--expected-version", "0", path="/docs/new.md")
    first = min(Path(".mergepub/queue").iterdir())
    file = first / what if what == "entry.json" else next(each for each in first.iterdir() if len(each.name) == 64)
    file.write_bytes(b"{")
    refused = mergepub("sync")
    assert refused.status == 3
    assert f"mergepub sync --drop {first.name}" in refused.err
    assert mergepub("sync", "--drop", first.name).status == 0
    assert len(list(Path(f".mergepub/kept/queued-{first.name}").iterdir())) == 2
    assert mergepub("sync").status == 0
    assert bodies(mergepub, "/docs/new.md") == [b"new\n"]
