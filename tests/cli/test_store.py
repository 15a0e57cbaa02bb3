"""The verb ``store``: making a store before anything is published in it."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import present

if TYPE_CHECKING:
    from tests.cli.conftest import Runner
    from tests.stores.postgres_server import PostgresServer


def test_init_makes_the_store_and_leaves_one_that_stands(mergepub: Runner) -> None:
    assert mergepub("store", "init").out.startswith(b"status: ok\nstore: sqlite:////")
    assert "store.sqlite" in present()
    assert mergepub("publish", "/a", "--expected-version", "0", stdin=b"1").status == 0
    assert mergepub("store", "init").status == 0
    assert mergepub("fetch", "/a", "--body-only").out == b"1"


def test_init_in_json_says_where_the_store_is(mergepub: Runner) -> None:
    answer = json.loads(mergepub("store", "init", "--json", "--store", "sqlite:///other.sqlite").out)
    assert answer["ok"] is True
    assert answer["result"]["store"].endswith("/other.sqlite")


def test_init_of_a_file_grants_nothing_to_a_role(mergepub: Runner) -> None:
    done = mergepub("store", "init", "--grant-to", "docs")
    assert (done.status, done.out) == (2, b"")
    assert "knows no roles" in done.err
    assert present() == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "memory:"])
def test_init_of_a_store_that_is_not_made_from_here_is_bad_input(mergepub: Runner, url: str) -> None:
    done = mergepub("store", "init", "--store", url)
    assert done.status == 2
    assert "is not made from here" in done.err


def test_init_makes_a_postgresql_store_that_a_role_without_rights_then_publishes_to(
    mergepub: Runner, postgres_server: PostgresServer, postgres_database: str
) -> None:
    role = postgres_server.fresh_name()
    postgres_server.execute(f"CREATE ROLE {role} LOGIN")
    theirs, owners = postgres_server.url(postgres_database, role), postgres_server.url(postgres_database)
    publish = ("publish", "/a", "--expected-version", "0", "--store", theirs)

    missing = mergepub("fetch", "/a", "--store", theirs)
    assert missing.status == 4
    assert f"hint: make it with: mergepub store init --store {shlex.quote(theirs)}" in missing.err
    assert mergepub(*publish, stdin=b"1").status == 3
    done = mergepub("store", "init", "--store", owners, "--grant-to", role)
    assert (done.status, done.out) == (0, f"status: ok\nstore: {owners}\n".encode())
    assert mergepub(*publish, stdin=b"1").out == b"status: ok\nversion: 1\n"
    assert mergepub("fetch", "/a", "--body-only", "--store", theirs).out == b"1"
