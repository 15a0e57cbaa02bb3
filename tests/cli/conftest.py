"""A scratch directory with a store of its own, and two ways to run a command line in it: here, and as a process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mergepub.__main__ import main

SCRIPT = Path(sys.executable).with_name("mergepub")


@dataclass(frozen=True)
class Result:
    """What a command line came to."""

    status: int
    out: bytes
    err: str


Runner = Callable[..., Result]


def present() -> list[str]:
    """The names in the working directory."""
    return sorted(entry.name for entry in Path().iterdir())


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in [name for name in os.environ if name.startswith(("MERGEPUB_", "_MERGEPUB"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MERGEPUB_STORE", "store.sqlite")
    monkeypatch.setenv("MERGEPUB_AUTHOR", "tess@desk")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in os.environ if name.startswith("MERGEPUB_")]:
        del os.environ[name]  # a command puts --token-file there for the stores of its process, which ends
    gc.enable()  # the fast path turns it off, for its process ends


@pytest.fixture
def mergepub(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runner:
    """Run a command line in this process, through the entry point, with real descriptors."""

    def run(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["mergepub", *arguments])
        capfdbinary.readouterr()
        with _standard_input(stdin):
            status = main()
        captured = capfdbinary.readouterr()
        return Result(status, captured.out, captured.err.decode())

    return run


class _standard_input:  # noqa: N801 - reads like the function that it would be
    """Descriptor 0 holding the given bytes for a while."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __enter__(self) -> None:
        self.before = os.dup(0)
        held = os.memfd_create("stdin")
        os.write(held, self.content)
        os.lseek(held, 0, os.SEEK_SET)
        os.dup2(held, 0)
        os.close(held)

    def __exit__(self, *_: object) -> None:
        os.dup2(self.before, 0)
        os.close(self.before)


@pytest.fixture
def process() -> Runner:
    """Run a command line as a process of its own."""

    def run(*arguments: str, stdin: bytes = b"", **how: object) -> Result:
        done = subprocess.run(
            [SCRIPT, *arguments],
            input=None if "stdin_from" in how else stdin,
            stdin=how.pop("stdin_from", None),
            stdout=how.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            **how,
        )
        return Result(done.returncode, done.stdout or b"", done.stderr.decode())

    return run


@pytest.fixture
def guide(mergepub: Runner) -> bytes:
    """``/docs/guide.md`` at version 2: version 1 has five lines, version 2 another first one."""
    first = b"one\ntwo\nthree\nfour\nfive\n"
    second = b"ONE\ntwo\nthree\nfour\nfive\n"
    assert mergepub("publish", "/docs/guide.md", "--expected-version", "0", stdin=first).status == 0
    assert mergepub("publish", "/docs/guide.md", "--expected-version", "1", stdin=second).status == 0
    return second
