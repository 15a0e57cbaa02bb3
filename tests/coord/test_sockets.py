"""The daemon's sockets, as real clients meet them: lines, bounds, connections, mail, waiting."""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.coord.living import PATIENCE, Client, Living, living, wait_for

STATUS = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "coord.status"}).encode()


@pytest.fixture(scope="module")
def daemon() -> Iterator[Living]:
    with living("--write-seconds", "0.5", "--quiet-seconds", "0.02") as made:
        yield made


@pytest.fixture(scope="module")
def frugal() -> Iterator[Living]:
    """A daemon whose budgets do not refill."""
    with living(program=(sys.executable, str(Path(__file__).with_name("frugal.py")))) as made:
        yield made


@pytest.fixture(scope="module")
def pool(daemon: Living) -> Iterator[str]:
    """Runs that edit one document, a fresh one each time it is asked for; the first of them stays."""
    yield from daemon.runs(1)


@pytest.fixture
def a(daemon: Living, pool: str) -> str:
    return str(daemon.runs(1)[0])


@pytest.fixture
def b(daemon: Living, pool: str) -> str:
    return str(daemon.runs(1)[0])


# ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_in_pieces_is_one_request_and_two_in_one_piece_are_two(daemon: Living, a: str) -> None:
    with daemon.client(a) as client:
        for byte in STATUS:
            client.write(bytes([byte]))
        client.write(b"\n")
        assert json.loads(client.line())["result"]["run_id"] == a
        client.write(b"\n\n  \n" + STATUS + b"\n" + STATUS.replace(b"1,", b"2,", 1) + b"\r\n")
        assert [json.loads(client.line())["id"] for _ in range(2)] == [1, 2]


def test_a_line_that_is_cut_off_by_the_end_is_no_request(daemon: Living, a: str) -> None:
    with daemon.client(a) as client:
        client.write(STATUS)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed()


def test_a_client_that_has_no_more_to_ask_is_still_answered(daemon: Living, a: str) -> None:
    with daemon.client(a) as client:
        client.write(STATUS + b"\n")
        client.socket.shutdown(socket.SHUT_WR)
        assert json.loads(client.line())["result"]["run_id"] == a
        assert client.is_closed()


def padded(size: int) -> bytes:
    """A request whose line has ``size`` bytes with its newline."""
    return STATUS + b" " * (size - len(STATUS) - 1) + b"\n"


def test_a_line_of_64_kib_with_its_newline_is_answered_and_one_byte_more_closes_unanswered(
    daemon: Living, a: str
) -> None:
    with daemon.client(a) as client:
        client.write(padded(65536))
        assert json.loads(client.line())["result"]["run_id"] == a
        client.write(padded(65537))
        assert client.is_closed()
    with daemon.client(a) as client:
        client.write(b"x" * 65536)
        assert client.is_closed()


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (bytes(range(1, 10)) + bytes(range(11, 256)), -32700, None),
        (b"{" * 30_000, -32700, None),
        (b"[" * 60_000 + b"]" * 5_000, -32700, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc":"2.0","method":"coord.status"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"x","method":"coord.nothing"}', -32601, "x"),
        (b'{"jsonrpc":"2.0","id":5,"method":"run.start","params":{}}', -32601, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"coord.status","params":[]}', -32602, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"coord.status","params":{"run_id":"x"}}', -32602, 5),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"coord.send","params":{"to_run_id":"r","body":"\\ud800","idempotency_key":"k"}}',
            -32602,
            5,
        ),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"coord.send","params":{"to_run_id":"r","body":"\\u0000","idempotency_key":"k"}}',
            -32602,
            5,
        ),
    ],
)
def test_junk_is_answered_by_its_code_and_the_connection_lives_on(
    daemon: Living, a: str, line: bytes, code: int, id: Any
) -> None:
    with daemon.client(a) as client:
        client.write(line + b"\n")
        answer = json.loads(client.line())
        assert (answer["error"]["code"], answer["id"]) == (code, id)
        assert client.result("coord.status")["run_id"] == a


def test_the_control_socket_knows_other_methods_than_a_run(daemon: Living) -> None:
    with Client(daemon.control) as client:
        assert client.error("coord.status") == (-32601, None)
        assert client.error("run.stop", run_id="run-none") == (-32000, None)
        assert client.error("evidence.show", evidence_ref="none") == (-32000, None)
        assert client.error("run.start", checkout="relative", task="t", member="m") == (-32602, None)
        assert client.error("run.start", checkout="/nowhere/at/all", task="t", member="m") == (-32000, None)


# ── bounds of connections ───────────────────────────────────────────────────────────────────────────────────────────


def test_sixteen_connections_are_served_and_the_seventeenth_is_closed_at_once(daemon: Living, a: str) -> None:
    clients = [daemon.client(a) for _ in range(16)]
    try:
        assert all(client.result("coord.status")["run_id"] == a for client in clients)
        with daemon.client(a) as one_more:
            assert one_more.is_closed()
        clients.pop().socket.close()
        wait_for(lambda: is_served(daemon, a), "a place that became free is not given again")
    finally:
        for client in clients:
            client.socket.close()


def is_served(daemon: Living, run: str) -> bool:
    with daemon.client(run) as client:
        try:
            return "result" in client.ask("coord.status")
        except (AssertionError, OSError):
            return False


def test_an_idle_connection_is_closed_and_empty_lines_are_no_life() -> None:
    with living("--idle-seconds", "0.3") as daemon:
        (a,) = daemon.runs(1)
        with daemon.client(a) as client, daemon.client(a) as whisperer:
            whisperer.socket.settimeout(0.02)
            wait_for(lambda: not whispers(whisperer), "empty lines keep a connection")
            assert client.is_closed()


def whispers(client: Client) -> bool:
    """Whether the connection still stands after one more empty line."""
    try:
        client.socket.sendall(b"\n")
        return client.socket.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def test_half_open_connections_hurt_nobody(daemon: Living, a: str) -> None:
    for _ in range(40):
        with daemon.client(a) as client, suppress(OSError):  # one too many is closed while it writes
            client.write(STATUS[:10])
    wait_for(lambda: is_served(daemon, a), "half-open connections keep their places")


def test_a_client_that_never_reads_is_cut_off_and_others_are_served(daemon: Living, a: str, b: str) -> None:
    for i in range(5):
        with daemon.client(a) as client:
            client.result("coord.send", to_run_id=b, body="x" * 4096, idempotency_key=f"k{i}")
    with daemon.client(b) as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "coord.inbox"}).encode() + b"\n"
        deaf.write(request * 30)
        assert is_served(daemon, a)
        ended = select.poll()
        ended.register(deaf.socket, 0)
        wait_for(lambda: any(events & select.POLLHUP for _, events in ended.poll(0)), "it may stay as long as it likes")
        received = 0
        with_more = True
        while with_more:
            try:
                data = deaf.socket.recv(1 << 16)
            except ConnectionError:
                break
            received += len(data)
            with_more = bool(data)
        assert received < 30 * 5 * 4096


# ── budgets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_thirty_lines_are_taken_whatever_they_hold_and_then_it_is_refused_by_id_or_closed(frugal: Living) -> None:
    (a,) = frugal.runs(1)
    with frugal.client(a) as client:
        for _ in range(30):
            client.write(b"junk\n")
            assert json.loads(client.line())["error"]["code"] == -32700
        client.write(STATUS + b"\n")
        answer = json.loads(client.line())
        assert (answer["id"], answer["error"]["code"]) == (1, -32003)
        assert answer["error"]["data"]["reason"] == "rate-limited"
        assert answer["error"]["data"]["retry_after"] > 0
        client.write(b"junk\n")
        assert client.is_closed()
    with frugal.client(a) as client:  # they are the run's, not the connection's
        assert client.error("coord.status") == (-32003, "rate-limited")


def test_after_a_pause_lines_are_taken_again(daemon: Living, a: str) -> None:
    with daemon.client(a) as client:
        client.write((STATUS + b"\n") * 40)
        answers = [json.loads(client.line()) for _ in range(40)]
    assert all("result" in answer for answer in answers[:30])
    wait_for(lambda: is_served(daemon, a), "a run that asked too often is never answered again")


def test_five_sends_go_out_at_once_and_a_refused_one_has_spent_its_token(frugal: Living) -> None:
    a, b = frugal.pair()
    with frugal.client(a) as client:
        assert client.error("coord.send", to_run_id="run-none", body="x", idempotency_key="k0") == (-32000, None)
        for i in range(2):
            client.result("coord.send", to_run_id=b, body="x", idempotency_key=f"s{i}")
        for i in range(2):
            client.result("coord.ask", to_run_id=b, body="x", idempotency_key=f"a{i}")
        refused = client.ask("coord.send", to_run_id=b, body="x", idempotency_key="s9")["error"]
        assert (refused["code"], refused["data"]["reason"]) == (-32003, "rate-limited")
        assert refused["data"]["retry_after"] > 0
        again = client.result("coord.send", to_run_id=b, body="x", idempotency_key="s0")
        assert again["message_id"].startswith("msg-")
        assert client.error("coord.send", to_run_id=b, body="y", idempotency_key="s0") == (-32003, "key-reused")


def test_a_reply_spends_of_the_same_budget(frugal: Living) -> None:
    a, b = frugal.pair()
    with frugal.client(a) as client:
        question = client.result("coord.ask", to_run_id=b, body="x", idempotency_key="q")["question_id"]
    with frugal.client(b) as client:
        for i in range(5):
            client.result("coord.send", to_run_id=a, body="x", idempotency_key=f"s{i}")
        refused = client.error("coord.reply", question_id=question, body="x", idempotency_key="r")
        assert refused == (-32003, "rate-limited")


def test_ten_inbox_reads_go_at_once_and_the_eleventh_waits(frugal: Living) -> None:
    (a,) = frugal.runs(1)
    with frugal.client(a) as client:
        for _ in range(10):
            assert client.result("coord.inbox") == {"messages": [], "acked": False}
        assert client.error("coord.inbox") == (-32003, "rate-limited")


def test_over_the_budget_the_exit_status_of_a_command_is_3_and_the_pause_is_told(frugal: Living) -> None:
    a, b = frugal.pair()
    with frugal.client(a) as client:
        for i in range(5):
            client.result("coord.send", to_run_id=b, body="x", idempotency_key=f"k{i}")
    done = frugal.mergepub("coord", "send", "--to", b, "x", run=a, check=False)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["data"]["reason"]) == (3, "rate-limited")
    assert error["data"]["retry_after"] > 0


# ── status and mail ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_status_says_who_one_is_and_who_the_peers_are(daemon: Living) -> None:
    folder = daemon.checkout("alone", "/docs/alone.md")
    (folder / "alone.md").write_bytes(b"edited\n")
    task = "\u00e9" * 300
    one = daemon.run(folder, "ann", "status", task)
    two = daemon.run(folder, "ben", "status", "short")
    with daemon.client(one) as client:
        status = client.result("coord.status")
    assert {k: v for k, v in status.items() if k != "peers"} == {
        "wire_version": "v3",
        "run_id": one,
        "workspace_id": "status",
        "member_id": "ann",
        "task": "\u00e9" * 256,
        "task_bytes": 600,
        "task_truncated": True,
        "peer_total": 1,
        "peers_truncated": False,
        "unread": 0,
        "capabilities": ["coord.status", "coord.send", "coord.inbox", "coord.ask", "coord.reply", "coord.report"],
    }
    assert status["peers"] == [
        {
            "run_id": two,
            "member_id": "ben",
            "task": "short",
            "task_bytes": 5,
            "task_truncated": False,
            "files": ["/docs/alone.md"],
            "file_total": 1,
            "files_truncated": False,
            "state": "active",
        }
    ]


def test_who_may_be_written_to(daemon: Living, a: str) -> None:
    elsewhere = daemon.run(daemon.folder / "shared", workspace="other")
    idle = daemon.run(daemon.checkout("idle"))
    ended = daemon.run(daemon.folder / "shared")
    daemon.operator("run.stop", run_id=ended)
    with daemon.client(a) as client:

        def send(to: str) -> tuple[int, str | None]:
            return client.error("coord.send", to_run_id=to, body="x", idempotency_key=f"to-{to}")

        assert send(a) == (-32602, None)
        assert send("run-none") == (-32000, None)
        assert send(ended) == (-32004, "finished")
        assert send(elsewhere) == (-32001, "other-workspace")
        assert send(idle) == (-32001, "not-a-peer")
        assert client.error("coord.reply", question_id="none", body="x", idempotency_key="r") == (-32000, None)


def test_a_reply_to_what_is_no_question_is_not_found_whatever_it_is(daemon: Living, a: str, b: str) -> None:
    with daemon.client(a) as client:
        message = client.result("coord.send", to_run_id=b, body="x", idempotency_key="k")["message_id"]
        for name in (a, message):
            refused = client.error("coord.reply", question_id=name, body="x", idempotency_key=f"to-{name}")
            assert refused == (-32000, None)


def test_a_waiting_read_is_ended_by_a_message(daemon: Living, a: str, b: str) -> None:
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        with daemon.client(b) as client:
            answers.append(client.result("coord.inbox", wait_seconds=30))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    assert not answers
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="now", idempotency_key="k")
    waiting.join(PATIENCE)
    assert [m["body"] for m in answers[0]["messages"]] == ["now"]


def test_a_waiting_read_acknowledges_first_and_ends_at_its_time(daemon: Living, a: str, b: str) -> None:
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="x", idempotency_key="k")
    with daemon.client(b) as client:
        token = client.result("coord.inbox")["ack_token"]
        began = time.monotonic()
        assert client.result("coord.inbox", ack_token=token, wait_seconds=0.3) == {"messages": [], "acked": True}
        assert time.monotonic() - began > 0.25


def test_a_waiting_read_whose_client_left_frees_its_place(daemon: Living, a: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "coord.inbox", "params": {"wait_seconds": 30}}
    line = json.dumps(request).encode()
    for _ in range(8):
        with daemon.client(a) as client:
            client.write(line + b"\n")
    clients = [daemon.client(a) for _ in range(16)]
    try:
        wait_for(lambda: sum(client_lives(client) for client in clients) >= 1, "places stay taken")
    finally:
        for client in clients:
            client.socket.close()


def client_lives(client: Client) -> bool:
    try:
        return "result" in client.ask("coord.status")
    except (AssertionError, OSError):
        return False


def test_the_lifecycle_hook_is_seen_by_the_operator_and_is_no_capability(daemon: Living, a: str) -> None:
    with daemon.client(a) as client:
        assert client.result("run.report", state="waiting", reason="a question")["state"] == "waiting"
        assert "run.report" not in client.result("coord.status")["capabilities"]
    runs = {run["run_id"]: run for run in daemon.operator("radar.show")["runs"]}
    assert (runs[a]["life"], runs[a]["life_reason"]) == ("waiting", "a question")


def test_a_run_that_is_stopped_loses_its_socket_and_its_connections(daemon: Living, a: str) -> None:
    with daemon.client(a) as client:
        client.result("coord.status")
        daemon.operator("run.stop", run_id=a)
        assert client.is_closed()
    assert not daemon.socket(a).parent.exists()
    with Client(daemon.control) as operator:
        assert operator.error("run.stop", run_id=a) == (-32002, None)
