"""Values of another type than their column's, put into the file by somebody else: told in words, by every call."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mergepub.documents import ABSENT
from mergepub.errors import MergepubError
from mergepub.stores.sqlite import SqliteStore
from tests.stores.conformance import DOC, at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A store with a document of two versions."""
    store = SqliteStore(tmp_path / "store.sqlite")
    store.publish(DOC, b"1", ABSENT, author="ana")
    store.publish(DOC, b"2", at(1))
    yield store
    store.close()


MISTYPED = {
    "a branch's name as bytes": (
        "UPDATE branches SET name = x'00'",
        "the column name of branches holds",
    ),
    "an author as bytes": ("UPDATE revisions SET author = x'ff'", "the column author of revisions holds"),
    "a digest as bytes": (
        "UPDATE revisions SET digest = x'00' WHERE revision = 1",
        "the column digest of revisions holds",
    ),
    "a number as text": ("UPDATE versions SET number = 'two' WHERE number = 2", "the column number of versions holds"),
    "a head as text": ("UPDATE heads SET version = 'two'", "the head is version two"),
    "a time as bytes": ("UPDATE revisions SET modified = x'31'", "the column modified of revisions holds"),
    "a name that is no UTF-8": ("UPDATE branches SET name = CAST(x'ff' AS TEXT)", "Could not decode to UTF-8"),
}


@pytest.mark.parametrize(("statement", "said"), MISTYPED.values(), ids=MISTYPED.keys())
def test_a_value_of_another_type_is_a_fault_of_its_document_and_stops_no_call_without_words(
    store: SqliteStore, tmp_path: Path, statement: str, said: str
) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        assert connection.execute(statement).rowcount > 0
    connection.close()
    for found in (list(store.verify(DOC)), [fault for fault in store.verify() if fault.startswith(f"{DOC}: ")]):
        assert any(said in fault for fault in found), found
    calls: list[Callable[[], object]] = [
        lambda: store.fetch(DOC),
        lambda: store.publish(DOC, b"3", at(2)),
        lambda: store.append(DOC, b"3", key="other"),
        lambda: store.delete(DOC, at(2)),
        lambda: list(store.versions(DOC)),
        lambda: list(store.list()),
        lambda: store.branches(DOC),
    ]
    for call in calls:
        with suppress(MergepubError):  # a refusal in words, or an answer that never came near the value
            call()


def test_a_defect_is_not_taken_for_damage(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mergepub.stores.sql._fetch", lambda *_: 1 + "1")
    with pytest.raises(TypeError):
        store.fetch(DOC)
