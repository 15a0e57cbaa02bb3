"""Coordination under load; started by scripts/bench/coord.

The daemon is a process of its own, with its budgets (sends, reads, lines) and its peer cap lifted and nothing else. One
client process holds a connection for each run and asks, as fast as it is answered: every run sends to its neighbour,
and reads its inbox with the last batch acknowledged. The echo answers each line with itself, in a process of its own
too, and is asked with the very same lines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mergepub.checkout import Base, Checkout, Record
from mergepub.checkout.home import key_of
from mergepub.checkout.records import to_json
from mergepub.documents import digest_of

BODY = "I am editing the second section of the guide; please leave it to me until noon. " * 4
PATIENCE = 60.0


# ── the servers, each a process of its own ──────────────────────────────────────────────────────────────────────────


def serve_coordination(url: str, data: str) -> None:
    from mergepub.cli.coord.serve import serve
    from mergepub.coord import bounds
    from mergepub.coord.daemon import Daemon
    from mergepub.stores import open_store
    from mergepub.stores.sql import SqlStore

    bounds.SENDS = bounds.READS = bounds.LINES = (1_000_000_000, 1e9)  # type: ignore[assignment]  # out of the way
    bounds.PEERS_OPENED = 1000
    store = open_store(url)
    assert isinstance(store, SqlStore)
    with Path(data, "daemon.log").open("w") as log:
        serve(Daemon(store, Path(data), lambda line: print(line, file=log)), "the daemon answers")


def serve_echo(place: str) -> None:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()

    async def life() -> None:
        async with await asyncio.start_unix_server(converse, place) as server:
            await server.serve_forever()

    asyncio.run(life())


@contextmanager
def serving(place: Path, target: Callable[..., None], *arguments: str) -> Iterator[multiprocessing.process.BaseProcess]:
    server = multiprocessing.get_context("spawn").Process(target=target, args=arguments, daemon=True)
    server.start()
    try:
        give_up = time.monotonic() + PATIENCE
        while not answers(place):
            assert server.is_alive(), "the server ended"
            assert time.monotonic() < give_up, "the server does not answer"
            time.sleep(0.02)
        yield server
    finally:
        server.terminate()
        server.join(20)


def answers(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(place))
        except OSError:
            return False
    return True


# ── the client ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Line:
    """One connection that asks line by line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.took: list[float] = []

    @classmethod
    async def to(cls, place: Path) -> Line:
        return cls(*await asyncio.open_unix_connection(str(place), limit=1 << 20))

    async def ask(self, line: bytes) -> bytes:
        began = time.perf_counter()
        self._writer.write(line)
        answer = await self._reader.readline()
        self.took.append(time.perf_counter() - began)
        return answer

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        answer = json.loads(await self.ask(request(method, params)))
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def close(self) -> None:
        self._writer.close()


def request(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


def send_line(to: str, number: int) -> bytes:
    return request("coord.send", {"to_run_id": to, "body": BODY, "idempotency_key": f"key-{to}-{number}"})


async def load(lines: list[Line], seconds: float, work: Callable[[int, Line, float], Any]) -> dict[str, float]:
    """Let every line work until the time is up; calls per second of all together, and how long one took."""
    for line in lines:
        line.took.clear()
    began = time.perf_counter()
    await asyncio.gather(*(work(at, line, began + seconds) for at, line in enumerate(lines)))
    passed = time.perf_counter() - began
    took = sorted(each for line in lines for each in line.took)
    return {
        "per_second": len(took) / passed,
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[len(took) * 99 // 100] * 1000,
    }


class Mail:
    """One connection to each run's socket, and the tokens of the batches that were read last."""

    def __init__(self, lines: list[Line], names: list[str]) -> None:
        self._lines = lines
        self._names = names
        self._tokens: dict[int, str] = {}
        self._sent = 0

    async def measure(self, seconds: float) -> dict[str, dict[str, float]]:
        works = (("sends", self._send), ("inbox reads", self._read), ("status", self._look))
        found = {name: await load(self._lines, seconds, work) for name, work in works}
        for line in self._lines:
            line.close()
        return found

    async def _send(self, at: int, line: Line, until: float) -> None:
        """Send to the neighbour; now and then read away what the other one sent, which is not counted."""
        to, sent = self._names[(at + 1) % len(self._names)], 0
        while time.perf_counter() < until:
            self._sent += 1
            answer = json.loads(await line.ask(send_line(to, self._sent)))
            assert "result" in answer, answer
            sent += 1
            if sent % 40 == 0:
                for _ in range(2):
                    await self._read_once(at, line)
                    line.took.pop()

    async def _read(self, at: int, line: Line, until: float) -> None:
        while time.perf_counter() < until:
            await self._read_once(at, line)

    async def _read_once(self, at: int, line: Line) -> None:
        token = self._tokens.pop(at, None)
        found = await line.call("coord.inbox", **({"ack_token": token} if token else {}))
        if "ack_token" in found:
            self._tokens[at] = found["ack_token"]

    async def _look(self, _: int, line: Line, until: float) -> None:
        while time.perf_counter() < until:
            await line.call("coord.status")


async def measure_mail(places: list[Path], names: list[str], seconds: float) -> dict[str, dict[str, float]]:
    return await Mail([await Line.to(place) for place in places], names).measure(seconds)


async def measure_echo(place: Path, count: int, seconds: float) -> dict[str, float]:
    lines = [await Line.to(place) for _ in range(count)]

    async def echoing(at: int, line: Line, until: float) -> None:
        number = 0
        while time.perf_counter() < until:
            number += 1
            sent = send_line(f"run-{at:012x}", number)
            assert json.loads(await line.ask(sent))["id"] == 1

    found = await load(lines, seconds, echoing)
    for line in lines:
        line.close()
    return found


def measure_commits(folder: Path, seconds: float) -> dict[str, float]:
    """Durable transactions of one row each on bare SQLite, one after the other."""
    database = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE messages (seq INTEGER PRIMARY KEY, body TEXT)")
    began, took = time.perf_counter(), []
    while time.perf_counter() < began + seconds:
        at = time.perf_counter()
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO messages (body) VALUES (?)", (BODY,))
        database.execute("COMMIT")
        took.append(time.perf_counter() - at)
    passed = time.perf_counter() - began
    database.close()
    took.sort()
    return {"per_second": len(took) / passed, "p50_ms": took[len(took) // 2] * 1000,
            "p99_ms": took[len(took) * 99 // 100] * 1000}  # fmt: skip


# ── checkouts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def make_checkout(folder: Path, count: int, edited: int) -> Path:
    """A checkout that tracks ``count`` documents /docs/N.md, the first ``edited`` of them edited. Nothing is synced."""
    base = b"one\ntwo\nthree\n"
    home = Checkout(str(folder))
    for number in range(count):
        name = f"{number}.md"
        record = Record(name, "sqlite:///s", f"/docs/{name}", Base(1, "i", digest_of(base)))
        place = Path(home.inside("files", key_of(name)))
        place.mkdir(parents=True)
        (place / "record.json").write_bytes(to_json(record))
        (place / digest_of(base)).write_bytes(base)
        (folder / name).write_bytes(b"edited\n" if number < edited else base)
    return folder


async def start_runs(control: Path, checkouts: list[Path]) -> list[str]:
    line = await Line.to(control)
    names = []
    for number, checkout in enumerate(checkouts):
        made = await line.call(
            "run.start", checkout=str(checkout), task="measure", member=f"member-{number}", workspace="bench"
        )
        names.append(made["run_id"])
    line.close()
    return names


def resident(pid: int | None) -> int:
    """KiB of memory that a process has for itself."""
    for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if row.startswith("Pss:"):
            return int(row.split()[1])
    raise AssertionError("the system does not tell")


# ── what is measured ────────────────────────────────────────────────────────────────────────────────────────────────


def bench_mail(folder: Path, count: int, seconds: float) -> None:
    data, control = folder / "data", folder / "data" / "coord" / "control.sock"
    data.mkdir()
    checkouts = [make_checkout(folder / f"checkout-{at}", 3, 1) for at in range(count)]
    with serving(control, serve_coordination, f"sqlite:///{folder}/store.sqlite", str(data)) as server:
        time.sleep(1)
        alone = resident(server.pid)
        began = time.perf_counter()
        names = asyncio.run(start_runs(control, checkouts))
        print(f"{count} runs started in {time.perf_counter() - began:.2f} s, each overlapping with all others")
        time.sleep(1)
        idle = resident(server.pid)
        places = [data / "coord" / name / "coord3.sock" for name in names]
        mail = asyncio.run(measure_mail(places, names, seconds))
        busy = resident(server.pid)
    with serving(folder / "echo.sock", serve_echo, str(folder / "echo.sock")):
        echo = asyncio.run(measure_echo(folder / "echo.sock", count, seconds))
    commits = measure_commits(folder, seconds)
    for name, found in (*mail.items(), ("bare echo", echo), ("bare commits", commits)):
        times = f"p50 {found['p50_ms']:8.2f} ms  p99 {found['p99_ms']:8.2f} ms"
        share = f"{found['per_second'] / echo['per_second']:6.1%} of the echo"
        if name in ("sends", "inbox reads"):
            share += f", {found['per_second'] / commits['per_second']:5.1%} of the commits"
        print(f"{name:13}{found['per_second']:9.0f}/s  {times}  {share}")
    print(f"memory: {alone} KiB alone; {(idle - alone) / count:.0f} KiB a run at rest, "
          f"{(busy - alone) / count:.0f} KiB after the load")  # fmt: skip


def bench_radar(folder: Path, tracked: int, times: int) -> None:
    data, control = folder / "data", folder / "data" / "coord" / "control.sock"
    data.mkdir()
    large = make_checkout(folder / "large", tracked, 0)
    small = make_checkout(folder / "small", times, times)
    with serving(control, serve_coordination, f"sqlite:///{folder}/store.sqlite", str(data)):
        began = time.perf_counter()
        _, peer = asyncio.run(start_runs(control, [large, small]))
        print(f"radar: first snapshot of {tracked} tracked files within {time.perf_counter() - began:.2f} s")
        time.sleep(2)
        place = data / "coord" / peer / "coord3.sock"
        took = asyncio.run(measure_radar(place, large, times))
    print(f"radar: from a write among {tracked} tracked files to the peer's status, {times} writes: ", end="")
    print(f"median {statistics.median(took):.0f} ms, least {min(took):.0f}, most {max(took):.0f}")


async def measure_radar(place: Path, large: Path, times: int) -> list[float]:
    line, took = await Line.to(place), []
    for number in range(times):
        await asyncio.sleep(0.5)  # so that each write comes after a pause, as an editor's do
        began = time.perf_counter()
        (large / f"{number}.md").write_bytes(b"edited too\n")
        while not await shares(line, number + 1):
            assert time.perf_counter() - began < PATIENCE, "the radar does not see it"
            await asyncio.sleep(0.002)
        took.append((time.perf_counter() - began) * 1000)
    line.close()
    return took


async def shares(line: Line, count: int) -> bool:
    peers = (await line.call("coord.status"))["peers"]
    return bool(peers) and peers[0]["file_total"] == count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--tracked", type=int, default=10_000, help="files that the radar looks at")
    parser.add_argument("--writes", type=int, default=20, help="of which the radar's latency is taken")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores; {options.runs} runs, bodies of {len(BODY)} bytes")
    for bench, values in (
        (bench_mail, (options.runs, options.seconds)),
        (bench_radar, (options.tracked, options.writes)),
    ):
        folder = Path(tempfile.mkdtemp(prefix="mp-"))
        try:
            for name in ("checkout", "large", "small"):
                (folder / name).mkdir()
            bench(folder, *values)  # type: ignore[operator]  # each with its own
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
