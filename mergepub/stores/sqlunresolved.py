"""Which documents of a SQL database have open branches: what many verbs ask beside their own work.

By itself, and without the values of branches until there is one: nearly always the answer is that there is nothing.
The rest of what a database knows about branches stands in sqlbranches.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mergepub.stores.contract import MOST_COUNTED

if TYPE_CHECKING:
    from mergepub.histories import Unresolved
    from mergepub.stores.sql import Transaction

_UNRESOLVED = f"""SELECT h.path,
        (SELECT COUNT(*) FROM (SELECT 1 FROM branches b WHERE b.incarnation = m.incarnation AND b.state = 'open'
            LIMIT {MOST_COUNTED}) AS counted),
        (SELECT b.name FROM branches b WHERE b.incarnation = m.incarnation AND b.state = 'open'
            ORDER BY b.name DESC LIMIT 1)
    FROM heads h JOIN branches m ON m.id = h.branch
    WHERE (h.path = ? OR h.path >= ?) AND h.path >= ? AND h.path < ? AND h.digest IS NOT NULL
        AND EXISTS (SELECT 1 FROM branches b WHERE b.incarnation = m.incarnation AND b.state = 'open')
    ORDER BY h.path LIMIT ?"""  # noqa: S608 - a number of ours


def unresolved(tx: Transaction, prefix: str, limit: int) -> list[Unresolved]:
    """Documents at or below ``prefix`` with open branches, by path."""
    below = prefix if prefix.endswith("/") else prefix + "/"
    rows = tx.rows(_UNRESOLVED, prefix, below, prefix, below[:-1] + "0", limit)
    if not rows:
        return []
    from mergepub.histories import Unresolved  # noqa: PLC0415 - as said above

    return [Unresolved(*row) for row in rows]
