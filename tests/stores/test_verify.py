"""Verifying a SQL store: every way of tampering with it that we can think of is reported, one sentence each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from mergepub.documents import ABSENT, MergedFrom, digest_of
from mergepub.stores.sql import link_of, seal_of
from mergepub.stores.sqlite import SqliteStore
from tests.stores.conformance import DOC, at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A store with two documents; ``DOC`` has two lives: versions 1-4 (the last a tombstone), then 5 and 6."""
    store = SqliteStore(tmp_path / "store.sqlite")
    store.publish("/other", b"other", ABSENT)
    store.publish(DOC, b"1", ABSENT, author="ana")
    store.publish(DOC, b"2", at(1))
    store.publish(DOC, b"3", at(2), merged_from=MergedFrom(1, 2, digest_of(b"x")))
    store.delete(DOC, at(3))
    store.publish(DOC, b"5", ABSENT)
    store.append(DOC, b"6", key="k")
    yield store
    store.close()


def life(first: int) -> str:
    return f"""(SELECT b.id FROM branches b JOIN documents d USING (incarnation)
        WHERE d.path = '{DOC}' AND d.first_version = {first})"""


LIFE_1 = life(1)
R1 = f"branch = {LIFE_1} AND revision"  # a revision of the first life
R2 = f"branch = {life(5)} AND revision"  # a revision of the second
OF_DOC = f"path = '{DOC}'"
BODY_2 = f"digest = '{digest_of(b'2')}'"

TAMPERING = {
    "a body": (f"UPDATE bodies SET body = x'21' WHERE {BODY_2}", "does not have its digest (main@2)"),
    "a body as text": (f"UPDATE bodies SET body = '2' WHERE {BODY_2}", "does not have its digest"),
    "a size": (f"UPDATE bodies SET size = 7 WHERE {BODY_2}", "does not have its size"),
    "a body removed": (f"DELETE FROM bodies WHERE {BODY_2}", "is missing (main@2)"),
    "an author": (
        f"UPDATE revisions SET author = 'eve' WHERE {R1} = 1",
        "main@1 was changed",
    ),
    "a message": (f"UPDATE revisions SET message = 'm' WHERE {R1} = 2", "main@2 was changed"),
    "a source": (f"UPDATE revisions SET source = 's' WHERE {R2} = 1", "main@1 was changed"),
    "a parent": (f"UPDATE revisions SET parents = 'main@1' WHERE {R1} = 3", "was changed"),
    "a time": (
        f"UPDATE revisions SET modified = '2001-01-01T00:00:00.000000Z' WHERE {R1} = 3",
        "version 3 is older than the version before it",
    ),
    "a revision's digest": (
        f"UPDATE revisions SET digest = '{digest_of(b'1')}' WHERE {R1} = 2",
        "main@2 was changed",
    ),
    "a link": (f"UPDATE revisions SET link = 'x' WHERE {R1} = 1", "the hash chain is broken"),
    "a previous link": (
        f"UPDATE revisions SET previous = '' WHERE {R1} = 2",
        "main@2 does not build on the one before it",
    ),
    "the link between two lives": (
        f"UPDATE revisions SET previous = 'x' WHERE {R2} = 1",
        "main@1 does not build on the one before it",
    ),
    "a revision removed": (
        f"DELETE FROM revisions WHERE {R1} = 2",
        "the revision main@2 is missing",
    ),
    "a revision too many": (
        f"""INSERT INTO revisions SELECT branch, 9, digest, parents, previous, link, author, message, modified, source
        FROM revisions WHERE {R1} = 3""",
        "main@9 is above its branch's head 4",
    ),
    "a version removed": (f"DELETE FROM versions WHERE {OF_DOC} AND number = 3", "version 3 is missing"),
    "versions removed": (f"DELETE FROM versions WHERE {OF_DOC} AND number IN (2, 3)", "versions 2 to 3 are missing"),
    "the first version removed": (f"DELETE FROM versions WHERE {OF_DOC} AND number = 1", "version 1 is missing"),
    "the newest version removed": (
        f"DELETE FROM versions WHERE {OF_DOC} AND number = 6",
        "the head is version 6, the newest version is 5",
    ),
    "a version 0": (f"UPDATE versions SET number = 0 WHERE {OF_DOC} AND number = 1", "version 0 is no number"),
    "a version pointed elsewhere": (
        f"UPDATE versions SET revision = 1 WHERE {OF_DOC} AND number = 2",
        "version 2 was changed: its seal does not fit",
    ),
    "a version pointed nowhere": (
        f"UPDATE versions SET revision = 99 WHERE {OF_DOC} AND number = 2",
        "version 2 names a revision that is missing",
    ),
    "a seal": (f"UPDATE versions SET seal = 'x' WHERE {OF_DOC} AND number = 2", "version 2 was changed"),
    "the tombstone skipped": (
        f"UPDATE versions SET revision = 3 WHERE {OF_DOC} AND number = 4",
        "version 5 begins a new incarnation, and the version before is no tombstone",
    ),
    "a life after death": (
        f"UPDATE versions SET branch = {LIFE_1}, revision = 3 WHERE {OF_DOC} AND number = 5",
        "version 5 follows a tombstone in the same incarnation",
    ),
    "the first version of a life": (
        f"UPDATE documents SET first_version = 4 WHERE {OF_DOC} AND first_version = 5",
        "version 5 begins an incarnation whose document names 4 as its first",
    ),
    "the kind": (f"UPDATE documents SET kind = 'events' WHERE {OF_DOC}", "main@1 was changed"),
    "the branch's name": (f"UPDATE branches SET name = 'x' WHERE id = {LIFE_1}", "x@1 was changed"),
    "the branch's head": (f"UPDATE branches SET head_revision = 7 WHERE id = {LIFE_1}", "main@7 is missing"),
    "the branch's digest": (f"UPDATE branches SET head_digest = 'x' WHERE id = {LIFE_1}", "names another digest"),
    "the head's number": (
        f"UPDATE heads SET version = 5 WHERE {OF_DOC}",
        "the head is version 5, the newest version is 6",
    ),
    "the head's revision": (
        f"UPDATE heads SET revision = 1 WHERE {OF_DOC}",
        "the head and version 6 name different revisions",
    ),
    "the head's digest": (f"UPDATE heads SET digest = NULL WHERE {OF_DOC}", "the head names another digest"),
    "the head removed": (f"DELETE FROM heads WHERE {OF_DOC}", "there is no head"),
    "all versions removed": (f"DELETE FROM versions WHERE {OF_DOC}", "there is a head and no version"),
    "a merge record": (f"UPDATE merge_records SET version = 77 WHERE {OF_DOC}", "the merge record of version 77"),
    "an append key": (f"UPDATE append_keys SET version = 77 WHERE {OF_DOC}", "the append key of version 77"),
}


@pytest.mark.parametrize(("statement", "said"), TAMPERING.values(), ids=TAMPERING.keys())
def test_tampering_is_reported(store: SqliteStore, tmp_path: Path, statement: str, said: str) -> None:
    assert list(store.verify()) == []
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()
    found = list(store.verify(DOC))
    assert any(said in fault for fault in found), found
    assert all(fault.startswith(f"{DOC}: ") for fault in found)
    assert [f for f in store.verify() if f in found] == found
    assert list(store.verify("/other")) == []


def test_a_consistent_forgery_of_the_middle_is_reported(store: SqliteStore, tmp_path: Path) -> None:
    """Body, digest, link and seal of version 2 are all forged to fit each other: what follows gives it away."""
    digest = digest_of(b"forged")
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        row = connection.execute(
            f"""SELECT r.previous, d.incarnation, r.modified, r.parents, r.branch FROM revisions r
            JOIN branches b ON b.id = r.branch JOIN documents d USING (incarnation)
            WHERE r.{R1} = 2"""
        ).fetchone()
        previous, incarnation, modified, parents, branch = row
        link = link_of(
            previous,
            path=DOC,
            incarnation=incarnation,
            kind="text",
            branch="main",
            revision=2,
            digest=digest,
            parents=parents,
            author="",
            message="",
            modified=modified,
            source=None,
        )
        (before,) = connection.execute(f"SELECT seal FROM versions WHERE {OF_DOC} AND number = 1").fetchone()
        seal = seal_of(before, path=DOC, number=2, link=link)
        connection.execute("INSERT INTO bodies VALUES (?, 6, ?)", (digest, b"forged"))
        connection.execute(
            "UPDATE revisions SET digest = ?, link = ? WHERE branch = ? AND revision = 2", (digest, link, branch)
        )
        connection.execute(f"UPDATE versions SET seal = ? WHERE {OF_DOC} AND number = 2", (seal,))
    connection.close()
    assert store.fetch(DOC, 2).body == b"forged"
    found = list(store.verify(DOC))
    assert len(found) == 2
    assert "main@3 does not build on the one before it" in found[0]
    assert "version 3 was changed" in found[1]


def test_rows_that_point_nowhere_and_broken_pages_are_reported_for_the_whole_store(
    store: SqliteStore, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("INSERT INTO branch_owners VALUES ('nowhere', 'ana', 1, 0)")
    connection.close()
    assert list(store.verify()) == ["a row of branch_owners names a row of branches that is missing"]
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'documents_by_path'")
    connection.close()
    store.close()  # its connection still knows the old schema
    assert any("never used" in fault for fault in store.verify())


def test_a_document_whose_rows_are_all_gone_but_one_is_still_looked_at(store: SqliteStore, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        for table in ("heads", "versions", "merge_records", "append_keys"):
            connection.execute(f"DELETE FROM {table} WHERE {OF_DOC}")
    connection.close()
    assert f"{DOC}: there is no head" in list(store.verify())


def test_the_chains_are_what_their_description_says() -> None:
    """Pinned: a released store must verify for ever."""
    facts = {
        "path": "/a",
        "incarnation": "i",
        "kind": "text",
        "branch": "main",
        "revision": 2,
        "digest": None,
        "parents": "main@1",
        "author": "Zoë",
        "message": "m",
        "modified": "t",
        "source": None,
    }
    text = "19:mergepub revision 1,4:prev,2:/a,1:i,4:text,4:main,1:2,0:,6:main@1,4:Zoë,1:m,1:t,0:,"
    assert link_of("prev", **facts) == digest_of(text.encode())  # type: ignore[arg-type]  # the values fit by name
    assert seal_of("prev", path="/a", number=12, link="l") == digest_of(b"18:mergepub version 1,4:prev,2:/a,2:12,1:l,")
