"""Coordination's tables: made where they are missing, brought up to date with what is in them, nobody's but its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from mergepub.coord import schema
from mergepub.coord.records import Run
from mergepub.coord.state import State
from mergepub.errors import DeniedError, InvalidStoreError
from mergepub.stores import open_store
from mergepub.stores.contract import integer_version
from tests.coord.conftest import Hands, started

if TYPE_CHECKING:
    from mergepub.stores.sql import SqlStore
    from tests.stores.postgres_server import PostgresServer


def opened(url: str, hands: Hands) -> State:
    state = State(cast("SqlStore", open_store(url)), "/data", hands.clock())
    state.open()
    return state


def test_tables_of_an_earlier_number_are_brought_up_to_date_with_what_is_in_them(
    coord_url: str, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        patch.setattr(schema, "NUMBER", 1)
        old = opened(coord_url, hands)
    old.store._write(
        schema.PLACE,
        lambda tx: tx.run(
            """INSERT INTO coord_runs
            (home, id, workspace, member, task, checkout, transcript, pid, state, started, ended)
            VALUES ('/data', 'run-1', 'w', 'm', 't', '/checkout', '', 0, 'active', 'then', '')"""
        ),
    )
    old.store.close()
    for _ in range(2):
        state = opened(coord_url, hands)
        assert state.runs() == [Run("run-1", "w", "m", "t", "/checkout", started="then")]
        state.store.close()


def test_tables_of_a_newer_number_are_left_alone(state: State) -> None:
    state.write("test", lambda tx: tx.run("UPDATE coord_schema SET number = 99"))
    with pytest.raises(InvalidStoreError, match="has schema 99 in this store, this mergepub knows up to"):
        state.open()


def test_a_role_that_may_use_the_store_may_not_use_coordinations_tables(
    postgres_server: PostgresServer, postgres_database: str, hands: Hands
) -> None:
    role = postgres_server.fresh_name()
    postgres_server.execute(f"CREATE ROLE {role} LOGIN")
    state = opened(postgres_server.url(postgres_database), hands)
    started(state)
    state.store.init(grant_to=[role])
    state.store.close()
    store = cast("SqlStore", open_store(postgres_server.url(postgres_database, role)))
    store.publish("/a", b"1", integer_version(0))
    for statement in ("SELECT body FROM coord_messages", "SELECT id FROM coord_runs"):
        with pytest.raises(DeniedError):
            store._read(lambda tx, statement=statement: tx.rows(statement))  # type: ignore[misc]  # a default binds it
    with pytest.raises(DeniedError):
        State(store, "/other", hands.clock()).open()
    store.close()
