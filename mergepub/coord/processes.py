"""Which process a run belongs to: its number alone may be somebody else's by the time it is looked at again.

So the time when it was started is remembered beside the number. Linux tells both in ``/proc``; elsewhere ``ps`` does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from pathlib import Path

_PROC = Path("/proc")
_PS_SECONDS = 10.0


def started(pids: Collection[int]) -> dict[int, str]:
    """When each of ``pids`` that lives was started, in the system's own words: fit for comparing, "" for unknown.

    What has ended is left out, also while its parent has not asked about it yet. Blocks for as long as ``ps`` takes.
    """
    if not pids:
        return {}
    if (_PROC / "self" / "stat").exists():
        return _from_proc(pids)
    told = _from_ps({*pids, os.getpid()})
    if os.getpid() not in told:  # whoever does not know of us knows nothing of others
        return {pid: "" for pid in pids if _is_there(pid)}
    return {pid: when for pid, when in told.items() if pid in pids}


def lives(pid: int, process: str, found: dict[int, str]) -> bool:
    """Whether the process ``pid`` that was started at ``process`` ("" for unknown) is among those ``found`` now."""
    return pid in found and ("" in (process, found[pid]) or found[pid] == process)


def _from_proc(pids: Collection[int]) -> dict[int, str]:
    told = {pid: _told_by_proc(pid) for pid in pids}
    return {pid: when for pid, when in told.items() if when is not None}


def _told_by_proc(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()  # ticks begin anew with each boot
    except OSError:
        return "" if _is_there(pid) else None
    state, *fields = stat.rpartition(") ")[2].split()  # the program's name may hold anything
    return None if state in ("Z", "X") else f"{boot} {fields[18]}"


def _from_ps(pids: Collection[int]) -> dict[int, str]:
    listed = ",".join(map(str, sorted(pids)))
    command = ["ps", "-o", "pid=,stat=,lstart=", "-p", listed]
    plain = os.environ | {"LC_ALL": "C", "TZ": "UTC"}
    try:
        done = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=_PS_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    rows = [row for line in done.stdout.splitlines() if len(row := line.split(None, 2)) == 3]
    return {int(pid): when.strip() for pid, state, when in rows if not state.startswith("Z")}


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
