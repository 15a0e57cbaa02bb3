"""What lasts over a restart, and the radar on real checkouts."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.coord.living import PATIENCE, SCRIPT, Client, Living, living, wait_for


@pytest.fixture
def daemon() -> Iterator[Living]:
    with living("--quiet-seconds", "0.02", "--least-seconds", "0.05") as made:
        yield made


def status(daemon: Living, run: str) -> dict[str, Any]:
    """A run's status; a run that asked too often waits."""
    with daemon.client(run) as client:
        while "error" in (answer := client.ask("coord.status")):
            time.sleep(answer["error"]["data"]["retry_after"])
        found: dict[str, Any] = answer["result"]
        return found


def peers(daemon: Living, run: str) -> list[tuple[str, str, list[str]]]:
    return [(peer["run_id"], peer["state"], peer["files"]) for peer in status(daemon, run)["peers"]]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_runs_sockets_mail_and_peers_last_over_a_restart(daemon: Living, how: str) -> None:
    a, b = daemon.pair()
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="hello", idempotency_key="k")
    getattr(daemon, how)()
    daemon.start()
    assert status(daemon, b)["unread"] == 1
    assert peers(daemon, a) == [(b, "active", ["/docs/shared.md"])]
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="again", idempotency_key="k2")


def test_a_clean_stop_answers_who_waits_and_ends_with_status_0(daemon: Living) -> None:
    a, _ = daemon.pair()
    daemon.stop()
    reached = daemon.folder / "reached"
    program = Path(__file__).with_name("crashing.py")
    daemon._command = [sys.executable, str(program), daemon.url, str(daemon.data), "inbox:committed", str(reached)]
    daemon.start()
    with daemon.client(a) as client:
        line = {"jsonrpc": "2.0", "id": 1, "method": "coord.inbox", "params": {"wait_seconds": 30}}
        client.write(json.dumps(line).encode() + b"\n")
        wait_for(reached.exists, "the inbox is not read")
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGTERM)
        assert json.loads(client.line())["result"] == {"messages": [], "acked": False}
        assert client.is_closed()
    assert daemon.process.wait(PATIENCE) == 0
    assert not daemon.control.exists()


def test_edits_reverts_and_publishes_move_the_radar(daemon: Living) -> None:
    one, two = (daemon.checkout(name, "/docs/g.md") for name in ("one", "two"))
    a, b = daemon.run(one, "ann"), daemon.run(two, "ben")
    assert peers(daemon, a) == []
    (one / "g.md").write_bytes(b"edited by ann\n")
    (two / "g.md").write_bytes(b"edited by ben\n")
    wait_for(lambda: peers(daemon, a) == [(b, "active", ["/docs/g.md"])], "no overlap is seen")
    assert peers(daemon, b) == [(a, "active", ["/docs/g.md"])]
    wait_for(lambda: (daemon.socket(a).parent / "co-authors").read_text() != "", "no trailers")
    assert (daemon.socket(a).parent / "co-authors").read_text() == "Co-authored-by: ben <ben@localhost>\n"
    (two / "g.md").write_bytes(b"one\n")
    wait_for(lambda: peers(daemon, a) == [(b, "grace", [])], "the clearing is not seen")
    assert status(daemon, a)["peers"][0]["expires_at"].endswith("Z")
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="still", idempotency_key="k")
    (two / "g.md").write_bytes(b"edited again\n")
    wait_for(lambda: peers(daemon, a) == [(b, "active", ["/docs/g.md"])], "the overlap does not return")
    daemon.mergepub("push", "g.md", cwd=two, run=b)
    wait_for(lambda: peers(daemon, a) == [(b, "grace", [])], "a publish does not end it")


def test_a_queued_document_keeps_an_overlap_active_until_sync_has_stored_it(daemon: Living) -> None:
    one, two = (daemon.checkout(name, "/docs/g.md") for name in ("one", "two"))
    a, b = daemon.run(one), daemon.run(two)
    (one / "g.md").write_bytes(b"edited\n")
    queued = ("publish", "/docs/g.md", "-", "--expected-version", "1", "--queue")
    daemon.mergepub(*queued, cwd=two, input=b"queued\n")
    wait_for(lambda: peers(daemon, a) == [(b, "active", ["/docs/g.md"])], "the queue is not seen")
    daemon.mergepub("sync", cwd=two)
    wait_for(lambda: peers(daemon, a) == [(b, "grace", [])], "the sync is not seen")


def test_a_clearing_while_the_daemon_was_away_counts_from_before(daemon: Living) -> None:
    one, two = (daemon.checkout(name, "/docs/g.md") for name in ("one", "two"))
    a, b = daemon.run(one), daemon.run(two)
    for folder in (one, two):
        (folder / "g.md").write_bytes(b"edited\n")
    wait_for(lambda: len(peers(daemon, a)) == 1, "no overlap is seen")
    daemon.kill()
    (two / "g.md").write_bytes(b"one\n")
    daemon.start()
    wait_for(lambda: peers(daemon, a) == [(b, "grace", [])], "the clearing is not found")

    def changes() -> list[tuple[str, str]]:
        return sorted((c["run_id"], c["state"]) for c in daemon.operator("radar.show")["changes"])

    wait_for(lambda: len(changes()) >= 2, "the clearing is not told")  # once it is kept
    assert changes() == sorted([(a, "grace"), (b, "grace")])


def test_publish_and_push_warn_of_a_peer_inside_a_run_alone(daemon: Living) -> None:
    one, two = (daemon.checkout(name, "/docs/g.md") for name in ("one", "two"))
    a, b = daemon.run(one, "ann"), daemon.run(two, "ben")
    for folder in (one, two):
        (folder / "g.md").write_bytes(f"edited in {folder.name}\n".encode())
    wait_for(lambda: len(peers(daemon, a)) == 1, "no overlap is seen")
    quiet = daemon.mergepub("push", "g.md", "--dry-run", cwd=one)
    assert b"edited by" not in quiet.stderr
    warned = daemon.mergepub("push", "g.md", cwd=one, run=a)
    assert warned.stderr.decode().count(f"/docs/g.md is being edited by ben ({b}) too") == 1
    wait_for(lambda: peers(daemon, b) == [(a, "grace", [])], "the publish is not seen")
    after = daemon.mergepub("publish", "/docs/g.md", "g.md", cwd=two, run=b, check=False)
    assert b"being edited" not in after.stderr
    daemon.stop()
    gone = daemon.mergepub("push", "g.md", "--dry-run", cwd=two, run=b, check=False)
    assert b"socket" not in gone.stderr


def test_of_a_peer_with_more_files_than_are_told_a_publish_warns_that_it_may_be(daemon: Living) -> None:
    documents = [f"/docs/{i:02}.md" for i in range(20)]
    one, two = (daemon.checkout(name, *documents) for name in ("one", "two"))
    a, b = daemon.run(one, "ann"), daemon.run(two, "ben")
    for folder in (one, two):
        for document in documents[1:]:
            (folder / document.removeprefix("/docs/")).write_bytes(b"edited\n")
    wait_for(lambda: [p["file_total"] for p in status(daemon, a)["peers"]] == [19], "the overlap is not seen whole")
    (one / "00.md").write_bytes(b"edited by ann alone\n")
    alone = daemon.mergepub("publish", "/docs/00.md", "00.md", "--expected-version", "1", cwd=one, run=a)
    assert b"being edited" not in alone.stderr
    told = daemon.mergepub("push", "16.md", "19.md", cwd=one, run=a, check=False).stderr.decode()
    assert f"/docs/16.md is being edited by ben ({b}) too" in told
    assert f"/docs/19.md may be being edited by ben ({b}) too" in told


def test_with_coordination_off_there_is_no_socket_and_the_radar_goes_on() -> None:
    with living("--no-coordination", "--quiet-seconds", "0.02") as daemon:
        a, b = daemon.pair()
        assert {each.name for each in daemon.socket(a).parent.iterdir()} == {"co-authors", "off"}
        told = json.loads(daemon.mergepub("coord", "inbox", run=a, check=False).stdout)
        assert told["error"]["data"] == {"reason": "off"}
        picture = json.loads(daemon.mergepub("coord", "radar", "--json").stdout)["result"]
        assert [sorted(each["runs"]) for each in picture["overlaps"]] == [sorted([a, b])]
        assert daemon.mergepub("coord", "skill", run=a).stdout.startswith(b"How to coordinate")
        daemon._command.remove("--no-coordination")
        daemon.stop()
        daemon.start()
        assert status(daemon, a)["run_id"] == a


def test_a_second_daemon_is_refused_with_status_3(daemon: Living) -> None:
    second = daemon.mergepub("coord", "serve", check=False)
    assert second.returncode == 3
    assert b"another daemon serves" in second.stderr


def test_a_daemon_whose_directory_was_taken_away_ends_and_the_next_one_has_everything(daemon: Living) -> None:
    a, b = daemon.pair()
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="hello", idempotency_key="k")
    shutil.rmtree(daemon.data / "coord")
    assert daemon.process is not None
    assert daemon.process.wait(PATIENCE) == 3
    assert "was removed or exchanged while it was served" in daemon.log()
    daemon.start()
    assert status(daemon, b)["unread"] == 1


def test_a_daemon_without_an_open_file_left_says_so_once_and_goes_on(daemon: Living) -> None:
    daemon.stop()
    usual = daemon._command
    daemon._command = ["sh", "-c", 'ulimit -n 48; exec "$@"', "sh", *usual]
    daemon.start()
    runs = daemon.runs(3)
    clients = [daemon.client(run) for run in runs for _ in range(16)]
    wait_for(lambda: "Too many open files" in daemon.log(), "the limit is not met")
    for client in clients:
        client.socket.close()
    wait_for(lambda: daemon.operator("run.list")["runs"], "it does not accept again")
    assert daemon.log().count("socket.accept() out of system resource") == 1
    daemon._command = usual


def test_under_any_umask_evidence_is_the_users_own_and_readable(daemon: Living) -> None:
    (a,) = daemon.runs(1)
    daemon.stop()
    usual = daemon._command
    daemon._command = ["sh", "-c", 'umask 777; exec "$@"', "sh", *usual]
    daemon.start()
    daemon._command = usual
    wrapped = ("coord", "run", "--task", "t", "--", str(SCRIPT), "coord", "report")
    command = [str(SCRIPT), *wrapped, "--outcome", "success", "--summary", "done"]
    masked = ["sh", "-c", 'umask 777; exec "$@"', "sh", *command]
    done = subprocess.run(masked, env=daemon.environment, cwd=daemon.folder, capture_output=True, check=True)
    kept = daemon.data / "evidence" / json.loads(done.stdout)["result"]["evidence_ref"]
    assert kept.lstat().st_mode & 0o777 == 0o700
    assert (kept / "transcript").exists()
    assert {place.lstat().st_mode & 0o777 for place in kept.iterdir()} == {0o600}
    assert daemon.socket(a).lstat().st_mode & 0o777 == 0o666


def test_a_run_whose_process_is_gone_is_ended(daemon: Living) -> None:
    folder = daemon.checkout("one")
    process = subprocess.Popen(["sleep", "60"])
    made = daemon.operator("run.start", checkout=str(folder), task="t", member="m", pid=process.pid)
    process.kill()
    process.wait()
    wait_for(lambda: daemon.operator("run.list")["runs"] == [], "the run goes on without its process")
    wait_for(lambda: not daemon.socket(made["run_id"]).parent.exists(), "its directory stays")


def test_a_run_that_had_ended_in_the_store_alone_is_let_go_of(daemon: Living) -> None:
    """As after a write whose answer was lost."""
    a, b = daemon.pair()
    with closing(sqlite3.connect(daemon.folder / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE coord_runs SET state = 'finished' WHERE id = ?", [a])
    with Client(daemon.control) as client:
        assert client.error("run.stop", run_id=a) == (-32002, None)
    assert not daemon.socket(a).parent.exists()
    assert peers(daemon, b) == []


def test_a_store_that_is_no_database_cannot_be_coordinated_over(daemon: Living) -> None:
    done = daemon.mergepub("coord", "serve", "--store", "memory:", check=False)
    assert done.returncode == 2
    assert b"needs the database itself" in done.stderr


def test_a_foreign_file_in_the_place_of_one_runs_socket_stops_no_other(daemon: Living) -> None:
    a, b = daemon.pair()
    daemon.kill()
    daemon.socket(a).unlink()
    daemon.socket(a).write_text("mine")
    daemon.start()
    assert daemon.socket(a).read_text() == "mine"
    assert "not what belongs there" in daemon.log()
    assert status(daemon, b)["run_id"] == b


def test_the_operators_socket_is_the_users_own(daemon: Living) -> None:
    assert daemon.control.lstat().st_mode & 0o777 == 0o600
    with Client(daemon.control) as client:
        assert client.result("run.list") == {"runs": []}
    assert SCRIPT.exists()
