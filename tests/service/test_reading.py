"""GET and HEAD of documents and versions: every row of the table, with status and headers."""

from __future__ import annotations

from base64 import b64encode
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from mergepub.documents import ABSENT
from mergepub.service.conditions import parse_tags
from mergepub.service.problems import ProblemError
from mergepub.stores import open_store
from tests.service.wire import Client, fresh_path, status_of

if TYPE_CHECKING:
    from tests.stores.http_service import HttpService


def test_the_head_comes_with_everything_that_names_it(client: Client) -> None:
    path, body = fresh_path(), b"one\ntwo\r\n\0\xff"
    created = client.create(path, body, Mergepub_Author="Ann", Mergepub_Message="UTF-8''gr%C3%BC%C3%9Fe")
    answer = client.get(path)
    assert (answer.status, answer.body) == (200, body)
    assert answer.headers["mergepub-version"] == "1"
    assert answer.headers["etag"] == f'"{answer.headers["mergepub-incarnation"]}.1"' == created.headers["etag"]
    assert answer.headers["repr-digest"] == f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
    assert parsedate_to_datetime(answer.headers["last-modified"])
    assert answer.headers["mergepub-author"] == "Ann"
    assert answer.headers["mergepub-message"] == "UTF-8''gr%C3%BC%C3%9Fe"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "content-encoding" not in answer.headers
    assert "immutable" not in answer.headers["cache-control"]


def test_every_answer_says_when_it_was_made(client: Client) -> None:
    path = fresh_path()
    answers = [client.create(path), client.get(path), client.ask("HEAD", path), client.get(fresh_path())]
    answers += [client.get(path, If_None_Match="*"), client.put(path), client.get("/-/list/"), client.get("/-/health")]
    answers.append(client.delete(path, Mergepub_Expected_Version="1"))
    for answer in answers:
        assert parsedate_to_datetime(answer.headers["date"]), answer


def test_an_empty_body_is_a_body(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"")
    answer = client.get(path)
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "0")


def test_head_answers_as_get_without_the_body(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"12345")
    head, get = client.ask("HEAD", path), client.get(path)
    assert (head.status, head.body) == (200, b"")
    assert {k: v for k, v in head.headers.items() if k != "date"} == {
        k: v for k, v in get.headers.items() if k != "date"
    }
    assert client.ask("HEAD", fresh_path()).status == 404


@pytest.mark.parametrize("form", ["{tag}", "W/{tag}", '"other", {tag}', "*", '"a","b" ,{tag}'])
def test_a_version_that_the_caller_has_is_not_sent_again(client: Client, form: str) -> None:
    path = fresh_path()
    tag = client.create(path).headers["etag"]
    answer = client.get(path, If_None_Match=form.format(tag=tag))
    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers["etag"] == tag
    assert "content-type" not in answer.headers


def test_another_tag_gets_the_body(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path).headers["etag"]
    client.put(path, b"new\n", If_Match=tag)
    assert client.get(path, If_None_Match=tag).status == 200
    assert client.get(path, If_None_Match='"other"').status == 200
    assert client.get(path, If_None_Match="no tag").status == 400


@pytest.mark.parametrize("more", [", ", " ", " ,", ', "a"', ', W/"b,c" ', '"'])
def test_a_list_of_tags_however_long_that_is_none_is_refused_before_it_costs_anything(more: str) -> None:
    """Tried in every way that it could be read, each of these would outlast the sun."""
    with pytest.raises(ProblemError):
        parse_tags("If-None-Match", '"a"' + more * (30_000 // len(more)) + "x")


def test_a_list_of_tags_may_hold_empty_places_and_tags_with_commas() -> None:
    assert parse_tags("If-Match", ' "a" , W/"b,c",, "" ,') == ['"a"', 'W/"b,c"', '""']


def test_a_read_with_if_match_is_answered_for_that_version_only(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path).headers["etag"]
    assert client.get(path, If_Match=tag).status == 200
    answer = client.get(path, If_Match='"other.1"')
    assert (answer.status, answer.problem["current-version"]) == (412, 1)


def test_a_version_is_immutable_and_names_the_current_one(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path, b"1\n").headers["etag"]
    client.put(path, b"2\n", If_Match=tag)
    answer = client.get(f"{path}/v1")
    assert (answer.status, answer.body, answer.headers["mergepub-version"]) == (200, b"1\n", "1")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["mergepub-current-version"] == "2"
    assert answer.headers["etag"] == tag
    assert client.get(f"{path}/v1", If_None_Match=tag).status == 304


def test_what_is_not_there_is_404_and_what_was_deleted_is_410(client: Client) -> None:
    path = fresh_path()
    assert client.get(path).problem["status"] == 404
    assert client.get(f"{path}/v1").status == 404
    client.create(path, b"1\n")
    assert client.get(f"{path}/v2").status == 404
    assert client.get(f"{path}/v9007199254740991").status == 404
    client.delete(path, Mergepub_Expected_Version="1")
    gone = client.get(path)
    assert (gone.status, gone.problem["current-version"], gone.headers["mergepub-version"]) == (410, 2, "2")
    assert client.get(f"{path}/v2").status == 410
    assert client.get(f"{path}/v1").body == b"1\n"


def test_methods_that_are_not_served_are_405_with_those_that_are(client: Client) -> None:
    path = fresh_path()
    for method in ("PATCH", "OPTIONS", "TRACE", "MERGE"):
        answer = client.ask(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, PUT, POST, DELETE")
        assert answer.problem
    assert client.put("/-/health").headers["allow"] == "GET, HEAD"
    assert client.ask("DELETE", "/-/list/").status == 405


@pytest.mark.parametrize(
    ("target", "allowed"),
    [("/a?x=1", "GET, HEAD, PUT, POST, DELETE"), ("/-/list/", "GET, HEAD"), ("http://h/-/health", "GET, HEAD")],
)
def test_a_method_that_nobody_knows_is_405_too(client: Client, target: str, allowed: str) -> None:
    answer = client.raw(f"BREW {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert status_of(answer) == 405
    assert f"\r\nAllow: {allowed}\r\n".encode() in answer
    assert b"BREW is not done here" in answer


@pytest.mark.parametrize("line", [b"BREW /%zz HTTP/1.1", b"BREW /a", b"BR(EW /a HTTP/1.1", b"BREW /\xff HTTP/1.1"])
def test_a_method_that_nobody_knows_in_a_line_that_is_none_is_400(client: Client, line: bytes) -> None:
    assert status_of(client.raw(line + b"\r\nHost: localhost\r\n\r\n")) == 400


def test_no_answer_invites_other_origins(client: Client) -> None:
    path = fresh_path()
    client.create(path)
    origin = {"Origin": "http://evil.example"}
    preflight = {**origin, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "if-match"}
    for answer in (client.ask("GET", path, origin), client.ask("OPTIONS", path, preflight)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_label_that_no_header_can_carry_is_cut_in_the_header_alone(client: Client, running: HttpService) -> None:
    path, message = fresh_path(), "ä" * 50_000
    store = open_store(running._store_url)
    store.publish(path, b"x", ABSENT, message=message + "\n")
    store.close()
    answer = client.get(path)
    assert answer.status == 200
    assert unquote(answer.headers["mergepub-message"].removeprefix("UTF-8''")) == "ä" * 2048 + "…"
    assert client.get(f"/-/versions{path}").json["versions"][0]["message"] == message + "\n"
