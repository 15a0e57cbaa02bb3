"""Rounds of a proof: clients as processes against two services on one store, killed at random where a round says so.

A round begins where the last one ended, on the same documents. In the end ``Proof.faults`` holds all that was asked and
answered against what the store holds.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mergepub.stores import open_store
from mergepub.stores.http import HttpStore
from mergepub.stores.wrappers import RetryPolicy
from tests.proof import attempts as a
from tests.proof.driver import PATHS, RecordFile, attempt_once, history_of, is_repeatable, read_record
from tests.proof.linearizable import check
from tests.stores.http_service import HttpService

if TYPE_CHECKING:
    from mergepub.stores.contract import Store
    from tests.proof.attempts import Attempt
    from tests.stores.postgres_server import PostgresServer

_ROOT = Path(__file__).parents[2]
_RESOLVE_SECONDS = 60


class Database(Protocol):
    """What the services stand on: a URL, and a server that can be killed where there is one."""

    url: str

    def kill(self) -> None:
        """``kill -9`` of the server, and start it again."""


@dataclass
class UrlOnly:
    """A database without a server to kill: a file, or one that is not ours to kill."""

    url: str

    def kill(self) -> None:
        raise AssertionError(f"{self.url} has no server of this proof")


@dataclass
class PostgresDatabase:
    """A database of a server of its own."""

    server: PostgresServer

    @property
    def url(self) -> str:
        return self.server.url()

    def kill(self) -> None:
        self.server.kill()
        self.server.start()


@dataclass
class Figures:
    """What a proof did, for people."""

    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        for name, counts in (("killed", self.kills), ("attempts", self.answers), ("unknown, repeated", self.resolved)):
            listed = ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"
            yield f"{name}: {sum(counts.values())} ({listed})"


class Proof:
    """Two services on ``database`` and a record of everything that clients asked of them."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database = database
        self.random = random.Random(seed)
        self.figures = Figures()
        self.directory = Path(tempfile.mkdtemp(prefix="mergepub-proof-"))
        self.services = [HttpService(database.url).start() for _ in range(2)]
        self._clients = 0

    def __enter__(self) -> Proof:
        return self

    def __exit__(self, *_: object) -> None:
        for service in self.services:
            service.remove()
        shutil.rmtree(self.directory, ignore_errors=True)

    def round(self, seconds: float, *, clients: int = 3, kills: tuple[str, ...] = ()) -> None:
        """Load for ``seconds``, while one of ``kills`` (client, service, database) happens every now and then."""
        self.figures.rounds += 1
        running = [self._client(seconds) for _ in range(clients)]
        end = time.monotonic() + seconds
        while kills and (rest := end - time.monotonic()) > 0:
            time.sleep(min(rest, self.random.uniform(0.2, 0.9)))
            what = self.random.choice(kills)
            self._kill(what, running)
            if what == "client":
                running.append(self._client(max(0.0, end - time.monotonic())))
        for process in running:
            process.wait(timeout=seconds + 120)
            assert process.returncode in (0, -9), f"a client ended with {process.returncode}"

    def rounds(self, *, most: int, versions: int, kills: tuple[str, ...]) -> None:
        """Two rounds, and up to ``most`` of them on a slow machine until so many ``versions`` were made."""
        while self.figures.rounds < 2 or (self.figures.rounds < most and self._made() < versions):
            self.round(3, kills=kills)

    def _made(self) -> int:
        return sum(attempt.result == a.MADE for attempt in self.attempts())

    def resolve(self) -> None:
        """Repeat every call whose outcome nobody knows until it is answered clearly."""
        record = RecordFile(str(self.directory / "resolved"))
        with self._store(self.services[0].url) as store:
            for attempt in unresolved(self.attempts()):
                answered = self._answered(store, attempt, record)
                self.figures.resolved[answered.result] += 1

    def faults(self) -> list[str]:
        """Everything that is wrong with the store and with the answers that were given; nothing is a proof."""
        attempts = self.attempts()
        self.figures.answers = Counter(each.result for each in attempts)
        with self._behind() as store:
            found = list(store.verify())
            for path in PATHS:
                history = history_of(store, path)
                found += check((each for each in attempts if each.path == path), history)
        return found

    def attempts(self) -> list[Attempt]:
        """All attempts of all clients so far."""
        return [attempt for name in sorted(self.directory.iterdir()) for attempt in read_record(str(name))]

    def _client(self, seconds: float) -> subprocess.Popen[bytes]:
        self._clients += 1
        name = self.directory / f"record-{self._clients}"
        urls = [service.url for service in self.services]
        arguments = [str(name), str(seconds), str(self._clients), *urls]
        return subprocess.Popen([sys.executable, "-m", "tests.proof.driver", *arguments], cwd=_ROOT)

    def _kill(self, what: str, running: list[subprocess.Popen[bytes]]) -> None:
        self.figures.kills[what] += 1
        if what == "client":
            alive = [each for each in running if each.poll() is None]
            self.random.choice(alive or running).kill()
        elif what == "service":
            service = self.random.choice(self.services)
            service.kill()
            service.start()
        else:
            self.database.kill()

    def _answered(self, store: Store, attempt: Attempt, record: RecordFile) -> Attempt:
        give_up = time.monotonic() + _RESOLVE_SECONDS
        while True:
            answered = attempt_once(store, replace(attempt, patient=False), record)
            if answered.result not in (a.UNKNOWN, a.NOT_DONE):
                return answered
            assert time.monotonic() < give_up, f"{attempt.operation} is not answered"
            time.sleep(0.05)

    @staticmethod
    def _store(url: str) -> _Closing:
        return _Closing(HttpStore(url, policy=RetryPolicy(attempts=1)))

    def _behind(self) -> _Closing:
        return _Closing(open_store(self.database.url))


@dataclass
class _Closing:
    store: Store

    def __enter__(self) -> Store:
        return self.store

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.store.close()


def unresolved(attempts: list[Attempt]) -> list[Attempt]:
    """The writes that were never answered clearly and may be repeated, each once."""
    clear = {each.operation for each in attempts if each.result not in (a.UNKNOWN, a.NOT_DONE)}
    asked = {each.operation: each for each in attempts if each.kind != a.FETCH and each.result == a.UNKNOWN}
    return [each for name, each in asked.items() if name not in clear and is_repeatable(each)]
