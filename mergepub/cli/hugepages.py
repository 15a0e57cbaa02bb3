"""Large bodies in pages of 2 MiB instead of 4 KiB: the process starts again with an allocator that asks for them.

Half of the time of merging files of 60 MB goes into handing out memory page by page, three quarters of a microsecond to
two for each 4 KiB. Where Linux gives huge pages to those who ask (its usual setting), glibc asks when the environment
says so at the start of a process. Starting again takes ten milliseconds, pays twice over where all bodies together are
64 MiB, and happens before anything is read. Nothing else changes: where the system has no such pages, or none to
spare, memory comes as ever.
"""

from __future__ import annotations

import os
import sys

_VARIABLE, _VALUE = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"
_SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"


def start_again() -> None:
    """Replace this process by one with huge pages; come back where that cannot be, or is so already."""
    if _VARIABLE in os.environ or not sys.executable or not given_on_request():
        return
    argv = [sys.executable, *sys.orig_argv[1:]]
    try:
        os.execve(sys.executable, argv, {**os.environ, _VARIABLE: _VALUE})  # noqa: S606 - the same command, no shell
    except OSError:
        return


def given_on_request() -> bool:
    """Whether Linux gives huge pages to those who ask, and to nobody else."""
    try:
        with open(_SETTING, "rb", buffering=0) as file:  # noqa: PTH123 - pathlib costs the fast path milliseconds
            return b"[madvise]" in file.read(80)
    except OSError:
        return False
