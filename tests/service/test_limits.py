"""What one client may take: bodies, heads, connections, time. Slow and broken senders go, others never notice."""

from __future__ import annotations

import random
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from tests.service.wire import Client, fresh_path, read_all, status_of
from tests.stores.http_service import HttpService

LIMIT = 64 * 1024
FAR = 64 * 1024 * 1024
HEAD = 8 * 1024
HEADER, BODY, REQUEST = 1.0, 2.0, 6.0


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    service = HttpService(
        str(tmp_path_factory.mktemp("limited") / "store.sqlite"),
        *("--max-body", "64KiB", "--max-head", "8KiB", "--max-connections", "20"),
    ).start()
    yield service
    service.remove()


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    """For what waits until its time is over; everybody else gets the time that a busy machine needs."""
    service = HttpService(
        str(tmp_path_factory.mktemp("impatient") / "store.sqlite"),
        *("--header-timeout", str(HEADER), "--body-timeout", str(BODY), "--request-timeout", str(REQUEST)),
    ).start()
    yield service
    service.remove()


def outliving(service: HttpService) -> Iterator[Client]:
    client = Client(service.url)
    yield client
    assert client.get("/-/ready").status == 200, "the service outlives whatever a client does"


@pytest.fixture
def client(limited: HttpService) -> Iterator[Client]:
    yield from outliving(limited)


@pytest.fixture
def hasty(impatient: HttpService) -> Iterator[Client]:
    yield from outliving(impatient)


def put_head(path: str, *headers: str) -> bytes:
    lines = [f"PUT {path} HTTP/1.1", "Host: localhost", "Mergepub-Expected-Version: 0", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_413_with_the_limit(client: Client) -> None:
    path = fresh_path()
    client.create(path, bytes(LIMIT))
    for method, headers in (("PUT", {"Mergepub-Expected-Version": "1"}), ("POST", {"Idempotency-Key": "k"})):
        answer = client.ask(method, path, headers, bytes(LIMIT + 1))
        assert (answer.problem["status"], answer.problem["limit"]) == (413, LIMIT)
    assert client.post(path, b"x", Idempotency_Key="k").problem["limit"] == LIMIT, "the whole document is what counts"
    assert client.get(path).headers["mergepub-version"] == "1"


def test_a_body_without_a_length_is_read_up_to_the_limit_and_not_beyond(client: Client) -> None:
    chunk = b"1000\r\n" + bytes(0x1000) + b"\r\n"
    path = fresh_path()
    with client.connect() as connection:
        connection.sendall(put_head(path, "Transfer-Encoding: chunked"))
        sent = 0
        try:
            while sent < FAR:
                connection.sendall(chunk)
                sent += 0x1000
        except OSError:
            pass
        assert sent < FAR, "the service went on reading"
    assert client.get(path).status == 404


def test_a_chunked_body_within_the_limit_is_a_body(client: Client) -> None:
    path = fresh_path()
    body = b"3\r\none\r\n4\r\ntwo\n\r\n0\r\n\r\n"
    answer = client.raw(put_head(path, "Transfer-Encoding: chunked", "Connection: close") + body)
    assert status_of(answer) == 201
    assert client.get(path).body == b"onetwo\n"


def test_the_answer_413_arrives_although_the_body_is_still_being_sent(client: Client) -> None:
    import requests

    body = bytes(10 * LIMIT)
    for _ in range(5):
        answer = requests.put(
            client.url + fresh_path(), data=body, headers={"Mergepub-Expected-Version": "0"}, timeout=60
        )
        assert (answer.status_code, answer.json()["limit"]) == (413, LIMIT)
    pieces = (body[at : at + 8192] for at in range(0, len(body), 8192))
    answer = requests.put(
        client.url + fresh_path(), data=pieces, headers={"Mergepub-Expected-Version": "0"}, timeout=60
    )
    assert answer.status_code == 413


def test_what_is_left_of_an_unwanted_body_can_be_sent_without_a_reset(client: Client) -> None:
    with client.connect() as connection:
        connection.sendall(put_head(fresh_path(), f"Content-Length: {6 * LIMIT}"))
        for _ in range(6):
            time.sleep(0.1)
            connection.sendall(bytes(LIMIT))
        assert status_of(read_all(connection)) == 413


def test_an_announced_body_over_the_limit_is_refused_before_it_is_sent(client: Client) -> None:
    head = put_head(fresh_path(), "Content-Length: 999999999999", "Expect: 100-continue")
    with client.connect() as connection:
        connection.sendall(head)
        assert status_of(connection.recv(65536)) == 413


def test_a_client_that_waits_for_100_is_told_to_go_on(client: Client) -> None:
    path = fresh_path()
    with client.connect() as connection:
        connection.sendall(put_head(path, "Content-Length: 5", "Expect: 100-continue", "Connection: close"))
        assert status_of(connection.recv(65536)) == 100
        connection.sendall(b"hello")
        assert status_of(read_all(connection)) == 201


def test_a_head_over_the_limit_is_431_or_414(client: Client) -> None:
    assert client.ask("GET", fresh_path(), {"X": "a" * (HEAD + 1)}).problem["status"] == 431
    assert client.ask("GET", fresh_path(), {f"X-{n}": "a" * 100 for n in range(100)}).status == 431
    assert client.get("/" + "a" * (HEAD + 1)).problem["status"] in (414, 431)
    assert client.get("/-/list/?after=" + "a" * (HEAD + 1)).status in (414, 431)
    endless = b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 100_000
    assert status_of(client.raw(endless)) == 431


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX y: z\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xc3\xa4 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1x\r\n\r\n",
        b"PUT /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET /a\r\nHost: localhost\r\n\r\n",
        b"GET /a HTTP/1.1\nHost: localhost\n\n",
        b"GET /a HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n",
        put_head("/a", "Transfer-Encoding: gzip, chunked") + b"1\r\nx\r\n0\r\n\r\n",
        put_head("/a", "Transfer-Encoding: xchunked") + b"1\r\nx\r\n0\r\n\r\n",
        put_head("/a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n",
        put_head("/a", "Transfer-Encoding: chunked") + b"zz\r\n",
        put_head("/a", "Transfer-Encoding: chunked", "Content-Length: 1") + b"1\r\nx\r\n0\r\n\r\n",
    ],
)
def test_what_is_not_http_is_400_in_the_form_of_every_refusal(client: Client, request_bytes: bytes) -> None:
    answer = client.raw(request_bytes)
    assert status_of(answer) == 400
    assert b"application/problem+json" in answer
    assert b"Traceback" not in answer


def test_who_says_goodbye_with_the_request_is_answered(client: Client) -> None:
    for target in ("//", "/-/health", fresh_path()) * 10:
        with client.connect() as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            connection.shutdown(socket.SHUT_WR)
            assert status_of(read_all(connection)) in (200, 400, 404)


def test_another_version_of_http_is_505(client: Client) -> None:
    assert status_of(client.raw(b"GET /-/health HTTP/9.9\r\nHost: localhost\r\n\r\n")) == 505
    assert status_of(client.raw(b"GET /-/health HTTP/1.0\r\n\r\n")) == 200


def test_a_body_that_is_cut_short_publishes_nothing(client: Client) -> None:
    for headers, part in (("Content-Length: 10", b"12345"), ("Transfer-Encoding: chunked", b"5\r\n12345\r\n")):
        path = fresh_path()
        with client.connect() as connection:
            connection.sendall(put_head(path, headers) + part)
            connection.shutdown(socket.SHUT_WR)
            assert b" 201 " not in read_all(connection)
        assert client.get(path).status == 404


def test_a_client_that_ends_its_side_after_a_whole_request_is_answered(client: Client) -> None:
    path = fresh_path()
    with client.connect() as connection:
        connection.sendall(put_head(path, "Content-Length: 1") + b"x")
        connection.shutdown(socket.SHUT_WR)
        assert status_of(read_all(connection)) == 201


def test_a_header_that_does_not_come_in_time_ends_the_connection(hasty: Client) -> None:
    for start in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"):
        assert status_of(hasty.raw(start)) == 408


def test_a_header_that_trickles_is_dropped_too(hasty: Client) -> None:
    with hasty.connect() as connection:
        connection.settimeout(0.05)
        answer = b""
        for byte in b"GET / HTTP/1.1\r\nX: " + b"a" * 400:
            try:
                connection.sendall(bytes([byte]))
                answer += connection.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                break
            if answer:
                break
    assert status_of(answer) == 408


def test_the_second_header_of_a_connection_is_awaited_no_longer(hasty: Client) -> None:
    with hasty.connect() as connection:
        connection.sendall(b"GET /-/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status_of(connection.recv(65536)) == 200
        connection.sendall(b"GET /-/hea")
        assert status_of(read_all(connection)) == 408


def test_a_body_without_progress_is_408_and_publishes_nothing(hasty: Client) -> None:
    path = fresh_path()
    answer = hasty.raw(put_head(path, "Content-Length: 10") + b"12345")
    assert status_of(answer) == 408
    assert b"no byte of the body came" in answer
    assert hasty.get(path).status == 404


def test_a_body_with_progress_takes_its_time_up_to_the_limit_of_a_request(hasty: Client) -> None:
    path = fresh_path()
    with hasty.connect() as connection:
        connection.sendall(put_head(path, "Content-Length: 5", "Connection: close"))
        for byte in b"hello":  # which takes longer than the service waits for one byte
            time.sleep(BODY / 4)
            connection.sendall(bytes([byte]))
        assert status_of(read_all(connection)) == 201
    started = time.monotonic()
    with hasty.connect() as connection:
        connection.settimeout(0.2)
        connection.sendall(put_head(fresh_path(), "Content-Length: 500"))
        answer = b""
        while not answer and time.monotonic() - started < 4 * REQUEST:
            with suppress(OSError):
                connection.sendall(b"x")
            with suppress(TimeoutError):
                answer = connection.recv(65536)
    assert status_of(answer) == 408


def test_connections_over_the_limit_are_503_and_the_others_are_served(client: Client) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(client.connect()) for _ in range(19)]
        for connection in held:
            connection.sendall(b"GET /-/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status_of(connection.recv(65536)) == 200
        answers = [
            client.raw(b"GET /-/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") for _ in range(2)
        ]
        held.append(stack.enter_context(client.connect()))
        held[-1].sendall(b"GET /-/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status_of(held[-1].recv(65536)) == 200
        refused = client.raw(b"")
    assert [status_of(answer) for answer in answers] == [200, 200]
    assert status_of(refused) == 503
    assert b"retry-after: 1" in refused.lower()


def test_an_answer_that_nobody_takes_ends_the_connection(hasty: Client) -> None:
    path = fresh_path()
    hasty.create(path, bytes(LIMIT))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect((hasty.host, hasty.port))
        ask = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with pytest.raises((ConnectionResetError, BrokenPipeError)):  # noqa: PT012 - some request of these meets the end
            for _ in range(2000):
                connection.sendall(ask)
                time.sleep(0.002)
            read_all(connection)


def test_pipelined_requests_are_answered_in_order(client: Client) -> None:
    paths = [fresh_path() for _ in range(3)]
    request = b"".join(put_head(path, "Content-Length: 1") + b"x" for path in paths)
    request += f"GET {paths[2]} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    answer = client.raw(request)
    assert answer.count(b"HTTP/1.1 201") == 3
    assert answer.endswith(b"\r\n\r\nx")


def statuses_of(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]


def test_what_is_malformed_is_refused_in_its_turn_and_spoils_nothing_before_it(client: Client) -> None:
    paths = [fresh_path() for _ in range(3)]
    whole = b"".join(put_head(path, "Content-Length: 1") + b"x" for path in paths)
    unfinished = put_head(fresh_path(), "Transfer-Encoding: chunked") + b"zz\r\n"
    for rest in (b"NONSENSE\r\n\r\n", unfinished):
        answer = client.raw(whole + rest)
        assert statuses_of(answer) == ([201] * 3 if rest[:1] == b"N" else [200] * 3) + [400]
    assert [client.get(path).headers["mergepub-version"] for path in paths] == ["1"] * 3


def test_a_head_that_stays_unfinished_behind_a_request_is_late_in_its_turn(hasty: Client) -> None:
    path = fresh_path()
    answer = hasty.raw(put_head(path, "Content-Length: 1") + b"xPUT /unfinished HT")
    assert statuses_of(answer) == [201, 408]


def test_trailers_count_for_nothing(client: Client) -> None:
    path = fresh_path()
    body = b"1\r\nx\r\n0\r\nHost: evil.example\r\nMergepub-Author: eve\r\nMergepub-Expected-Version: 7\r\n\r\n"
    assert status_of(client.raw(put_head(path, "Transfer-Encoding: chunked", "Connection: close") + body)) == 201
    version = client.get(f"/-/versions{path}").json["versions"][0]
    assert (version["version"], version["author"]) == (1, "")


@pytest.mark.parametrize("start", [b"1;", b"0\r\nX: "])
def test_what_makes_a_body_long_without_being_body_is_limited(client: Client, start: bytes) -> None:
    path = fresh_path()
    with client.connect() as connection:
        connection.sendall(put_head(path, "Transfer-Encoding: chunked") + start)
        sent = 0
        try:
            while sent < FAR:
                connection.sendall(bytes([97]) * 4096)
                sent += 4096
        except OSError:
            pass
        assert sent < FAR, "the service went on reading"
    assert client.get(path).status == 404


def test_a_request_to_upgrade_is_answered_as_what_it_is_and_is_the_last(client: Client) -> None:
    upgrade = b"GET /-/health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    answer = client.raw(upgrade + b"GET /-/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status_of(answer) == 200
    assert answer.count(b"HTTP/1.1 ") == 1
    assert status_of(client.raw(b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n")) in (400, 405)


def test_empty_lines_do_not_hold_a_connection(hasty: Client) -> None:
    with hasty.connect() as connection:
        connection.sendall(b"GET /-/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status_of(connection.recv(65536)) == 200
        connection.sendall(b"\r\n\r\n")
        assert status_of(read_all(connection)) == 408


def test_noise_never_gets_a_success_nor_a_500(client: Client) -> None:
    noise = random.Random(8470)
    pieces = [
        b"GET ",
        b"PUT ",
        b"/",
        b"/docs/a",
        b" HTTP/1.1\r\n",
        b"Host: localhost\r\n",
        b"\r\n",
        b"Content-Length: ",
        b"5",
    ]
    for _ in range(60):
        request = b"".join(noise.choice([*pieces, noise.randbytes(3)]) for _ in range(noise.randrange(1, 12)))
        with client.connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = read_all(connection)
        assert not answer or 400 <= status_of(answer) < 500
