"""A daemon that is killed at one named step: ``crashing.py STORE DATA STEP [FILE]``. Run by tests as a program.

With FILE it is not killed: the file is made, and tells that the step was reached.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from mergepub.cli.coord.serve import serve
from mergepub.coord.daemon import Daemon
from mergepub.stores import open_store

if TYPE_CHECKING:
    from mergepub.stores.sql import SqlStore


def main() -> None:
    url, data, deadly, *told = sys.argv[1:]

    def step(name: str) -> None:
        if name != deadly:
            return
        for file in told:
            Path(file).touch()
        if not told:
            os.kill(os.getpid(), signal.SIGKILL)

    store = cast("SqlStore", open_store(url))
    serve(Daemon(store, Path(data), lambda line: print(line, file=sys.stderr), step=step), "it answers")


if __name__ == "__main__":
    main()
