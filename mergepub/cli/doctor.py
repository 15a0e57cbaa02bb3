"""The verb ``doctor``: is everything fit to publish, line by line, with what to do where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from mergepub import doctor, status
from mergepub.cli.answers import RESET, colourful, write_json
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import json_option, store_option, verb
from mergepub.cli.pasting import pasteable
from mergepub.cli.streams import printable, write_stdout
from mergepub.doctor import SCRATCH
from mergepub.errors import MergepubError
from mergepub.paths import check_path, check_prefix

if TYPE_CHECKING:
    from mergepub.findings import Finding

COLOURS = {"ok": b"\x1b[32m", "warn": b"\x1b[33m", "fail": b"\x1b[31m"}


def examine(url: str, scratch: str | None = SCRATCH) -> Iterator[Finding]:
    """Everything that is to be said about the store at ``url``; ``scratch`` None leaves the proof out."""
    try:
        with opened(url) as store:
            first = doctor.look_at(store)
            yield first
            if url.partition(":")[0].lower() in ("http", "https"):
                from mergepub.stores.http_doctor import look

                yield from look(store)
            else:
                yield doctor.passed("token", "this store asks for none")
                yield doctor.passed("clock", "times are told by this machine's clock")
            if first.verdict == "ok" and scratch is not None:
                yield from doctor.prove(store, scratch)
    except MergepubError as error:
        yield doctor.failed("store", error)


@verb("doctor", "mergepub doctor", "mergepub doctor --no-proof --json", "mergepub doctor --scratch /docs/scratch")
@click.option("--scratch", metavar="FOLDER", default=SCRATCH, show_default=True, help="Where the proof publishes.")
@click.option("--no-proof", is_flag=True, help="Look, and publish nothing.")
@json_option
@store_option
@click.pass_context
def doctor_command(context: click.Context, /, scratch: str, **given: Any) -> int:
    """Check store, token, clock and TLS, and prove that the store's compare-and-swap is honest.

    The proof publishes a scratch document, races two writers for it and deletes it; its history stays. Exit status 0
    where nothing fails, else that of the first failure: 3 for a store that breaks a promise, 4 for one out of reach.
    """
    check_path(f"{check_prefix(scratch).rstrip('/')}/scratch.txt")
    findings: list[Finding] = []
    for finding in examine(store_url(context), None if given["no_proof"] else scratch):
        findings.append(finding)
        if not given["json"]:
            write_stdout(_line(finding))
    if given["json"]:
        write_json(_report(findings))
    return _exit_status(findings)


def _line(finding: Finding) -> bytes:
    mark = finding.verdict.encode().ljust(4)
    if colourful():
        mark = COLOURS[finding.verdict] + mark + RESET
    told = f"{finding.check}: {finding.message}" + (f"\n      next: {pasteable(finding.hint)}" if finding.hint else "")
    shown = "\n".join(map(printable, told.split("\n")))
    return b"%s  %s\n" % (mark, shown.encode("utf-8", "backslashreplace"))


def _report(findings: list[Finding]) -> dict[str, Any]:
    rows = [{key: value for key, value in each._asdict().items() if value and key != "status"} for each in findings]
    code = _exit_status(findings)
    if code == 0:
        return status.envelope({"status": "ok", "findings": rows})
    failures = sum(each.verdict == "fail" for each in findings)
    message = f"{failures} check{'s' * (failures != 1)} failed"
    return {
        "schema_version": status.SCHEMA_VERSION,
        "ok": False,
        "error": {"code": code, "message": message, "findings": rows},
    }


def _exit_status(findings: list[Finding]) -> int:
    return next((each.status for each in findings if each.verdict == "fail"), 0)
