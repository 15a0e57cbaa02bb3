"""A daemon whose budgets refill a thousand times slower: ``frugal.py [OPTIONS]``. Run by tests as a program.

So a test meets exactly the burst, however long the machine takes for it; how budgets refill is tested with a clock.
"""

from __future__ import annotations

import sys

from mergepub.cli.app import run
from mergepub.coord import bounds


def main() -> None:
    for name in ("SENDS", "READS", "LINES"):
        burst, rate = getattr(bounds, name)
        setattr(bounds, name, (burst, rate / 1000))
    sys.exit(run(["coord", "serve", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
