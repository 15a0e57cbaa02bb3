"""History and listings: field names, order, paging with links."""

from __future__ import annotations

import re

import pytest
from tests.service.wire import Client, fresh_path


def pages(client: Client, target: str, key: str) -> list[list[dict[str, object]]]:
    """The rows of every page, following the links."""
    found = []
    while target:
        answer = client.get(target)
        assert answer.status == 200
        found.append(answer.json[key])
        link = re.fullmatch(r'<([^>]*)>; rel="next"', answer.headers.get("link", ""))
        target = link[1] if link else ""
    return found


def test_history_has_exactly_these_fields_newest_first(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"12345", Mergepub_Author="Ann", Mergepub_Message="first")
    client.delete(path, Mergepub_Expected_Version="1", Mergepub_Author="Bob")
    tombstone, first = client.get(f"/-/versions{path}").json["versions"]
    assert set(first) == {"version", "digest", "size", "author", "message", "modified", "incarnation"}
    assert (first["version"], first["size"], first["author"], first["message"]) == (1, 5, "Ann", "first")
    assert (tombstone["version"], tombstone["deleted"], tombstone["author"]) == (2, True, "Bob")


def test_history_is_paged_below_after(client: Client) -> None:
    path = fresh_path()
    client.create(path, b"1")
    for number in range(1, 7):
        client.put(path, f"{number + 1}".encode(), Mergepub_Expected_Version=str(number))
    found = pages(client, f"/-/versions{path}?limit=3", "versions")
    assert [[row["version"] for row in page] for page in found] == [[7, 6, 5], [4, 3, 2], [1]]
    assert len(pages(client, f"/-/versions{path}?limit=7", "versions")) == 1
    assert [row["version"] for row in client.get(f"/-/versions{path}?after=3").json["versions"]] == [2, 1]
    assert client.get(f"/-/versions{path}?after=1").json == {"versions": []}


def test_history_of_what_never_existed_is_404(client: Client) -> None:
    assert client.get(f"/-/versions{fresh_path()}").problem["status"] == 404


def test_a_listing_has_exactly_these_fields_by_path(client: Client) -> None:
    for name in ("b", "a/x", "ä b", "a%3Fb"):
        client.create(f"/listed/{name.replace('ä b', '%C3%A4%20b')}", b"x")
    rows = client.get("/-/list/listed/").json["documents"]
    assert [row["path"] for row in rows] == ["/listed/a/x", "/listed/a?b", "/listed/b", "/listed/ä b"]
    assert set(rows[0]) == {"path", "version", "digest", "modified", "kind"}
    assert (rows[0]["version"], rows[0]["kind"]) == (1, "text")
    assert [row["path"] for row in client.get("/-/list/listed/a").json["documents"]] == ["/listed/a/x"]
    found = pages(client, "/-/list/listed?limit=1", "documents")
    assert [row["path"] for page in found for row in page] == [row["path"] for row in rows]


def test_deleted_documents_are_listed_on_demand_only(client: Client) -> None:
    for number in range(4):
        client.create(f"/deleted/{number}", b"x")
    client.delete("/deleted/1", Mergepub_Expected_Version="1")
    assert [row["path"] for row in client.get("/-/list/deleted/").json["documents"]] == [
        "/deleted/0",
        "/deleted/2",
        "/deleted/3",
    ]
    found = pages(client, "/-/list/deleted/?limit=2&deleted=1", "documents")
    assert [(row["path"], row.get("deleted")) for page in found for row in page] == [
        ("/deleted/0", None),
        ("/deleted/1", True),
        ("/deleted/2", None),
        ("/deleted/3", None),
    ]
    assert client.get("/-/list/deleted/?deleted=0").json == client.get("/-/list/deleted/").json


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=",
        "limit=-1",
        "limit=1.5",
        "limit=%D9%A3",
        "limit=1&limit=2",
        "after=%ff",
        "%zz=%ff",
    ],
)
@pytest.mark.parametrize("room", ["/-/list/", "/-/versions/some.md"])
def test_a_bad_parameter_is_400(client: Client, room: str, query: str) -> None:
    assert client.get(f"{room}?{query}").problem["status"] == 400


@pytest.mark.parametrize(
    "target", ["/-/versions/a?after=x", "/-/versions/a?after=-1", "/-/list/?deleted=yes", "/-/list/?after=%00"]
)
def test_parameters_have_their_own_forms(client: Client, target: str) -> None:
    assert client.get(target).problem["status"] == 400


def test_the_limit_is_100_by_default_and_1000_at_most(client: Client) -> None:
    for number in range(101):
        client.create(f"/many/{number:03}", b"x")
    answer = client.get("/-/list/many/")
    assert len(answer.json["documents"]) == 100
    assert answer.headers["link"] == '</-/list/many/?after=%2Fmany%2F099>; rel="next"'
    assert len(client.get("/-/list/many/?limit=1000").json["documents"]) == 101


def test_a_prefix_without_documents_is_an_empty_list(client: Client) -> None:
    assert client.get("/-/list/nowhere/").json == {"documents": []}
