"""What a checkout edits, and when it is looked at."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mergepub.checkout import Checkout, queue
from mergepub.checkout.queue import Entry, Start
from mergepub.checkout.records import Base, Clash, Record
from mergepub.coord import watching
from mergepub.coord.watching import Looker, Pace, Watch
from mergepub.documents import digest_of
from tests.coord.living import PATIENCE


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def track(root: Path, name: str, body: bytes = b"one\n", *, path: str | None = None, contained: bool = False) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)
    base = Base(1, "i", digest_of(body), contained)
    Checkout(str(root)).save(Record(name, "s", path or f"/{name}", base), body)


def test_a_document_is_edited_while_its_file_differs_from_its_base(root: Path) -> None:
    track(root, "a.md")
    track(root, "b.md", contained=True)
    looker = Looker(str(root))
    assert looker.look() == set()
    (root / "a.md").write_bytes(b"two\n")
    (root / "b.md").write_bytes(b"two\n")
    assert looker.look() == {"/a.md", "/b.md"}
    (root / "a.md").write_bytes(b"one\n")
    assert looker.look() == {"/b.md"}
    track(root, "b.md", b"two\n")
    assert looker.look() == set()


def test_a_change_of_the_same_size_in_the_same_moment_is_seen(root: Path) -> None:
    track(root, "a.md")
    looker = Looker(str(root))
    for _ in range(20):
        (root / "a.md").write_bytes(b"two\n")
        assert looker.look() == {"/a.md"}
        (root / "a.md").write_bytes(b"one\n")
        assert looker.look() == set()


def test_a_file_in_conflict_is_edited_and_one_that_is_gone_is_not(root: Path) -> None:
    track(root, "a.md")
    looker = Looker(str(root))
    record = Checkout(str(root)).load_file("a.md")
    assert record
    clash = Clash(digest_of(b"x"), record.base, digest_of(b"<<<"), 7, 1)
    Checkout(str(root)).save(Record("a.md", "s", "/a.md", record.base, clash=clash), b"x", b"<<<")
    (root / "a.md").write_bytes(b"<<<")
    assert looker.look() == {"/a.md"}
    (root / "a.md").unlink()
    assert looker.look() == set()


def test_what_is_tracked_no_more_is_edited_no_more(root: Path) -> None:
    track(root, "a.md")
    looker = Looker(str(root))
    (root / "a.md").write_bytes(b"two\n")
    assert looker.look() == {"/a.md"}
    Checkout(str(root)).forget("a.md")
    assert looker.look() == set()


def test_a_queued_document_is_edited_until_its_last_entry_is_sent(root: Path) -> None:
    track(root, "a.md")
    checkout, looker = Checkout(str(root)), Looker(str(root))
    made = Entry("", "s", "/queued.md", digest_of(b"x"), Start(0))
    entries = [queue.add(checkout, made, b"x", None) for _ in range(2)]
    assert looker.look() == {"/queued.md"}
    damaged = Path(checkout.inside("queue", "00000000-damaged", "entry.json"))
    damaged.parent.mkdir()
    damaged.write_text("{")
    for entry in entries:
        assert looker.look({checkout.inside("queue", entry.id, "entry.json")}) == {"/queued.md"}
        queue.remove(checkout, entry)
    assert looker.look() == set()


def test_a_damaged_record_hides_no_other(root: Path) -> None:
    track(root, "a.md")
    track(root, "b.md")
    (root / "b.md").write_bytes(b"two\n")
    folder = Path(Checkout(str(root)).folder_of("a.md"))
    (folder / "record.json").write_text("{")
    assert Looker(str(root)).look() == {"/b.md"}


@pytest.mark.parametrize("place", ["records", "record", "document", "queue"])
def test_a_look_without_an_open_file_left_says_so_and_forgets_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    track(root, "a.md")
    looker = Looker(str(root))
    (root / "a.md").write_bytes(b"two\n")
    assert looker.look() == {"/a.md"}
    inside = Checkout(str(root)).inside
    barred = {"records": inside("files"), "record": "record.json", "document": "a.md", "queue": inside("queue")}[place]
    if place == "queue":
        Path(inside("queue")).mkdir()

    def exhausted(call: Any) -> Any:
        def refuse(name: str, *rest: Any) -> Any:
            if str(name).endswith(barred):
                raise OSError(errno.EMFILE, "Too many open files")
            return call(name, *rest)

        return refuse

    with monkeypatch.context() as patch:
        patch.setattr(watching, "open", exhausted(open), raising=False)
        patch.setattr(os, "listdir", exhausted(os.listdir))
        (root / "a.md").write_bytes(b"three\n")
        os.utime(Path(Checkout(str(root)).folder_of("a.md")) / "record.json")
        with pytest.raises(OSError, match="Too many open files"):
            looker.look()
    assert looker.look() == {"/a.md"}
    (root / "a.md").write_bytes(b"one\n")
    assert looker.look() == set()


def test_a_directory_where_nothing_is_tracked_edits_nothing(root: Path) -> None:
    assert Looker(str(root)).look() == set()
    assert Looker(str(root / "missing")).look() == set()


def test_only_the_files_that_were_named_are_looked_at(root: Path) -> None:
    track(root, "a.md")
    track(root, "sub/b.md")
    looker = Looker(str(root))
    looker.look()
    (root / "a.md").write_bytes(b"two\n")
    (root / "sub/b.md").write_bytes(b"two\n")
    assert looker.look({str(root / "sub/b.md")}) == {"/sub/b.md"}
    record = Path(Checkout(str(root)).folder_of("a.md")) / "record.json"
    assert looker.look({str(record), str(root / "other.md")}) == {"/a.md", "/sub/b.md"}
    track(root, "c.md")
    (root / "c.md").write_bytes(b"two\n")
    name = str(Path(Checkout(str(root)).folder_of("c.md")) / "record.json")
    assert looker.look({name}) == {"/a.md", "/sub/b.md", "/c.md"}


def test_a_folder_that_is_moved_away_takes_its_documents_along(root: Path) -> None:
    track(root, "a.md")
    track(root, "deep/er/b.md")
    looker = Looker(str(root))
    (root / "deep/er/b.md").write_bytes(b"two\n")
    assert looker.look() == {"/deep/er/b.md"}
    (root / "deep").rename(root / "elsewhere")
    assert looker.look({str(root / "deep")}) == set()
    (root / "elsewhere").rename(root / "deep")
    assert looker.look({str(root / "deep")}) == {"/deep/er/b.md"}


def test_only_tracked_files_their_folders_records_and_the_queue_are_of_concern(root: Path) -> None:
    track(root, "deep/er/b.md")
    looker = Looker(str(root))
    looker.look()
    inside = Checkout(str(root)).inside
    of_concern = ["", "deep", "deep/er", "deep/er/b.md", ".mergepub", ".mergepub/files", ".mergepub/queue"]
    for name in (*(str(root / each) for each in of_concern), inside("files", "x"), inside("queue", "1", "entry.json")):
        assert looker.concerns(name), name
    for name in ("build.log", "deep/er/c.md", "dee", "deep/er/b.md~", ".mergepub/filesystem"):
        assert not looker.concerns(str(root / name)), name
    Checkout(str(root)).forget("deep/er/b.md")
    looker.look()
    assert not looker.concerns(str(root / "deep"))


def test_a_first_document_is_seen_although_the_folder_for_records_is_new(root: Path) -> None:
    looker = Looker(str(root))
    assert looker.look() == set()
    track(root, "a.md")
    (root / "a.md").write_bytes(b"two\n")
    assert looker.look({str(root / ".mergepub")}) == {"/a.md"}


@pytest.mark.parametrize(
    ("looked", "changes", "due"),
    [
        (100.0, [], 110.0),
        (100.0, [105.0], 106.0),
        (100.0, [105.0, 105.9], 106.9),
        (100.0, [100.2], 102.0),
        (100.0, [109.5], 110.0),
    ],
    ids=["nothing changed", "quiet", "not quiet yet", "too soon", "never later than the longest"],
)
def test_the_next_look_is_when_it_is_quiet_and_within_the_intervals(
    looked: float, changes: list[float], due: float
) -> None:
    pace = Pace(quiet=1.0, least=2.0, most=10.0)
    pace.note_look(looked)
    for change in changes:
        pace.note_change(change)
    assert pace.due() == pytest.approx(due)


def test_a_watch_names_the_files_that_change_and_ends(root: Path) -> None:
    track(root, "a.md")
    told: list[set[str]] = []
    seen: set[str] = set()

    def hear(names: set[str]) -> None:
        told.append(names)
        seen.update(names)

    watch = Watch(str(root), hear)
    assert watch.start()
    try:
        until(lambda: bool(told), lambda: None)
        assert told[0] == set()  # it has begun, and knows nothing of what was before
        until(lambda: str(root / "a.md") in seen, lambda: (root / "a.md").write_bytes(b"two\n"))
        (root / ".git").mkdir()
        (root / ".git" / "index").write_bytes(b"x")
        until(lambda: any(name.endswith("record.json") for name in tuple(seen)), lambda: track(root, "b.md"))
        assert not any(".git" + os.sep in name for name in tuple(seen))
    finally:
        watch.stop()


def until(told: Callable[[], bool], act: Callable[[], object]) -> None:
    """Act until the watch has told of it."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        act()
        for _ in range(20):
            if told():
                return
            time.sleep(0.01)
    pytest.fail("the watch tells nothing")
