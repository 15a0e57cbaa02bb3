"""What configuration files may say, without any file or command line."""

from __future__ import annotations

from typing import Any

import pytest
from mergepub import configuration
from mergepub.configuration import FLAG, LIST, NUMBER, TEXT, Layer, anchored, hidden, settings
from mergepub.errors import InputError

KINDS = {"store": TEXT, "prefix": TEXT, "retries": NUMBER, "json": FLAG, "favour-path": LIST}


class Commands:
    """``push`` and ``token create``."""

    def below(self, path: tuple[str, ...]) -> tuple[str, ...]:
        return {(): ("push", "token"), ("token",): ("create",)}.get(path, ())

    def options(self, path: tuple[str, ...]) -> set[str]:
        return {*KINDS, "name"} if path != ("push",) else set(KINDS)


def values(*tables: dict[str, Any], command: tuple[str, ...] = ("push",)) -> dict[str, Any]:
    layers = [Layer(f"{number}.toml", "/here", table) for number, table in enumerate(tables)]
    return {key: setting.value for key, setting in settings(layers, command, KINDS, Commands()).items()}


def test_a_table_for_the_command_counts_more_than_the_top_of_the_file() -> None:
    assert values({"retries": 1, "push": {"retries": 2}}) == {"retries": 2}
    assert values({"push": {"retries": 2}, "retries": 1}) == {"retries": 2}


def test_the_nearer_file_counts_more_key_by_key() -> None:
    assert values({"store": "a", "push": {"retries": 2}}, {"retries": 3}) == {"store": "a", "retries": 3}


def test_an_option_of_other_commands_at_the_top_is_none_of_this_one() -> None:
    assert values({"name": "CI", "token": {"create": {"name": "x"}}}) == {}


def test_a_table_below_a_table_is_for_the_command_below() -> None:
    table = {"token": {"store": "a", "create": {"store": "b"}}}
    assert values(table, command=("token", "create")) == {"store": "b"}


@pytest.mark.parametrize(
    ("table", "named", "near"),
    [
        ({"retrys": 1}, "retrys", "retries"),
        ({"push": {"pefix": "/"}}, "[push] pefix", "prefix"),
        ({"push": {"favour_path": []}}, "[push] favour_path", "favour-path"),
        ({"pusch": {}}, "[pusch]", "push"),
        ({"token": {"creat": {}}}, "[token.creat]", "create"),
        ({"push": {"name": "x"}}, "[push] name", ""),
        ({"zzz": 1}, "zzz", "there is no zzz"),
    ],
)
def test_what_is_unknown_is_named_with_file_and_the_nearest_known(table: Any, named: str, near: str) -> None:
    command = ("token", "create") if "token" in table else ("push",)
    with pytest.raises(InputError) as caught:
        values(table, command=command)
    assert caught.value.message.startswith(f"0.toml: {named} ")
    assert near in str(caught.value.hint)


@pytest.mark.parametrize(
    ("key", "value"),
    [("retries", "3"), ("retries", True), ("retries", 1.5), ("json", 1), ("prefix", 3), ("favour-path", "a"),
     ("favour-path", [1]), ("store", ["a"])],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_with_what_it_takes(key: str, value: object) -> None:
    with pytest.raises(InputError, match=f"0.toml: {key} is .* but it takes"):
        values({key: value})


@pytest.mark.parametrize("key", sorted(configuration.OF_ONE_CALL))
def test_what_decides_about_one_call_cannot_be_a_default(key: str) -> None:
    with pytest.raises(InputError, match=f"{key} cannot be configured"):
        values({key: True})


@pytest.mark.parametrize(
    "table",
    [
        {"token": "mp_c0ffee"},
        {"push": {"token": "mp_c0ffee"}},
        {"store": "postgresql://me:mp_c0ffee@db/docs"},
        {"push": {"store": "postgresql://db/docs?user=me&password=mp_c0ffee"}},
    ],
)
def test_a_secret_in_clear_is_refused_and_not_repeated(table: Any) -> None:
    with pytest.raises(InputError, match="secret in clear") as caught:
        values(table)
    assert "mp_c0ffee" not in f"{caught.value.message}{caught.value.hint}"
    assert "token-file" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("docs.sqlite", "/here/docs.sqlite"),
        ("/abs/docs.sqlite", "/abs/docs.sqlite"),
        ("sqlite:///docs.sqlite", "sqlite:////here/docs.sqlite"),
        ("sqlite:////abs/docs.sqlite", "sqlite:////abs/docs.sqlite"),
        ("https://docs.example/x", "https://docs.example/x"),
        ("postgresql://db/docs", "postgresql://db/docs"),
        ("git+ssh://host/x", "git+ssh://host/x"),
        ("memory:", "memory:"),
        ("odd:name", "/here/odd:name"),
    ],
)
def test_a_relative_store_starts_from_the_folder_of_its_file(url: str, meant: str) -> None:
    assert anchored(url, "/here") == meant


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db:5432/docs", "postgresql://me:***@db:5432/docs"),
        ("postgresql://me@db/docs", "postgresql://me@db/docs"),
        ("postgresql:///docs?host=db&password=secret&user=me", "postgresql:///docs?host=db&password=***&user=me"),
        ("sqlite:////a/b@c:d.sqlite", "sqlite:////a/b@c:d.sqlite"),
        ("https://docs.example", "https://docs.example"),
        ("plain.sqlite", "plain.sqlite"),
    ],
)
def test_a_password_in_a_store_is_masked(url: str, shown: str) -> None:
    assert hidden(url) == shown
