"""How the cost of branches grows with their number and length; started by scripts/bench/branches.

Each operation is timed at several sizes in one run, the fastest of some rounds, and quoted as a ratio to the smallest:
what is flat stays near 1, what lists everything is divided by how much it lists.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from mergepub.branching.deciding import How, decide, undo
from mergepub.branching.looking import overview
from mergepub.documents import ABSENT, Version
from mergepub.histories import CHOOSE, REJECT, Place
from mergepub.stores import open_store

DOC = "/docs/guide.md"
ROUNDS = 9
CLOCK = time.process_time


def fastest(operation: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Milliseconds of the fastest of some calls: what else the machine does only ever adds.

    Of CPU where the store runs in this process, so that waiting for the disk hides nothing; else of waiting.
    """
    times = []
    for _ in range(rounds):
        begun = CLOCK()
        operation()
        times.append((CLOCK() - begun) * 1000)
    return min(times)


def tell(what: str) -> None:
    """What is being done now; it takes minutes."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def fill(store: Any, present: int, wanted: int) -> None:
    """Siblings up to ``wanted``, from a dozen writers at once: they share their commits."""
    tell(f"making siblings {present + 1:,} to {wanted:,}")
    with ThreadPoolExecutor(12) as pool:
        list(
            pool.map(
                lambda i: store.branch(DOC, b"sibling %d\n" % i, Version(1), author=f"w{i % 12}"),
                range(present, wanted),
            )
        )


class Measured:
    """One document that gets more and more siblings."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.serial = 0
        store.publish(DOC, b"base\n", ABSENT)
        store.publish(DOC, b"head\n", Version(1))

    def head(self) -> int:
        return self.store.fetch(DOC).version.number

    def add(self) -> str:
        self.serial += 1
        return self.store.branch(DOC, b"new %d\n" % self.serial, Version(1), author="new").branch

    def choose_and_undo(self) -> None:
        name, head = self.add(), self.head()
        chosen = decide(self.store, DOC, CHOOSE, Place(name, 1), head, how=How("z", str(self.serial)))
        undo(self.store, DOC, chosen.decision, head + 1, how=How("z", str(self.serial)))

    def reject(self) -> None:
        name, head = self.add(), self.head()
        decide(self.store, DOC, REJECT, Place(name, 1), head, how=How("z", str(self.serial)))

    def figures(self, count: int) -> dict[str, float]:
        some = self.add()
        return {
            "listing, per sibling": fastest(lambda: overview(self.store, DOC), 3) / count,
            "one branch, its common ancestors": fastest(lambda: self.store.standing(DOC, some)),
            "add a sibling": fastest(self.add),
            "add one, choose it, undo that": fastest(self.choose_and_undo),
            "add one, reject it": fastest(self.reject),
            "mention (unresolved)": fastest(lambda: self.store.unresolved(DOC)),
            "publish": fastest(self.publish),
        }

    def publish(self) -> None:
        self.serial += 1
        self.store.publish(DOC, b"p %d\n" % self.serial, Version(self.head()))


def lengths(store: Any, sizes: list[int]) -> dict[int, dict[str, float]]:
    """The same with two long branches: main and one sibling."""
    path = "/docs/long.md"
    store.publish(path, b"0\n", ABSENT)
    store.publish(path, b"1\n", Version(1))
    name = store.branch(path, b"x\n", Version(1), author="ann").branch
    figures, length = {}, 1
    for size in sizes:
        tell(f"making two branches of {size:,} revisions")
        for i in range(length + 1, size + 1):
            store.extend(path, name, b"x %d\n" % i, author="ann")
            store.publish(path, b"%d\n" % i, Version(store.fetch(path).version.number))
        length = size
        figures[size] = {
            "one branch, its common ancestors": fastest(lambda: store.standing(path, name)),
            "listing": fastest(lambda: overview(store, path)),
            "read BRANCH@R": fastest(lambda size=size: store.revision(path, name, size // 2 or 1)),
        }
    return figures


def show(title: str, figures: dict[int, dict[str, float]]) -> None:
    sizes = list(figures)
    print(f"\n{title}", flush=True)
    print(f"{'milliseconds':36}" + "".join(f"{size:>12,}" for size in sizes) + "      growth")
    for name in figures[sizes[0]]:
        row = [figures[size][name] for size in sizes]
        print(f"{name:36}" + "".join(f"{value:12.4f}" for value in row) + f"{row[-1] / row[0]:11.2f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--siblings", type=int, default=10_000)
    parser.add_argument("--revisions", type=int, default=1_000)
    parser.add_argument("--store", choices=["sqlite", "memory", "postgres"], default="sqlite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(given, folder)


def run(given: argparse.Namespace, folder: str) -> None:
    global CLOCK  # noqa: PLW0603 - one run has one clock
    CLOCK = time.perf_counter if given.store == "postgres" else time.process_time
    with ExitStack() as ends:
        if given.store == "postgres":
            wide, deep, settle = _on_postgres(ends)
        else:
            wide, deep = ("memory:",) * 2 if given.store == "memory" else (f"{folder}/wide", f"{folder}/deep")
            settle = tell
        store = open_store(wide)
        ends.callback(store.close)
        measured, present, figures = Measured(store), 0, {}
        for size in (given.siblings // 100, given.siblings // 10, given.siblings):
            fill(store, present, size)
            present = size
            settle(f"timing with {size:,} siblings")
            figures[size] = measured.figures(size)
        show("siblings of one document", figures)
        store = open_store(deep)
        ends.callback(store.close)
        show("revisions of a branch", lengths(store, [given.revisions // 100, given.revisions // 10, given.revisions]))


def _on_postgres(ends: ExitStack) -> tuple[str, str, Callable[[str], None]]:
    """Two stores of a server of our own, and what to call before timing."""
    from tests.stores.postgres_server import PostgresServer

    tell("making a PostgreSQL server for this run; it does not wait for the disk")
    server = PostgresServer(fsync=False)
    ends.callback(server.remove)
    server.start()

    def settle(what: str) -> None:
        server.execute("ANALYZE")  # as the server does within a minute: plans were made when the tables were small
        tell(what)

    return server.url(schema="wide"), server.url(schema="deep"), settle


if __name__ == "__main__":
    main()
