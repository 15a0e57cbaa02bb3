"""Starting, running beside others, being watched, ending: the life of the process."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest
from mergepub.errors import UnavailableError
from mergepub.stores.http import HttpStore
from tests.service.wire import Client, fresh_path, read_all, status_of
from tests.stores.http_service import HttpService

LAUNCHER = Path(__file__).parents[2] / "scripts" / "launcher"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


@pytest.fixture
def service(store: str) -> Iterator[HttpService]:
    service = HttpService(store).start()
    yield service
    service.remove()


def serve(*arguments: str, store: str = "memory:") -> subprocess.CompletedProcess[str]:
    """``mergepub serve`` that ends by itself."""
    command = [sys.executable, "-m", "mergepub", "serve", "--store", store, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_sigterm_lets_a_request_under_way_finish_and_exits_0(service: HttpService) -> None:
    client, path = Client(service.url), fresh_path()
    head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nMergepub-Expected-Version: 0\r\nContent-Length: 5\r\n\r\n"
    with client.connect() as idle, client.connect() as connection:
        connection.sendall(head.encode() + b"he")
        time.sleep(0.3)
        ended: list[int] = []
        stopping = threading.Thread(target=lambda: ended.append(service.stop()))
        stopping.start()
        time.sleep(0.5)
        connection.sendall(b"llo")
        assert status_of(read_all(connection)) == 201
        assert read_all(idle) == b""
        stopping.join(30)
    assert ended == [0]
    service.start()
    assert client.get(path).body == b"hello"


def test_sigterm_with_nothing_to_do_ends_at_once_with_0(service: HttpService) -> None:
    Client(service.url).create(fresh_path())
    assert service.stop() == 0
    assert "Traceback" not in service.log


def test_sigint_ends_it_as_an_interruption(service: HttpService) -> None:
    assert service._end(signal.SIGINT) == 130, service.log
    assert "Traceback" not in service.log


def test_what_was_acknowledged_survives_kill_9(service: HttpService) -> None:
    client = Client(service.url)
    paths = [fresh_path() for _ in range(5)]
    for path in paths:
        client.create(path, path.encode())
    service.kill()
    service.start()
    assert [client.get(path).body for path in paths] == [path.encode() for path in paths]


def test_a_damaged_body_is_500_and_names_what_looks_closer(service: HttpService, store: str) -> None:
    client, path = Client(service.url), fresh_path()
    client.create(path, b"1\n")
    connection = sqlite3.connect(store)
    with connection:
        connection.execute("UPDATE bodies SET body = x'00'")
    connection.close()
    for answer in (client.get(path), client.post(path, b"2\n", Idempotency_Key="k")):
        assert (answer.status, answer.problem["type"]) == (500, "urn:mergepub:problem:damaged")
        assert "mergepub verify" in answer.problem["detail"]
        assert store not in answer.body.decode()
        assert "retry-after" not in answer.headers
    assert client.put(path, b"2\n", Mergepub_Expected_Version="1").status == 201, "what is whole is written on"
    remote = HttpStore(service.url)
    with pytest.raises(UnavailableError, match="mergepub verify"):
        remote.fetch(path, 1)
    remote.close()
    assert "is damaged in the store" in service.log


def test_two_services_on_one_store_are_one_store(service: HttpService, store: str) -> None:
    second = HttpService(store).start()
    try:
        one, other = Client(service.url), Client(second.url)
        path = fresh_path()
        tag = one.create(path, b"0\n").headers["etag"]
        assert other.get(path).headers["etag"] == tag
        statuses: list[int] = []

        def race(client: Client, body: bytes) -> None:
            statuses.append(client.put(path, body, If_Match=tag).status)

        threads = [threading.Thread(target=race, args=(c, b"%d" % n)) for n, c in enumerate([one, other] * 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [201] + [412] * 7
    finally:
        second.remove()


@pytest.mark.parametrize("program", [("-m", "mergepub"), (str(LAUNCHER),)], ids=["package", "command"])
def test_several_workers_share_the_socket_and_end_together(store: str, program: tuple[str, ...]) -> None:
    service = HttpService(store, "--workers", "2", program=program).start()
    try:
        client = Client(service.url)
        client.create("/a", b"1")
        workers = set()
        end = time.monotonic() + 120
        while len(workers) < 2 and time.monotonic() < end:
            workers.add(worker_of(client))
        assert len(workers) == 2
        series = re.findall(rb"^[a-z]\S*", client.get("/-/metrics").body, re.MULTILINE)
        assert all(re.search(rb'[{]worker="\d+"[,}]', each) for each in series)
        assert service.stop() == 0
        assert "Traceback" not in service.log
    finally:
        service.remove()


@pytest.mark.parametrize("begun", [False, True], ids=["while they start", "when they serve"])
def test_an_interrupt_from_a_terminal_ends_all_workers_without_a_trace(store: str, tmp_path: Path, begun: bool) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "mergepub", "serve", "--store", store, "--port", "0", "--workers", "2"]
    with log.open("wb") as writing:
        process = subprocess.Popen(command, stderr=writing, start_new_session=True)
    while not (serving := re.search(r"on (http://\S+)", log.read_text())):
        assert process.poll() is None, log.read_text()
        time.sleep(0.02)
    if begun:
        assert Client(serving[1]).get("/-/health").status == 200
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(120) == 130
    assert "Traceback" not in log.read_text()


def test_a_worker_that_is_killed_is_replaced(store: str) -> None:
    service = HttpService(store, "--workers", "2").start()
    try:
        client = Client(service.url)
        killed = worker_of(client)
        os.kill(killed, signal.SIGKILL)
        seen = {killed}
        while len(seen) < 3:  # the other one, and the new one
            with suppress(OSError, HTTPException):
                seen.add(worker_of(client))
        assert service.stop() == 0
    finally:
        service.remove()


def worker_of(client: Client) -> int:
    """The process that answers."""
    found = re.search(rb"^mergepub_worker\S* (\d+)$", client.get("/-/metrics").body, re.MULTILINE)
    assert found
    return int(found[1])


def test_health_and_ready_tell_the_process_from_the_store(service: HttpService, store: str) -> None:
    client = Client(service.url)
    assert (client.get("/-/health").status, client.get("/-/ready").status) == (200, 200)
    Path(store).write_bytes(b"this is no store at all, and long enough to be looked at" * 100)
    assert client.get("/-/health").status == 200
    ready = client.get("/-/ready")
    assert (ready.problem["status"], ready.headers["retry-after"]) == (503, "5")
    down = client.put("/a", b"x", Mergepub_Expected_Version="0")
    assert (down.problem["status"], down.headers["retry-after"]) == (503, "2")
    assert store not in down.body.decode()
    Path(store).unlink()
    assert client.get("/-/ready").status == 200
    assert client.create("/a").status == 201


def test_metrics_count_what_was_answered(service: HttpService) -> None:
    client, path = Client(service.url), fresh_path()
    client.create(path, b"12345")
    client.get(path)
    client.get(fresh_path())
    answer = client.get("/-/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    for line in (
        'mergepub_requests_total{method="PUT",room="document",status="201"} 1',
        'mergepub_requests_total{method="GET",room="document",status="404"} 1',
        'mergepub_body_bytes_total{direction="received"} 5',
        'mergepub_request_seconds_count{method="GET"} 2',
        "mergepub_requests_in_flight 1",
    ):
        assert line in lines
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert all(line.startswith("#") or re.split(r"[{ ]", line)[0].startswith(tuple(names)) for line in lines)


def test_the_log_is_one_line_a_request_in_either_format(store: str) -> None:
    target = "/docs/%7Bhi%7D%20there?q=secret"
    for log_format in ("text", "json"):
        service = HttpService(store, "--log-format", log_format).start()
        try:
            Client(service.url).get(target)
            Client(service.url).get("/docs/a%0Aforged%20line")
            service.stop()
            lines = service.log.splitlines()[-2:]
        finally:
            service.remove()
        assert "secret" not in service_text(lines)
        if log_format == "json":
            facts = json.loads(lines[0])
            assert (facts["event"], facts["method"], facts["status"]) == ("request", "GET", 404)
            assert facts["path"] == "/docs/%7Bhi%7D%20there"
            assert json.loads(lines[1])["status"] == 400
        else:
            form = (
                r"\S+ request client=127\.0\.0\.1 method=GET path=/docs/%7Bhi%7D%20there status=404 ms=\S+ .*token=null"
            )
            assert re.fullmatch(form, lines[0])
            assert "path=/docs/a%0Aforged%20line status=400" in lines[1]


def test_what_never_became_a_request_is_in_the_log_too(service: HttpService) -> None:
    Client(service.url).raw(b"this is no HTTP\r\n\r\n")
    service.stop()
    assert re.fullmatch(r"\S+ refused client=127\.0\.0\.1 status=400 said=.*", service.log.splitlines()[-1])


def service_text(lines: list[str]) -> str:
    return "\n".join(lines)


def test_it_speaks_tls(store: str, tmp_path: Path) -> None:
    import requests

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*make, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    service = HttpService(store, "--tls-cert", str(certificate), "--tls-key", str(key)).start()
    try:
        assert service.url.startswith("https://")
        headers = {"Mergepub-Expected-Version": "0"}
        made = requests.put(f"{service.url}/a", data=b"x", headers=headers, verify=str(certificate), timeout=20)
        assert made.status_code == 201
        assert requests.get(f"{service.url}/a", verify=str(certificate), timeout=20).content == b"x"
        with requests.Session() as session:
            session.get(f"{service.url}/a", verify=str(certificate), timeout=20)
            assert service.stop() == 0, "with a connection open whose client does not say goodbye"
        assert "Traceback" not in service.log
    finally:
        service.remove()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "99999"], "65535"),
        (["--host", "no.such.host.invalid", "--open-to-everyone"], "cannot listen"),
        (["--tls-cert", "/no/such/file"], "/no/such/file"),
        (["--tls-key", "/no/such/file"], "--tls-cert"),
        (["--max-body", "lots"], "is not a size"),
        (["--header-timeout", "0"], "is not a time"),
        (["--workers", "0"], "between"),
    ],
)
def test_what_cannot_be_started_is_refused_with_2_and_a_sentence(arguments: list[str], said: str) -> None:
    done = serve("--port", "0", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_refused(service: HttpService) -> None:
    done = serve("--port", service.url.rpartition(":")[2])
    assert (done.returncode, "in use" in done.stderr) == (2, True)


def test_a_file_that_is_no_store_is_3_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(b"my notes\n" * 1000)
    done = serve("--port", "0", store=str(file))
    assert (done.returncode, file.read_bytes()) == (3, b"my notes\n" * 1000)
    assert "Traceback" not in done.stderr


def test_without_the_extra_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "fastapi.py").write_text("raise ModuleNotFoundError('gone', name='fastapi')")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from mergepub.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--store", "memory:"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert 'pip install "mergepub[server]"' in done.stderr
