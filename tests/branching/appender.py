"""A writer that the tests start as a process of its own: URL PATH COUNT; waits for a line, appends events 1 to COUNT.

Every writer appends events of the same ids. Prints how many of them it was the one to bring.
"""

from __future__ import annotations

import os
import sys

from mergepub.errors import InputError
from mergepub.publishing import append
from mergepub.stores import open_store

if __name__ == "__main__":
    url, path, count = sys.argv[1:]
    store = open_store(url)
    os.write(1, b"ready\n")
    sys.stdin.readline()
    won = 0
    for number in range(1, int(count) + 1):
        try:
            append(store, path, b'{"id": "e%d", "type": "message", "by": "%d"}\n' % (number, os.getpid()))
            won += 1
        except InputError:
            pass  # the id stands there already
    print(won, flush=True)
    store.close()
