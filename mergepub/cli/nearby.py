"""Is there a ``.mergepub/`` near a file? Asked before what tracks files is imported; no import beyond ``os``."""

from __future__ import annotations

import os


def may_be_tracked(file: str) -> bool:
    """Whether a folder above ``file`` (or above what it links to) holds a ``.mergepub``; without one it is not."""
    folder = os.path.dirname(os.path.realpath(file))
    while not os.path.lexists(os.path.join(folder, ".mergepub")):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return True
