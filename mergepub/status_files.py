"""What pull, push and status came to for files, as keys, as rows for a person, as hints. Like ``status``, for files.

Nothing here writes anything anywhere.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mergepub import status
from mergepub.errors import CheckoutError
from mergepub.outcomes import Overlap, Refused

if TYPE_CHECKING:
    from mergepub.errors import MergepubError
    from mergepub.outcomes import Outcome
    from mergepub.tracking.previewing import Standing
    from mergepub.tracking.pulling import Pulled
    from mergepub.tracking.pushing import Pushed


def envelope(keys: dict[str, Any], code: int) -> dict[str, Any]:
    """The JSON envelope of an answer about files, for that exit status."""
    if code == 0:
        return status.envelope(keys)
    error = {"code": code, "message": "some files need a look: each says why", **keys}
    return {"schema_version": status.SCHEMA_VERSION, "ok": False, "error": error}


CATEGORIES = ("published", "merged", "unchanged", "conflicted", "failed")


# ── push ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def pushed_keys(pushed: Pushed) -> dict[str, Any]:
    """One pushed file as JSON shows it."""
    keys: dict[str, Any] = {"file": pushed.file, "path": pushed.path, "result": pushed.came}
    if pushed.version is not None:
        keys["version"] = pushed.version
    if pushed.newer is not None:
        keys["current-version"] = pushed.newer
    if pushed.updated:
        keys["updated"] = True
    if pushed.outcome is not None:
        keys |= {key: value for key, value in status.fields(pushed.outcome).items() if key not in ("status", "version")}
    return keys | (_error_keys(pushed.error) if pushed.error else {})


def _error_keys(error: MergepubError) -> dict[str, Any]:
    shown: dict[str, Any] = status.error_json(error)["error"]
    return {key: value for key, value in shown.items() if key != "code"} | {"code": error.exit_status}


def pushed_row(pushed: Pushed) -> tuple[str, str, str]:
    """One pushed file as a row: what it came to, the file, the version of the document."""
    version = "" if pushed.version is None else f"/v{pushed.version}"
    return pushed.came, pushed.file, pushed.path + ("" if pushed.came in ("conflicted", "failed") else version)


def summary(results: Iterable[Pushed]) -> dict[str, int]:
    """How many files came to what, every category named."""
    counts = Counter[str](pushed.came for pushed in results)
    return {category: counts[category] for category in CATEGORIES}


def summary_line(counts: dict[str, int], *, dry_run: bool = False) -> str:
    """The summary in one line."""
    line = ", ".join(f"{number} {category}" for category, number in counts.items())
    return f"dry run, nothing was written: {line}" if dry_run else line


def pushed_hints(pushed: Pushed) -> list[str]:
    """What to say about one file on standard error, the next command to type last."""
    said = list(pushed.notices)
    if pushed.error:
        said.append(_about(pushed.file, pushed.error.message))
        return [*said, f"next: {pushed.error.hint}"] if pushed.error.hint else said
    if pushed.came == "conflicted":
        return [*said, *conflict_hints(pushed.file, pushed.path, pushed.outcome, pushed.version)]
    if pushed.newer is not None:
        pull = f"mergepub pull {shlex.quote(pushed.file)}"
        said.append(f"{pushed.file}: the head is version {pushed.newer}; next: {pull}")
    return said


def _about(file: str, message: str) -> str:
    """The message of an error about one file of several, which is named once."""
    return message if message.startswith(f"{file} ") else f"{file}: {message}"


def conflict_hints(file: str, path: str, outcome: Outcome | None, version: int | None) -> list[str]:
    """Why a file could not be published or pulled, and the next command."""
    name = shlex.quote(file)
    if isinstance(outcome, Refused):
        return [f"{file}: {status.sentence(outcome)}", f"next: {next_after(outcome, path, name)}"]
    if isinstance(outcome, Overlap) or outcome is None:
        return [
            f"{file}: your edits overlap with version {version} of {path}; nothing was published or changed",
            f"next: mergepub resolve {name}",
        ]
    return [f"{file}: {status.sentence(outcome)}", f"next: mergepub pull {name}"]


def next_after(refused: Refused, path: str, name: str) -> str:
    """The command to type after a refusal with a reason; ``name`` is quoted already."""
    quoted = shlex.quote(path)
    if refused.reason == "no-base":
        return f"mergepub publish {quoted} {name} --on-conflict merge --expected-version N"
    if refused.reason == "events":
        return (
            f"publish it, or keep it as a branch beside the head: mergepub publish {quoted} {name} --on-conflict branch"
        )
    if refused.reason == "deleted":
        return f"to create it anew: mergepub publish {quoted} {name} --expected-version 0 --rebase-on"
    return f"to take the head, what the file holds being kept in .mergepub/: mergepub fetch {quoted} -o {name} --force"


# ── pull ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def pulled_keys(file: str, path: str, came: Pulled | Overlap | Refused | MergepubError) -> dict[str, Any]:
    """One pulled file as JSON shows it."""
    keys: dict[str, Any] = {"file": file, "path": path, "result": pulled_word(came)}
    if isinstance(came, Overlap | Refused):
        return keys | {key: value for key, value in status.fields(came).items() if key != "status"}
    if isinstance(came, Exception):
        return keys | _error_keys(came)
    return keys | {"version": came.version, "edited": came.edited}


def pulled_word(came: Pulled | Overlap | Refused | MergepubError) -> str:
    """What a pull came to, in one word."""
    if isinstance(came, Exception):
        return "conflict" if isinstance(came, CheckoutError) else "failed"
    if isinstance(came, Overlap | Refused):
        return "conflict"
    if not came.changed:
        return "unchanged"
    return "merged" if came.edited else "updated"


def pulled_row(file: str, path: str, came: Pulled | Overlap | Refused | MergepubError) -> tuple[str, str, str]:
    """One pulled file as a row."""
    version = "" if isinstance(came, Overlap | Refused | Exception) else f"/v{came.version}"
    return pulled_word(came), file, path + version


def pulled_hints(file: str, path: str, came: Pulled | Overlap | Refused | MergepubError) -> list[str]:
    """What to say about one file on standard error."""
    if isinstance(came, Exception):
        return [_about(file, came.message), *([f"next: {came.hint}"] if came.hint else [])]
    if isinstance(came, Refused):
        return conflict_hints(file, path, came, came.current_version)
    if isinstance(came, Overlap):
        places = "1 place" if came.conflicts == 1 else f"{came.conflicts} places"
        sides = [f"{side}: no newline at end" for side in came.unterminated]
        return [
            *sides,
            f"{file}: your edits overlap with version {came.current_version} of {path} in {places}, marked in the file",
            f"next: mergepub resolve {shlex.quote(file)}",
        ]
    return []


# ── status ──────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "unchanged": "unchanged",
    "edited": "edited here",
    "newer": "newer there",
    "conflict": "in conflict",
    "missing": "missing here",
}


def standing_keys(standing: Standing) -> dict[str, Any]:
    """How a tracked file stands, as JSON shows it."""
    keys: dict[str, Any] = {"file": standing.file, "path": standing.path, "store": standing.store}
    keys |= {"state": standing.state, "version": standing.version}
    optional = {
        "current-version": standing.current,
        "mergeable": standing.mergeable,
        "reason": standing.reason,
        "line": standing.line,
        "moved-to": standing.moved_to,
    }
    keys |= {key: value for key, value in optional.items() if value is not None}
    flags = {
        "contained": standing.contained,
        "unanswered": standing.unanswered,
        "interrupted": standing.interrupted,
        "queued": standing.queued,
    }
    if standing.unresolved:
        keys["unresolved-branches"] = standing.unresolved
    return keys | {key: True for key, value in flags.items() if value}


def standing_words(standing: Standing) -> str:
    """How a tracked file stands, in words."""
    words = WORDS.get(standing.state, "")
    if standing.state == "both":
        words = "edited here, newer there: " + ("merges" if standing.mergeable else "would conflict")
    if standing.state == "gone":
        words = f"{standing.reason} there"
    if standing.moved_to is not None:
        words += f", looks renamed to {standing.moved_to}"
    if standing.state == "conflict" and standing.line:
        words += f" at line {standing.line}"
    many = "1 unresolved branch" if standing.unresolved == 1 else f"{standing.unresolved} unresolved branches"
    notes = {
        "sent, no answer yet": standing.unanswered,
        "interrupted": standing.interrupted,
        "queued": standing.queued,
        f"{many} there": bool(standing.unresolved),
    }
    return ", ".join([words, *(note for note, is_so in notes.items() if is_so)])


def standing_hints(standing: Standing) -> list[str]:
    """What to say about how a tracked file stands on standard error."""
    if standing.moved_to is None:
        return []
    move = f"mergepub mv {shlex.quote(standing.file)} {shlex.quote(standing.moved_to)}"
    return [f"{standing.file} looks renamed to {standing.moved_to}, which is not tracked", f"next: {move}"]


def standing_row(standing: Standing) -> tuple[str, str, str]:
    """How a tracked file stands, as a row: state, file, document with the version it was made from."""
    return standing_words(standing), standing.file, f"{standing.path}/v{standing.version}"
