"""The ring on disk: what it keeps, and what a reader makes of it at any moment of a write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.coord import transcript
from mergepub.coord.transcript import Ring

SIZE = 64


class Dead(BaseException):
    """The process is gone."""


def copied(name: Path, size: int = SIZE) -> tuple[bytes, transcript.Kept]:
    out = name.with_name("copy")
    with out.open("wb", buffering=0) as file:
        kept = transcript.copy(str(name), file.fileno(), size)
    return out.read_bytes(), kept


def test_nothing_written_is_an_empty_transcript(tmp_path: Path) -> None:
    Ring(str(tmp_path / "t"), SIZE).close()
    body, kept = copied(tmp_path / "t")
    assert (body, kept.size, kept.cut) == (b"", 0, False)
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o600


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(st.binary(max_size=3 * SIZE), max_size=12))
def test_the_last_bytes_are_kept_in_their_order(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    name = tmp_path_factory.mktemp("ring") / "t"
    ring = Ring(str(name), SIZE)
    for piece in pieces:
        ring.write(piece)
    ring.close()
    whole = b"".join(pieces)
    body, kept = copied(name)
    assert body == whole[-SIZE:]
    assert (kept.size, kept.earlier, kept.lost) == (len(body), len(whole) - len(body), 0)


@settings(max_examples=200, deadline=None)
@given(first=st.binary(max_size=3 * SIZE), last=st.binary(min_size=1, max_size=3 * SIZE), writes=st.integers(0, 6))
def test_a_crash_in_the_middle_of_a_write_leaves_only_whole_bytes_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, first: bytes, last: bytes, writes: int
) -> None:
    name = tmp_path_factory.mktemp("ring") / "t"
    ring = Ring(str(name), SIZE)
    ring.write(first)
    left = writes
    real = os.pwrite

    def dying(fd: int, data: bytes, at: int) -> int:
        nonlocal left
        if left == 0:
            real(fd, bytes(data)[: len(data) // 2], at) if at else None  # the head is one block: whole or not at all
            raise Dead
        left -= 1
        return real(fd, data, at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", dying)
        try:
            ring.write(last)
        except Dead:
            died = True
        else:
            died = False
    ring.close()
    body, _ = copied(name)
    if died:
        whole = first + last
        assert body in {first[-SIZE:], whole[-SIZE:], first[len(first) - len(body) :]}
        assert body == b"" or body in whole
    else:
        assert body == (first + last)[-SIZE:]


def test_a_copy_taken_while_the_run_writes_has_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring(str(tmp_path / "t"), SIZE)
    whole = bytes(range(200))
    ring.write(whole[:150])
    real, left = os.pread, [3]

    def writing(fd: int, count: int, at: int) -> bytes:
        """The run writes on in the middle of the copy."""
        read = real(fd, count, at)
        left[0] -= 1
        if left[0] == 0:
            ring.write(whole[150:])
        return read

    monkeypatch.setattr(os, "pread", writing)
    body, kept = copied(tmp_path / "t")
    assert body == whole[200 - SIZE : 150]
    assert (kept.size, kept.earlier) == (len(body), 200 - SIZE)
    ring.close()


def test_a_full_disk_loses_bytes_of_the_transcript_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = Ring(str(tmp_path / "t"), SIZE)
    ring.write(b"before ")
    real = os.pwrite

    def full(fd: int, data: bytes, at: int) -> int:
        if at:
            raise OSError(28, "No space left on device")
        return real(fd, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        ring.write(b"lost")
    ring.write(b"after")
    ring.close()
    body, kept = copied(tmp_path / "t")
    assert body == b"before after"
    assert (kept.lost, kept.cut) == (4, True)


def test_a_transcript_takes_nobody_elses_place(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="exists"):
        Ring(str(tmp_path / "link"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("junk", [b"", b"mpubring", b"x" * 100])
def test_what_is_no_transcript_is_not_taken_for_one(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "t").write_bytes(junk)
    with pytest.raises(ValueError, match="no transcript"):
        copied(tmp_path / "t")


def test_a_transcript_that_was_shortened_is_told(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path / "t"), SIZE)
    ring.write(b"x" * 50)
    ring.close()
    os.truncate(tmp_path / "t", 40)
    with pytest.raises(ValueError, match="shorter"):
        copied(tmp_path / "t")
