"""Branches and decisions on the wire: what a form cannot send, what a token may, what a refusal says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.test_tokens import token
from tests.service.wire import Answer, Client, fresh_path
from tests.stores.http_service import HttpService

ALLOWED = {
    "reader": ["read:/docs/**"],
    "writer": ["publish:/docs/**"],
    "resolver": ["read:/docs/**", "decide:/docs/**"],
    "stranger": ["publish:/other/**"],
}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    store: Path = tmp_path_factory.mktemp("closed-branches") / "store.sqlite"
    secrets = {
        name: token(store, "create", "--name", name, *(f"--allow={rule}" for rule in rules)).stdout.strip()
        for name, rules in ALLOWED.items()
    }
    service = HttpService(str(store)).start()
    yield {name: Client(service.url, secret) for name, secret in secrets.items()}
    service.remove()


def moved(client: Client) -> str:
    """The path of a document at version 2."""
    path = fresh_path()
    client.create(path, b"one\n")
    assert client.put(path, b"two\n", Mergepub_Expected_Version="1").status == 201
    return path


def sibling(client: Client, path: str, body: bytes = b"mine\n", base: int = 1, **headers: str) -> Answer:
    return client.put(f"/-/branches{path}", body, Mergepub_Expected_Version=str(base), **headers)


def decide(client: Client, path: str, how: str, branch: str, head: int = 2, **more: Any) -> Answer:
    headers = {"Mergepub-Decision": how, "Mergepub-Branch": branch, "Mergepub-Expected-Version": str(head)}
    return client.ask("POST", f"/-/decisions{path}", headers | more.get("headers", {}), more.get("body", b""))


def test_a_sibling_is_created_once_and_listed(client: Client) -> None:
    path = moved(client)
    first, again = sibling(client, path), sibling(client, path)
    assert (first.status, again.status, again.json["replayed"]) == (201, 200, True)
    assert first.json["base-version"] == 1
    listed = client.get(f"/-/branches{path}").json
    assert listed["head"]["version"] == 2
    assert [row["state"] for row in listed["branches"]] == ["default", "open"]
    body = client.get(f"/-/branches{path}?revision={first.json['branch']}@1")
    assert (body.body, body.headers["mergepub-branch"]) == (b"mine\n", f"{first.json['branch']}@1")
    assert "sandbox" in body.headers["content-security-policy"]
    found = client.get(f"/-/branches{path}?unresolved=1").json["unresolved"]
    assert found == [{"path": path, "count": 1, "branch": first.json["branch"]}]


def test_every_write_needs_a_header_that_a_form_cannot_send(client: Client) -> None:
    path = moved(client)
    for method, room in (("PUT", "branches"), ("POST", "branches"), ("POST", "decisions")):
        answer = client.ask(method, f"/-/{room}{path}", {"Content-Type": "text/plain"}, b"x=1")
        assert answer.problem["status"] == 428, (method, room)
    assert client.ask("DELETE", f"/-/branches{path}").status == 405


def test_a_stale_resolver_is_answered_412_and_a_closed_branch_409(client: Client) -> None:
    path = moved(client)
    name = sibling(client, path).json["branch"]
    stale = decide(client, path, "choose", f"{name}@1", head=1)
    assert (stale.problem["status"], stale.json["your-version"], stale.json["current-version"]) == (412, 1, 2)
    done = decide(client, path, "choose", f"{name}@1")
    assert (done.status, done.json["version"], done.json["decision"]["strategy"]) == (201, 3, "choose")
    again = decide(client, path, "choose", f"{name}@1")
    assert (again.status, again.json["replayed"]) == (200, True)
    refused = decide(client, path, "choose", f"{name}@1", head=3)
    assert (refused.problem["status"], refused.json["reason"]) == (409, "default")
    assert client.get(f"/-/decisions{path}").json["decisions"][0]["version"] == 3


def test_a_base_that_is_not_what_was_recorded_is_412(client: Client) -> None:
    path = moved(client)
    refused = sibling(client, path, Mergepub_Base_Digest="0" * 64)
    assert (refused.problem["status"], refused.json["reason"]) == (412, "base-unavailable")
    refused = sibling(client, path, Mergepub_Base_Incarnation="0" * 32)
    assert (refused.problem["status"], refused.json["reason"]) == (412, "recreated")


def test_deciding_is_a_right_of_its_own(closed: dict[str, Client]) -> None:
    path = moved(closed["writer"])
    name = sibling(closed["writer"], path).json["branch"]
    for who in ("writer", "reader", "stranger"):
        assert decide(closed[who], path, "choose", f"{name}@1").problem["status"] == 403
    assert sibling(closed["resolver"], path, b"x\n").problem["status"] == 403
    forged = {"Mergepub-Author": "somebody"}
    done = decide(closed["resolver"], path, "choose", f"{name}@1", headers=forged)
    assert (done.status, done.json["decision"]["resolver"]) == (201, "resolver")


def test_the_writer_of_a_branch_is_the_token(closed: dict[str, Client]) -> None:
    path = moved(closed["writer"])
    name = sibling(closed["writer"], path, Mergepub_Author="somebody").json["branch"]
    (_, branch) = closed["reader"].get(f"/-/branches{path}").json["branches"]
    assert [owner["name"] for owner in branch["owners"]] == ["writer"]
    assert branch["branch"] == name


def test_a_read_that_is_not_allowed_looks_like_nothing(closed: dict[str, Client]) -> None:
    path = moved(closed["writer"])
    sibling(closed["writer"], path)
    for target in (f"/-/branches{path}", f"/-/decisions{path}", f"/-/branches{path}?standing=main"):
        assert closed["stranger"].get(target).problem["status"] == 404
    assert closed["stranger"].get("/-/branches/?unresolved=1").json == {"unresolved": []}
    assert len(closed["reader"].get("/-/branches/docs?unresolved=1").json["unresolved"]) >= 1


def test_what_is_not_there_is_named_by_itself_and_looks_like_what_may_not_be_read(closed: dict[str, Client]) -> None:
    path, nothing = moved(closed["writer"]), fresh_path()
    for room, query in (("branches", ""), ("branches", "?standing=main"), ("decisions", "")):
        hidden = closed["stranger"].get(f"/-/{room}{path}{query}")
        missing = closed["reader"].get(f"/-/{room}{nothing}{query}")
        assert hidden.problem["detail"] == f"there is no {path} in this store"
        assert missing.problem["detail"] == f"there is no {nothing} in this store"
        assert hidden.problem["type"] == missing.problem["type"]
    for query in ("revision=none", "revision=main@9", "standing=none"):
        answer = closed["reader"].get(f"/-/branches{path}?{query}")
        assert (answer.problem["status"], answer.json["type"]) == (404, "urn:mergepub:problem:no-branch")
        assert answer.json["detail"].startswith(f"{path} has no ")


def test_a_deleted_end_of_a_branch_is_gone(client: Client) -> None:
    path = moved(client)
    client.ask("DELETE", path, {"Mergepub-Expected-Version": "2"})
    answer = client.get(f"/-/branches{path}?revision=main")
    assert (answer.problem["status"], answer.json["current-version"]) == (410, 3)
    assert answer.json["detail"] == f"{path} was deleted (version 3)"


def test_a_list_before_the_body_is_as_long_as_it_says(client: Client) -> None:
    path = moved(client)
    name = sibling(client, path).json["branch"]
    for size, body, more in (
        ("9", b"[]new\n", {}),
        ("1", b"[]new\n", {}),
        ("2", b"[]new\n", {"Mergepub-Approved": '["h1"]'}),
        ("4", b"[1]\nnew\n", {}),
    ):
        headers = {"Mergepub-Approved-Size": size} | more
        refused = decide(client, path, "rebase", f"{name}@1", headers=headers, body=body)
        assert refused.problem["status"] == 422, body
    done = decide(client, path, "rebase", f"{name}@1", headers={"Mergepub-Approved-Size": "6"}, body=b'["h1"]new\n')
    assert (done.status, done.json["decision"]["approved"]) == (201, ["h1"])
    assert client.get(path).body == b"new\n"
