"""PUT, POST and DELETE: compare-and-swap, preconditions, labels; every row of the table."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.service.wire import Client, fresh_path
from tests.stores.http_service import HttpService

DIGEST = "0" * 64


def expected(number: int) -> dict[str, str]:
    return {"Mergepub-Expected-Version": str(number)}


def test_creating_takes_either_form_and_answers_201_with_the_tag(client: Client) -> None:
    for headers in ({"If-None-Match": "*"}, expected(0), {"If-None-Match": "*", **expected(0)}):
        path = fresh_path()
        answer = client.ask("PUT", path, headers, b"x\n")
        assert (answer.status, answer.json) == (201, {"version": 1})
        assert answer.headers["mergepub-version"] == "1"
        assert answer.headers["etag"] == client.get(path).headers["etag"]


def test_creating_what_exists_is_412(client: Client) -> None:
    path = fresh_path()
    client.create(path)
    for headers in ({"If-None-Match": "*"}, expected(0)):
        answer = client.ask("PUT", path, headers, b"other\n")
        assert (answer.status, answer.problem["your-version"], answer.problem["current-version"]) == (412, 0, 1)


def test_a_publish_on_the_head_makes_the_next_version(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path, b"1\n").headers["etag"]
    second = client.put(path, b"2\n", If_Match=tag)
    assert (second.status, second.json, second.headers["mergepub-version"]) == (201, {"version": 2}, "2")
    assert second.headers["etag"] != tag
    third = client.ask("PUT", path, expected(2), b"3\n")
    assert (third.status, client.get(path).body) == (201, b"3\n")


def test_a_stale_publish_is_412_and_changes_nothing(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path, b"1\n").headers["etag"]
    client.put(path, b"2\n", If_Match=tag)
    for headers in ({"If-Match": tag}, expected(1)):
        answer = client.ask("PUT", path, headers, b"mine\n")
        assert (answer.status, answer.problem["your-version"], answer.problem["current-version"]) == (412, 1, 2)
        assert "reason" not in answer.problem
    assert client.ask("PUT", path, expected(9), b"mine\n").problem["current-version"] == 2
    assert client.get(path).body == b"2\n"


def test_the_same_body_again_is_200_unchanged_and_a_retry_is_200_replayed(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"1\n")
    unchanged = client.ask("PUT", path, expected(1), b"1\n")
    assert (unchanged.status, unchanged.json) == (200, {"version": 1, "unchanged": True})
    client.ask("PUT", path, expected(1), b"2\n")
    again = client.ask("PUT", path, expected(1), b"2\n")
    assert (again.status, again.json) == (200, {"version": 2, "replayed": True})
    client.ask("PUT", path, expected(2), b"3\n")
    later = client.ask("PUT", path, expected(1), b"2\n")
    assert (later.status, later.json) == (200, {"version": 2, "replayed": True, "current-version": 3})
    assert later.headers["mergepub-version"] == "2"
    assert later.headers["etag"] == client.get(f"{path}/v2").headers["etag"]


def test_a_merge_is_recorded_and_its_retry_recognised(client: Client) -> None:
    from hashlib import sha256

    path, mine = fresh_path(), b"mine\n"
    client.create(path, b"1\n")
    client.ask("PUT", path, expected(1), b"2\n")
    made_of = f"base=1; theirs=2; digest={sha256(mine).hexdigest()}"
    merged = client.ask("PUT", path, {**expected(2), "Mergepub-Merged-From": made_of}, b"merged\n")
    facts = {"base": 1, "theirs": 2, "digest": sha256(mine).hexdigest()}
    assert (merged.status, merged.json) == (201, {"version": 3, "merged": facts})
    again = client.ask("PUT", path, expected(1), mine)
    assert (again.status, again.json) == (200, {"version": 3, "replayed": True, "merged": facts})
    row = client.get(f"/-/versions{path}").json["versions"][0]
    assert row["merged-from"] == facts


def test_source_and_kind_are_kept(client: Client) -> None:
    path = fresh_path()
    client.create(path, b'{"id":"1","type":"message"}\n', Mergepub_Source="0123abc", Mergepub_Kind="events")
    assert client.get(f"/-/versions{path}").json["versions"][0]["source"] == "0123abc"
    assert client.get(path).headers["mergepub-kind"] == "events"
    assert client.put(fresh_path(), b"", Mergepub_Expected_Version="0", Mergepub_Kind="poem").status == 400


@pytest.mark.parametrize("headers", [{}, {"If-Match": "*"}, {"Mergepub-Message": "x"}])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_write_that_names_no_version_is_428(client: Client, method: str, headers: dict[str, str]) -> None:
    path = fresh_path()
    client.create(path)
    answer = client.ask(method, path, headers, b"x" if method == "PUT" else None)
    assert answer.problem["status"] == 428
    assert "If-Match" in answer.problem["detail"]
    assert client.get(path).headers["mergepub-version"] == "1"


def test_all_preconditions_must_hold_and_contradicting_ones_are_400(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path, b"1\n").headers["etag"]
    both = client.ask("PUT", path, {"If-Match": tag, **expected(1)}, b"2\n")
    assert both.status == 201
    for headers in (
        {"If-Match": tag, **expected(2)},
        {"If-Match": tag, "If-None-Match": "*"},
        {"If-None-Match": "*", **expected(2)},
    ):
        assert client.ask("PUT", path, headers, b"3\n").problem["status"] == 400
    assert client.ask("PUT", path, {"If-Match": '"foreign"', **expected(2)}, b"3\n").status == 412
    assert client.get(path).body == b"2\n"


@pytest.mark.parametrize(
    "headers",
    [
        {"If-Match": "abc.1"},
        {"If-Match": '"a", "b"'},
        {"If-Match": '"unfinished'},
        {"If-None-Match": '"abc.1"'},
        {"Mergepub-Expected-Version": "one"},
        {"Mergepub-Expected-Version": "-1"},
        {"Mergepub-Expected-Version": "01"},
        {"Mergepub-Expected-Version": "1.0"},
        {"Mergepub-Expected-Version": "٣"},
        {"Mergepub-Expected-Version": "9" * 400},
        {"Mergepub-Expected-Version": "0", "Mergepub-Merged-From": "base=1"},
        {"Mergepub-Expected-Version": "0", "Mergepub-Merged-From": f"base=1; theirs=2; digest={'x' * 64}"},
        {"Mergepub-Expected-Version": "0", "Mergepub-Merged-From": f"base=1; base=2; digest={DIGEST}"},
        {"Mergepub-Expected-Version": "0", "Mergepub-Merged-From": f"base=-1; theirs=2; digest={DIGEST}"},
    ],
)
def test_malformed_preconditions_are_400(client: Client, headers: dict[str, str]) -> None:
    assert client.ask("PUT", fresh_path(), headers, b"x").problem["status"] == 400


def test_a_tag_of_nothing_of_ours_or_a_weak_one_matches_no_version(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path).headers["etag"]
    for other in ('"abc"', '""', f"W/{tag}", tag.replace(".1", ".01")):
        answer = client.put(path, b"2\n", If_Match=other)
        assert (answer.status, answer.problem["current-version"]) == (412, 1)


def test_if_match_on_a_missing_document_is_412(client: Client) -> None:
    path = fresh_path()
    for method in ("PUT", "DELETE"):
        for headers in ({"If-Match": f'"{"0" * 32}.5"'}, expected(5)):
            answer = client.ask(method, path, headers, b"x" if method == "PUT" else None)
            assert (answer.status, answer.problem["your-version"], answer.problem["current-version"]) == (412, 5, 0)
        assert client.ask(method, path, {"If-Match": '"foreign"'}).problem["current-version"] == 0


def test_a_tag_of_an_earlier_life_is_recreated_and_never_matches(client: Client) -> None:
    path = fresh_path()
    first = client.create(path, b"1\n").headers["etag"]
    client.delete(path, If_Match=first)
    second = client.create(path, b"1\n").headers["etag"]
    life = second.strip('"').partition(".")[0]
    old_life = first.strip('"').partition(".")[0]
    assert life != old_life
    for tag in (first, f'"{old_life}.3"'):
        for method in ("PUT", "DELETE"):
            answer = client.ask(method, path, {"If-Match": tag}, b"2\n" if method == "PUT" else None)
            assert (answer.status, answer.problem["reason"], answer.problem["current-version"]) == (412, "recreated", 3)
    assert client.ask("PUT", path, expected(1), b"2\n").problem["reason"] == "recreated"
    assert client.put(path, b"2\n", If_Match=second).status == 201


def test_a_deleted_document_is_412_also_at_the_tombstones_number(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path).headers["etag"]
    tombstone = client.delete(path, If_Match=tag)
    assert (tombstone.status, tombstone.headers["mergepub-version"], tombstone.body) == (204, "2", b"")
    assert "etag" not in tombstone.headers
    life = tag.partition(".")[0]
    for headers in ({"If-Match": tag}, {"If-Match": f'{life}.2"'}, expected(1), expected(2), {"If-Match": '"foreign"'}):
        answer = client.ask("PUT", path, headers, b"x\n")
        assert (answer.status, answer.problem["reason"], answer.problem["current-version"]) == (412, "deleted", 2)
    assert client.delete(path, Mergepub_Expected_Version="2").problem["reason"] == "deleted"


def test_a_delete_is_a_compare_and_swap_and_its_retry_is_204(client: Client) -> None:
    path = fresh_path()
    tag = client.create(path, b"1\n").headers["etag"]
    assert client.delete(path, Mergepub_Expected_Version="7").problem["current-version"] == 1
    assert client.delete(path, If_Match=tag).status == 204
    for headers in ({"If-Match": tag}, expected(1)):
        again = client.ask("DELETE", path, headers)
        assert (again.status, again.headers["mergepub-version"], again.headers["mergepub-replayed"]) == (
            204,
            "2",
            "true",
        )
    assert [row["version"] for row in client.get(f"/-/versions{path}").json["versions"]] == [2, 1]
    assert client.create(path, b"again\n").json == {"version": 3}


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ({"Content-Range": "bytes 0-4/10"}, 400),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Encoding": "identity, br"}, 415),
    ],
)
def test_a_part_of_a_body_or_an_encoded_one_never_replaces_a_document(
    client: Client, header: dict[str, str], status: int
) -> None:
    path = fresh_path()
    client.create(path, b"whole text\n")
    assert client.ask("PUT", path, expected(1) | header, b"other").problem["status"] == status
    assert client.ask("POST", path, {"Idempotency-Key": "k"} | header, b"other").problem["status"] == status
    assert client.get(path).body == b"whole text\n"
    assert client.ask("PUT", path, expected(1) | {"Content-Encoding": "identity"}, b"other").status == 201


def test_a_log_of_events_only_grows_at_its_end(client: Client) -> None:
    path = fresh_path()
    first, second = b'{"id":"1","type":"message"}\n', b'{"id":"2","type":"message"}\n'
    client.create(path, first, Mergepub_Kind="events")
    other = client.put(path, second, Mergepub_Expected_Version="1")
    assert (other.problem["status"], other.problem["reason"]) == (409, "not-an-extension")
    assert client.put(path, first + b"no event\n", Mergepub_Expected_Version="1").problem["status"] == 400
    assert client.post(path, b"no event", Idempotency_Key="k").problem["status"] == 400
    assert client.put(path, first + second, Mergepub_Expected_Version="1").status == 201


def test_no_id_stands_in_a_log_twice_though_an_append_names_no_version(client: Client) -> None:
    path = fresh_path()
    first, second = b'{"id":"1","type":"message"}\n', b'{"id":"2","type":"message"}\n'
    client.create(path, first, Mergepub_Kind="events")
    assert client.post(path, second, Idempotency_Key="k", Mergepub_Author="Ann").json == {"version": 2}
    assert client.post(path, second, Idempotency_Key="k").json == {"version": 2, "replayed": True}
    again = client.post(path, first, Idempotency_Key="other")
    assert (again.problem["status"], "the id '1'" in again.problem["detail"]) == (400, True)
    assert client.post(path, b'{"id":"3"}\n', Idempotency_Key="other").problem["status"] == 400
    assert client.post(path, b'{"id":"3","type":"message"}\n', Idempotency_Key="k").problem["status"] == 422
    assert client.get(path).body == first + second
    assert client.get(f"/-/versions{path}").json["versions"][0]["author"] == "Ann"


def test_of_the_same_append_to_a_log_many_times_at_once_one_is_new_and_the_others_are_replayed(client: Client) -> None:
    path, event = fresh_path(), b'{"id":"2","type":"message"}\n'
    client.create(path, b'{"id":"1","type":"message"}\n', Mergepub_Kind="events")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda key: client.post(path, event, Idempotency_Key=key), "kkkkkkkk"))
        others = list(pool.map(lambda key: client.post(path, event, Idempotency_Key=key), "abcdefgh"))
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert {answer.status for answer in others} == {400}
    assert client.get(path).headers["mergepub-version"] == "2"


def test_an_append_to_text_may_look_like_events(client: Client) -> None:
    path = fresh_path()
    client.create(path, b'{"id":"1","type":"message"}\n')
    assert client.post(path, b'{"id":"1","type":"message"}\n', Idempotency_Key="k").status == 201
    assert client.post(path, b"{}\n", Idempotency_Key="l").status == 201


def test_an_append_goes_to_the_end_of_whatever_the_head_is_once_per_key(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"1")
    first = client.post(path, b"2\n", Idempotency_Key="k1")
    assert (first.status, first.json, client.get(path).body) == (201, {"version": 2}, b"1\n2\n")
    client.post(path, b"3\n", Idempotency_Key='"k2"')
    again = client.post(path, b"2\n", Idempotency_Key="k1")
    assert (again.status, again.json) == (200, {"version": 2, "replayed": True, "current-version": 3})
    assert client.post(path, b"3\n", Idempotency_Key="k2").json["replayed"] is True
    assert client.get(path).body == b"1\n2\n3\n"


def test_no_answer_tells_where_the_store_is(tmp_path: Path) -> None:
    service = HttpService(str(tmp_path / "store.sqlite")).start()
    try:
        unmade = Client(service.url)
        answers = [
            unmade.get("/a"),
            unmade.get("/a/v1"),
            unmade.get("/-/versions/a"),
            unmade.post("/a", b"x", Idempotency_Key="k"),
            unmade.put("/a", b"x", Mergepub_Expected_Version="1"),
            unmade.delete("/a", Mergepub_Expected_Version="1"),
        ]
        assert [answer.status for answer in answers] == [404, 404, 404, 404, 412, 412]
        assert unmade.get("/-/list/").json == {"documents": []}
        assert not any(str(tmp_path) in answer.body.decode() for answer in answers)
    finally:
        service.remove()


def test_a_precondition_of_an_append_holds_or_nothing_is_appended(client: Client) -> None:
    path = fresh_path()
    first = client.create(path, b"1\n").headers["etag"]
    other = client.create(fresh_path()).headers["etag"]
    for headers in ({"If-Match": '"x"'}, {"If-Match": other}, {"If-None-Match": "*"}, expected(7), expected(0)):
        answer = client.ask("POST", path, {"Idempotency-Key": "k", **headers}, b"2\n")
        assert (answer.problem["status"], answer.problem["current-version"]) == (412, 1)
    for malformed in ({"If-Match": first, **expected(2)}, {"If-Match": ""}, {"If-None-Match": first}):
        answer = client.ask("POST", path, {"Idempotency-Key": "k", **malformed}, b"2\n")
        assert answer.problem["status"] == 400
    for key, headers in (("k", {"If-Match": first}), ("l", {"If-Match": "*"}), ("m", expected(3))):
        assert client.ask("POST", path, {"Idempotency-Key": key, **headers}, b"2\n").status == 201
        assert client.ask("POST", path, {"Idempotency-Key": key, **headers}, b"2\n").json["replayed"] is True
    missing = {"Idempotency-Key": "k", "If-Match": first}
    assert client.ask("POST", fresh_path(), missing, b"2\n").problem["status"] == 404


def test_an_append_to_an_empty_head_puts_nothing_before(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"")
    client.post(path, b"1", Idempotency_Key="k")
    assert client.get(path).body == b"1"


def test_what_an_append_is_refused_for(client: Client) -> None:
    path = fresh_path()
    assert client.post(path, b"x", Idempotency_Key="k").problem["status"] == 404
    client.create(path)
    assert client.post(path, b"x").problem["status"] == 428
    assert client.post(path, b"x", Idempotency_Key='""').problem["status"] == 428
    assert client.post(path, b"x", Idempotency_Key="a b").problem["status"] == 400
    assert client.post(path, b"", Idempotency_Key="k").problem["status"] == 400
    assert client.post(path, b"x", Idempotency_Key="k").status == 201
    assert client.post(path, b"y", Idempotency_Key="k").problem["status"] == 422
    client.delete(path, Mergepub_Expected_Version="2")
    gone = client.post(path, b"z", Idempotency_Key="other")
    assert (gone.status, gone.problem["current-version"]) == (410, 3)


@pytest.mark.parametrize("name", ["Mergepub-Author", "Mergepub-Message", "Mergepub-Source"])
@pytest.mark.parametrize("value", ["UTF-8''a%0Ab", "UTF-8''a%0d", "UTF-8''%00", "UTF-8''%ff", "latin-1''%fc"])
def test_a_label_with_cr_lf_nul_or_no_utf8_is_400(client: Client, name: str, value: str) -> None:
    path = fresh_path()
    answer = client.ask("PUT", path, {**expected(0), name: value}, b"x")
    assert answer.problem["status"] == 400
    assert name in answer.problem["detail"]
    assert client.get(path).status == 404


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("Ann", "Ann"),
        ("UTF-8''J%C3%BCrgen%20%F0%9F%98%80", "Jürgen 😀"),
        ("utf-8'de'Stra%C3%9Fe", "Straße"),
        ("Jürgen", "Jürgen"),
        ("100% of %41", "100% of %41"),
        ("it's UTF-8''x", "it's UTF-8''x"),
    ],
)
def test_labels_are_plain_utf8_or_the_extended_form(client: Client, sent: str, kept: str) -> None:
    path = fresh_path()
    client.create(path, b"x", Mergepub_Author=sent, Mergepub_Message=sent)
    row = client.get(f"/-/versions{path}").json["versions"][0]
    assert (row["author"], row["message"]) == (kept, kept)


def test_a_label_has_a_limit_so_that_its_version_can_be_fetched(client: Client) -> None:
    path, longest = fresh_path(), "ä" * 2048
    client.create(path, b"x", Mergepub_Message=longest)
    assert client.get(path).status == 200
    assert client.get(f"/-/versions{path}").json["versions"][0]["message"] == longest
    answer = client.put(path, b"y", Mergepub_Expected_Version="1", Mergepub_Message=longest + "x")
    assert answer.problem["status"] == 400


def test_a_header_that_may_stand_once_is_400_when_it_stands_twice(client: Client) -> None:
    request = (
        f"PUT {fresh_path()} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1\r\n"
        "Mergepub-Expected-Version: 0\r\nMergepub-Expected-Version: 1\r\n\r\nx"
    )
    assert b" 400 " in client.raw(request.encode()).split(b"\r\n")[0]


def test_of_many_publishes_at_once_one_makes_the_version(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"0\n")
    statuses: list[int] = []

    def publish(number: int) -> None:
        statuses.append(client.ask("PUT", path, expected(1), f"{number}\n".encode()).status)

    threads = [threading.Thread(target=publish, args=(n,)) for n in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] + [412] * 11
