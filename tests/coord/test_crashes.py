"""``kill -9`` of the daemon at every step of a send, an inbox read, an acknowledgement and a report; then a restart.

Nothing is there twice, nothing that was answered is lost, tokens stay valid.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.coord.living import PATIENCE, Living, living, wait_for

CRASHING = Path(__file__).with_name("crashing.py")
POINTS = ("before", "uncommitted", "committed")
# Every point on SQLite; on PostgreSQL, which is slower to start, where the databases may differ.
CASES = [*(("sqlite", point) for point in POINTS), ("postgresql", "uncommitted"), ("postgresql", "committed")]
each_point = pytest.mark.parametrize(("daemon", "point"), CASES, indirect=["daemon"])


@pytest.fixture
def daemon(request: pytest.FixtureRequest) -> Iterator[Living]:
    url = None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    with living(url=url) as made:
        yield made


def crash_at(daemon: Living, step: str) -> None:
    """Exchange the daemon for one that dies at ``step``."""
    if daemon.process is not None:
        daemon.stop()
    usual = daemon._command
    daemon._command = [sys.executable, str(CRASHING), daemon.url, str(daemon.data), step]
    daemon.start()
    daemon._command = usual


def dies(daemon: Living, run: str, method: str, **params: Any) -> None:
    """Ask for what kills it."""
    with daemon.client(run) as client, pytest.raises((AssertionError, OSError)):
        client.ask(method, **params)
    daemon.wait_dead()


def mail_of(daemon: Living, run: str) -> dict[str, Any]:
    with daemon.client(run) as client:
        return client.result("coord.inbox")


def timeline(daemon: Living) -> list[str]:
    return [entry["kind"] for entry in daemon.operator("timeline.show", workspace="w")["entries"]]


@each_point
@pytest.mark.parametrize("method", ["coord.send", "coord.ask"])
def test_a_send_that_was_cut_off_is_there_once_after_its_repetition(daemon: Living, method: str, point: str) -> None:
    a, b = daemon.pair()
    crash_at(daemon, f"{method.removeprefix('coord.')}:{point}")
    message = {"to_run_id": b, "body": "hello", "idempotency_key": "k"}
    dies(daemon, a, method, **message)
    daemon.start()
    assert timeline(daemon) == ([] if point != "committed" else ["question" if method == "coord.ask" else "message"])
    with daemon.client(a) as client:
        first = client.result(method, **message)
        assert client.result(method, **message) == first
    (found,) = mail_of(daemon, b)["messages"]
    assert found["id"] in first.values()
    assert len(timeline(daemon)) == 1


@each_point
def test_a_reply_that_was_cut_off_is_there_once_after_its_repetition(daemon: Living, point: str) -> None:
    a, b = daemon.pair()
    with daemon.client(a) as client:
        question = client.result("coord.ask", to_run_id=b, body="may I?", idempotency_key="q")["question_id"]
    crash_at(daemon, f"reply:{point}")
    reply = {"question_id": question, "body": "yes", "idempotency_key": "r"}
    dies(daemon, b, "coord.reply", **reply)
    daemon.start()
    with daemon.client(b) as client:
        client.result("coord.reply", **reply)
    assert [m["correlation_id"] for m in mail_of(daemon, a)["messages"]] == [question]
    assert timeline(daemon) == ["question", "reply"]


@each_point
def test_a_read_that_was_cut_off_loses_no_message(daemon: Living, point: str) -> None:
    a, b = daemon.pair()
    with daemon.client(a) as client:
        sent = client.result("coord.send", to_run_id=b, body="hello", idempotency_key="k")["message_id"]
    crash_at(daemon, f"inbox:{point}")
    dies(daemon, b, "coord.inbox")
    daemon.start()
    batch = mail_of(daemon, b)
    assert [m["id"] for m in batch["messages"]] == [sent]
    assert mail_of(daemon, b) == batch


@each_point
def test_an_acknowledgement_that_was_cut_off_takes_exactly_its_batch(daemon: Living, point: str) -> None:
    a, b = daemon.pair()
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="one", idempotency_key="k1")
        token = mail_of(daemon, b)["ack_token"]
        client.result("coord.send", to_run_id=b, body="two", idempotency_key="k2")
    crash_at(daemon, f"inbox:{point}")
    dies(daemon, b, "coord.inbox", ack_token=token)
    daemon.start()
    with daemon.client(b) as client:
        answer = client.result("coord.inbox", ack_token=token)
    assert answer["acked"] is (point != "committed")
    assert [m["body"] for m in answer["messages"]] == ["two"]


@pytest.mark.parametrize("daemon", ["sqlite", "postgresql"], indirect=True)
def test_a_token_from_before_a_kill_acknowledges_after_it(daemon: Living) -> None:
    a, b = daemon.pair()
    with daemon.client(a) as client:
        client.result("coord.send", to_run_id=b, body="one", idempotency_key="k1")
    batch = mail_of(daemon, b)
    daemon.kill()
    daemon.start()
    assert mail_of(daemon, b) == batch
    with daemon.client(b) as client:
        assert client.result("coord.inbox", ack_token=batch["ack_token"]) == {"messages": [], "acked": True}


RESERVED = ["reserve:committed", "capture:before", "capture:done"]
LATER = [f"{step}:{point}" for step in ("finalise", "publish", "mark") for point in POINTS]


STEPS = ["reserve:before", "reserve:uncommitted", *RESERVED, *LATER]
ON_POSTGRESQL = [("postgresql", step) for step in ("capture:done", "finalise:committed", "publish:committed")]


@pytest.mark.parametrize(
    ("daemon", "step"), [*(("sqlite", step) for step in STEPS), *ON_POSTGRESQL], indirect=["daemon"]
)
def test_a_report_that_was_cut_off_is_finished_once(daemon: Living, step: str) -> None:
    a, _ = daemon.pair()
    crash_at(daemon, step)
    report = {"outcome": "success", "summary": "done", "idempotency_key": "k"}
    dies(daemon, a, "coord.report", **report)
    daemon.start()
    reserved = step not in {"reserve:before", "reserve:uncommitted"}
    if reserved:
        wait_for(lambda: states(daemon) == ["published"], "the report is not finished by itself")
    with daemon.client(a) as client:
        first = client.result("coord.report", **report)
        assert client.result("coord.report", **report) == first
        assert client.error("coord.report", outcome="failure", summary="x", idempotency_key="k2") == (
            -32003,
            "key-reused",
        )
    assert states(daemon) == ["published"]
    assert timeline(daemon) == ["report"]
    kept = daemon.operator("evidence.list")["evidence"]
    assert [each["evidence_ref"] for each in kept] == [first["evidence_ref"]]


def states(daemon: Living) -> list[str]:
    return [report["state"] for report in daemon.operator("report.list")["reports"]]


@pytest.mark.parametrize(("daemon", "point"), CASES[:3], indirect=["daemon"])
def test_an_end_that_was_cut_off_leaves_a_run_or_none(daemon: Living, point: str) -> None:
    a, b = daemon.pair()
    crash_at(daemon, f"end:{point}")
    with pytest.raises((AssertionError, OSError)):
        daemon.operator("run.stop", run_id=a)
    daemon.wait_dead()
    daemon.start()
    living_runs = [run["run_id"] for run in daemon.operator("run.list")["runs"]]
    assert sorted(living_runs) == sorted([b] if point == "committed" else [a, b])
    assert daemon.socket(a).exists() is (point != "committed")
    assert daemon.socket(a).parent.exists() is (point != "committed")


class Persistent:
    """A client that repeats each call with the same parameters until it is answered, over any number of restarts."""

    def __init__(self, daemon: Living, run: str) -> None:
        self._daemon = daemon
        self._run = run

    def result(self, method: str, **params: Any) -> dict[str, Any]:
        give_up = time.monotonic() + 3 * PATIENCE
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError, AssertionError), self._daemon.client(self._run) as client:
                answer = client.ask(method, **params)
                if "result" in answer:
                    found: dict[str, Any] = answer["result"]
                    return found
            time.sleep(0.05)
        raise AssertionError(f"{method} is never answered")


def write_five(client: Persistent, to: str, sent: list[str]) -> None:
    message = {"to_run_id": to, "body": "x"}
    sent += [client.result("coord.send", **message, idempotency_key=f"k{i}")["message_id"] for i in range(5)]


def read_five(client: Persistent, taken: list[str]) -> None:
    """Read until five messages have come, and acknowledge them all."""
    token = None
    while len(taken) < 5 or token:
        answer = client.result("coord.inbox", wait_seconds=1, **({"ack_token": token} if token else {}))
        taken += [message["id"] for message in answer["messages"] if message["id"] not in taken]
        token = answer.get("ack_token")


@pytest.mark.parametrize("daemon", ["sqlite", "postgresql"], indirect=True)
def test_kills_at_random_moments_under_load_lose_and_double_nothing(daemon: Living) -> None:
    """Each run sends five messages to the next; all read and acknowledge; the daemon dies again and again."""
    runs = daemon.runs(6)
    clients = [Persistent(daemon, run) for run in runs]
    sent: list[str] = []
    taken: list[list[str]] = [[] for _ in runs]
    writers = [(client, runs[(i + 1) % 6], sent) for i, client in enumerate(clients)]
    threads = [threading.Thread(target=write_five, args=args) for args in writers]
    threads += [threading.Thread(target=read_five, args=args) for args in zip(clients, taken, strict=True)]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    for _ in range(5):
        time.sleep(chance.uniform(0.1, 0.8))
        daemon.kill()
        daemon.start()
    for thread in threads:
        thread.join(4 * PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    entries = daemon.operator("timeline.show", workspace="w")["entries"]
    assert len(entries) == 30
    assert sorted(entry["id"] for entry in entries) == sorted(sent)
    assert sorted(each for ids in taken for each in ids) == sorted(sent)
    for run in runs:
        with daemon.client(run) as client:
            assert client.result("coord.status")["unread"] == 0
