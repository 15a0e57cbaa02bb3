"""A closed service: who may what, what refusals show, and how soon a new or revoked token counts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mergepub.service.settings import Settings
from tests.service.test_tokens import token
from tests.service.wire import Answer, Client, fresh_path
from tests.stores.http_service import HttpService

LONG = 120.0  # seconds; nobody waits that long but on a very busy machine
ALLOWED = {
    "reader": ["read:/docs/**"],
    "writer": ["publish:/docs/**"],
    "admin": ["admin:/**"],
    "other": ["publish:/other/**"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("closed") / "store.sqlite"


@pytest.fixture(scope="module")
def secrets(store: Path) -> dict[str, str]:
    return {name: create(store, name, *rules) for name, rules in ALLOWED.items()}


@pytest.fixture(scope="module")
def closed(store: Path, secrets: dict[str, str]) -> Iterator[HttpService]:
    service = HttpService(str(store)).start()
    yield service
    service.remove()


@pytest.fixture
def clients(closed: HttpService, secrets: dict[str, str]) -> dict[str, Client]:
    return {name: Client(closed.url, secret) for name, secret in secrets.items()}


def create(store: Path, name: str, *rules: str, expires: str | None = None) -> str:
    options = [f"--allow={rule}" for rule in rules] + ([f"--expires={expires}"] if expires else [])
    return token(store, "create", "--name", name, *options).stdout.strip()


def test_without_a_known_token_everything_of_documents_is_401(closed: HttpService, secrets: dict[str, str]) -> None:
    secret = secrets["writer"]
    bad = [
        None,
        "Bearer",
        "Bearer ",
        f"Bearer {secret}0",
        f"Bearer {secret[:-1]}",
        f"Basic {secret}",
        secret,
        "Bearer mergepub_0000000000000000_" + "0" * 64,
        "Bearer ü",
    ]
    targets = ("/docs/a.md", "/docs/a.md/v1", "/-/versions/docs/a.md", "/-/verify/docs/a.md", "/-/list/", "/-/metrics")
    for value in bad:
        headers = {} if value is None else {"Authorization": value}
        for target in targets:
            answer = Client(closed.url).ask("GET", target, headers)
            assert answer.problem["status"] == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert Client(closed.url).ask("PUT", "/docs/a.md", {**headers, "If-None-Match": "*"}, b"x").status == 401


def test_two_tokens_at_once_are_none(closed: HttpService, secrets: dict[str, str]) -> None:
    secret = secrets["reader"]
    lines = f"Authorization: Bearer {secret}\r\n" * 2
    answer = Client(closed.url).raw(
        f"GET /docs/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 401")


def test_health_ready_and_the_description_are_open(closed: HttpService) -> None:
    for target in ("/-/health", "/-/ready", "/-/openapi.json", "/-/docs"):
        assert Client(closed.url).get(target).status == 200


def test_publishing_includes_reading_and_reading_excludes_publishing(clients: dict[str, Client]) -> None:
    path = fresh_path()
    assert clients["writer"].create(path).status == 201
    for name in ("writer", "reader"):
        for target in (path, f"{path}/v1", f"/-/versions{path}", f"/-/verify{path}"):
            assert clients[name].get(target).status == 200
    for ask in (
        lambda: clients["reader"].put(path, b"x", Mergepub_Expected_Version="1"),
        lambda: clients["reader"].put(path, b"x"),
        lambda: clients["reader"].post(path, b"x", Idempotency_Key="k"),
        lambda: clients["reader"].delete(path, Mergepub_Expected_Version="1"),
        lambda: clients["other"].put(path, b"x", Mergepub_Expected_Version="1"),
    ):
        assert ask().problem["status"] == 403
    assert clients["writer"].get(path).headers["mergepub-version"] == "1"


def test_a_read_that_is_not_allowed_is_byte_for_byte_a_404(clients: dict[str, Client]) -> None:
    there, missing = fresh_path("/docs"), fresh_path("/docs")
    clients["writer"].create(there)
    deleted = fresh_path("/docs")
    clients["writer"].create(deleted)
    clients["writer"].delete(deleted, Mergepub_Expected_Version="1")

    def seen(client: Client, target: str, path: str) -> tuple[int, dict[str, str], bytes]:
        answer: Answer = client.get(target)
        headers = {name: value for name, value in answer.headers.items() if name not in ("date", "content-length")}
        return answer.status, headers, answer.body.replace(path.encode(), b"PATH")

    for form in ("{}", "{}/v1", "{}/v7", "/-/versions{}", "/-/verify{}"):
        real = seen(clients["reader"], form.format(missing), missing)
        assert real[0] == 404
        for path in (there, missing, deleted):
            assert seen(clients["other"], form.format(path), path) == real


def test_a_listing_shows_what_may_be_read_and_pages_over_the_rest(clients: dict[str, Client]) -> None:
    folders = ("/docs/paged", "/other/paged")
    for number in range(7):
        clients["writer"].create(f"{folders[0]}/{number}")
        clients["other"].create(f"{folders[1]}/{number}")
    for name, folder in (("reader", folders[0]), ("other", folders[1])):
        rows: list[str] = []
        target = "/-/list/?limit=3"
        while target:
            page = clients[name].get(target)
            rows += [row["path"] for row in page.json["documents"]]
            link = re.match(r'<(.*)>; rel="next"', page.headers.get("link", ""))
            target = link[1] if link else ""
        assert [row for row in rows if row.startswith(("/docs/paged", "/other"))] == [
            f"{folder}/{number}" for number in range(7)
        ]
    assert clients["other"].get("/-/list/docs/").json == {"documents": []}


def test_with_a_token_the_author_is_its_name(clients: dict[str, Client]) -> None:
    path = fresh_path()
    clients["writer"].create(path, b"1\n", Mergepub_Author="somebody else", Mergepub_Message="mine")
    row = clients["writer"].get(f"/-/versions{path}").json["versions"][0]
    assert (row["author"], row["message"]) == ("writer", "mine")


def test_metrics_need_read_or_admin_on_them(clients: dict[str, Client]) -> None:
    assert clients["admin"].get("/-/metrics").status == 200
    assert clients["reader"].get("/-/metrics").status == 404


def test_answers_to_token_holders_are_kept_by_no_shared_cache(clients: dict[str, Client]) -> None:
    path = fresh_path()
    clients["writer"].create(path)
    for target in (path, f"{path}/v1"):
        assert clients["writer"].get(target).headers["cache-control"].startswith("private")


def test_a_token_counts_and_ends_while_the_service_runs(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    assert Settings(str(store)).token_poll < 5, "within five seconds, as promised"
    service = HttpService(str(store)).start()
    try:
        anybody = Client(service.url)
        path = fresh_path()
        anybody.create(path)
        secret = create(store, "first", "read:/**")
        assert within(LONG, lambda: anybody.get(path).status == 401)
        assert Client(service.url, secret).get(path).status == 200
        token(store, "revoke", "first")
        assert within(LONG, lambda: Client(service.url, secret).get(path).status == 401)
        assert anybody.get(path).status == 401, "a service that was closed does not open by itself"
    finally:
        service.remove()


def within(seconds: float, holds: object) -> bool:
    """Whether ``holds()`` becomes true in time."""
    assert callable(holds)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def test_other_machines_are_served_only_with_tokens_or_on_demand(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    command = [sys.executable, "-m", "mergepub", "serve", "--host", "0.0.0.0", "--port", "0", "--store", str(store)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode == 2
    assert "token create" in refused.stderr
    everybody = HttpService(str(store), "--host", "0.0.0.0", "--open-to-everyone").start()
    try:
        assert "WARNING" in everybody.log
        assert Client(everybody.url.replace("0.0.0.0", "127.0.0.1")).get("/-/health").status == 200
    finally:
        everybody.remove()
    create(store, "CI", "read:/**")
    guarded = HttpService(str(store), "--host", "0.0.0.0", "--public-name", "docs.example.org").start()
    try:
        assert "WARNING" not in guarded.log
        client = Client(guarded.url.replace("0.0.0.0", "127.0.0.1"))
        assert client.ask("GET", "/-/health", {"Host": "docs.example.org"}).status == 200
        assert client.ask("GET", "/-/health", {"Host": "other.example.org"}).status == 421
    finally:
        guarded.remove()


def test_no_secret_is_in_any_log_or_answer(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    secret = create(store, "CI", "publish:/docs/**")
    for log_format in ("text", "json"):
        service = HttpService(str(store), "--log-format", log_format).start()
        try:
            wrong = secret[:-4] + "0000"
            path = fresh_path()
            answers = [
                Client(service.url, secret).create(path),
                Client(service.url, secret).get(path),
                Client(service.url, secret).put("/elsewhere", b"x", Mergepub_Expected_Version="0"),
                Client(service.url, secret).get("/docs/%zz"),
                Client(service.url, secret).get(f"/docs/a?token={secret}"),
                Client(service.url, wrong).get(path),
                Client(service.url).ask("GET", path, {"Authorization": f"Basic {secret}"}),
            ]
            service.stop()
            shown = service.log + "".join(f"{answer.headers}{answer.body!r}" for answer in answers)
            for each in (secret, wrong):
                assert each.split("_")[2] not in shown
            assert "CI" in service.log, "the name of the token is what the log has"
        finally:
            service.remove()
