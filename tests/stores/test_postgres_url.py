"""What a PostgreSQL URL may say, and what is told of it: no server is needed for any of this."""

from __future__ import annotations

import sys

import pytest
from mergepub.errors import InputError, UnavailableError
from mergepub.stores import open_store
from mergepub.stores.postgres_wire import settings_of


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:s3cret@db/x", "postgresql://u@db/x"),
        ("postgresql://u:s3cret@db:6432/x?sslmode=require", "postgresql://u@db:6432/x?sslmode=require"),
        ("postgresql://u:s3%40cret@a:1,b:2/x?schema=docs", "postgresql://u@a:1,b:2/x?schema=docs"),
        ("postgresql:///x?user=u&password=s3cret&sslpassword=s3cret", "postgresql:///x?user=u"),
        ("postgresql://u@db/x?pool_size=3", "postgresql://u@db/x?pool_size=3"),
    ],
)
def test_the_shown_url_opens_the_same_store_and_holds_no_password(url: str, shown: str) -> None:
    assert open_store(url).url == shown
    assert settings_of(shown).schema == settings_of(url).schema


def test_the_password_and_every_option_that_is_not_ours_goes_to_libpq() -> None:
    conninfo = settings_of("postgresql://u:p%40w@db/x?sslmode=verify-full&schema=docs&connect_timeout=9").conninfo
    assert (conninfo["password"], conninfo["sslmode"], conninfo["connect_timeout"]) == ("p@w", "verify-full", "9")
    assert "schema" not in conninfo


def test_connecting_and_a_silent_server_have_time_outs_without_asking() -> None:
    conninfo = settings_of("postgresql://db/x").conninfo
    assert (conninfo["connect_timeout"], conninfo["tcp_user_timeout"]) == ("5", "30000")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("schema=Docs", "schema"),
        ("schema=pg_docs", "schema"),
        ("schema=a.b", "schema"),
        ("schema=x%22y", "schema"),
        ("schema=", "schema"),
        ("statement_timeout=soon", "statement_timeout"),
        ("lock_timeout=0", "lock_timeout"),
        ("lock_timeout=-1", "lock_timeout"),
        ("pool_size=0", "pool_size"),
        ("color=red", "color"),
    ],
)
def test_a_bad_option_is_bad_input_and_named(query: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        open_store(f"postgresql://u:s3cret@db/x?{query}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3/cret@db/x",
        "postgresql://u:s3@cret@db/x",
        "postgresql://db/x?password=s3%zzcret",
        "postgresql://u:s3cret@db/x?=",
        "postgresql://u:s3%zzcret@db/x",
    ],
)
def test_a_url_that_is_none_is_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert "s3" not in str(caught.value)


def test_a_server_that_cannot_be_reached_is_unavailable_and_its_password_is_not_told() -> None:
    store = open_store("postgresql://u:s3cret@localhost:1/x")
    with pytest.raises(UnavailableError, match=r"postgresql://u@localhost:1/x cannot be reached") as caught:
        store.fetch("/a")
    assert "s3cret" not in str(caught.value)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("mergepub.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'mergepub\[postgres\]'"):
        open_store("postgresql://db/x")
