"""``mergepub serve`` for tests: a real process on a real socket, started, stopped and killed at will."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_START_SECONDS = 120
_SERVING = re.compile(rb"serving .* on (https?://\S+:(\d+))")


class HttpService:
    """One service over ``store_url``. It keeps its port over ``start`` after ``kill``.

    ``program`` is what Python runs: the package, or the file that an installer makes the command of.
    """

    def __init__(self, store_url: str, *options: str, program: tuple[str, ...] = ("-m", "mergepub")) -> None:
        self._store_url = store_url
        self._program = program
        self._options = options
        self._port = "0"
        self._process: subprocess.Popen[bytes] | None = None
        descriptor, name = tempfile.mkstemp(prefix="mergepub-service-", suffix=".log")
        os.close(descriptor)
        self._log = Path(name)
        self.url = ""

    def start(self) -> HttpService:
        """Start it and wait until it serves."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MERGEPUB_")}
        command = [sys.executable, *self._program, "serve", "--store", self._store_url, "--port", self._port]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([*command, *self._options], stderr=log, stdout=log, env=environment)
        give_up = time.monotonic() + _START_SECONDS
        while not (serving := _SERVING.search(self._log.read_bytes())):
            assert self._process.poll() is None, f"the service ended: {self.log}"
            assert time.monotonic() < give_up, f"the service does not start: {self.log}"
            time.sleep(0.02)
        self.url, self._port = serving[1].decode(), serving[2].decode()
        return self

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None, "the service was never started"
        return self._process.pid

    @property
    def log(self) -> str:
        """What it wrote since it was started last."""
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """``kill -9``."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        return self._end(signal.SIGTERM)

    def remove(self) -> None:
        """Kill it, if it runs, and delete its log."""
        self.kill()
        self._log.unlink(missing_ok=True)

    def _end(self, signal_number: int) -> int:
        assert self._process is not None, "the service was never started"
        with suppress(ProcessLookupError):
            self._process.send_signal(signal_number)
        return self._process.wait(_START_SECONDS)
