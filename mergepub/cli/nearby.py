"""Is a file tracked? Asked before what tracks files is imported; ``checkout.home`` is what knows, and says the same."""

from __future__ import annotations

import os
from hashlib import sha256

HOME = ".mergepub"


def may_be_tracked(file: str) -> bool:
    """Whether anything is remembered of ``file`` in the nearest ``.mergepub`` above it (above what it links to)."""
    target = os.path.realpath(file)
    root = os.path.dirname(target)
    while not os.path.exists(os.path.join(root, HOME)):
        above = os.path.dirname(root)
        if above == root:
            return False
        root = above
    key = sha256(os.fsencode(os.path.relpath(target, root))).hexdigest()[:40]
    return os.path.exists(os.path.join(root, HOME, "files", key))
