"""Many rounds of the crash proof, with figures: what scripts/soak runs."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.proof.rounds import PostgresDatabase, Proof, UrlOnly

if TYPE_CHECKING:
    from tests.proof.rounds import Database

_KILLS = {"sqlite": ("client", "service"), "postgres": ("client", "service", "database")}


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    begun = time.monotonic()
    with _database(options.store) as database, Proof(database, options.seed) as proof:
        for number in range(1, options.rounds + 1):
            proof.round(options.seconds, clients=options.clients, kills=_KILLS[options.store])
            proof.resolve()
            faults = proof.faults()
            _report(proof, f"round {number} of {options.rounds}, {time.monotonic() - begun:.0f} s", faults)
            if faults:
                return 1
    return 0


def _report(proof: Proof, heading: str, faults: list[str]) -> None:
    print(f"{heading}: {f'{len(faults)} FAULTS' if faults else 'no fault'}")
    for line in (*proof.figures.lines(), *faults):
        print(f"  {line}", flush=True)


@contextmanager
def _database(kind: str) -> Iterator[Database]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="mergepub-soak-") as directory:
            yield UrlOnly(str(Path(directory) / "store.sqlite"))
        return
    from tests.stores.postgres_server import PostgresServer

    server = PostgresServer()
    server.start()
    try:
        yield PostgresDatabase(server)
    finally:
        server.remove()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10, help="of load in a round")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--store", choices=sorted(_KILLS), default="sqlite")
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which something is killed")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
