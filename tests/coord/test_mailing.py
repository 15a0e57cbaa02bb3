"""Mail on both databases: the order of a send's checks, keys, caps, inboxes, the timeline."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mergepub.coord import wire
from mergepub.coord.mailing import Draft, Gate, count_unread, deliver, read_inbox
from mergepub.coord.state import State
from mergepub.coord.wire import CoordError
from tests.coord.conftest import started

if TYPE_CHECKING:
    from mergepub.coord.records import Run


def nothing(*_: Any) -> None:
    """Everything is allowed."""


OPEN = Gate(nothing, nothing)


def send(state: State, own: Run, to: Run | str, body: str = "hello", key: str = "k", *, gate: Gate = OPEN) -> str:
    return deliver(state, own, Draft("coord.send", to if isinstance(to, str) else to.id, body, key), gate)[0]


def ask(state: State, own: Run, to: Run, body: str = "may I?", key: str = "q") -> str:
    return deliver(state, own, Draft("coord.ask", to.id, body, key), OPEN)[0]


def reply(state: State, own: Run, question: str, body: str = "yes", key: str = "r") -> str:
    return deliver(state, own, Draft("coord.reply", question, body, key), OPEN)[0]


def refused(call: Callable[[], object]) -> tuple[int, str | None]:
    with pytest.raises(CoordError) as caught:
        call()
    return caught.value.code, caught.value.reason


def no(code: int, reason: str) -> Callable[..., None]:
    def refuse(*_: Any) -> None:
        raise CoordError(code, "coord.send: no", reason)

    return refuse


def test_a_message_arrives_once_with_all_its_fields(state: State) -> None:
    a, b = started(state, "ann"), started(state, "ben")
    sent = send(state, a, b, "h\u00e9llo\nthere")
    answer = read_inbox(state, b, None)
    assert answer["acked"] is False
    assert answer["ack_token"]
    (message,) = answer["messages"]
    created = message.pop("created_at")
    assert created.startswith("2027-01-15T08:00:00")
    assert created.endswith("Z")
    assert message == {"id": sent, "kind": "message", "from_run_id": a.id, "body": "h\u00e9llo\nthere"}
    assert read_inbox(state, a, None) == {"messages": [], "acked": False}


def test_a_question_is_replied_to_and_the_reply_names_it(state: State) -> None:
    a, b = started(state), started(state)
    question = ask(state, a, b)
    assert [m["kind"] for m in read_inbox(state, b, None)["messages"]] == ["question"]
    answer = reply(state, b, question)
    (message,) = read_inbox(state, a, None)["messages"]
    assert (message["id"], message["kind"], message["correlation_id"]) == (answer, "reply", question)


def test_the_same_key_and_inputs_give_the_first_receipt_without_rate_or_authorisation(state: State) -> None:
    a, b = started(state), started(state)
    first = send(state, a, b)
    closed = Gate(no(wire.CONFLICT, "rate-limited"), no(wire.DENIED, "not-a-peer"))
    assert send(state, a, b, gate=closed) == first
    assert count_unread(state, b.id) == 1
    assert len(state.timeline("w")) == 1


@pytest.mark.parametrize("change", ["body", "target", "method"])
def test_the_same_key_with_other_inputs_is_refused_before_the_rate(state: State, change: str) -> None:
    a, b, c = started(state), started(state), started(state)
    send(state, a, b)
    draft = Draft("coord.send", b.id, "hello", "k")
    changes = {"body": {"body": "x"}, "target": {"target": c.id}, "method": {"method": "coord.ask"}}
    other = replace(draft, **changes[change])
    closed = Gate(no(wire.CONFLICT, "rate-limited"), nothing)
    assert refused(lambda: deliver(state, a, other, closed)) == (wire.CONFLICT, "key-reused")


def test_keys_belong_to_their_run(state: State) -> None:
    a, b = started(state), started(state)
    assert send(state, a, b, key="same") != send(state, b, a, key="same")


def test_the_rate_comes_before_the_target(state: State) -> None:
    a = started(state)
    closed = Gate(no(wire.CONFLICT, "rate-limited"), nothing)
    assert refused(lambda: send(state, a, "run-nobody", gate=closed)) == (wire.CONFLICT, "rate-limited")


def test_an_unknown_target_is_not_found(state: State) -> None:
    a, b = started(state), started(state)
    assert refused(lambda: send(state, a, "run-nobody")) == (wire.NOT_FOUND, None)
    message = send(state, a, b)
    for question in ("question-none", message):
        assert refused(lambda question=question: reply(state, b, question)) == (wire.NOT_FOUND, None)  # type: ignore[misc]  # the loop's value is bound by the default


def test_a_finished_target_comes_before_the_authorisation(state: State) -> None:
    a, b = started(state), started(state)
    state.end(b.id)
    closed = Gate(nothing, no(wire.DENIED, "not-a-peer"))
    assert refused(lambda: send(state, a, b, gate=closed)) == (wire.UNAVAILABLE, "finished")


def test_the_authorisation_comes_before_the_peer_cap(state: State) -> None:
    a = started(state)
    for i in range(8):
        send(state, a, started(state), key=f"k{i}")
    closed = Gate(nothing, no(wire.DENIED, "not-a-peer"))
    assert refused(lambda: send(state, a, started(state), gate=closed)) == (wire.DENIED, "not-a-peer")


def test_eight_peers_may_be_opened_and_no_ninth_but_open_ones_stay_usable(state: State) -> None:
    a = started(state)
    peers = [started(state) for _ in range(9)]
    for i, peer in enumerate(peers[:8]):
        send(state, a, peer, key=f"k{i}")
    assert refused(lambda: send(state, a, peers[8], key="k8")) == (wire.CONFLICT, "peer-cap")
    assert send(state, a, peers[0], key="again")
    question = ask(state, peers[8], a)
    assert reply(state, a, question)
    assert refused(lambda: send(state, a, peers[8], key="k9")) == (wire.CONFLICT, "peer-cap")


def test_a_refused_send_opens_no_peer(state: State) -> None:
    a = started(state)
    peers = [started(state) for _ in range(9)]
    closed = Gate(nothing, no(wire.DENIED, "not-a-peer"))
    refused(lambda: send(state, a, peers[8], gate=closed))
    for i, peer in enumerate(peers[:8]):
        send(state, a, peer, key=f"k{i}")


def test_the_hundredth_message_is_taken_and_the_next_refused_until_some_are_acknowledged(state: State) -> None:
    a, b = started(state), started(state)
    for i in range(100):
        send(state, a, b, key=f"k{i}")
    assert refused(lambda: send(state, a, b, key="k100")) == (wire.CONFLICT, "inbox-full")
    token = read_inbox(state, b, None)["ack_token"]
    assert refused(lambda: send(state, a, b, key="k100")) == (wire.CONFLICT, "inbox-full")
    assert read_inbox(state, b, token) == {"messages": [], "acked": True}
    assert send(state, a, b, key="k100")


def test_a_full_inbox_refuses_replies_too_and_opens_no_peer_for_a_send(state: State) -> None:
    a, b, c = started(state), started(state), started(state)
    question = ask(state, b, c)
    for i in range(100):
        send(state, a, b, key=f"k{i}")
    assert refused(lambda: reply(state, c, question)) == (wire.CONFLICT, "inbox-full")
    assert refused(lambda: send(state, c, b)) == (wire.CONFLICT, "inbox-full")
    assert state.read(lambda tx: tx.rows("SELECT peer FROM coord_opened WHERE run = ?", c.id)) == []


def test_a_question_is_replied_to_by_the_one_it_was_asked(state: State) -> None:
    a, b, c = started(state), started(state), started(state)
    question = ask(state, a, b)
    assert refused(lambda: reply(state, c, question)) == (wire.DENIED, "not-yours")
    state.end(a.id)
    assert refused(lambda: reply(state, b, question)) == (wire.UNAVAILABLE, "finished")


def test_a_reply_needs_no_authorisation_but_its_question(state: State) -> None:
    a, b = started(state), started(state)
    question = ask(state, a, b)
    after_grace = Gate(nothing, no(wire.DENIED, "not-a-peer"))
    for key in ("r1", "r2"):
        assert deliver(state, b, Draft("coord.reply", question, "yes", key), after_grace)[1] == a.id
    assert state.read(lambda tx: tx.rows("SELECT peer FROM coord_opened WHERE run = ?", b.id)) == []


def test_a_reply_never_crosses_workspaces(state: State) -> None:
    a, b = started(state), started(state)
    question = ask(state, a, b)
    state.write("test", lambda tx: tx.run("UPDATE coord_runs SET workspace = 'elsewhere' WHERE id = ?", a.id))
    assert refused(lambda: reply(state, b, question)) == (wire.DENIED, "other-workspace")


def test_one_batch_is_outstanding_and_its_token_alone_acknowledges_it(state: State) -> None:
    a, b = started(state), started(state)
    send(state, a, b, "one", "k1")
    first = read_inbox(state, b, None)
    send(state, a, b, "two", "k2")
    assert read_inbox(state, b, None) == first
    wrong = read_inbox(state, b, "ack-wrong")
    assert wrong == first
    second = read_inbox(state, b, first["ack_token"])
    assert second["acked"] is True
    assert [m["body"] for m in second["messages"]] == ["two"]
    assert read_inbox(state, b, first["ack_token"]) == second | {"acked": False}
    assert read_inbox(state, b, second["ack_token"]) == {"messages": [], "acked": True}
    assert read_inbox(state, b, second["ack_token"]) == {"messages": [], "acked": False}


def test_messages_come_oldest_first(state: State) -> None:
    a, b = started(state), started(state)
    for i in range(12):
        send(state, a, b, str(i), f"k{i}")
    assert [m["body"] for m in read_inbox(state, b, None)["messages"]] == [str(i) for i in range(12)]


def test_each_accepted_item_leaves_one_entry_on_its_workspaces_timeline(state: State) -> None:
    a, b = started(state), started(state)
    other = started(state, workspace="elsewhere")
    sent, question = send(state, a, b), ask(state, a, b)
    answer = reply(state, b, question)
    refused(lambda: send(state, a, "run-nobody", key="z"))
    entries = state.timeline("w")
    assert [(e["id"], e["kind"], e["run_id"]) for e in entries] == [
        (sent, "message", a.id),
        (question, "question", a.id),
        (answer, "reply", b.id),
    ]
    assert entries[2]["data"] == {"from_run_id": b.id, "to_run_id": a.id, "body": "yes", "correlation_id": question}
    assert state.timeline("elsewhere") == []
    assert state.timeline(None) == entries
    assert [e["id"] for e in state.timeline("w", after=entries[0]["seq"])] == [question, answer]
    assert other.workspace == "elsewhere"


def test_a_run_that_ends_releases_its_inbox_and_what_it_sent_stays(state: State) -> None:
    a, b = started(state), started(state)
    send(state, a, b)
    send(state, b, a)
    state.end(a.id)
    assert count_unread(state, a.id) == 0
    assert [m["from_run_id"] for m in read_inbox(state, b, None)["messages"]] == [a.id]
    assert len(state.timeline("w")) == 2
    assert refused(lambda: send(state, a, b, key="late")) == (wire.UNAVAILABLE, "finished")
    assert refused(lambda: read_inbox(state, a, None)) == (wire.UNAVAILABLE, "finished")
    assert refused(lambda: state.end(a.id)) == (wire.BAD_STATE, None)
    assert refused(lambda: state.end("run-nobody")) == (wire.NOT_FOUND, None)


def test_runs_of_another_home_are_not_known(state: State) -> None:
    a = started(state)
    elsewhere = State(state.store, "/other", state.clock)
    b = started(elsewhere)
    assert refused(lambda: send(state, a, b)) == (wire.NOT_FOUND, None)
    assert [run.id for run in state.runs()] == [a.id]


def test_the_same_call_from_many_threads_is_stored_once(state: State) -> None:
    a, b = started(state), started(state)
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda _: send(state, a, b), range(24)))
    assert len(set(receipts)) == 1
    assert count_unread(state, b.id) == 1
    assert len(state.timeline("w")) == 1


def test_calls_from_many_threads_are_all_stored_and_ordered(state: State) -> None:
    runs = [started(state) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda i: send(state, runs[i % 3], runs[3], str(i), f"k{i}"), range(48)))
    inbox = read_inbox(state, runs[3], None)["messages"]
    assert sorted(message["id"] for message in inbox) == sorted(sent)
    timeline = state.timeline("w")
    assert [entry["id"] for entry in timeline] == [message["id"] for message in inbox]
    assert [entry["seq"] for entry in timeline] == list(range(1, 49))


def test_two_last_places_in_an_inbox_are_given_to_two(state: State) -> None:
    runs = [started(state) for _ in range(9)]
    for i in range(98):
        send(state, runs[i % 8], runs[8], key=f"k{i}")

    def attempt(i: int) -> bool:
        try:
            send(state, runs[i], runs[8], key="last")
        except CoordError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 2


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_of_an_inbox_follow_a_simple_model(state: State, seed: int) -> None:
    """The model: what is not acknowledged, in order, and how much of it is the outstanding batch."""
    chance = random.Random(seed)
    a, b = started(state), started(state)
    waiting: list[str] = []
    token, batch = None, 0
    old: list[str] = []
    for step in range(60):
        match chance.choice(["send", "read", "ack", "stale"]):
            case "send":
                waiting.append(send(state, a, b, key=f"k{step}"))
                continue
            case "read":
                given = None
            case "ack":
                given = token
            case _:
                given = chance.choice(old) if old else "ack-none"
        acked = given is not None and given == token
        if acked:
            del waiting[:batch]
            old.append(str(token))
            token = None
        answer = read_inbox(state, b, given)
        if token is None:
            batch = len(waiting)
        assert [message["id"] for message in answer["messages"]] == waiting[:batch]
        assert answer["acked"] is acked
        assert ("ack_token" in answer) is bool(batch)
        assert token is None or answer["ack_token"] == token
        token = answer.get("ack_token")
    assert count_unread(state, b.id) == len(waiting)
