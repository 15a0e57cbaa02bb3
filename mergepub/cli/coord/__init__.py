"""The verb ``coord``: the daemon, the operator's view, and the commands of a run. What they do stands in ``coord``."""

from __future__ import annotations

from typing import Any

from mergepub.cli.coord.envelope import CoordGroup
from mergepub.cli.coord.evidence import evidence_group
from mergepub.cli.coord.mail import ask_command, inbox_command, reply_command, send_command
from mergepub.cli.coord.mcp import mcp_command
from mergepub.cli.coord.own import hook_command, report_command, skill_command, status_command
from mergepub.cli.coord.radar import radar_command, timeline_command
from mergepub.cli.coord.run import run_group
from mergepub.cli.coord.serve import serve_command
from mergepub.cli.options import group


@group(
    "coord",
    "mergepub coord serve &",
    "mergepub coord run --task 'Revise the guide' -- $SHELL",
    "mergepub coord radar",
    cls=CoordGroup,
)
def coord_command(**_: Any) -> None:
    """Tell writers of each other before they collide: runs, the radar, mail, reports.

    Advisory: it locks nothing, decides nothing, and proves nothing about what was published.
    """


for _command in (
    serve_command,
    radar_command,
    timeline_command,
    evidence_group,
    run_group,
    status_command,
    skill_command,
    send_command,
    ask_command,
    reply_command,
    inbox_command,
    report_command,
    hook_command,
    mcp_command,
):
    coord_command.add_command(_command)
