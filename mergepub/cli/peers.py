"""One warning line for each document that a peer is editing too. Inside a run alone, and never in anybody's way."""

from __future__ import annotations

import os
from collections.abc import Iterable

_RUN_DIR = "/run/mergepub"


def warn_of_peers(paths: Iterable[str]) -> None:
    """Say on standard error which of the documents ``paths`` are being edited by peers of this run.

    Outside a run nothing is asked; whatever goes wrong, nothing is said.
    """
    if not (os.environ.get("MERGEPUB_RUN_DIR") or os.path.isdir(_RUN_DIR)):  # noqa: PTH112 - pathlib costs every command milliseconds
        return
    from mergepub.cli.streams import say
    from mergepub.coord import bounds, client, wire

    try:
        peers = client.call(client.run_socket(), "coord.status", {}, seconds=1.0)["peers"]
    except wire.CoordError:
        return
    active = [peer for peer in peers if peer["state"] != "grace"]
    for path in dict.fromkeys(paths):
        name = bounds.cut(path)
        editing = [peer for peer in active if name in peer["files"]]
        # The first files of a long list alone are told, in their order.
        perhaps = [peer for peer in active if peer["file_total"] > len(peer["files"]) and name > peer["files"][-1]]
        if editing or perhaps:
            who = ", ".join(f"{peer['member_id']} ({peer['run_id']})" for peer in editing or perhaps)
            verb = "is" if editing else "may be"
            say(f"mergepub: warning: {path} {verb} being edited by {who} too; see mergepub coord status --json")
