"""Fuzz the sockets of coordination; started by scripts/fuzz-coord SECONDS [SEED].

A real daemon with three runs that overlap and one in another workspace, its budgets lifted so that every line is looked
at. Each round opens a connection, sends a few lines (made from the grammar of the wire and then broken: bytes changed,
lines cut, joined, nested, oversized, torn into pieces) and holds the daemon to its word:

- every non-empty line of at most 64 KiB is answered by exactly one line, in order, with the request's id or null;
- an answer is a result of the method's form, or an error with a code of the table and a reason that belongs to it;
- a line that is no proper request is never -32603, and nothing ever is;
- a key has one receipt, and what has a receipt is on the timeline once;
- the daemon lives, answers an honest client within two seconds, and its log tells of no failure.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mergepub.coord import wire
from mergepub.coord.bounds import LINE_BYTES
from scripts.bench._coord import make_checkout, resident, serve_coordination, serving

METHODS = [
    *(3 * [*wire.RUN_METHODS]),
    "coord.task",
    "run.start",
    "run.stop",
    "",
    "rpc.discover",
    "coord.status\0",
    "COORD.STATUS",
]
FIELDS = sorted({name for known in wire.RUN_METHODS.values() for name in known} | {"from_run_id", "token", "é", ""})
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 30, 30.5, 1e308, 10**30, "", " ", "\0", "\n", "\ud800", "é" * 2048, "é" * 2049,
    "x" * 4096, "x" * 4097, "k" * 256, "k" * 257, "a\r\nb", [], [""], ["r"] * 31, ["r"] * 32, {}, {"a": []}, "blocked",
    "working", "waiting", "run-000000000000", "question-0", "'; DROP TABLE coord_runs; --", "\u202e", "\ufeff",
]  # fmt: skip
JUNK = [
    b"", b"\0", b"\xff\xfe", b"[]", b"[[1]]", b"{}", b"null", b'"x"', b"NaN", b"[" * 20000, b'{"a":' * 9000, b"\r",
    b"1e999999", b"-", b"9" * 5000, b'{"id":1}' * 2, b"GET / HTTP/1.1", b"\x16\x03\x01", b" " * 100, b"\xef\xbb\xbf{}",
]  # fmt: skip
RESULTS = {
    "coord.status": {"wire_version", "run_id", "workspace_id", "member_id", "task", "task_bytes", "task_truncated",
                     "peers", "peer_total", "peers_truncated", "unread", "capabilities"},
    "coord.send": {"message_id"}, "coord.ask": {"question_id"}, "coord.reply": {"message_id"},
    "coord.inbox": {"messages", "acked"}, "run.report": {"state", "reason"},
    "coord.report": {"report_id", "outcome", "summary", "next_action", "evidence_ref", "evidence_refs"},
}  # fmt: skip
ROUND_LINES = 12
PATIENCE = 45.0  # more than the longest wait for mail, which a broken line may ask for


class BrokenPromiseError(Exception):
    """The daemon did not keep its word."""


class World:
    """The daemon's runs as the fuzzer knows them, and what it was told."""

    def __init__(self, coord: Path, runs: list[str], other: str, rng: random.Random) -> None:
        self.coord = coord
        self.runs = runs
        self.other = other
        self.rng = rng
        self.sent: dict[tuple[str, str], tuple[str, str]] = {}  # run and key -> method and id
        self.ids: list[str] = ["question-0"]
        self.tokens: list[str] = ["ack-0"]
        self.outcomes: Counter[str] = Counter()

    def socket_of(self, run: str) -> Path:
        return self.coord / run / "coord3.sock"

    # ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def line(self) -> bytes:
        rng = self.rng
        kind = rng.random()
        if kind < 0.08:
            return rng.choice(JUNK).replace(b"\n", b" ")
        text = json.dumps(self._request(), ensure_ascii=rng.random() < 0.8, allow_nan=True)
        line = text.encode("utf-8", "surrogatepass").replace(b"\n", b" ")
        if kind < 0.25:
            line = self._broken(line)
        if kind > 0.98:
            line += b" " * (LINE_BYTES - 1 - len(line) - rng.randrange(2))
        return line

    def _request(self) -> Any:
        rng = self.rng
        method = rng.choice(METHODS)
        made: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": rng.randrange(1000),
            "method": method,
            "params": self._params(method),
        }
        if rng.random() < 0.15:
            made[rng.choice(["jsonrpc", "id", "method", "params", "extra"])] = rng.choice(ODD)
        if rng.random() < 0.05:
            del made[rng.choice(list(made))]
        return [made] if rng.random() < 0.02 else made

    def _params(self, method: str) -> Any:
        rng = self.rng
        known = wire.RUN_METHODS.get(method, {})
        params = {name: self._value(name) for name in known if not known[name].optional or rng.random() < 0.5}
        if rng.random() < 0.2:
            params[rng.choice(FIELDS)] = rng.choice(ODD)
        if params and rng.random() < 0.1:
            del params[rng.choice(list(params))]
        if isinstance(params.get("wait_seconds"), int | float) and 0 < params["wait_seconds"] <= 30:
            params["wait_seconds"] = 0.01
        return params if rng.random() < 0.97 else rng.choice(ODD)

    def _value(self, name: str) -> Any:
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice(ODD)
        values = {
            "to_run_id": [*self.runs, self.other, "run-none"], "question_id": self.ids[-20:],
            "ack_token": self.tokens[-5:],
            "wait_seconds": [0, 0.01], "outcome": list(wire.OUTCOMES), "state": list(wire.LIFE), "reason": ["why"],
            "evidence_refs": [[], ["log"]], "body": ["hi", "é", "x" * 100], "summary": ["done"],
            "idempotency_key": [f"k{rng.randrange(100)}", f"u{rng.randrange(10**9)}"],
        }  # fmt: skip
        return rng.choice(values[name])

    def _broken(self, line: bytes) -> bytes:
        rng, broken = self.rng, bytearray(line)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(broken) + 1)
            match rng.randrange(4):
                case 0:
                    del broken[at : at + rng.randrange(1, 9)]
                case 1:
                    broken[at:at] = rng.randbytes(rng.randrange(1, 5))
                case 2:
                    broken[at:at] = broken[: rng.randrange(len(broken) + 1)]
                case _:
                    broken = broken[:at] or broken
        return bytes(broken).replace(b"\n", b" ")[: LINE_BYTES - 1]

    # ── a round ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def round(self) -> int:
        """One connection; the number of lines that were answered."""
        run = self.rng.choice([*self.runs, self.other])
        lines = [line for _ in range(self.rng.randrange(1, ROUND_LINES)) if (line := self.line()).strip()]
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(self.socket_of(run)))
            if self.rng.random() < 0.1:
                self._rudely(client, lines)
                return 0
            answers = self._talk(client, lines)
            if self.rng.random() < 0.1:
                self._too_long(client)
        for line, answer in zip(lines, answers, strict=True):
            self._judge(run, line, answer)
        return len(lines)

    def _talk(self, client: socket.socket, lines: list[bytes]) -> list[bytes]:
        for line in lines:
            data = line + b"\n" * self.rng.randrange(1, 3)
            if self.rng.random() < 0.3:
                cut = self.rng.randrange(len(data))
                client.sendall(data[:cut])
                data = data[cut:]
            client.sendall(data)
        got = b""
        while got.count(b"\n") < len(lines):
            piece = client.recv(1 << 16)
            if not piece:
                raise BrokenPromiseError(f"closed after {got.count(10)} of {len(lines)} answers: {lines!r}")
            got += piece
        return got.split(b"\n")[: len(lines)]

    def _rudely(self, client: socket.socket, lines: list[bytes]) -> None:
        """Send and go: without reading, in the middle of a line, or with half a connection closed."""
        data = b"\n".join(lines)
        client.sendall(data[: self.rng.randrange(len(data) + 1)])
        if self.rng.random() < 0.5:
            client.shutdown(socket.SHUT_WR)
        self.outcomes["left without reading"] += 1

    def _too_long(self, client: socket.socket) -> None:
        try:
            client.sendall(b"x" * LINE_BYTES)
            if client.recv(1):
                raise BrokenPromiseError("a line of 64 KiB without its newline was answered")
        except ConnectionError:
            pass
        self.outcomes["line too long, closed"] += 1

    def _judge(self, run: str, line: bytes, answer: bytes) -> None:
        where = f"{line[:2000]!r} from {run} was answered by {answer[:2000]!r}"
        found = json.loads(answer)
        if found.get("jsonrpc") != "2.0" or ("result" in found) == ("error" in found) or "id" not in found:
            raise BrokenPromiseError(f"no answer of JSON-RPC: {where}")
        if "error" in found:
            self._judge_error(found["error"], where)
            return
        asked = json.loads(line)
        if found["id"] != asked["id"] or not RESULTS[asked["method"]] <= set(found["result"]):
            raise BrokenPromiseError(f"not the result that was asked for: {where}")
        self.outcomes[f"result of {asked['method']}"] += 1
        self._remember(run, asked, found["result"], where)

    def _judge_error(self, error: dict[str, Any], where: str) -> None:
        code, reason = error["code"], error.get("data", {}).get("reason")
        if code not in wire.EXITS or code == wire.INTERNAL:
            raise BrokenPromiseError(f"a code that must not be: {where}")
        if reason is not None and reason not in wire.REASONS.get(code, ()):
            raise BrokenPromiseError(f"a reason that does not belong to the code: {where}")
        if not error["message"].isprintable() or len(error["message"]) > 1000:
            raise BrokenPromiseError(f"a message that is no line: {where}")
        self.outcomes[f"{code} {reason or ''}".strip()] += 1

    def _remember(self, run: str, asked: dict[str, Any], result: dict[str, Any], where: str) -> None:
        method, params = asked["method"], asked.get("params", {})
        made = next((str(result[name]) for name in ("message_id", "question_id", "report_id") if name in result), None)
        if made is not None:
            scope = "report" if method == "coord.report" else "mail"
            known = self.sent.setdefault((f"{run} {scope}", params["idempotency_key"]), (method, made))
            if known != (method, made):
                raise BrokenPromiseError(f"one key, two receipts ({known}): {where}")
        if "question_id" in result:
            self.ids.append(made or "")
        if "ack_token" in result:
            self.tokens.append(result["ack_token"])

    # ── the daemon as a whole ───────────────────────────────────────────────────────────────────────────────────────

    def ask(self, place: Path, method: str, **params: Any) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(place))
            client.sendall(json.dumps({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}).encode() + b"\n")
            got = b""
            while not got.endswith(b"\n"):
                got += client.recv(1 << 20) or b"\n"
        answer = json.loads(got)
        if "result" not in answer:
            raise BrokenPromiseError(f"an honest {method} was refused: {answer}")
        found: dict[str, Any] = answer["result"]
        return found

    def check(self) -> None:
        """An honest client is served at once, and the timeline has what there are receipts for, each once."""
        began = time.monotonic()
        self.ask(self.socket_of(self.runs[0]), "coord.status")
        if time.monotonic() - began > 2:
            raise BrokenPromiseError(f"an honest client waited {time.monotonic() - began:.1f} s")
        entries = self.ask(self.coord / "control.sock", "timeline.show", limit=10_000)["entries"]
        ids = [entry["id"] for entry in entries]
        if len(set(ids)) != len(ids):
            raise BrokenPromiseError("an entry is twice on the timeline")
        missing = {made for method, made in self.sent.values() if method != "coord.report"} - set(ids)
        if missing and len(entries) < 10_000:
            raise BrokenPromiseError(f"receipts without an entry on the timeline: {missing}")


def start(control: Path, folder: Path) -> tuple[list[str], str]:
    world = World(control.parent, [], "", random.Random())
    shared = make_checkout(folder / "shared", 3, 2)
    names = []
    for workspace in ("w", "w", "w", "other"):
        given = {"checkout": str(shared), "task": "t", "member": "m", "workspace": workspace}
        names.append(world.ask(control, "run.start", **given)["run_id"])
    return names[:3], names[3]


def fuzz(seconds: float, seed: int, folder: Path) -> None:
    data, control = folder / "data", folder / "data" / "coord" / "control.sock"
    data.mkdir()
    with serving(control, serve_coordination, f"sqlite:///{folder}/store.sqlite", str(data)) as server:
        world = World(control.parent, *start(control, folder), random.Random(seed))
        before, until, rounds, lines = resident(server.pid), time.monotonic() + seconds, 0, 0
        try:
            while time.monotonic() < until:
                lines += world.round()
                rounds += 1
                if rounds % 200 == 0:
                    world.check()
            world.check()
        finally:
            if not server.is_alive():
                print("the daemon died; it said:", (data / "daemon.log").read_text(), file=sys.stderr)
        after = resident(server.pid)
    told = (data / "daemon.log").read_text()
    if "failed" in told:
        raise BrokenPromiseError(f"the daemon's log tells of failures: {told}")
    print(f"{rounds} connections, {lines} lines answered, {len(world.sent)} distinct receipts; none broke a promise")
    print(f"memory of the daemon: {before} KiB before, {after} KiB after")
    for name, count in sorted(world.outcomes.items(), key=lambda each: -each[1]):
        print(f"{count:8} {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("seed", nargs="?", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(10**9) if options.seed is None else options.seed
    print(f"from seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="mp-"))
    try:
        (folder / "shared").mkdir()
        fuzz(options.seconds, seed, folder)
    except BrokenPromiseError as find:
        print(f"found: {find}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
