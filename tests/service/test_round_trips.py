"""What a publish costs in requests, counted in the service's own log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.wire import Client, fresh_path
from tests.stores.http_service import HttpService


@pytest.fixture
def service(tmp_path: Path) -> Iterator[HttpService]:
    service = HttpService(str(tmp_path / "store.sqlite"), "--log-format", "json").start()
    yield service
    service.remove()


def requests_of(service: HttpService) -> list[tuple[str, int]]:
    facts = [json.loads(line) for line in service.log.splitlines() if line.startswith("{")]
    return [(fact["method"], fact["status"]) for fact in facts if fact["event"] == "request"]


def publish(service: HttpService, folder: Path, path: str, body: str, version: int) -> int:
    (folder / "body.md").write_text(body)
    command = [sys.executable, "-m", "mergepub", "--store", service.url, "publish", path, "body.md"]
    options = ["--expected-version", str(version), "--on-conflict", "merge"]
    return subprocess.run([*command, *options], cwd=folder, capture_output=True, check=False).returncode


def test_a_publish_writes_once_and_a_conflict_costs_three_requests_more(service: HttpService, tmp_path: Path) -> None:
    client, path = Client(service.url), fresh_path()
    assert publish(service, tmp_path, path, "1\n2\n3\n4\n5\n", 0) == 0
    client.put(path, b"one\n2\n3\n4\n5\n", Mergepub_Expected_Version="1")
    assert publish(service, tmp_path, path, "1\n2\n3\n4\nfive\n", 1) == 0
    assert client.get(path).body == b"one\n2\n3\n4\nfive\n"
    service.stop()  # a line may be written a moment after its answer, but not after the end
    plain, others, *made, _ = requests_of(service)
    assert (plain, others) == (("PUT", 201), ("PUT", 201))
    assert made == [("PUT", 412), ("GET", 200), ("GET", 200), ("PUT", 201)]
