"""A mergepub command line that kills itself with SIGKILL at its n-th step on the disk; run as a process of its own.

Usage: python killed_command.py N ARGUMENT...; what the process had done by then is all that is ever done.
"""

from __future__ import annotations

import os
import signal
import sys


class Mortal:
    """``os``, deadly at one of its steps."""

    steps = ("replace", "rename", "link", "unlink", "mkdir", "rmdir", "write", "ftruncate", "pwrite", "fsync")

    def __init__(self, left):
        self.left = left

    def __getattr__(self, name):
        found = getattr(os, name)
        return self.deadly(found) if name in self.steps else found

    def deadly(self, call):
        def step(*args, **how):
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **how)

        return step


def main():
    from mergepub.checkout import disk, home, replacing
    from mergepub.cli.app import run

    mortal = Mortal(int(sys.argv[1]))
    for module in (disk, home, replacing):
        module.os = mortal
    disk.exchange = mortal.deadly(disk.exchange)
    sys.exit(run(sys.argv[2:]))


if __name__ == "__main__":
    main()
