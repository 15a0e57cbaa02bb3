"""The SQLite store against the conformance suite, and what is SQLite's alone: the file, its creation, its locks."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mergepub.documents import ABSENT, Version, digest_of
from mergepub.errors import (
    InputError,
    InvalidStoreError,
    MergepubError,
    NotFoundError,
    RejectedError,
    UnavailableError,
)
from mergepub.stores import default_url, open_store
from mergepub.stores.memory import MemoryStore
from mergepub.stores.sql import SCHEMA
from mergepub.stores.sqlite import APPLICATION_ID, SqliteStore
from tests.stores.conformance import DOC, Opener, StoreConformance, acknowledged, at, numbers, refused, started


class TestSqlite(StoreConformance):
    expected_skips = 0

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Opener:
        return lambda: SqliteStore(tmp_path / "store.sqlite")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(file: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(file, busy_timeout=0.2)
    yield store
    store.close()


def everything(directory: Path) -> dict[str, bytes | None]:
    """Every name below ``directory`` with its bytes, None for directories."""
    return {str(p.relative_to(directory)): None if p.is_dir() else p.read_bytes() for p in directory.rglob("*")}


def calls_of(store: SqliteStore) -> dict[str, Callable[[], object]]:
    """Every operation that does not create a document."""
    return {
        "fetch": lambda: store.fetch(DOC),
        "fetch a version": lambda: store.fetch(DOC, 1),
        "versions": lambda: store.versions(DOC),
        "list": store.list,
        "verify": lambda: list(store.verify()),
        "verify a document": lambda: list(store.verify(DOC)),
        "publish on a version": lambda: store.publish(DOC, b"x", at(5)),
        "append": lambda: store.append(DOC, b"x", key="k"),
        "delete": lambda: store.delete(DOC, at(1)),
    }


# Opening by URL


@pytest.mark.parametrize("url", ["sqlite:///sub/s.sqlite", "sub/s.sqlite", "SQLite:///sub/s.sqlite"])
def test_a_relative_url_or_a_plain_path_names_a_file_below_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(url)
    assert store.url == f"sqlite:///{tmp_path}/sub/s.sqlite"
    store.publish(DOC, b"1", ABSENT)
    store.close()
    monkeypatch.chdir("/")
    again = open_store(store.url)
    assert again.fetch(DOC).body == b"1"
    again.close()
    assert list(tmp_path.rglob("*")) == [tmp_path / "sub", tmp_path / "sub" / "s.sqlite"]


@pytest.mark.parametrize(
    "name", ["with space", "per%20cent", "question?mode=memory", "hash#tag", "ü", "semi;colon", "a&b"]
)
def test_any_file_name_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    store = open_store(f"sqlite:///{tmp_path}/{name}")
    store.publish(DOC, b"1", ABSENT)
    store.close()
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208 - the plain names are what is asserted


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "file"),
        ("sqlite:", "sqlite:///"),
        ("sqlite://store.sqlite", "sqlite:///"),
        ("sqlite:///", "no file"),
        ("ftp://example.org/x", "known are"),
        ("a\0b", "bad store"),
    ],
)
def test_a_bad_url_is_bad_input_and_says_what_to_write(url: str, said: str) -> None:
    error = refused(lambda: open_store(url))
    assert isinstance(error, InputError)
    assert said in str(error) + str(error.hint)


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="http, https, postgresql, sqlite"):
        open_store("gopher://example.org")


def test_the_default_store_is_in_the_data_directory_unless_the_environment_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("MERGEPUB_STORE", raising=False)
    assert default_url().startswith("sqlite:////")
    assert default_url().endswith("mergepub/store.sqlite")
    monkeypatch.setenv("MERGEPUB_STORE", "elsewhere.sqlite")
    assert default_url() == "elsewhere.sqlite"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs decides")
@pytest.mark.parametrize("home", ["~", "relative"])
def test_without_a_home_directory_there_is_no_default_store(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MERGEPUB_STORE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)  # "~" is what stays of it for a user without any
    with pytest.raises(InputError, match="no home directory"):
        default_url()


# Nothing is created on the way to an error


@pytest.mark.parametrize("name", calls_of(SqliteStore("unused")))
def test_a_call_on_a_missing_store_names_the_file_and_creates_nothing(tmp_path: Path, name: str) -> None:
    store = SqliteStore(tmp_path / "new" / "store.sqlite")
    with pytest.raises(NotFoundError, match=r"new/store\.sqlite"):
        calls_of(store)[name]()
    assert list(tmp_path.iterdir()) == []


def test_a_refused_creation_creates_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "new" / "store.sqlite", max_body=10)
    for call in (
        lambda: store.publish(DOC, b"x" * 11, ABSENT),
        lambda: store.publish(DOC, b"x", ABSENT, author="a\nb"),
        lambda: store.publish(DOC, b"x", ABSENT, kind="poem"),
    ):
        assert isinstance(refused(call), RejectedError)
    assert list(tmp_path.iterdir()) == []


def test_the_first_publish_creates_one_file_and_private_directories(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a" / "b" / "store.sqlite")
    store.publish(DOC, b"1", ABSENT)
    store.close()
    assert sorted(everything(tmp_path)) == ["a", "a/b", "a/b/store.sqlite"]
    assert [(tmp_path / d).stat().st_mode & 0o777 for d in ("a", "a/b")] == [0o700, 0o700]


def test_a_parent_that_is_a_file_is_said_so_and_nothing_is_created(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"text")
    store = SqliteStore(tmp_path / "plain" / "sub" / "store.sqlite")
    for call in (lambda: store.publish(DOC, b"1", ABSENT), lambda: store.fetch(DOC)):
        assert isinstance(refused(call), UnavailableError)
    assert everything(tmp_path) == {"plain": b"text"}


def test_an_empty_file_counts_as_no_store_yet_and_is_filled_by_the_first_publish(
    file: Path, store: SqliteStore
) -> None:
    file.touch()
    for call in calls_of(store).values():
        assert isinstance(refused(call), NotFoundError)
    assert file.read_bytes() == b""
    store.publish(DOC, b"1", ABSENT)
    assert list(store.verify()) == []
    assert store.fetch(DOC).body == b"1"


def test_without_links_in_the_file_system_the_file_is_filled_in_place(
    file: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    store.publish(DOC, b"1", ABSENT)
    store.close()
    assert os.listdir(file.parent) == [file.name]  # noqa: PTH208 - the plain names are what is asserted
    assert store.fetch(DOC).body == b"1"


def test_a_store_that_appears_during_its_creation_is_used(
    file: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        SqliteStore(file).publish("/other", b"first", ABSENT)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    store.publish(DOC, b"second", ABSENT)
    assert [listed.path for listed in store.list()] == [DOC, "/other"]


# What is not ours is left alone


def foreign_database(file: Path, application_id: int = 0, schema: int = 0) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE heads (path TEXT)")
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()


def newer_store(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    foreign_database(file, APPLICATION_ID, SCHEMA + 1)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "text": lambda f: f.write_bytes(b"# A guide\n" * 500),
    "one byte": lambda f: f.write_bytes(b"x"),
    "noise": lambda f: f.write_bytes(os.urandom(8192)),
    "half a header": lambda f: f.write_bytes(b"SQLite format 3\0"),
    "a database without an owner": foreign_database,
    "a database of somebody": lambda f: foreign_database(f, 0x12345678, SCHEMA),
    "a newer schema": newer_store,
    "a directory": lambda f: f.mkdir(),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_file_that_is_not_ours_is_refused_and_left_untouched(
    tmp_path: Path, file: Path, store: SqliteStore, make: Callable[[Path], object]
) -> None:
    make(file)
    before, changed = everything(tmp_path), file.stat().st_mtime_ns
    for call in [*calls_of(store).values(), lambda: store.publish(DOC, b"1", ABSENT)]:
        error = refused(call)
        assert isinstance(error, InvalidStoreError)
        assert str(file) in str(error)
    assert everything(tmp_path) == before
    assert file.stat().st_mtime_ns == changed


def test_a_newer_schema_says_to_upgrade(file: Path, store: SqliteStore) -> None:
    newer_store(file)
    error = refused(lambda: store.fetch(DOC))
    assert error
    assert (f"schema {SCHEMA + 1}" in str(error), error.hint) == (True, "upgrade mergepub")


def test_a_store_that_becomes_newer_while_it_is_open_is_refused(file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    connection.close()
    for call in (lambda: store.fetch(DOC), lambda: store.publish(DOC, b"2", at(1))):
        assert isinstance(refused(call), InvalidStoreError)


def test_a_store_without_its_tables_or_cut_short_is_damaged_not_a_traceback(file: Path, store: SqliteStore) -> None:
    foreign_database(file, APPLICATION_ID, SCHEMA)
    assert isinstance(refused(lambda: store.fetch(DOC)), InvalidStoreError)
    file.unlink()
    store.publish(DOC, os.urandom(100_000), ABSENT)
    store.close()
    os.truncate(file, 8192)
    assert isinstance(refused(lambda: store.fetch(DOC)), InvalidStoreError)


def test_a_damaged_body_is_never_handed_out(file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE bodies SET body = x'00'")
    connection.close()
    for call in (lambda: store.fetch(DOC), lambda: store.append(DOC, b"x", key="k")):
        assert isinstance(refused(call), InvalidStoreError)


def test_a_store_killed_while_its_log_is_written_back_goes_on(file: Path, store: SqliteStore) -> None:
    log = file.with_name(file.name + "-wal")
    store.publish(DOC, b"1", ABSENT)
    store.close()
    short = file.read_bytes()
    store.publish(DOC, os.urandom(100_000), at(1))
    left = log.read_bytes()
    store.close()
    file.write_bytes(file.read_bytes()[:4096] + short[4096:])  # the first page is written first, and tells the length
    log.write_bytes(left)
    for side in ("-shm", "-journal"):
        file.with_name(file.name + side).unlink(missing_ok=True)
    assert store.fetch(DOC).version.number == 2
    assert store.publish(DOC, b"3", at(2)).version.number == 3
    assert list(store.verify()) == []


def test_a_new_store_never_takes_over_the_log_that_a_deleted_one_left(file: Path, store: SqliteStore) -> None:
    log = file.with_name(file.name + "-wal")
    store.publish(DOC, b"old", ABSENT)
    store.publish(DOC, b"older still", at(1))
    left = log.read_bytes()
    for empty in (False, True):
        file.unlink(missing_ok=True)
        if empty:
            file.touch()
        log.write_bytes(left)
        other = SqliteStore(file)
        error = refused(lambda other=other: other.publish("/new.md", b"new", ABSENT))
        assert isinstance(error, InvalidStoreError)
        assert log.name in error.message
        assert log.read_bytes() == left
    log.unlink()
    other.publish("/new.md", b"new", ABSENT)
    assert other.fetch("/new.md").body == b"new"
    other.close()


def test_text_in_the_store_that_is_not_utf8_is_damage(file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE revisions SET author = CAST(x'ff' AS TEXT)")
    connection.close()
    for call in (lambda: store.fetch(DOC), lambda: list(store.versions(DOC))):
        assert isinstance(refused(call), InvalidStoreError)
    assert [fault.partition(" to UTF-8")[0] for fault in store.verify() if fault.startswith(DOC)] == [
        f"{DOC}: the store {file} is damaged: Could not decode"
    ]


def test_damage_that_even_the_message_about_it_cannot_say_is_damage(file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    store.close()
    whole = file.read_bytes()
    entry = b"tableheadsheads"  # type, name and table of a row of SQLite's own catalogue
    assert whole.count(entry) == 1
    file.write_bytes(whole.replace(entry, b"table\xff\xfe\xfd\xfc\xfbheads"))
    for call in (lambda: store.fetch(DOC), lambda: store.publish(DOC, b"2", at(1)), lambda: list(store.verify())):
        assert isinstance(refused(call), InvalidStoreError)


def test_a_store_file_that_was_replaced_is_noticed(tmp_path: Path, file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"old", ABSENT)
    other = SqliteStore(tmp_path / "other.sqlite")
    other.publish(DOC, b"new", ABSENT)
    other.close()
    store.close()
    assert store.fetch(DOC).body == b"old"
    for side in ("-wal", "-shm"):
        file.with_name(file.name + side).unlink(missing_ok=True)
    (tmp_path / "other.sqlite").replace(file)
    assert store.fetch(DOC).body == b"new"
    file.unlink()
    assert isinstance(refused(lambda: store.fetch(DOC)), NotFoundError)


# Locks, limits, permissions


def test_a_store_locked_by_another_process_can_be_read_and_is_unavailable_for_writing(
    file: Path, store: SqliteStore
) -> None:
    store.publish(DOC, b"1", ABSENT)
    hold = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-uc", hold, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdin
        holder.stdout.readline()
        with pytest.raises(UnavailableError, match="locked by another process"):
            store.publish(DOC, b"2", at(1))
        assert store.fetch(DOC).body == b"1"
        patient = SqliteStore(file)
        waiting = threading.Thread(target=lambda: patient.publish(DOC, b"3", at(1)))
        waiting.start()
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        waiting.join()
        patient.close()
    assert store.fetch(DOC).body == b"3"


def test_a_store_locked_for_reading_too_is_unavailable(file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    store.close()
    holder = sqlite3.connect(file)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    for call in (lambda: store.fetch(DOC), lambda: store.publish(DOC, b"2", at(1))):
        with pytest.raises(UnavailableError, match="locked by another process"):
            call()
    holder.close()
    assert store.fetch(DOC).body == b"1"


def test_writers_wait_on_while_somebody_else_holds_the_turnstile(file: Path, store: SqliteStore) -> None:
    import fcntl

    store.publish(DOC, b"1", ABSENT)
    directory = os.open(file.parent, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    assert store.publish(DOC, b"2", at(1)).version.number == 2
    os.close(directory)


def test_a_waiting_writer_holds_the_turnstile_and_leaves_nothing_behind(file: Path) -> None:
    """So whoever has just written must queue behind it; SQLite alone would let them in first again and again."""
    import fcntl

    store = SqliteStore(file)
    store.publish(DOC, b"1", ABSENT)
    holder = sqlite3.connect(file)
    holder.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=lambda: store.publish(DOC, b"2", at(1)))
    waiting.start()
    directory = os.open(file.parent, os.O_RDONLY)
    for _ in range(1000):
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            break
        fcntl.flock(directory, fcntl.LOCK_UN)
        time.sleep(0.002)
    else:
        raise AssertionError("nobody held the turnstile")
    holder.rollback()
    holder.close()
    waiting.join()
    fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(directory)
    assert store.fetch(DOC).body == b"2"
    store.close()
    assert os.listdir(file.parent) == [file.name]  # noqa: PTH208 - the plain names are what is asserted


def test_every_connection_has_the_log_full_synchronisation_and_foreign_keys(store: SqliteStore) -> None:
    """Kill -9 cannot tell whether a power cut would be survived."""
    store.publish(DOC, b"1", ABSENT)
    store.fetch(DOC)
    for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("user_version", SCHEMA)):
        assert store._idle[0].execute(f"PRAGMA {pragma}").fetchone() == (value,)


def in_child(work: Callable[[], object]) -> str:
    """Run ``work`` in a forked child; the class of the error it raised and its message, or "done"."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            said = "done"
        except MergepubError as error:
            said = f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001,RUF100 - a child must never return into the test run
            said = f"unexpected {error!r}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answers:  # noqa: PTH123 - a descriptor, not a path
        said = answers.read().decode()
    os.waitpid(child, 0)
    return said


def with_disk_limit(limit: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def test_a_full_disk_is_said_and_the_store_keeps_what_it_had(tmp_path: Path, file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    store.close()

    def work() -> None:
        with_disk_limit(file.stat().st_size + 50_000)
        store.publish(DOC, os.urandom(1_000_000), at(1))

    said = in_child(work)
    assert said.startswith("UnavailableError"), said
    assert "disk" in said
    assert numbers(store) == [1]
    assert store.publish(DOC, b"2", at(1)).version.number == 2
    assert list(store.verify()) == []


def test_a_full_disk_at_creation_leaves_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "new" / "store.sqlite")

    def work() -> None:
        with_disk_limit(60_000)
        store.publish(DOC, os.urandom(1_000_000), ABSENT)

    said = in_child(work)
    assert said.startswith("UnavailableError"), said
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_may_not_grow_refuses_and_stays_whole(store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    store.fetch(DOC)
    connection = store._idle[0]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(UnavailableError, match="disk is full"):
        store.publish(DOC, os.urandom(500_000), at(1))
    assert numbers(store) == [1]
    assert list(store.verify()) == []


def as_somebody_else() -> None:
    if os.getuid() == 0:  # permissions do not bind root
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


@pytest.mark.parametrize("what", ["file", "directory", "both"])
def test_a_read_only_store_is_unavailable_for_writing_with_one_clear_sentence(
    tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:  # below /tmp, which everybody may pass through
        directory = Path(name)
        file = directory / "store.sqlite"
        store = SqliteStore(file)
        store.publish(DOC, b"1", ABSENT)
        store.close()
        file.chmod(0o666 if what == "directory" else 0o444)
        directory.chmod(0o777 if what == "file" else 0o555)

        def work() -> None:
            as_somebody_else()
            store.publish(DOC, b"2", at(1))

        said = in_child(work)
        directory.chmod(0o700)
        assert said.startswith("UnavailableError"), said
        assert "read-only" in said or "writable" in said
        file.chmod(0o666)
        assert numbers(store) == [1]
        store.close()


def test_a_store_cannot_be_made_in_a_read_only_directory(tmp_path: Path) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o555)

        def work() -> None:
            as_somebody_else()
            for file in (directory / "store.sqlite", directory / "sub" / "store.sqlite"):
                error = refused(lambda file=file: SqliteStore(file).publish(DOC, b"2", ABSENT))
                assert isinstance(error, UnavailableError), error
                assert "permission" in str(error).lower() or "directory" in str(error), error

        assert in_child(work) == "done"
        assert list(directory.iterdir()) == []
        directory.chmod(0o700)


# Processes


def test_a_child_process_uses_connections_of_its_own(store: SqliteStore) -> None:
    store.publish(DOC, b"1", ABSENT)
    store.fetch(DOC)
    inherited = store._idle[0]

    def work() -> None:
        store.publish(DOC, b"2", at(1))
        assert inherited not in store._idle

    assert in_child(work) == "done"
    assert store.publish(DOC, b"3", at(2)).version.number == 3
    assert list(store.verify()) == []


def test_a_store_killed_at_any_moment_of_its_creation_is_whole_or_not_there(tmp_path: Path) -> None:
    for i in range(8):
        file = tmp_path / f"{i}.sqlite"
        child = os.fork()
        if child == 0:
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process at once
                signal.setitimer(signal.ITIMER_REAL, 0.0005 * (i + 1))
                SqliteStore(file).publish(DOC, b"1", ABSENT)
            finally:
                os._exit(0)  # never back into the test run
        os.waitpid(child, 0)
        store = SqliteStore(file)
        error = refused(lambda store=store: store.fetch(DOC))
        assert error is None or isinstance(error, NotFoundError)
        assert store.publish(DOC, b"1", ABSENT).version.number == 1
        assert list(store.verify()) == []
        store.close()


def test_writers_of_one_store_are_all_served(store: SqliteStore) -> None:
    for i in range(4):
        store.publish(f"/{i}", b"", ABSENT)
    processes = [started("fill", store.url, f"/{i}") for i in range(4)]
    try:
        for process in processes:
            assert process.stdout
            for _ in range(3):
                assert process.stdout.readline()  # each gets on while the others never rest
    finally:
        for process in processes:
            process.kill()
            acknowledged(process)
    assert list(store.verify()) == []


# Clocks


@pytest.mark.parametrize("kind", [SqliteStore, MemoryStore])
def test_a_clock_that_is_set_back_never_puts_a_version_before_its_parent(
    file: Path, kind: type[SqliteStore] | type[MemoryStore]
) -> None:
    times = iter(["2026-05-01T00:00:00.000000Z", "2026-04-01T00:00:00.000000Z", "2026-06-01T00:00:00.000000Z"] * 2)
    store = kind(str(file), clock=lambda: next(times))
    store.publish(DOC, b"1", ABSENT)
    store.publish(DOC, b"2", at(1))
    store.publish(DOC, b"3", at(2))
    store.delete(DOC, at(3))
    assert [revision.modified[5:7] for revision in store.versions(DOC)] == ["06", "06", "05", "05"]
    assert list(store.verify()) == []
    store.close()


# Reading in threads


def test_readers_see_whole_states_while_a_writer_writes(file: Path, store: SqliteStore) -> None:
    store.publish(DOC, b"0", ABSENT)
    done = threading.Event()
    seen: list[tuple[int | None, int | None, bytes]] = []

    def read() -> None:
        while not done.is_set():
            document = store.fetch(DOC)
            seen.append((document.version.number, document.current, document.body))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(1, 30):
        store.publish(DOC, b"%d" % i, Version(i))
    done.set()
    for reader in readers:
        reader.join()
    assert all(number == current and body == b"%d" % ((number or 0) - 1) for number, current, body in seen)
    assert digest_of(store.fetch(DOC).body) == digest_of(b"29")


def test_one_more_store_in_a_process_leaves_the_locks_of_the_first_alone(tmp_path: Path) -> None:
    """POSIX drops a process's locks on a file when it closes any descriptor of it; the log would then be removed."""
    file = tmp_path / "s.db"
    first, second = SqliteStore(file), SqliteStore(file)
    first.publish(DOC, b"1", ABSENT)
    first.fetch(DOC)  # from here on there is a connection
    second.fetch(DOC)
    leave = (
        "import sqlite3 as s, sys; c = s.connect(sys.argv[1]); c.execute('SELECT 1 FROM heads').fetchall(); c.close()"
    )
    subprocess.run([sys.executable, "-c", leave, str(file)], check=True)
    assert Path(f"{file}-wal").exists()
    third = SqliteStore(file)
    third.publish(DOC, b"2", Version(1))
    assert first.fetch(DOC).body == b"2"
    for store in (first, second, third):
        store.close()
