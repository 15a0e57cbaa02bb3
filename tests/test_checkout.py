"""The ``.mergepub`` directory and the exchange of files, by themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergepub.checkout import Base, Brought, Clash, FileChangedError, Record, Sent, disk, locate, replacing
from mergepub.checkout.records import EMPTY, MOST_BROUGHT, from_json, is_inside, to_json
from mergepub.documents import digest_of
from mergepub.errors import CheckoutError, InputError, OutputError

digests = st.binary(max_size=3).map(digest_of)
bases = st.builds(Base, st.integers(0, 9), st.text("abc", max_size=3), digests, st.booleans())
records = st.builds(
    Record,
    st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=5).filter(is_inside),
    st.just("memory:"),
    st.just("/a"),
    bases,
    st.lists(st.builds(Brought, digests, digests, bases, st.integers(0, 9)), max_size=3).map(tuple),
    st.lists(st.builds(Sent, digests, bases, st.integers(0, 9), st.integers(0, 9)), max_size=3).map(tuple),
    st.none() | st.builds(Clash, digests, bases, digests, st.integers(7, 9), st.integers(1, 9)),
)


@given(records)
def test_a_record_comes_back_as_it_was(record):
    assert from_json(to_json(record), "x") == record


def test_a_file_name_that_is_no_text_comes_back_too():
    record = Record(os.fsdecode(b"\xff\xfe"), "memory:", "/a", Base(1, "i", EMPTY))
    assert from_json(to_json(record), "x") == record


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"format": 1}', b'{"format": 2}', b"\xff"], ids=repr)
def test_what_is_no_record_is_said(text):
    with pytest.raises(CheckoutError):
        from_json(text, "record.json")


def test_not_more_than_so_many_pulls_are_remembered():
    record = Record("a", "memory:", "/a", Base(1, "i", EMPTY))
    for n in range(MOST_BROUGHT + 5):
        record = replace(record, brought=record.bringing(b"%d" % n, b"%d" % (n + 1)))
    assert len(record.brought) == MOST_BROUGHT
    assert record.serial == MOST_BROUGHT + 5


@pytest.fixture
def tracked(tmp_path, monkeypatch):
    """A checkout, a file in it that holds ``old``, and its record."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mergepub.toml").touch()
    Path("file").write_bytes(b"old\n")
    checkout, local = locate("file")
    record = Record("file", "memory:", "/a", Base(1, "i", digest_of(b"old\n")))
    with checkout.locked():
        checkout.save(record, b"old\n")
    return checkout, local, record


def names():
    return sorted(os.listdir("."))  # noqa: PTH208 - names alone


def test_bodies_that_no_record_names_any_more_are_dropped(tracked):
    checkout, _, record = tracked
    for n in range(5):
        body = b"%d\n" % n
        checkout.save(replace(record, base=Base(n, "i", digest_of(body))), body)
    assert sorted(os.listdir(checkout.folder_of("file"))) == sorted(["record.json", digest_of(b"4\n")])  # noqa: PTH208


def test_a_body_that_was_changed_is_never_taken_for_the_base(tracked):
    checkout, _, record = tracked
    Path(checkout.folder_of("file"), record.base.digest).write_bytes(b"other\n")
    with pytest.raises(CheckoutError, match="damaged"):
        checkout.body(record, record.base.digest)


@pytest.fixture(params=[True, False], ids=["exchanged", "renamed"])
def both_ways(request, monkeypatch):
    """With the exchange of two names in one step, and without."""
    if not request.param:
        monkeypatch.setattr(disk, "exchange", lambda *_: False)


def test_a_replacement_keeps_the_mode_and_leaves_nothing_beside(both_ways, tracked):
    checkout, local, record = tracked
    Path("file").chmod(0o751)
    after = replace(record, base=Base(2, "i", digest_of(b"new\n")))
    replacing.replace_file(checkout, local, b"old\n", b"new\n", after)
    assert (Path("file").read_bytes(), Path("file").stat().st_mode & 0o777) == (b"new\n", 0o751)
    assert checkout.load(local) == after
    assert names() == [".mergepub", "file", "mergepub.toml"]
    assert not replacing.pending(checkout)


def test_what_was_saved_before_stays(both_ways, tracked):
    checkout, local, record = tracked
    Path("file").write_bytes(b"saved\n")
    with pytest.raises(FileChangedError):
        replacing.replace_file(checkout, local, b"old\n", b"new\n", replace(record, store="x"))
    assert Path("file").read_bytes() == b"saved\n"
    assert checkout.load(local) == record
    assert names() == [".mergepub", "file", "mergepub.toml"]


def test_a_new_file_never_replaces_one_that_appeared(tracked):
    checkout, _, record = tracked
    _, local = locate("other")
    Path("other").write_bytes(b"appeared\n")
    with pytest.raises(FileChangedError):
        replacing.replace_file(checkout, local, None, b"new\n", replace(record, file="other"))
    assert Path("other").read_bytes() == b"appeared\n"


def test_an_editor_that_saves_again_and_again_gets_its_newest_text(tracked, monkeypatch):
    checkout, local, record = tracked
    exchange, saves = disk.exchange, [b"first\n", b"second\n", b"third\n"]

    def saved_first(a, b):
        if saves:
            Path("file").write_bytes(saves.pop(0))
        return exchange(a, b)

    monkeypatch.setattr(disk, "exchange", saved_first)
    with pytest.raises(FileChangedError):
        replacing.replace_file(checkout, local, b"old\n", b"new\n", replace(record, store="x"))
    assert Path("file").read_bytes() == b"third\n"
    assert names() == [".mergepub", "file", "mergepub.toml"]


def test_what_was_saved_before_the_exchange_is_never_out_of_the_file(tracked, monkeypatch):
    """Who reads the new text for a moment, and saves an edit of it, would lose what was saved before."""
    checkout, local, record = tracked
    write_new, exchanged = disk.write_new, []

    def saved_then(name, *rest):
        write_new(name, *rest)
        if Path(name).parent == Path.cwd():
            Path("file").write_bytes(b"saved\n")

    monkeypatch.setattr(disk, "write_new", saved_then)
    monkeypatch.setattr(disk, "exchange", lambda *names: exchanged.append(names))
    with pytest.raises(FileChangedError):
        replacing.replace_file(checkout, local, b"old\n", b"new\n", replace(record, store="x"))
    assert (Path("file").read_bytes(), exchanged) == (b"saved\n", [])


def test_what_two_saves_in_one_moment_push_out_of_the_file_is_kept_and_told(tracked, monkeypatch):
    checkout, local, record = tracked
    exchange, saves = disk.exchange, [b"first\n", b"second\n"]

    def saved_first(a, b):
        Path("file").write_bytes(saves.pop(0)) if saves else None
        return exchange(a, b)

    monkeypatch.setattr(disk, "exchange", saved_first)
    with pytest.raises(FileChangedError, match="what was saved just before is kept in") as caught:
        replacing.replace_file(checkout, local, b"old\n", b"new\n", replace(record, store="x"))
    assert Path("file").read_bytes() == b"second\n"
    assert Path(caught.value.message.rpartition(" in ")[2]).read_bytes() == b"first\n"


def test_what_is_written_through_an_old_descriptor_is_kept(tracked):
    checkout, local, record = tracked
    with Path("file").open("r+b") as editor:
        after = replace(record, base=Base(2, "i", digest_of(b"new\n")))
        replacing.replace_file(checkout, local, b"old\n", b"new\n", after)
        editor.write(b"OLD\nlate\n")
    [place] = list(replacing.late_saves(checkout, after))
    assert Path(place).read_bytes() == b"OLD\nlate\n"
    assert list(replacing.late_saves(checkout, after)) == []
    assert Path("file").read_bytes() == b"new\n"


def test_a_full_disk_changes_nothing(tracked, monkeypatch):
    checkout, local, record = tracked

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "write_new", full)
    with pytest.raises(OutputError, match="No space left") as caught:
        replacing.replace_file(checkout, local, b"old\n", b"new\n", replace(record, store="x"))
    monkeypatch.undo()
    assert "make room" in (caught.value.hint or "")
    assert Path(checkout.root, "file").read_bytes() == b"old\n"
    assert checkout.load(local) == record


HOLDER = """
import sys, time
from mergepub.checkout import Checkout
with Checkout(sys.argv[1]).locked():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_names_its_holder_and_dies_with_it(tracked):
    checkout, _, _ = tracked
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, checkout.root], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    begun = time.monotonic()
    with pytest.raises(CheckoutError, match=f"pid {holder.pid}"), checkout.locked(patience=0.2):
        pass
    assert time.monotonic() - begun < 5
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with checkout.locked(patience=0):
        pass


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_what_can_be_no_file_is_said(name):
    with pytest.raises(InputError, match="no file name"):
        locate(name)
