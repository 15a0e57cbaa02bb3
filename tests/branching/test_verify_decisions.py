"""Verifying branches and decisions: every column that is tampered with is reported, a decision taken out is missed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mergepub.documents import ABSENT, Version, digest_of
from mergepub.errors import InvalidStoreError
from mergepub.histories import CHOOSE, CONTINUE, REBASE, REJECT, UNDO, DecisionRequest, Place
from mergepub.stores.http import HttpStore
from mergepub.stores.postgres import PostgresStore
from mergepub.stores.sqldecisions import COLUMNS, decision_link
from mergepub.stores.sqlite import SqliteStore
from tests.stores.http_service import HttpService

if TYPE_CHECKING:
    from mergepub.stores.contract import BranchStore

DOC = "/docs/guide.md"


def fill(store: BranchStore) -> None:
    """A document with one decision of each kind, and another one."""
    store.publish("/other", b"other", ABSENT)
    store.publish(DOC, b"one\n", ABSENT)
    store.publish(DOC, b"two\n", Version(1))
    names = [store.branch(DOC, b"%d\n" % i, Version(1), author="ann").branch for i in range(5)]  # type: ignore[union-attr]  # siblings, all of them

    def decide(strategy: str, head: int, name: str | None, **how: Any) -> None:
        seen = None if name is None else Place(name, 1)
        store.decide(DOC, DecisionRequest(strategy, head, seen, "zoe", "why", **how))

    decide(CHOOSE, 2, names[0])
    decide(UNDO, 3, None, undoes=1)
    decide(CONTINUE, 4, names[1], body=b"both\n", effects=True)
    decide(REBASE, 5, names[2], body=b"rebased\n", approved=("h1",))
    decide(UNDO, 6, None, undoes=4)
    decide(REJECT, 7, names[3])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.sqlite")
    fill(store)
    yield store
    store.close()


def tamper(tmp_path: Path, *statements: str) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0
    connection.close()


CHANGES = {
    "path": "'/other'",
    "number": "77",
    "incarnation": "(SELECT incarnation FROM documents WHERE path = '/other')",
    "strategy": "'choose'",
    "head_version": "3",
    "head_branch": "branch",
    "head_revision": "1",
    "branch": "head_branch",
    "branch_revision": "2",
    "result_version": "6",
    "result_branch": "branch",
    "result_revision": "2",
    "resolver": "'eve'",
    "reason": "'because'",
    "modified": "'2001-01-01T00:00:00.000000Z'",
    "approved": "'[\"h2\"]'",
    "effects": "0",
    "undoes": "1",
    "states": "'{}'",
    "request": "'x'",
    "link": "'x'",
}


def test_every_column_is_tried() -> None:
    assert set(CHANGES) == {*COLUMNS, "link"}


@pytest.mark.parametrize(("column", "value"), CHANGES.items(), ids=CHANGES.keys())
def test_a_decision_that_was_changed_is_reported(store: SqliteStore, tmp_path: Path, column: str, value: str) -> None:
    assert list(store.verify()) == []
    tamper(tmp_path, f"UPDATE merge_decisions SET {column} = {value} WHERE path = '{DOC}' AND number = 3")
    wanted = "decision 3 is missing" if column in ("path", "number") else "decision 3 was changed"
    found = list(store.verify(DOC))
    assert any(wanted in fault for fault in found), found


@pytest.fixture
def through(store: SqliteStore) -> Iterator[HttpStore]:
    service = HttpService(store.url).start()
    over_http = HttpStore(service.url)
    yield over_http
    over_http.close()
    service.remove()


def test_a_decision_that_was_changed_behind_a_service_is_told_through_it(
    store: SqliteStore, through: HttpStore, tmp_path: Path
) -> None:
    assert list(through.verify()) == []
    third = f"path = '{DOC}' AND number = 3"
    with sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None) as connection:
        (row,) = connection.execute(f"SELECT rowid FROM merge_decisions WHERE {third}").fetchone()
        for column, value in CHANGES.items():
            (kept,) = connection.execute(f"SELECT {column} FROM merge_decisions WHERE rowid = {row}").fetchone()
            connection.execute(f"UPDATE merge_decisions SET {column} = {value} WHERE rowid = {row}")
            assert list(through.verify(DOC)) == list(store.verify(DOC)) != [], column
            connection.execute(f"UPDATE merge_decisions SET {column} = ? WHERE rowid = {row}", (kept,))
        assert list(through.verify()) == []
        connection.execute(f"DELETE FROM merge_decisions WHERE rowid = {row}")
        assert list(through.verify()) == list(store.verify()) != []
    connection.close()


@pytest.mark.parametrize("number", range(1, 7))
def test_a_decision_that_was_taken_out_is_missed(store: SqliteStore, tmp_path: Path, number: int) -> None:
    tamper(tmp_path, f"DELETE FROM merge_decisions WHERE number = {number}")
    assert list(store.verify(DOC))


def test_an_end_of_the_history_that_was_taken_out_is_missed(store: SqliteStore, tmp_path: Path) -> None:
    for number in range(6, 0, -1):
        tamper(tmp_path, f"DELETE FROM merge_decisions WHERE number = {number}")
        assert list(store.verify(DOC)), number


def test_a_consistent_forgery_of_one_decision_is_given_away_by_the_next(store: SqliteStore, tmp_path: Path) -> None:
    names = ", ".join(COLUMNS)
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        rows = connection.execute(f"SELECT {names}, link FROM merge_decisions ORDER BY number").fetchall()
        forged = ["eve" if column == "resolver" else value for column, value in zip(COLUMNS, rows[2], strict=False)]
        link = decision_link(rows[1][-1], forged)
        connection.execute("UPDATE merge_decisions SET resolver = 'eve', link = ? WHERE number = 3", (link,))
    connection.close()
    assert list(store.verify(DOC)) == [
        f"{DOC}: decision 4 was changed: its link does not fit its facts and the decision before"
    ]


BRANCHES = {
    "a state": ("UPDATE branches SET state = 'merged' WHERE state = 'open'", "its decisions make it"),
    "the default": ("UPDATE branches SET state = 'superseded' WHERE state = 'default'", "is superseded"),
    "a parent": ("UPDATE branches SET parent = NULL WHERE state = 'rejected'", "names a base that it cannot have"),
    "a base's revision": ("UPDATE branches SET base_revision = 2 WHERE state = 'rejected'", "names another base"),
    "a base's emptiness": ("UPDATE branches SET base_revision = 0 WHERE state = 'rejected'", "made from nothing"),
    "a base's digest": ("UPDATE branches SET base_digest = 'x' WHERE state = 'rejected'", "names another base"),
    "a base's version": ("UPDATE branches SET base_version = 2 WHERE state = 'rejected'", "made from version 2"),
}


@pytest.mark.parametrize(("statement", "said"), BRANCHES.values(), ids=BRANCHES.keys())
def test_a_branch_that_was_changed_is_reported(store: SqliteStore, tmp_path: Path, statement: str, said: str) -> None:
    tamper(tmp_path, statement)
    found = list(store.verify(DOC))
    assert any(said in fault for fault in found), found


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE revisions SET parents = 'zz'",
        "UPDATE merge_decisions SET approved = '7'",
        "UPDATE merge_decisions SET approved = ''",
        "UPDATE merge_decisions SET states = '[]'",
    ],
)
def test_what_cannot_be_read_is_damage_and_leads_to_verify(store: SqliteStore, tmp_path: Path, statement: str) -> None:
    tamper(tmp_path, statement)
    with pytest.raises(InvalidStoreError) as refused:
        (store.branches if "parents" in statement else store.decisions)(DOC)
    assert refused.value.hint == "mergepub verify"
    assert list(store.verify(DOC))


def test_a_version_that_jumps_without_a_decision_is_reported(store: SqliteStore, tmp_path: Path) -> None:
    tamper(tmp_path, "DELETE FROM merge_decisions WHERE number >= 3")
    assert any("no decision says why" in fault for fault in store.verify(DOC))


def test_a_branch_that_somebody_stands_for_again_is_sound(store: SqliteStore) -> None:
    store.branch(DOC, b"3\n", Version(1), author="bob")
    store.abandon(DOC, next(b.name for b in store.branches(DOC)[1] if b.state == "open"), author="ann")
    assert list(store.verify()) == []


def test_the_chain_is_what_its_description_says() -> None:
    """Pinned: a released store must verify for ever."""
    assert decision_link("p", ["/ä", 1, None]) == digest_of("19:mergepub decision 1,1:p,3:/ä,1:1,0:,".encode())


# A store that was made before decisions were chained


def test_a_store_of_the_schema_before_is_read_and_chained(store: SqliteStore, tmp_path: Path) -> None:
    before = store.decisions(DOC)
    store.close()
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("ALTER TABLE merge_decisions DROP COLUMN link")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert store.decisions(DOC) == before
    assert list(store.verify()) == []
    store.decide(DOC, DecisionRequest(UNDO, 7, None, "zoe", undoes=6))
    assert list(store.verify()) == []
    tamper(tmp_path, "UPDATE merge_decisions SET reason = 'other' WHERE number = 2")
    assert any("decision 2 was changed" in fault for fault in store.verify())


def test_a_postgres_store_of_the_schema_before_is_read_and_chained(postgres_server: Any) -> None:
    schema = postgres_server.fresh_name()
    url = postgres_server.url(schema=schema)
    store = PostgresStore(url)
    fill(store)
    before = store.decisions(DOC)
    assert list(store.verify()) == []
    store.close()
    postgres_server.execute(f"ALTER TABLE {schema}.merge_decisions DROP COLUMN link")
    postgres_server.execute(f"UPDATE {schema}.mergepub_schema SET number = 2")
    store = PostgresStore(url)
    assert store.decisions(DOC) == before
    assert list(store.verify()) == []
    postgres_server.execute(f"UPDATE {schema}.merge_decisions SET reason = 'other' WHERE number = 2")
    assert any("decision 2 was changed" in fault for fault in store.verify())
    store.close()
