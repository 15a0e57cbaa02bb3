"""Starts the processes that peers.py measures: one request a line, the output file and the arguments, tabs between.

Answers with the number of the process when it has started, and with its exit status, its seconds of processor time and
its peak in KiB when it has ended. A process inherits over exec the peak memory of whoever started it; so this does as
little as a Python process can, and its own peak, that of `python -c pass`, is the least that can be told apart.
"""

import os
import sys

for request in sys.stdin:
    out, *argv = request.rstrip("\n").split("\t")
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    print(child, flush=True)
    _, status, usage = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss, flush=True)
