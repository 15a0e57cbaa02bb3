"""Publishes per second through the HTTP service and on the bare database; started by scripts/bench/service.

Every client publishes one body after the other as fast as it is answered: it knows the version it builds on, and after
a conflict goes on from the current version that the conflict named. The bare database does the same compare-and-swap on
two tables (heads, versions), reading the head again after a conflict. The service's clients are connections of one
process, as in other load generators, so that what is measured is the service; the bare database's are a process each,
because its drivers wait for every answer, and so are faster than in threads of one. Service and database
take turns, round by round, and the medians are compared. ``cpu ms`` is what one publish costs all processes together
(clients, service, database server): on a machine that does other things too, it says more than the rate.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import selectors
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stores.http_service import HttpService
from tests.stores.postgres_server import PostgresServer

BODY = 4096
_LENGTH = re.compile(rb"(?i)content-length: *(\d+)")

Publish = Callable[[bytes], bool]
Connect = Callable[[str, str], Publish]
"""To a database, for one document: the function publishes one body and says whether it made a version."""


@dataclass
class Round:
    """What one run of all clients came to."""

    per_second: float
    conflicts: float
    p50: float
    p99: float
    least: int
    cpu: float


@dataclass
class Case:
    store: str
    documents: str
    clients: int
    service: list[Round] = field(default_factory=list)
    bare: list[Round] = field(default_factory=list)

    def ratio(self) -> float:
        return median(self.service, "per_second") / median(self.bare, "per_second")


def median(rounds: list[Round], name: str) -> float:
    return statistics.median(getattr(each, name) for each in rounds)


# Clients


class HttpClient:
    """The least that a client of the service can be: one socket, requests written by hand."""

    def __init__(self, url: str, document: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"PUT {document} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {BODY}\r\n"
        self._head = head.encode() + b"Mergepub-Expected-Version: %d\r\n\r\n"
        self._known = 0
        self._received = b""

    def send(self, body: bytes) -> None:
        """Ask to publish ``body``."""
        self.at = time.perf_counter()
        self.socket.sendall(self._head % self._known + body)

    def receive(self) -> bool | None:
        """Take what has come; whether it made a version, None where more is to come."""
        self._received += self.socket.recv(65536)
        head, whole, body = self._received.partition(b"\r\n\r\n")
        if not whole or len(body) < int(_LENGTH.search(head)[1]):  # type: ignore[index]  # it is always there
            return None
        self._received, status, facts = b"", int(head[9:12]), json.loads(body)
        self._known = facts["version"] if status in (200, 201) else facts["current-version"]
        return status == 201


def on_sqlite(file: str, document: str) -> Publish:
    database = sqlite3.connect(file, isolation_level=None, timeout=30)
    database.execute("PRAGMA synchronous = FULL")
    known: list[int] = []

    def publish(body: bytes) -> bool:
        if not known:
            known.append(database.execute("SELECT head FROM heads WHERE path = ?", (document,)).fetchone()[0])
        expected = known.pop()
        database.execute("BEGIN IMMEDIATE")
        swap = "UPDATE heads SET head = head + 1 WHERE path = ? AND head = ?"
        if database.execute(swap, (document, expected)).rowcount != 1:
            database.execute("ROLLBACK")
            return False
        database.execute("INSERT INTO versions VALUES (?, ?, ?)", (document, expected + 1, body))
        database.execute("COMMIT")
        known.append(expected + 1)
        return True

    return publish


def on_postgres(url: str, document: str) -> Publish:
    import psycopg

    database = psycopg.connect(url, autocommit=True)
    known: list[int] = []
    swap = """WITH swapped AS (UPDATE bare.heads SET head = head + 1 WHERE path = %s AND head = %s RETURNING head)
        INSERT INTO bare.versions SELECT %s, head, %s FROM swapped"""

    def publish(body: bytes) -> bool:
        if not known:
            row = database.execute("SELECT head FROM bare.heads WHERE path = %s", (document,)).fetchone()
            known.append(row[0] if row else 0)
        expected = known.pop()
        if database.execute(swap, (document, expected, document, body)).rowcount != 1:
            return False
        known.append(expected + 1)
        return True

    return publish


# Running them


class Tally:
    """What became of one client's requests."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.conflicts = 0
        self._seed = os.urandom(16).hex().encode()

    def body(self) -> bytes:
        """The next body: like no other."""
        return (b"%d %s " % (len(self.times) + self.conflicts, self._seed)).ljust(BODY, b"x")

    def note(self, made: bool, seconds: float) -> None:
        """One answer has come."""
        if made:
            self.times.append(seconds)
        else:
            self.conflicts += 1


def on_database(connect: Connect, where: str, documents: list[str], seconds: float, start: Any) -> list[Tally]:
    """One client, of one document."""
    (document,) = documents
    publish, tally = connect(where, document), Tally()
    start.wait()
    begun = at = time.perf_counter()
    while at - begun < seconds:
        made = publish(tally.body())
        now = time.perf_counter()
        tally.note(made, now - at)
        at = now
    return [tally]


def over_http(where: str, documents: list[str], seconds: float, start: Any) -> list[Tally]:
    """All clients of the service, one for each document."""
    ready = selectors.DefaultSelector()
    for document in documents:
        client = HttpClient(where, document)
        ready.register(client.socket, selectors.EVENT_READ, (client, Tally()))
    clients = [key.data for key in ready.get_map().values()]
    start.wait()
    begun = time.perf_counter()
    for client, tally in clients:
        client.send(tally.body())
    waiting = len(clients)
    while waiting:
        for key, _ in ready.select():
            client, tally = key.data
            made = client.receive()
            if made is None:
                continue
            now = time.perf_counter()
            tally.note(made, now - client.at)
            if now - begun < seconds:
                client.send(tally.body())
            else:
                waiting -= 1
    return [tally for _, tally in clients]


def work(load: Callable[..., list[Tally]], *given: Any, start: Any, results: Any) -> None:
    """One process."""
    results.put([(tally.times, tally.conflicts) for tally in load(*given, start)])


def run(shares: list[tuple[Any, ...]], seconds: float) -> Round:
    """All clients at once; of each process what it is to do, with its arguments but the start."""
    fork = multiprocessing.get_context("fork")
    start, results = fork.Event(), fork.Queue()
    shared = {"start": start, "results": results}
    processes = [fork.Process(target=work, args=share, kwargs=shared) for share in shares]
    for process in processes:
        process.start()
    time.sleep(0.3)
    before = processor_time()
    start.set()
    answers = [answer for _ in processes for answer in results.get()]
    for process in processes:
        process.join()
    cpu = processor_time() - before
    times = sorted(each for made, _ in answers for each in made) or [0.0]
    return Round(
        len(times) / seconds,
        sum(conflicts for _, conflicts in answers) / seconds,
        times[len(times) // 2] * 1000,
        times[int(len(times) * 0.99)] * 1000,
        min(len(made) for made, _ in answers),
        cpu / len(times) * 1000,
    )


def processor_time() -> float:
    """Seconds that this process and all below it have used: clients, service and database server."""
    import psutil

    this, spent = psutil.Process(), 0.0
    for process in [this, *this.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile: what it used is its parent's then
            spent += sum(process.cpu_times()[:4])
    return spent


@contextmanager
def stores(name: str, folder: Path) -> Iterator[tuple[str, Connect, str]]:
    """The store's URL for the service, how a bare client connects, and to what."""
    if name == "sqlite":
        bare = folder / "bare.sqlite"
        with sqlite3.connect(bare) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE heads (path TEXT PRIMARY KEY, head INTEGER NOT NULL)")
            database.execute("CREATE TABLE versions (path TEXT, n INTEGER, body BLOB, PRIMARY KEY (path, n))")
        yield f"sqlite:///{folder / 'store.sqlite'}", on_sqlite, str(bare)
        return
    import psycopg

    server = PostgresServer()
    server.start()
    try:
        with psycopg.connect(server.url(), autocommit=True) as database:
            database.execute("CREATE SCHEMA bare")
            database.execute("CREATE TABLE bare.heads (path text PRIMARY KEY, head bigint NOT NULL)")
            database.execute("CREATE TABLE bare.versions (path text, n bigint, body bytea, PRIMARY KEY (path, n))")
        yield server.url(), on_postgres, server.url()
    finally:
        server.stop()
        shutil.rmtree(server.directory, ignore_errors=True)


def prepare(connect: Connect, where: str, documents: list[str]) -> None:
    """Give the bare database its documents; the service makes its own."""
    if connect is on_sqlite:
        with sqlite3.connect(where) as database:
            database.executemany("INSERT OR IGNORE INTO heads VALUES (?, 0)", [(d,) for d in documents])
        return
    import psycopg

    with psycopg.connect(where, autocommit=True) as database:
        database.cursor().executemany(
            "INSERT INTO bare.heads VALUES (%s, 0) ON CONFLICT DO NOTHING", [(d,) for d in documents]
        )


def measure(name: str, options: argparse.Namespace) -> list[Case]:
    """All cases of one kind of store."""
    cases = [Case(name, documents, clients) for documents in options.documents for clients in options.clients]
    folder = Path(tempfile.mkdtemp(prefix="mergepub-bench-", dir=options.folder))
    with stores(name, folder) as (url, bare, where):
        service = HttpService(url, *options.serve).start()
        try:
            for number in range(options.rounds):
                for case in cases:
                    label = f"{case.documents}-{case.clients}-{number}"
                    paths = [f"/bench/{label}-{i if case.documents == 'many' else 0}" for i in range(case.clients)]
                    prepare(bare, where, paths)
                    seconds = options.seconds
                    case.service.append(run([(over_http, service.url, paths, seconds)], seconds))
                    case.bare.append(run([(on_database, bare, where, [path], seconds) for path in paths], seconds))
        finally:
            service.remove()
            shutil.rmtree(folder, ignore_errors=True)
    return cases


def report(cases: list[Case]) -> None:
    columns = f"{'publishes/s':>12} {'p50 ms':>8} {'p99 ms':>8} {'conflicts/s':>12} {'least':>6} {'cpu ms':>7}"
    print(f"{'store':9} {'docs':5} {'clients':>7} {'':8} {columns} {'ratio':>6}")
    for case in cases:
        for who, rounds in (("service", case.service), ("bare", case.bare)):
            values = [median(rounds, each) for each in ("per_second", "p50", "p99", "conflicts", "least", "cpu")]
            row = "{:12.0f} {:8.2f} {:8.2f} {:12.0f} {:6.0f} {:7.2f}".format(*values)
            ratio = f"{case.ratio():6.2f}" if who == "service" else ""
            print(f"{case.store:9} {case.documents:5} {case.clients:7} {who:8} {row} {ratio}")
    many = [case.ratio() for case in cases if case.documents == "many"]
    if many:
        print(f"on many documents the service reaches {min(many):.0%} to {max(many):.0%} of the bare database's rate")


def command(rounds: int) -> None:
    """One publish as a whole process through the command line, beside a process that only imports requests and PUTs."""
    folder = Path(tempfile.mkdtemp(prefix="mergepub-bench-"))
    service = HttpService(str(folder / "store.sqlite")).start()
    file = folder / "body.md"
    alone = (
        "import requests, sys; requests.put(sys.argv[1], data=open(sys.argv[2], 'rb'), headers={'If-None-Match': '*'})"
    )
    times: dict[str, list[float]] = {"mergepub publish": [], "requests alone": []}
    try:
        for number in range(rounds):
            file.write_bytes(os.urandom(BODY // 2).hex().encode())
            ours = [
                "-m",
                "mergepub",
                "--store",
                service.url,
                "publish",
                f"/a{number}",
                str(file),
                "--expected-version=0",
            ]
            theirs = ["-c", alone, f"{service.url}/b{number}", str(file)]
            for name, arguments in zip(times, (ours, theirs), strict=True):
                begun = os.times()
                subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
                ended = os.times()
                spent = ended.children_user - begun.children_user + ended.children_system - begun.children_system
                times[name].append(spent * 1000)
    finally:
        service.remove()
        shutil.rmtree(folder)
    for name, spent in times.items():
        print(f"{name:18} {statistics.median(spent):6.0f} ms of processor time, median of {rounds}")
    ours_median, theirs_median = (statistics.median(spent) for spent in times.values())
    print(f"ratio {ours_median / theirs_median:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"], help="both by default")
    parser.add_argument("--clients", action="append", type=int, help="1, 8 and 32 by default")
    parser.add_argument("--documents", action="append", choices=["one", "many"], help="both by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--folder", help="where the databases are put; a disk like the real one's")
    parser.add_argument("--command", action="store_true", help="measure one publish through the command line instead")
    parser.add_argument("serve", nargs="*", help="options for mergepub serve, after --")
    options = parser.parse_args()
    if options.command:
        command(max(options.rounds, 11))
        return
    options.clients = options.clients or [1, 8, 32]
    options.documents = options.documents or ["one", "many"]
    report([case for name in options.store or ["sqlite", "postgres"] for case in measure(name, options)])


if __name__ == "__main__":
    main()
