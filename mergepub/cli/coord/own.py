"""The commands of a run about itself: ``status``, ``skill``, ``report`` and ``hook``."""

from __future__ import annotations

import os
from typing import Any

import click

from mergepub.cli.coord.envelope import ask_run, write_result
from mergepub.cli.coord.mail import text_of, with_key
from mergepub.cli.options import verb
from mergepub.cli.streams import printable, write_stdout
from mergepub.errors import InputError

WORKFLOW = """\
How to coordinate with the runs that edit the same documents:

1. mergepub coord status --json says who they are: "peers", with the documents that both of you edit.
2. mergepub coord inbox reads your mail. Read a batch, act on it, then acknowledge it by its token:
   mergepub coord inbox --ack TOKEN --wait 30
3. mergepub coord send --to RUN --body TEXT tells a peer something; mergepub coord ask asks it. Answer questions with
   mergepub coord reply --question-id ID --body TEXT
4. Repeat a call whose answer was lost with the same --idempotency-key; it is done once.
5. When the work is finished, and only then: mergepub coord report --outcome success|failure --summary TEXT.
   When something stops you for good: --outcome blocked. Waiting for a peer is no report.

All of this is advice between writers. It locks nothing; a receipt says that something is stored, not that it was read;
and what is published is decided by mergepub publish and push alone.
"""


@verb("status", "mergepub coord status", "mergepub coord status --json")
@click.option(
    "--json", "json", is_flag=True, help="Print one JSON object; needed where standard output is no terminal."
)
def status_command(json: bool) -> int:
    """Show this run: its workspace, its task, its peers, how much mail waits."""
    if not json and not os.isatty(1):  # a program reads the object, whose form lasts
        raise InputError(
            "standard output is no terminal: mergepub coord status needs --json there",
            hint="mergepub coord skill says the same in prose",
        )
    status = ask_run("coord.status", {})
    if json:
        write_result(status)
    else:
        write_stdout(about(status).encode("utf-8", "backslashreplace"))
    return 0


def about(status: dict[str, Any]) -> str:
    """A run's status for people: who it is, whom it overlaps with, and what to type next."""
    task = printable(status["task"]) + _cut(status)
    member, workspace = printable(status["member_id"]), printable(status["workspace_id"])
    lines = [f"{status['run_id']}  {member}  in the workspace {workspace}", f"task: {task}"]
    lines += ["", _heading(status), *(line for peer in status["peers"] for line in _peer_lines(peer))]
    read = "; read it with: mergepub coord inbox" if status["unread"] else ""
    return "\n".join([*lines, "", f"mail waiting: {status['unread']}{read}"]) + "\n"


def _heading(status: dict[str, Any]) -> str:
    if not status["peers"]:
        return "no other run edits the same documents"
    total = f", the first {len(status['peers'])} of {status['peer_total']}" if status["peers_truncated"] else ""
    return f"peers{total} (write to one with: mergepub coord send --to RUN TEXT):"


def _peer_lines(peer: dict[str, Any]) -> list[str]:
    who = f"  {peer['run_id']}  {printable(peer['member_id'])}  {printable(peer['task'])}{_cut(peer)}"
    if peer["state"] == "grace":
        return [who, f"    edits none of them any more; can be written to until {peer['expires_at'][11:19]} UTC"]
    more = f" and {rest} more" if (rest := peer["file_total"] - len(peer["files"])) else ""
    return [who, f"    edits too: {' '.join(map(printable, peer['files']))}{more}"]


def _cut(holder: dict[str, Any]) -> str:
    return " ..." if holder["task_truncated"] else ""


@verb("skill", "mergepub coord skill")
def skill_command() -> int:
    """Print, in prose, this run's assignment and how to coordinate; without a run, how to coordinate in general."""
    from mergepub.coord.wire import UNAVAILABLE, CoordError

    try:
        live = prose(ask_run("coord.status", {}))
    except CoordError as error:
        if error.code != UNAVAILABLE:
            raise
        live = ""
    write_stdout((live + WORKFLOW).encode("utf-8", "backslashreplace"))
    return 0


def prose(status: dict[str, Any]) -> str:
    """A run's status, in sentences."""
    task = printable(status["task"]) + _cut(status)
    member, workspace = printable(status["member_id"]), printable(status["workspace_id"])
    lines = [
        f"You are run {status['run_id']} of {member} in the workspace {workspace}.",
        f"Your task: {task}",
        f"Messages that wait for you: {status['unread']}.",
    ]
    if not status["peers"]:
        lines.append("No other run edits your documents now.")
    lines += map(_peer, status["peers"])
    if status["peers_truncated"]:
        lines.append(f"There are {status['peer_total']} peers in all.")
    return "\n".join(lines) + "\n\n"


def _peer(peer: dict[str, Any]) -> str:
    who = f"Peer {peer['run_id']} of {printable(peer['member_id'])} ({printable(peer['task'])})"
    if peer["state"] == "grace":
        return f"{who} edited a document of yours until a moment ago; you can write to it until {peer['expires_at']}."
    more = f" and {peer['file_total'] - len(peer['files'])} more" if peer["file_total"] > len(peer["files"]) else ""
    return f"{who} edits too: {', '.join(map(printable, peer['files']))}{more}."


@verb(
    "report",
    "mergepub coord report --outcome success --summary 'The guide is done.'",
    "mergepub coord report --outcome blocked --summary-file - --evidence-ref build-17 < why.txt",
)
@click.option("--outcome", required=True, metavar="success|failure|blocked", help="How it came out.")
@click.option("--summary", metavar="TEXT", help="What was done, or what stops it.")
@click.option("--summary-file", metavar="FILE|-", help="The summary is in FILE, or on standard input.")
@click.option("--evidence-ref", metavar="REF", multiple=True, help="Something to look at; up to 31 of them.")
@click.option("--idempotency-key", metavar="KEY", help="To repeat the very same call; made where it is missing.")
def report_command(outcome: str, **given: Any) -> int:
    """Report how this run's work came out. Evidence is captured first, so it may take up to two minutes.

    There is one report a run; blocked ones may be followed by others.
    """
    if (given["summary"] is None) == (given["summary_file"] is None):
        raise InputError("give the summary once: --summary TEXT, or --summary-file FILE or -", hint="see --help")
    summary = text_of(given["summary"], given["summary_file"], what="summary", option="--summary-file")
    key, announce = with_key("report", given["idempotency_key"])
    params = {"outcome": outcome, "summary": summary, "idempotency_key": key}
    refs = {"evidence_refs": list(given["evidence_ref"])} if given["evidence_ref"] else {}
    write_result(ask_run("coord.report", params | refs, announce=announce))
    return 0


@verb("hook", "mergepub coord hook working", "mergepub coord hook waiting --reason 'a question to the user'")
@click.argument("state", metavar="working|waiting")
@click.option("--reason", metavar="TEXT", help="Why.")
def hook_command(state: str, reason: str | None) -> int:
    """Tell the operator whether this run is working or waiting; kept nowhere. For the callbacks of a harness."""
    write_result(ask_run("run.report", {"state": state} | ({} if reason is None else {"reason": reason})))
    return 0
