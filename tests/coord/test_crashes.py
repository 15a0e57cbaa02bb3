"""``kill -9`` of the daemon at every step of a send, an inbox read, an acknowledgement and a report; then a restart.

Nothing is there twice, nothing that was answered is lost, tokens stay valid.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.coord.living import Living, living, wait_for

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
