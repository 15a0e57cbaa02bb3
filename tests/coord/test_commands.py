"""``mergepub coord`` as a user types it: one envelope on one line, exit statuses, keys, bodies, help."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from mergepub.cli.coord import own, radar
from mergepub.coord import client
from tests.coord.living import PATIENCE, SCRIPT, Living, living, wait_for


@pytest.fixture(scope="module")
def daemon() -> Iterator[Living]:
    with living() as made:
        yield made


@pytest.fixture(scope="module")
def pair(daemon: Living) -> tuple[str, str]:
    return daemon.pair()


def envelope(done: subprocess.CompletedProcess[bytes], status: int = 0) -> dict[str, Any]:
    assert done.returncode == status, done
    assert done.stdout.count(b"\n") == 1
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["schema_version"] == "v3"
    assert answer["ok"] is (status == 0)
    assert set(answer) == {"schema_version", "ok", "result" if status == 0 else "error"}
    return answer


@pytest.fixture
def sender(daemon: Living, pair: tuple[str, str]) -> str:
    """A fresh run, whose budgets are full; it edits the same document as the pair."""
    (run,) = daemon.runs(1)
    return str(run)


def test_status_answers_with_one_envelope_and_wants_json(daemon: Living, sender: str) -> None:
    done = daemon.mergepub("coord", "status", "--json", run=sender)
    assert envelope(done)["result"]["run_id"] == sender
    refused = envelope(daemon.mergepub("coord", "status", run=sender, check=False), 2)
    assert refused["error"]["code"] == -32602


def test_status_on_a_terminal_reads_well(daemon: Living, sender: str, pair: tuple[str, str]) -> None:
    with daemon.client(pair[0]) as connection:
        connection.result("coord.send", to_run_id=sender, body="x", idempotency_key=f"to-{sender}")
    inside = {"MERGEPUB_RUN_DIR": str(daemon.socket(sender).parent), "TERM": "xterm"}
    seen = pexpect.spawn(
        str(SCRIPT), ["coord", "status"], env=daemon.environment | inside, dimensions=(300, 300), timeout=PATIENCE
    )
    seen.expect(pexpect.EOF)
    seen.close()
    lines = seen.before.decode().splitlines()
    assert lines[:2] == [f"{sender}  m  in the workspace w", "task: a task"]
    assert f"  {pair[0]}  m  a task" in lines
    assert lines[lines.index(f"  {pair[0]}  m  a task") + 1] == "    edits too: /docs/shared.md"
    assert lines[-1] == "mail waiting: 1; read it with: mergepub coord inbox"
    assert seen.exitstatus == 0


def test_status_for_people_tells_what_was_cut_and_obeys_nobody() -> None:
    peer = {"run_id": "run-2", "member_id": "b\x1b[31m", "task": "x\u202e", "task_truncated": True}
    files = {"files": ["/a", "/\x9b2J"], "file_total": 20, "state": "active"}
    gone = {"files": [], "file_total": 0, "state": "grace", "expires_at": "2027-01-15T08:10:00.000000Z"}
    status = {"run_id": "run-1", "member_id": "m", "workspace_id": "w", "task": "t", "task_truncated": False}
    peers = {"peers": [peer | files, peer | gone], "peer_total": 40, "peers_truncated": True, "unread": 0}
    assert own.about(status | peers).splitlines() == [
        "run-1  m  in the workspace w",
        "task: t",
        "",
        "peers, the first 2 of 40 (write to one with: mergepub coord send --to RUN TEXT):",
        "  run-2  b\\x1b[31m  x\\u202e ...",
        "    edits too: /a /\\x9b2J and 18 more",
        "  run-2  b\\x1b[31m  x\\u202e ...",
        "    edits none of them any more; can be written to until 08:10:00 UTC",
        "",
        "mail waiting: 0",
    ]
    assert "no other run edits the same documents" in own.about(status | peers | {"peers": []})


HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202e \x7f \U000e0041 \u2028 end"


def test_what_others_write_commands_no_terminal(daemon: Living, sender: str) -> None:
    folder = daemon.checkout("hostile", "/docs/hostile.md")
    (folder / "hostile.md").write_bytes(b"edited\n")
    run = daemon.run(folder, workspace="hostile", task=HOSTILE)
    peer = daemon.run(folder, workspace="hostile", member=HOSTILE.replace("\u2028", ""), task=HOSTILE)
    with daemon.client(peer) as connection:
        connection.result("coord.send", to_run_id=run, body=HOSTILE, idempotency_key="k")
        connection.result("run.report", state="waiting", reason=HOSTILE)
    report = ("coord", "report", "--outcome", "success", "--summary", HOSTILE, "--evidence-ref", HOSTILE)
    ref = envelope(daemon.mergepub(*report, run=peer))["result"]["evidence_ref"]
    inbox = daemon.mergepub("coord", "inbox", run=run)
    assert envelope(inbox)["result"]["messages"][0]["body"] == HOSTILE
    shown = [
        daemon.mergepub("coord", *words, run=run).stdout
        for words in (
            ("status", "--json"),
            ("skill",),
            ("radar",),
            ("radar", "--json"),
            ("timeline",),
            ("timeline", "--json"),
            ("run", "list"),
            ("run", "list", "--json"),
            ("evidence", "list"),
            ("evidence", "show", ref),
            ("evidence", "show", ref, "--json"),
        )
    ]
    told = daemon.mergepub("push", "hostile.md", cwd=folder, run=run).stderr
    assert b"is being edited by" in told
    for text in (inbox.stdout, told, *shown):
        assert text.decode().replace("\n", "").isprintable()


def test_a_key_that_was_made_is_told_before_and_a_given_one_is_used(
    daemon: Living, sender: str, pair: tuple[str, str]
) -> None:
    made = daemon.mergepub("coord", "send", "--to", pair[0], "--body", "hello", run=sender)
    key = re.fullmatch(rb"idempotency-key: (send-[0-9a-f]{24})\n", made.stderr)
    assert key
    again = daemon.mergepub("coord", "send", "--to", pair[0], "hello", "--idempotency-key", key[1].decode(), run=sender)
    assert again.stderr == b""
    assert again.stdout == made.stdout


def test_bodies_come_from_an_option_a_word_a_file_or_standard_input(
    daemon: Living, sender: str, pair: tuple[str, str]
) -> None:
    (daemon.folder / "note.txt").write_bytes("w\u00f6rter\n".encode())
    send = ("coord", "send", "--to", pair[1])
    daemon.mergepub(*send, "--body", "option", run=sender)
    daemon.mergepub(*send, "word", run=sender)
    daemon.mergepub(*send, "--body-file", "note.txt", run=sender)
    daemon.mergepub(*send, "--body-file", "-", run=sender, input=b"standard input")
    inbox = envelope(daemon.mergepub("coord", "inbox", run=pair[1]))["result"]
    bodies = [message["body"] for message in inbox["messages"] if message["from_run_id"] == sender]
    assert bodies == ["option", "word", "w\u00f6rter\n", "standard input"]
    acked = envelope(daemon.mergepub("coord", "inbox", "--ack", inbox["ack_token"], run=pair[1]))["result"]
    assert acked == {"messages": [], "acked": True}


@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        (["--to", "r"], b""),
        (["--to", "r", "--body", "x", "y"], b""),
        (["--to", "r", "--body", "x", "--body-file", "-"], b"x"),
        (["--to", "r", "--body", "x" * 4097], b""),
        (["--to", "r", "--body-file", "-"], b"x" * 4097),
        (["--to", "r", "--body-file", "-"], b"\xff"),
        (["--to", "r", "--body-file", "missing"], b""),
        (["--to", "r", "--body", b"\xff"], b""),
        (["--to", "r", "x", "--idempotency-key", ""], b""),
        (["--to", "r", "x", "--idempotency-key", "k" * 257], b""),
        (["--to", "r", "x", "--idempotency-key", "a\nb"], b""),
        (["x"], b""),
        (["--to", "r", "x", "--nonsense"], b""),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_sent(daemon: Living, arguments: list[Any], data: bytes) -> None:
    done = daemon.mergepub("coord", "send", *arguments, run="run-none", input=data, check=False)
    error = envelope(done, 2)["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("coord.send: ")
    assert b"idempotency-key" not in done.stderr


@pytest.mark.parametrize("size", [4096])
def test_a_body_at_the_limit_is_sent(daemon: Living, sender: str, pair: tuple[str, str], size: int) -> None:
    envelope(daemon.mergepub("coord", "send", "--to", pair[0], "--body-file", "-", run=sender, input=b"x" * size))


def test_a_question_and_its_reply(daemon: Living, sender: str, pair: tuple[str, str]) -> None:
    asked = envelope(daemon.mergepub("coord", "ask", "--to", pair[0], "may I?", run=sender))["result"]
    replied = daemon.mergepub("coord", "reply", "--question-id", asked["question_id"], "yes", run=pair[0])
    assert re.fullmatch(rb"idempotency-key: reply-[0-9a-f]{24}\n", replied.stderr)
    inbox = envelope(daemon.mergepub("coord", "inbox", "--wait", "5", run=sender))["result"]
    (reply,) = inbox["messages"]
    assert (reply["kind"], reply["correlation_id"], reply["body"]) == ("reply", asked["question_id"], "yes")


@pytest.mark.parametrize(
    ("arguments", "status", "refusal"),
    [
        (["send", "--to", "run-none", "x"], 4, (-32000, None)),
        (["reply", "--question-id", "none", "x"], 4, (-32000, None)),
        (["send", "--to", "SELF", "x"], 2, (-32602, None)),
        (["send", "--to", "IDLE", "x"], 3, (-32001, "not-a-peer")),
        (["send", "--to", "OTHER", "x"], 3, (-32001, "other-workspace")),
        (["inbox", "--wait", "31"], 2, (-32602, None)),
        (["report", "--outcome", "done", "--summary", "x"], 2, (-32602, None)),
        (["report", "--outcome", "success"], 2, (-32602, None)),
        (["report", "--outcome", "success", "--summary", ""], 2, (-32602, None)),
        (["report", "--outcome", "success", "--summary", "s", *["--evidence-ref", "r"] * 32], 2, (-32602, None)),
        (["hook", "sleeping"], 2, (-32602, None)),
    ],
)
def test_each_refusal_has_its_code_reason_and_exit_status(
    daemon: Living, sender: str, arguments: list[str], status: int, refusal: tuple[int, str | None]
) -> None:
    names = {"SELF": sender}
    if "IDLE" in arguments:
        names["IDLE"] = daemon.run(daemon.checkout("idle"))
    if "OTHER" in arguments:
        names["OTHER"] = daemon.run(daemon.folder / "shared", workspace="other")
    words = [names.get(word, word) for word in arguments]
    error = envelope(daemon.mergepub("coord", *words, run=sender, check=False), status)["error"]
    assert (error["code"], error.get("data", {}).get("reason")) == refusal


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--json"],
        ["send", "--to", "r", "x"],
        ["ask", "--to", "r", "x"],
        ["reply", "--question-id", "q", "x"],
        ["inbox"],
        ["report", "--outcome", "success", "--summary", "s"],
        ["hook", "working"],
    ],
)
def test_without_a_socket_the_exit_status_is_4(daemon: Living, arguments: list[str]) -> None:
    done = daemon.mergepub("coord", *arguments, run="run-none", check=False)
    assert envelope(done, 4)["error"]["data"] == {"reason": "no-socket"}


def test_skill_tells_the_live_assignment_and_without_a_run_the_workflow_alone(daemon: Living, sender: str) -> None:
    live = daemon.mergepub("coord", "skill", run=sender).stdout.decode()
    assert f"You are run {sender} of m in the workspace w." in live
    assert "Your task: a task" in live
    assert "edits too: /docs/shared.md" in live
    general = daemon.mergepub("coord", "skill", run="run-none").stdout.decode()
    assert live.endswith(general)
    assert general.startswith("How to coordinate")


def test_the_lists_of_commands_cut_no_sentence(daemon: Living) -> None:
    for group in ((), ("run",), ("evidence",)):
        page = daemon.mergepub("coord", *group, "--help").stdout.decode()
        assert "Commands:" in page
        assert "..." not in page.partition("Commands:")[2]
        assert not re.search(r"^ +wrap ", page, re.MULTILINE)  # it is how the group itself is called


VERBS = ("send", "ask", "reply", "inbox", "report", "status", "skill", "hook", "serve", "radar", "timeline")


@pytest.mark.parametrize("verb", VERBS)
def test_help_works_without_a_socket_and_shows_an_example(daemon: Living, verb: str) -> None:
    page = daemon.mergepub("coord", verb, "--help", run="run-none").stdout.decode()
    assert f"$ mergepub coord {verb}" in page


def test_a_report_gives_its_receipt_and_its_evidence_is_shown(daemon: Living, sender: str) -> None:
    report = ("coord", "report", "--outcome", "success", "--summary", "done", "--evidence-ref", "log-1")
    done = daemon.mergepub(*report, "--idempotency-key", "r1", run=sender)
    receipt = envelope(done)["result"]
    assert set(receipt) == {"report_id", "outcome", "summary", "next_action", "evidence_ref", "evidence_refs"}
    assert receipt["evidence_refs"] == ["log-1", receipt["evidence_ref"]]
    assert daemon.mergepub(*report, "--idempotency-key", "r1", run=sender).stdout == done.stdout
    other = daemon.mergepub(*report, "--idempotency-key", "r2", run=sender, check=False)
    assert envelope(other, 3)["error"]["data"] == {"reason": "key-reused"}
    shown = envelope(daemon.mergepub("coord", "evidence", "show", receipt["evidence_ref"], "--json"))["result"]
    assert shown["captured"]["documents"] == ["/docs/shared.md"]
    listed = envelope(daemon.mergepub("coord", "evidence", "list", "--json"))["result"]["evidence"]
    assert receipt["evidence_ref"] in [each["evidence_ref"] for each in listed]
    assert receipt["evidence_ref"].encode() in daemon.mergepub("coord", "evidence", "list").stdout
    assert b"success" in daemon.mergepub("coord", "evidence", "show", receipt["evidence_ref"]).stdout
    missing = daemon.mergepub("coord", "evidence", "show", "none", "--json", check=False)
    assert envelope(missing, 4)["error"]["code"] == -32000


def test_the_timeline_is_one_envelope_or_lines(daemon: Living, sender: str, pair: tuple[str, str]) -> None:
    sent = envelope(daemon.mergepub("coord", "send", "--to", pair[0], "for the record", run=sender))["result"]
    entries = envelope(daemon.mergepub("coord", "timeline", "--workspace", "w", "--json"))["result"]["entries"]
    assert [e["run_id"] for e in entries if e["id"] == sent["message_id"]] == [sender]
    assert b"for the record" in daemon.mergepub("coord", "timeline").stdout
    nothing = envelope(daemon.mergepub("coord", "timeline", "--workspace", "none", "--json"))
    assert nothing["result"] == {"entries": []}


def test_runs_are_started_listed_and_stopped_from_their_directory(daemon: Living) -> None:
    folder = daemon.checkout("typed", "/docs/typed.md")
    started = daemon.mergepub("coord", "run", "start", "--task", "typing", "--member", "tess@desk", cwd=folder)
    told = dict(line.split(": ", 1) for line in started.stdout.decode().splitlines())
    assert list(told) == ["run-id", "run-dir"]
    assert Path(told["run-dir"]) == daemon.data / "coord" / told["run-id"]
    status = envelope(daemon.mergepub("coord", "status", "--json", run=told["run-id"]))["result"]
    assert (status["member_id"], status["workspace_id"], status["task"]) == ("tess@desk", "default", "typing")
    assert told["run-id"].encode() in daemon.mergepub("coord", "run", "list").stdout
    daemon.mergepub("coord", "run", "stop", told["run-id"])
    assert told["run-id"].encode() not in daemon.mergepub("coord", "run", "list").stdout
    assert told["run-id"].encode() in daemon.mergepub("coord", "run", "list", "--all").stdout
    again = daemon.mergepub("coord", "run", "stop", told["run-id"], check=False)
    assert again.returncode == 3
    assert daemon.mergepub("coord", "run", "stop", "run-none", check=False).returncode == 4


def test_the_radar_is_rows_in_a_pipe_and_one_envelope_as_json(daemon: Living, sender: str) -> None:
    rows = daemon.mergepub("coord", "radar").stdout.decode()
    assert rows.startswith("run ")
    assert re.search(rf"{sender} +w +m +- +/docs/shared.md +run-", rows)
    picture = envelope(daemon.mergepub("coord", "radar", "--workspace", "w", "--json"))["result"]
    assert sender in [run["run_id"] for run in picture["runs"]]


def test_the_radar_is_a_live_table_on_a_terminal(daemon: Living, sender: str) -> None:
    seen = pexpect.spawn(
        str(SCRIPT), ["coord", "radar"], env=daemon.environment | {"TERM": "xterm"}, dimensions=(500, 300), timeout=60
    )
    seen.expect("radar at")
    seen.expect("radar at")  # drawn again; its rows are tested without a screen, which may be too small for all runs
    seen.sendintr()
    seen.expect(pexpect.EOF)
    seen.close()
    assert seen.exitstatus == 130


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_name_of_a_run_is_whole_on_any_screen(width: int) -> None:
    from rich.console import Console

    runs = [{"run_id": f"run-{i:012x}", "workspace_id": "w" * 30, "member_id": "m" * 90} for i in range(2)]
    more = {"life": "unknown", "observed": True, "files": ["/docs/" + "d" * 90], "file_total": 1}
    picture = {"at": "2027-01-15T08:00:00Z", "runs": [run | more for run in runs], "overlaps": []}
    console = Console(width=width, file=io.StringIO(), force_terminal=True)
    with console.capture() as seen:
        console.print(radar._table(picture))
    for run in runs:
        assert run["run_id"] in seen.get()


def test_without_a_daemon_the_operators_commands_say_how_to_start_one(daemon: Living) -> None:
    for command in (["radar"], ["run", "list"], ["timeline"], ["evidence", "list"]):
        done = daemon.mergepub("coord", *command, "--data-dir", "/nowhere", check=False)
        assert done.returncode == 4
        assert b"mergepub coord serve" in done.stderr
    told = daemon.mergepub("coord", "radar", "--json", "--data-dir", "/nowhere", check=False)
    assert envelope(told, 4)["error"]["data"] == {"reason": "no-socket"}


def test_a_crowd_is_cut_to_32_peers_and_16_files_with_the_totals_told(daemon: Living) -> None:
    documents = [f"/docs/crowd-{i:02}.md" for i in range(17)]
    folder = daemon.checkout("crowd", *documents)
    for document in documents:
        (folder / Path(document).name).write_bytes(b"edited\n")
    runs = [daemon.run(folder, workspace="crowd") for _ in range(33)]
    whole = envelope(daemon.mergepub("coord", "status", "--json", run=runs[0]))["result"]
    assert (len(whole["peers"]), whole["peer_total"], whole["peers_truncated"]) == (32, 32, False)
    daemon.run(folder, workspace="crowd")
    status = envelope(daemon.mergepub("coord", "status", "--json", run=runs[0]))["result"]
    assert (len(status["peers"]), status["peer_total"], status["peers_truncated"]) == (32, 33, True)
    peer = status["peers"][0]
    assert (peer["files"], peer["file_total"], peer["files_truncated"]) == (documents[:16], 17, True)
    (folder / "crowd-16.md").write_bytes(b"one\n")

    def seen() -> Any:
        return daemon.operator("radar.show", workspace="crowd")["overlaps"][0]

    wait_for(lambda: seen()["file_total"] == 16, "the revert is not seen")
    with daemon.client(runs[1]) as connection:
        peer = connection.result("coord.status")["peers"][0]
    assert (peer["files"], peer["file_total"], peer["files_truncated"]) == (documents[:16], 16, False)


def test_a_report_may_take_its_two_minutes_and_a_margin() -> None:
    assert client.REPORT_SECONDS > 120
    assert client._seconds("coord.report", {}) == client.REPORT_SECONDS
    assert client._seconds("coord.inbox", {"wait_seconds": 30}) > 30


def test_outside_a_run_the_default_directory_is_asked(daemon: Living) -> None:
    if Path(client.RUN_DIR).exists():
        pytest.skip("this machine has a run directory of its own")
    done = daemon.mergepub("coord", "inbox", check=False)
    assert b"/run/mergepub/coord3.sock" in done.stdout
