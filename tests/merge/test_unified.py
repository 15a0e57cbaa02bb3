"""The unified form of a diff: what ``patch`` and ``git apply`` make of it is the new body, byte for byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mergepub.merge.unified import unified

NAMES = (b"a/file\tv1", b"b/file\tv2")

LINE = st.sampled_from([b"a", b"b", b"c", b"", b"+x", b"-y", b" z", b"@@", b"--- a", b"\\ No", b"a\r", b"\xff\x0c"])
BODY = st.builds(lambda lines, end: b"\n".join(lines) + end, st.lists(LINE, max_size=30), st.sampled_from([b"\n", b""]))


def diff(a: bytes, b: bytes, context: int = 3) -> bytes:
    return b"".join(unified(a, b, NAMES, context=context))


def patched(folder: Path, a: bytes, text: bytes) -> bytes:
    """``a`` after ``patch`` has applied ``text``."""
    file = folder / "file"
    file.write_bytes(a)
    done = subprocess.run(
        ["patch", "--binary", "--posix", "-s", "-p1", "-r", "-"],
        input=text,
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (text, done.stdout)
    return file.read_bytes() if file.exists() else b""


def test_it_reads_as_everybody_knows_it() -> None:
    a = b"".join(b"%d\n" % n for n in range(1, 21))
    b = a.replace(b"\n5\n", b"\nfive\n").replace(b"\n18\n", b"\n")
    assert diff(a, b) == (
        b"--- a/file\tv1\n+++ b/file\tv2\n"
        b"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        b"@@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n"
    )


def test_equal_bodies_have_no_diff() -> None:
    assert diff(b"a\n", b"a\n") == diff(b"", b"") == b""


def test_hunks_share_their_context_up_to_twice_its_length() -> None:
    apart = [b"x\n"] + [b"%d\n" % n for n in range(6)] + [b"y\n"]
    assert diff(b"".join(apart), b"".join([b"X\n", *apart[1:-1], b"Y\n"])).count(b"@@ -") == 1
    apart.insert(3, b"more\n")
    assert diff(b"".join(apart), b"".join([b"X\n", *apart[1:-1], b"Y\n"])).count(b"@@ -") == 2


@pytest.mark.parametrize(
    ("a", "b", "hunk"),
    [
        (b"", b"a\nb\n", b"@@ -0,0 +1,2 @@\n+a\n+b\n"),
        (b"a\n", b"", b"@@ -1 +0,0 @@\n-a\n"),
        (b"a", b"a\n", b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        (b"a\nb", b"A\nb", b"@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"),
        (b"a\r\n", b"a\n", b"@@ -1 +1 @@\n-a\r\n+a\n"),
    ],
)
def test_edges(a: bytes, b: bytes, hunk: bytes) -> None:
    assert diff(a, b).partition(b"\n+++ b/file\tv2\n")[2] == hunk


def test_bodies_that_are_no_text_are_said_to_differ() -> None:
    assert diff(b"a\0", b"b\0") == b"Binary files a/file\tv1 and b/file\tv2 differ\n"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BODY, BODY, st.integers(0, 4))
def test_patch_makes_the_new_body_of_the_old_and_back(tmp_path: Path, a: bytes, b: bytes, context: int) -> None:
    assert patched(tmp_path, a, diff(a, b, context)) == b
    assert patched(tmp_path, b, diff(b, a, context)) == a


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BODY.filter(bool), BODY.filter(bool))
def test_git_apply_makes_the_new_body_of_the_old(tmp_path: Path, a: bytes, b: bytes) -> None:
    if a != b:
        file = tmp_path / "file"
        file.write_bytes(a)
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(command, input=diff(a, b), cwd=tmp_path, check=True)
        assert file.read_bytes() == b
