"""The service's own description: true, complete, and enough to attack it with."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.service.wire import Client

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
EXAMPLES = 25


def test_every_operation_is_described_and_every_description_is_served(client: Client) -> None:
    described = client.get("/-/openapi.json").json
    assert described["openapi"].startswith("3.1")
    operations = {(method.upper(), path) for path, of in described["paths"].items() for method in of}
    reads = {"/-/health", "/-/ready", "/-/metrics", "/-/openapi.json", "/-/docs"} | {
        "/-/versions/{path}",
        "/-/list/{path}",
        "/-/verify/{path}",
        "/-/branches/{path}",
        "/-/decisions/{path}",
        "/{path}",
    }
    writes = {("PUT", "/{path}"), ("POST", "/{path}"), ("DELETE", "/{path}")} | {
        ("PUT", "/-/branches/{path}"),
        ("POST", "/-/branches/{path}"),
        ("POST", "/-/decisions/{path}"),
    }
    assert operations == {(method, path) for path in reads for method in ("GET", "HEAD")} | writes
    for path, of in described["paths"].items():
        assert len({each["operationId"] for each in of.values()}) == len(of), path
    of_documents = ("versions", "verify", "branches", "decisions")
    for path in reads - {f"/-/{room}/{{path}}" for room in of_documents} - {"/{path}"}:
        assert client.get(path.replace("{path}", "")).status == 200


def test_every_reference_in_the_description_leads_somewhere(client: Client) -> None:
    answer = client.get("/-/openapi.json")
    for name in re.findall(r'"#/components/schemas/(\w+)"', answer.body.decode()):
        assert name in answer.json["components"]["schemas"]


def test_the_page_needs_nothing_from_anywhere_else(client: Client) -> None:
    page = client.get("/-/docs")
    text = page.body.decode()
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.findall(r"<(?:script|link|img|iframe)|https?://|@import|url\(", text)
    for word in ("PUT /{path}", "Idempotency-Key", "428", "GET /-/list/{path}"):
        assert word in text


def test_requests_made_from_the_description_find_no_fault(client: Client, tmp_path: Path) -> None:
    shutil.copy(CONFIGURATION, tmp_path)
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    options = ["--max-examples", str(EXAMPLES), "--phases", "examples,coverage,fuzzing,stateful"]
    options += [
        "--request-timeout",
        "120",
    ]  # ten seconds are its own; on a busy machine that is no fault of the service
    command = [
        sys.executable,
        "-c",
        program,
        "run",
        f"{client.url}/-/openapi.json",
        *options,
        "--suppress-health-check",
        "all",
    ]
    done = subprocess.run(
        [*command, "--continue-on-failure", "--no-color"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ generated, (\d+) passed", done.stdout), done.stdout
