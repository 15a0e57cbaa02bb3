"""Tokens are kept beside the documents, in either SQL store, and by no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.documents import ABSENT
from mergepub.errors import InputError, NotFoundError
from mergepub.stores import open_store
from mergepub.stores.tokens import Token, TokenStore, token_store

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

AT = "2030-01-01T00:00:00.000000Z"


def token(name: str, key: str = "", allow: tuple[str, ...] = ("read:/**",)) -> Token:
    return Token(name, key or f"key-of-{name}", "0" * 64, allow, AT)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = str(tmp_path / "store.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    store = open_store(url)
    yield store
    store.close()


@pytest.fixture
def tokens(store: Store) -> TokenStore:
    tokens = token_store(store)
    assert tokens is not None
    return tokens


def test_a_store_that_was_never_made_has_no_tokens_and_the_first_makes_it(tokens: TokenStore, store: Store) -> None:
    assert tokens.load() == []
    first = Token("CI", "k", "1" * 64, ("publish:/docs/**", "read:/**"), AT, expires=AT)
    tokens.add(first)
    assert tokens.load() == [first]
    assert list(store.list("/", deleted=True)) == []
    assert store.publish("/a", b"x", ABSENT).version.number == 1


def test_a_name_is_taken_while_its_token_lives_and_a_revoked_one_stays(tokens: TokenStore) -> None:
    tokens.add(token("CI"))
    with pytest.raises(InputError, match="already"):
        tokens.add(token("CI", "other"))
    tokens.revoke("CI")
    (ended,) = tokens.load()
    assert ended.revoked is not None
    tokens.revoke("CI")
    assert tokens.load() == [ended], "the time of the first revocation counts"
    tokens.add(token("CI", "other"))
    assert [(each.key, each.revoked) for each in tokens.load()] == [("other", None)]


def test_revoking_what_is_not_there_is_not_found(tokens: TokenStore) -> None:
    tokens.add(token("CI"))
    with pytest.raises(NotFoundError):
        tokens.revoke("other")


def test_of_two_that_take_a_name_at_once_one_gets_it(tokens: TokenStore) -> None:
    tokens.add(token("first"))
    refused: list[InputError] = []

    def add(number: int) -> None:
        try:
            tokens.add(token("CI", f"key-{number}"))
        except InputError as error:
            refused.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert len(tokens.load()) == 2


@pytest.mark.parametrize("url", ["memory:", "http://127.0.0.1:9"])
def test_other_stores_keep_no_tokens(url: str) -> None:
    assert token_store(open_store(url)) is None
