"""A resolver that the tests start as a process of its own: URL PATH HEAD BRANCH@R; waits for a line, then decides.

Prints ``won VERSION`` or ``told REASON-OR-CLASS``.
"""

from __future__ import annotations

import os
import sys

from mergepub.branching.deciding import How, decide
from mergepub.errors import MergepubError
from mergepub.histories import CHOOSE, Place, parse_place
from mergepub.stores import open_store

if __name__ == "__main__":
    url, path, head, seen = sys.argv[1:]
    store = open_store(url)
    name, revision = parse_place(seen)
    os.write(1, b"ready\n")
    sys.stdin.readline()
    try:
        decided = decide(store, path, CHOOSE, Place(name, revision or 1), int(head), how=How(f"p{os.getpid()}"))
        print("won", decided.version, flush=True)
    except MergepubError as error:
        print("told", type(error).__name__, error.exit_status, flush=True)
    store.close()
