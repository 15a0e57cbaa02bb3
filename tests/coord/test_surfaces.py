"""Directories and sockets: exact modes whatever the umask; links, foreign files and long paths refused."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mergepub.coord.surfaces import Root, SurfaceError, bind, trailer
from mergepub.errors import InputError

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")


@pytest.fixture
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mp-") as name:
        yield Path(name) / "data"


@pytest.fixture
def root(data: Path) -> Iterator[Root]:
    made = Root(data)
    made.open()
    yield made
    made.close()


def mode(place: Path) -> int:
    return stat.S_IMODE(place.lstat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_modes_are_exact_whatever_the_umask(data: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        root = Root(data / "deeper")
        root.open()
        root.make_run("run-1")
        root.write_co_authors("run-1", ["ann@desk"])
        sockets = [bind(root.socket_of("run-1"), 0o666), bind(root.control, 0o600)]
    finally:
        os.umask(before)
    for each in sockets:
        each.close()
    root.close()
    assert mode(root.data) == 0o700
    assert mode(root.coord) == 0o700
    assert mode(root.folder_of("run-1")) == 0o755
    assert mode(root.socket_of("run-1")) == 0o666
    assert mode(root.control) == 0o600
    assert mode(root.folder_of("run-1") / "co-authors") == 0o444


def test_a_directory_that_stands_gets_its_mode_again(root: Root) -> None:
    folder = root.make_run("run-1")
    folder.chmod(0o777)
    root.make_run("run-1")
    assert mode(folder) == 0o755


def test_a_second_daemon_on_a_directory_is_refused(root: Root, data: Path) -> None:
    second = Root(data)
    with pytest.raises(SurfaceError, match="another daemon") as caught:
        second.open()
    assert caught.value.exit_status == 3
    root.close()
    second.open()
    second.close()


def test_a_second_daemon_is_refused_although_somebody_removed_the_lock(root: Root, data: Path) -> None:
    serving = bind(root.control, 0o600)
    (root.coord / "lock").unlink()
    with pytest.raises(SurfaceError, match="another daemon"):
        Root(data).open()
    assert root.control.exists()
    serving.close()
    second = Root(data)
    second.open()
    second.close()


def test_a_place_that_was_exchanged_for_another_one_is_lost(root: Root) -> None:
    assert root.has_place()
    root.check_place()
    root.coord.rename(root.data / "away")
    root.coord.mkdir()
    assert not root.has_place()
    with pytest.raises(SurfaceError, match="was removed or exchanged"):
        root.check_place()


def test_a_data_directory_has_one_name_however_it_is_called(root: Root, data: Path) -> None:
    (data.parent / "link").symlink_to(data)
    assert Root(data.parent / "link").data == root.data
    with pytest.raises(SurfaceError, match="another daemon"):
        Root(data.parent / "link").open()


@as_root
def test_a_data_directory_of_another_user_is_refused(data: Path) -> None:
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    with pytest.raises(SurfaceError, match="another user"):
        Root(data).open()


@pytest.mark.parametrize("name", ["coord", "evidence", "transcripts", "coord/lock"])
def test_a_link_in_the_place_of_the_root_or_its_lock_is_refused_and_not_followed(data: Path, name: str) -> None:
    target = data.parent / "target"
    target.mkdir()
    (data / name).parent.mkdir(parents=True)
    (data / name).symlink_to(target)
    with pytest.raises(SurfaceError, match="is a link"):
        Root(data).open()
    assert list(target.iterdir()) == []


def test_a_link_in_the_place_of_a_runs_directory_is_refused(root: Root) -> None:
    elsewhere = root.data / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    root.folder_of("run-1").symlink_to(elsewhere)
    with pytest.raises(SurfaceError, match="is a link"):
        root.make_run("run-1")
    assert mode(elsewhere) == 0o700


def test_a_file_in_the_place_of_a_directory_is_refused(root: Root) -> None:
    root.folder_of("run-1").write_text("mine")
    with pytest.raises(SurfaceError, match="not what belongs there"):
        root.make_run("run-1")
    assert root.folder_of("run-1").read_text() == "mine"


@pytest.mark.parametrize("kind", ["link", "dangling link", "file", "directory"])
def test_what_is_no_socket_of_ours_is_not_replaced_by_one(root: Root, kind: str) -> None:
    folder = root.make_run("run-1")
    place = root.socket_of("run-1")
    if kind == "file":
        place.write_text("mine")
    elif kind == "directory":
        place.mkdir()
    else:
        place.symlink_to(folder / "target")
        if kind == "link":
            (folder / "target").write_text("mine")
    with pytest.raises(SurfaceError):
        bind(place, 0o666)
    assert os.path.lexists(place)


@as_root
def test_what_belongs_to_somebody_else_is_refused(root: Root) -> None:
    folder = root.make_run("run-1")
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(root.socket_of("run-1")))
    other.close()
    os.chown(root.socket_of("run-1"), NOBODY, NOBODY)
    with pytest.raises(SurfaceError, match="another user"):
        bind(root.socket_of("run-1"), 0o666)
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(SurfaceError, match="another user"):
        root.make_run("run-1")


@as_root
def test_a_root_of_somebody_else_is_refused(data: Path) -> None:
    (data / "coord").mkdir(parents=True)
    os.chown(data / "coord", NOBODY, NOBODY)
    with pytest.raises(SurfaceError, match="another user"):
        Root(data).open()


def test_a_socket_that_a_crash_left_is_replaced(root: Root) -> None:
    root.make_run("run-1")
    for _ in range(2):
        bind(root.socket_of("run-1"), 0o666).close()


def test_sockets_of_an_older_wire_are_unlinked(root: Root) -> None:
    folder = root.make_run("run-1")
    for name in ("coord.sock", "coord2.sock"):
        bind(folder / name, 0o666).close()
    bind(root.socket_of("run-1"), 0o666).close()
    root.make_run("run-1")
    assert sorted(place.name for place in folder.iterdir()) == ["coord3.sock"]


def test_a_path_of_107_bytes_is_bound_and_one_of_108_is_a_readable_error(data: Path) -> None:
    data.mkdir()
    room = 107 - len(str(data)) - 1
    bind(data / ("x" * room), 0o600).close()
    with pytest.raises(InputError, match="has 108 bytes, and 107 is the most"):
        bind(data / ("x" * (room + 1)), 0o600)


def test_a_data_directory_too_deep_for_sockets_is_told_before_anything_is_made(data: Path) -> None:
    deep = data / ("d" * 90)
    with pytest.raises(InputError, match="bytes, and 107 is the most"):
        Root(deep).open()
    assert not data.exists()


def test_co_authors_are_rewritten_and_a_link_in_their_place_is_refused(root: Root) -> None:
    folder = root.make_run("run-1")
    root.write_co_authors("run-1", ["ben@desk", "ann@desk", "ann@desk"])
    text = "Co-authored-by: ann <ann@desk>\nCo-authored-by: ben <ben@desk>\n"
    assert (folder / "co-authors").read_text() == text
    root.write_co_authors("run-1", [])
    assert (folder / "co-authors").read_text() == ""
    (folder / "co-authors").unlink()
    (folder / "co-authors").symlink_to(folder / "target")
    with pytest.raises(SurfaceError, match="is a link"):
        root.write_co_authors("run-1", ["ann@desk"])


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("ann@desk", "ann <ann@desk>"),
        ("Ann Lee <ann@example.org>", "Ann Lee <ann@example.org>"),
        ("ann", "ann <ann@localhost>"),
        ("Ann Lee", "Ann Lee <Ann-Lee@localhost>"),
        ("x\nCo-authored-by: evil <e@e>", "x Co-authored-by: evil <e@e>"),
    ],
)
def test_a_trailer_is_one_line_of_a_name_and_an_address(member: str, expected: str) -> None:
    assert trailer(member) == f"Co-authored-by: {expected}"


def test_the_directory_of_a_run_that_ended_is_gone(root: Root) -> None:
    folder = root.make_run("run-1")
    root.write_co_authors("run-1", ["ann@desk"])
    bind(root.socket_of("run-1"), 0o666).close()
    root.release("run-1")
    assert not folder.exists()
