"""The merge engine: three bodies in, one merged body out. Pure: no files, no clock, no randomness.

``diff3()`` is the whole of it for a caller; ``markers`` reads marked bodies back.
"""

from __future__ import annotations

from mergepub.merge.diff3 import Merged, diff3

__all__ = ["Merged", "diff3"]
