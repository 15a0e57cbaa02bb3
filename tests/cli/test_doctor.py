"""The verb ``doctor`` on real stores: a file, a service with and without tokens, one behind TLS, one out of reach."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.stores import http_doctor
from tests.cli.conftest import present
from tests.stores.http_service import HttpService

if TYPE_CHECKING:
    from tests.cli.conftest import Runner
    from tests.stores.postgres_server import PostgresServer


def lines(out: bytes) -> dict[str, tuple[str, str]]:
    """Check -> verdict and message."""
    found = (line.split(None, 2) for line in out.decode().splitlines() if not line.startswith(" "))
    return {check.rstrip(":"): (verdict, message) for verdict, check, message in found}


@pytest.fixture
def service(mergepub: Runner) -> Iterator[HttpService]:
    assert mergepub("store", "init").status == 0
    running = HttpService(str(Path("store.sqlite").resolve())).start()
    yield running
    running.remove()


def test_a_store_in_a_file_is_proven(mergepub: Runner) -> None:
    mergepub("store", "init")
    result = mergepub("doctor")
    assert (result.status, result.err) == (0, "")
    assert {verdict for verdict, _ in lines(result.out).values()} == {"ok"}
    assert {"store", "token", "clock", "swap", "retry", "clean-up"} <= set(lines(result.out))
    assert mergepub("list").out == b""


def test_no_proof_publishes_nothing(mergepub: Runner) -> None:
    mergepub("store", "init")
    assert "swap" not in lines(mergepub("doctor", "--no-proof").out)
    assert mergepub("list", "--deleted").out == b""


def test_a_store_that_is_not_made_yet_is_a_warning_and_is_not_made(mergepub: Runner) -> None:
    result = mergepub("doctor")
    assert (result.status, lines(result.out)["store"][0]) == (0, "warn")
    assert b"next: mergepub store init" in result.out
    assert present() == []


def test_a_file_that_is_no_store_fails_with_3_and_json_says_the_same(mergepub: Runner) -> None:
    Path("store.sqlite").write_bytes(b"something else\n" * 100)
    result = mergepub("doctor")
    assert (result.status, lines(result.out)["store"][0]) == (3, "fail")
    answer = json.loads(mergepub("doctor", "--json").out)
    assert (answer["ok"], answer["error"]["code"], answer["error"]["message"]) == (False, 3, "1 check failed")
    assert answer["error"]["findings"][0]["verdict"] == "fail"


def test_json_of_a_store_in_order(mergepub: Runner) -> None:
    mergepub("store", "init")
    answer = json.loads(mergepub("doctor", "--json").out)
    assert answer["ok"]
    assert all(set(row) == {"check", "verdict", "message"} for row in answer["result"]["findings"])


def test_a_service_is_proven_with_the_token_named_and_never_shown(
    mergepub: Runner, service: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = lines(mergepub("doctor", "--store", service.url).out)
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert "asks for none" in found["token"][1]
    assert "plain HTTP" in found["tls"][1]

    made = mergepub("token", "create", "--name", "CI", "--allow", "publish:/docs/**", "--allow", "read:/**")
    secret = made.out.decode().strip()
    service.stop()
    service.start()
    refused = mergepub("doctor", "--store", service.url)
    assert refused.status == 3
    assert "MERGEPUB_TOKEN" in refused.out.decode()
    monkeypatch.setenv("MERGEPUB_TOKEN", secret)
    result = mergepub("doctor", "--store", service.url)
    found = lines(result.out)
    assert (result.status, found["publish"][0]) == (0, "warn")
    assert b"--scratch" in result.out
    assert "from the variable MERGEPUB_TOKEN is accepted" in found["token"][1]
    result = mergepub("doctor", "--store", service.url, "--scratch", "/docs")
    assert {verdict for verdict, _ in lines(result.out).values()} == {"ok"}
    assert secret not in result.out.decode() + result.err


def test_a_store_out_of_reach_fails_with_4(mergepub: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from mergepub.stores.wrappers import RetryPolicy

    monkeypatch.setattr("mergepub.stores.http.RetryPolicy", RetryPolicy.instant)
    result = mergepub("doctor", "--store", "http://127.0.0.1:9")
    assert (result.status, result.err) == (4, "")
    found = lines(result.out)
    assert (found["store"][0], found["clock"][0]) == ("fail", "warn")
    assert "swap" not in found


@pytest.mark.parametrize(("seconds", "side"), [(90, "ahead of"), (-90, "behind")])
def test_a_clock_that_is_off_is_a_warning(
    mergepub: Runner, service: HttpService, monkeypatch: pytest.MonkeyPatch, seconds: int, side: str
) -> None:
    monkeypatch.setattr(http_doctor, "_date", lambda *_: datetime.now(UTC) + timedelta(seconds=seconds))
    verdict, message = lines(mergepub("doctor", "--no-proof", "--store", service.url).out)["clock"]
    assert (verdict, side in message) == ("warn", True)


def test_a_certificate_is_counted_in_days_and_one_of_a_stranger_fails(
    mergepub: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    mergepub("store", "init")
    running = HttpService(str(Path("store.sqlite").resolve()), "--tls-cert", certificate, "--tls-key", key).start()
    try:
        from mergepub.stores.wrappers import RetryPolicy

        monkeypatch.setattr("mergepub.stores.http.RetryPolicy", RetryPolicy.instant)
        result = mergepub("doctor", "--store", running.url)
        assert (result.status, lines(result.out)["tls"][0]) == (4, "fail")
        assert b"REQUESTS_CA_BUNDLE" in result.out
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
        result = mergepub("doctor", "--store", running.url)
        found = lines(result.out)
        assert (result.status, found["tls"][0]) == (0, "warn")
        assert "good for 8 more days" in found["tls"][1]
        assert found["swap"][0] == "ok"
    finally:
        running.remove()


def test_a_postgresql_store_is_proven(
    mergepub: Runner, postgres_server: PostgresServer, postgres_database: str
) -> None:
    url = postgres_server.url(postgres_database)
    assert mergepub("store", "init", "--store", url).status == 0
    result = mergepub("doctor", "--store", url)
    assert (result.status, {verdict for verdict, _ in lines(result.out).values()}) == (0, {"ok"})
