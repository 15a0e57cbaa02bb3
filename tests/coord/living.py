"""A daemon in a process of its own, and clients that talk to its sockets as rudely as they like."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mergepub.checkout import Base, Checkout, Record
from mergepub.errors import VersionConflictError
from mergepub.stores import open_store
from mergepub.stores.contract import integer_version

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

SCRIPT = Path(sys.executable).with_name("mergepub")
PATIENCE = 60.0


class Client:
    """One connection to a socket."""

    def __init__(self, place: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.connect(str(place))
        except OSError:
            self.socket.close()
            raise
        self._rest = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def line(self) -> bytes:
        """The next line without its newline; empty when the other side has closed."""
        while b"\n" not in self._rest:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                return b""
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def is_closed(self) -> bool:
        """Whether the other side closes without a word."""
        return self.line() == b""

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer."""
        self.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        line = self.line()
        assert line, "the connection was closed"
        answer: dict[str, Any] = json.loads(line)
        assert answer["jsonrpc"] == "2.0"
        return answer

    def result(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self.ask(method, **params)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def error(self, method: str, **params: Any) -> tuple[int, str | None]:
        answer = self.ask(method, **params)
        assert "error" in answer, answer
        return answer["error"]["code"], answer["error"].get("data", {}).get("reason")


class Living:
    """A daemon over a store, started and killed at will, with checkouts to run in."""

    def __init__(self, folder: Path, url: str, *options: str, program: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.url = url
        ours = ("MERGEPUB", "COLUMNS", "LINES")  # the last two would be the size of every screen
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)} | {
            "MERGEPUB_STORE": url,
            "MERGEPUB_DATA_DIR": str(self.data),
        }
        self._command = [*(program or (str(SCRIPT), "coord", "serve")), *options]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **environment: str) -> None:
        """Start it and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self.environment | environment, cwd=self.folder, stderr=log, stdout=log
            )
        wait_for(self._answers, "the daemon does not answer")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the daemon ended: {self.log()}"
        with contextlib.suppress(OSError), Client(self.control) as client:
            return "result" in client.ask("run.list")
        return False

    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def control(self) -> Path:
        return self.data / "coord" / "control.sock"

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def wait_dead(self) -> None:
        assert self.process is not None
        self.process.wait(PATIENCE)
        self.process = None

    def _end(self, number: int) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def operator(self, method: str, **params: Any) -> dict[str, Any]:
        with Client(self.control) as client:
            return client.result(method, **params)

    def checkout(self, name: str, *documents: str) -> Path:
        """A checkout that tracks ``documents``, each in a file named like it, at their first version."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "mergepub.toml").touch()
        missing = [each for each in documents if not (folder / Path(each).name).exists()]
        if missing:
            store = open_store(self.url)
            for document in missing:
                self._track(store, folder, document)
            store.close()
        return folder

    def _track(self, store: Store, folder: Path, document: str) -> None:
        body = b"one\n"
        with contextlib.suppress(VersionConflictError):
            store.publish(document, body, integer_version(0))
        fetched = store.fetch(document)
        (folder / Path(document).name).write_bytes(body)
        base = Base(1, fetched.incarnation, fetched.digest)
        Checkout(str(folder)).save(Record(Path(document).name, store.url, document, base), body)

    def run(self, checkout: Path, member: str = "m", workspace: str = "w", task: str = "a task") -> str:
        """Start a run; its id."""
        made = self.operator("run.start", checkout=str(checkout), task=task, member=member, workspace=workspace)
        return str(made["run_id"])

    def pair(self) -> tuple[str, str]:
        """Two runs that edit one document."""
        return self.runs(2)

    def runs(self, count: int) -> Any:
        """Runs that all edit one document, in one checkout."""
        folder = self.checkout("shared", "/docs/shared.md")
        (folder / "shared.md").write_bytes(b"two\n")
        return tuple(self.run(folder) for _ in range(count))

    def client(self, run: str) -> Client:
        return Client(self.socket(run))

    def socket(self, run: str) -> Path:
        return self.data / "coord" / run / "coord3.sock"

    def mergepub(
        self, *arguments: str, run: str | None = None, cwd: Path | None = None, input: bytes = b"", check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """A command line as a process, inside a run where one is given."""
        inside = {"MERGEPUB_RUN_DIR": str(self.data / "coord" / run)} if run else {}
        done = subprocess.run(
            [SCRIPT, *arguments],
            env=self.environment | inside,
            cwd=cwd or self.folder,
            input=input,
            capture_output=True,
            check=False,
        )
        assert not check or done.returncode == 0, done
        return done

    def remove(self) -> None:
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_for(condition: Callable[[], object], trouble: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, trouble
        time.sleep(0.02)


@contextlib.contextmanager
def living(*options: str, url: str | None = None, program: tuple[str, ...] = ()) -> Iterator[Living]:
    """A running daemon in a directory whose name is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="mp-"))
    made = Living(folder, url or f"sqlite:///{folder / 'store.sqlite'}", *options, program=program)
    try:
        made.start()
        yield made
        if made.process is not None:
            made.stop()
        assert "Traceback" not in made.log(), made.log()
        assert "never retrieved" not in made.log()
    finally:
        made.remove()
