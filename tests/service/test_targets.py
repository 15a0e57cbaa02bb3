"""Request targets on the wire: taken as they are sent, refused by rule, never normalised. And the ``Host`` header."""

from __future__ import annotations

import pytest
from mergepub.service.targets import host_name
from tests.service.wire import Client, fresh_path, status_of

HOSTILE = {
    "/": "empty segment",
    "//docs/a": "empty segment",
    "/docs//a": "empty segment",
    "/docs/a/": "empty segment",
    "/docs/../a": ". or ..",
    "/docs/./a": ". or ..",
    "/..": ". or ..",
    "/docs/%2e%2e/a": ". or ..",
    "/docs/%2E./a": ". or ..",
    "/docs/.%2e": ". or ..",
    "/%2e": ". or ..",
    "/docs%2Fa": "encoded /",
    "/docs/a%2fb": "encoded /",
    "/%2e%2e%2f%2e%2e%2fetc": "encoded /",
    "/..%2f..%2fetc/passwd": "encoded /",
    "/docs/a%00": "control character",
    "/docs/a%0a": "control character",
    "/docs/a%0D%0AX-Injected:%20yes": "control character",
    "/docs/a%7f": "control character",
    "/docs/a%C2%85": "control character",
    "/docs/a%C2%9B": "control character",
    "/docs/u%CC%88": "NFC",
    "/docs/%E2%84%AB": "NFC",
    "/docs/%ff": "UTF-8",
    "/docs/%c0%af": "UTF-8",
    "/docs/%c0%ae%c0%ae/a": "UTF-8",
    "/docs/%ed%a0%80": "UTF-8",
    "/docs/%": "hexadecimal",
    "/docs/%4": "hexadecimal",
    "/docs/%zz": "hexadecimal",
    "/docs/%u002e": "hexadecimal",
    "/docs/v05": "leading zeros",
    "/docs/v0": "leading zeros",
    "/v5": "reads as a version",
    "/-/unknown": "reserved",
    "/-": "reserved",
    "/%2d/unknown": "reserved",
    "/-/versions": "reserved",
    "/" + "a" * 1024: "limit is 1024",
    "/docs/" + "%C3%A4" * 510: "limit is 1024",
    "/docs/v" + "9" * 400: "no version is above",
    "/docs/a#b": "must be encoded",
    "docs/a": "start with /",
    "*": "start with /",
}


@pytest.mark.parametrize("target", HOSTILE)
def test_a_bad_path_is_400_with_its_rule(client: Client, target: str) -> None:
    answer = client.get(target)
    assert answer.problem["status"] == 400
    assert HOSTILE[target] in answer.problem["detail"]
    assert "x-injected" not in answer.headers


@pytest.mark.parametrize("target", ["/docs/%2e%2e/a", "/docs/a%2Fb", "/v5", "/docs/v05", "/-/health2", "/docs/a%00"])
@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "HEAD"])
def test_no_method_takes_a_bad_path(client: Client, method: str, target: str) -> None:
    body = b"x" if method in ("PUT", "POST") else None
    headers = {"Mergepub-Expected-Version": "0", "Idempotency-Key": "k"}
    assert client.ask(method, target, headers, body).status == 400


def test_a_version_is_read_and_never_written(client: Client) -> None:
    path = fresh_path()
    client.create(path)
    for method in ("PUT", "POST", "DELETE"):
        answer = client.ask(method, f"{path}/v1", {"Mergepub-Expected-Version": "1", "Idempotency-Key": "k"}, b"x")
        assert "reads as a version" in answer.problem["detail"]


@pytest.mark.parametrize("folder", ["/-/versions", "/-/list"])
@pytest.mark.parametrize("target", ["/../a", "/%2e%2e/a", "/a%2Fb", "/a%00", "//a", "/u%CC%88", "/-/a"])
def test_history_and_listings_keep_the_same_rules(client: Client, folder: str, target: str) -> None:
    assert client.get(folder + target).problem["status"] == 400


def test_paths_are_told_apart_by_what_they_decode_to(client: Client) -> None:
    path = fresh_path("/docs/%C3%A4%20b")
    client.create(path, b"1\n")
    assert client.get(path.replace("%C3%A4", "%c3%a4").replace("d", "%64")).body == b"1\n"
    for other in (path.replace("%20", "+"), path.replace("docs", "Docs"), path.replace("%C3%A4", "%25C3%25A4")):
        assert client.get(other).status == 404


def test_signs_that_mean_something_elsewhere_are_only_characters_here(client: Client) -> None:
    for name in ("a%3Fb", "a%23b", "a;v=1", "a%5Cb", "a%25b", "%252e%252e", "~user", "$a&b=c", "v5x", "-", "..."):
        path = fresh_path(f"/docs/{name}")
        client.create(path, name.encode())
        assert client.get(path).body == name.encode()


def test_a_version_below_a_document_with_a_version_like_folder_is_reached(client: Client) -> None:
    path = fresh_path("/api/v2")
    client.create(path, b"1\n")
    assert client.get(f"{path}/v1").body == b"1\n"


def test_a_query_does_not_change_what_a_document_is(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"1\n")
    assert client.get(f"{path}?v=2").body == b"1\n"


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", ""),
        *("localhost:evil.example", "[::1].evil.example", "[::1]evil", "evil@localhost", "localhost:80:80"),
    ],
)
def test_a_host_that_is_not_ours_is_421(client: Client, host: str) -> None:
    answer = client.ask("GET", "/-/health", {"Host": host})
    assert answer.problem["status"] == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8470", "127.1.2.3", "[::1]", "[::1]:99", "a.localhost."]
)
def test_every_name_of_this_machine_is_ours(client: Client, host: str) -> None:
    assert client.ask("GET", "/-/health", {"Host": host}).status == 200


@pytest.mark.parametrize(
    ("setting", "sent"),
    [
        ("docs.example.org", "Docs.Example.Org.:443"),
        ("docs.example.org:8443", "docs.example.org"),
        ("2001:DB8:0::5", "[2001:db8::5]:8470"),
        ("[2001:db8::5]", "[2001:db8:0:0::5]"),
        ("10.0.0.1", "10.0.0.1:80"),
    ],
)
def test_a_host_is_the_one_of_the_settings_however_it_is_written(setting: str, sent: str) -> None:
    assert host_name(setting) == host_name(sent)


def test_the_absolute_form_is_understood_and_its_host_counts(client: Client) -> None:
    assert client.ask("GET", "http://localhost/-/health").status == 200
    assert client.ask("GET", "http://evil.example/-/health", {"Host": "localhost"}).status == 421


def test_two_hosts_or_none_are_refused(client: Client) -> None:
    for hosts in ("", "Host: localhost\r\nHost: evil.example\r\n"):
        assert status_of(client.raw(f"GET /-/health HTTP/1.1\r\n{hosts}\r\n".encode())) == 400
