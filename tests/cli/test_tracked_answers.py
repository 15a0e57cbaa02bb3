"""Answers that get lost on the way, late requests, stores that are away; over SQLite and over HTTP."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.cli import opening
from mergepub.documents import Version
from mergepub.errors import MergepubError
from mergepub.stores import open_store
from mergepub.stores.wrappers import FaultInjecting, lost_answer, lost_request
from tests.stores.http_service import HttpService

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

GUIDE = "/docs/guide.md"
FIRST = b"one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture(params=["sqlite", "http"])
def here(request, mergepub: Runner, scratch: Path, monkeypatch):
    """``guide.md``, tracked at version 1 in a store of that kind."""
    service = None
    if request.param == "http":
        service = HttpService(f"sqlite:///{scratch}/store.sqlite").start()
        monkeypatch.setenv("MERGEPUB_STORE", service.url)
    assert mergepub("publish", GUIDE, "--expected-version", "0", stdin=FIRST).status == 0
    assert mergepub("fetch", GUIDE, "-o", "guide.md").status == 0
    yield Path("guide.md")
    if service:
        service.kill()


class Losing:
    """Loses what the next publishes answer (or ask), for as many as are told."""

    def __init__(self, monkeypatch):
        self.script = []
        self.sent = []
        monkeypatch.setattr(opening, "open_store", self.open)

    def open(self, url):
        return _LosingPublishes(open_store(url), self)


class _LosingPublishes(FaultInjecting):
    def __init__(self, inner, losing):
        super().__init__(inner)
        self.losing = losing

    def publish(self, path, body, expected, **how):
        self.losing.sent.append((path, body, expected, how))
        return super().publish(path, body, expected, **how)

    def _around(self, call, operation):
        fault = self.losing.script.pop(0) if call.name == "publish" and self.losing.script else None
        self._script = iter([fault])
        return super()._around(call, operation)


@pytest.fixture
def losing(here, monkeypatch):
    return Losing(monkeypatch)


def others(mergepub: Runner, old: bytes, new: bytes) -> None:
    shown = json.loads(mergepub("fetch", GUIDE, "--json").out)["result"]
    body = shown["body"].encode().replace(old, new)
    assert mergepub("publish", GUIDE, "--expected-version", str(shown["version"]), stdin=body).status == 0


def edit(file: Path, old: bytes, new: bytes) -> None:
    file.write_bytes(file.read_bytes().replace(old, new))


def head(mergepub: Runner) -> bytes:
    return mergepub("fetch", GUIDE, "--body-only").out


def test_what_was_sent_has_arrived_and_is_the_base(here: Path, losing: Losing, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    losing.script = [lost_answer(), lost_request()]
    result = mergepub("publish", GUIDE, "guide.md")
    assert (result.status, result.out) == (4, b"")
    assert b"sent, no answer yet" in mergepub("status").out
    assert mergepub("publish", GUIDE, "guide.md").out == b"status: ok\nversion: 2\nreplayed: true\n"
    assert mergepub("versions", GUIDE).out.count(b"\n") == 2


def test_it_has_arrived_though_the_very_line_was_edited_since(here: Path, losing: Losing, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    losing.script = [lost_answer(), lost_request()]
    assert mergepub("push", "guide.md").status == 4
    edit(here, b"FIVE", b"FIVE!")
    others(mergepub, b"one", b"ONE")
    result = mergepub("push", "guide.md")
    assert (result.status, result.out[:6]) == (0, b"merged")
    assert here.read_bytes() == head(mergepub) == b"ONE\ntwo\nthree\nfour\nFIVE!\n"


def test_a_merged_publish_has_arrived_too(here: Path, losing: Losing, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    others(mergepub, b"one", b"ONE")
    losing.script = [None, lost_answer(), lost_request()]
    assert mergepub("push", "guide.md").status == 4
    assert here.read_bytes() == FIRST.replace(b"five", b"FIVE")
    edit(here, b"FIVE", b"FIVE!")
    assert mergepub("pull", "guide.md").status == 0
    assert here.read_bytes() == b"ONE\ntwo\nthree\nfour\nFIVE!\n"
    assert mergepub("push", "guide.md").status == 0
    assert head(mergepub) == b"ONE\ntwo\nthree\nfour\nFIVE!\n"


def test_what_has_not_arrived_is_sent_again(here: Path, losing: Losing, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    losing.script = [lost_request(), lost_request()]
    assert mergepub("push", "guide.md").status == 4
    edit(here, b"FIVE", b"FIVE!")
    assert mergepub("push", "guide.md").status == 0
    assert head(mergepub) == FIRST.replace(b"five", b"FIVE!")
    assert mergepub("versions", GUIDE).out.count(b"\n") == 2


def test_a_request_may_arrive_when_the_next_one_is_on_its_way(here: Path, losing: Losing, mergepub: Runner):
    edit(here, b"five", b"FIVE")
    losing.script = [lost_request(), lost_request()]
    assert mergepub("push", "guide.md").status == 4
    [(path, body, expected, how), *_] = losing.sent
    edit(here, b"FIVE", b"FIVE!")
    late = open_store("store.sqlite")

    class Late(_LosingPublishes):
        def publish(self, *args, **given):
            with suppress(MergepubError):
                late.publish(path, body, expected, **how)
            return super().publish(*args, **given)

    losing.open = lambda url: Late(open_store(url), losing)
    opening.open_store = losing.open
    result = mergepub("push", "guide.md")
    late.close()
    assert result.status == 0
    assert head(mergepub) == here.read_bytes() == FIRST.replace(b"five", b"FIVE!")
    assert mergepub("versions", GUIDE).out.count(b"\n") == 3


def test_a_created_document_has_arrived(losing: Losing, mergepub: Runner):
    Path("new.md").write_bytes(b"new\n")
    losing.script = [lost_answer(), lost_request()]
    assert mergepub("push", "new.md", "--prefix", "/docs").status == 4
    Path("new.md").write_bytes(b"newer\n")
    assert mergepub("push", "new.md").status == 0
    assert mergepub("fetch", "/docs/new.md/v1", "--body-only").out == b"new\n"
    assert mergepub("fetch", "/docs/new.md", "--body-only").out == b"newer\n"


def test_a_store_that_is_away_leaves_file_and_base_alone(here: Path, mergepub: Runner, monkeypatch):
    record = next(Path().glob(".mergepub/files/*/record.json"))
    edit(here, b"five", b"FIVE")
    base = json.loads(record.read_bytes())["base"]
    with monkeypatch.context() as patch:
        patch.setattr(opening, "open_store", lambda url: FaultInjecting(open_store(url), [lost_request()] * 99))
        assert mergepub("pull", "guide.md").status == 4
        assert mergepub("push", "guide.md").status == 4
        assert mergepub("status").status == 4
    assert here.read_bytes() == FIRST.replace(b"five", b"FIVE")
    assert json.loads(record.read_bytes())["base"] == base
    assert mergepub("push", "guide.md").status == 0


def test_the_text_is_on_disk_before_the_first_request(here: Path, mergepub: Runner, monkeypatch):
    seen = []

    class Looking(FaultInjecting):
        def publish(self, path, body, expected, **how):
            seen.extend(file.read_bytes() for file in Path().glob(".mergepub/files/*/*") if file.name != "record.json")
            return super().publish(path, body, expected, **how)

    monkeypatch.setattr(opening, "open_store", lambda url: Looking(open_store(url)))
    edit(here, b"five", b"FIVE")
    assert mergepub("push", "guide.md").status == 0
    assert here.read_bytes() in seen


def test_a_store_that_was_set_back_is_not_merged_with(here: Path, mergepub: Runner, scratch: Path):
    """A restored backup: its head is older than the base, or another text under the same number."""
    edit(here, b"five", b"FIVE")
    mergepub("push", "guide.md")
    store = open_store("other.sqlite")
    store.publish(GUIDE, FIRST, Version(0))
    incarnation = store.fetch(GUIDE).incarnation
    store.close()
    record = next(Path().glob(".mergepub/files/*/record.json"))
    fields = json.loads(record.read_bytes())
    fields["store"] = f"sqlite:///{scratch}/other.sqlite"
    fields["base"]["incarnation"] = incarnation
    record.write_text(json.dumps(fields))
    edit(here, b"one", b"ONE")
    result = mergepub("pull", "guide.md")
    assert (result.status, "There is no version 2" in result.err) == (3, True)
    assert mergepub("push", "guide.md").status == 3
    assert here.read_bytes() == b"ONE\ntwo\nthree\nfour\nFIVE\n"


def test_what_was_resolved_stays_so_when_the_store_does_not_answer(here: Path, losing: Losing, mergepub: Runner):
    edit(here, b"one", b"eins")
    others(mergepub, b"one", b"ONE")
    assert mergepub("pull", "guide.md").status == 3
    losing.script = [lost_request(), lost_request()]
    assert mergepub("resolve", "guide.md", "--union").status == 4
    assert here.read_bytes() == b"ONE\neins\ntwo\nthree\nfour\nfive\n"
    assert mergepub("status").out.startswith(b"edited here, sent, no answer yet")
    assert mergepub("push", "guide.md").status == 0
    assert head(mergepub) == here.read_bytes()


def test_a_full_disk_after_a_merged_publish_still_gives_the_block(here: Path, mergepub: Runner, monkeypatch):
    from mergepub.checkout import disk

    edit(here, b"five", b"FIVE")
    others(mergepub, b"one", b"ONE")
    swap = disk.swap

    def full(*_: str) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "swap", full)
    result = mergepub("publish", GUIDE, "guide.md", "--on-conflict", "merge", "--update")
    assert result.out.startswith(b"status: ok\nversion: 3\nmerged: true\n")
    assert "No space left on device" in result.err
    monkeypatch.setattr(disk, "swap", swap)
    assert mergepub("pull", "guide.md").status == 0
    assert here.read_bytes() == head(mergepub) == b"ONE\ntwo\nthree\nfour\nFIVE\n"
