"""Outcome → status block, body, JSON object, exit status, and the hints for standard error.

The only place that knows the keys and their order. Both renderings are made from one ordered mapping, so they cannot
drift apart. Nothing here writes anything anywhere, and nothing here knows colours.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from mergepub.documents import TEXT, Listed, MergedFrom, Revision, Version
from mergepub.errors import MergepubError
from mergepub.outcomes import (
    Branched,
    Candidate,
    Contention,
    Decided,
    Fetched,
    MergeFacts,
    Mismatch,
    Outcome,
    Overlap,
    Published,
    Queued,
    Refused,
)

SCHEMA_VERSION = "1"
DEFAULT_MARKER_SIZE = 7

Value = str | int | bool


# ── the keys ────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields(outcome: Outcome) -> dict[str, Value]:
    """The keys of an outcome in their order, with native values."""
    match outcome:
        case Published():
            return _published(outcome)
        case Fetched():
            return _fetched(outcome)
        case Candidate():
            return _candidate(outcome)
        case Mismatch() | Overlap() | Contention() | Refused():
            return _conflict(outcome)
        case Branched() | Queued() | Decided():
            return _kept(outcome)
    assert_never(outcome)


def _kept(outcome: Branched | Queued | Decided) -> dict[str, Value]:
    match outcome:
        case Branched():
            return _branched(outcome)
        case Queued():
            return {"status": "queued", "queue-id": outcome.queue_id, "base-version": outcome.base_version}
        case Decided():
            return _decided(outcome)
    assert_never(outcome)


def _branched(outcome: Branched) -> dict[str, Value]:
    keys: dict[str, Value] = {"status": "branched", "branch": outcome.branch, "base-version": outcome.base_version}
    keys |= {"current-version": outcome.current_version, "branch-revision": outcome.branch_revision}
    flags = {"unchanged": outcome.unchanged, "replayed": outcome.replayed}
    return keys | {key: True for key, value in flags.items() if value}


def _decided(outcome: Decided) -> dict[str, Value]:
    keys: dict[str, Value] = {"status": "ok", "version": outcome.version}
    if outcome.decision is not None:
        keys["decision"] = outcome.decision
    keys |= {"strategy": outcome.strategy, "branch": outcome.branch}
    flags = {"dry-run": outcome.dry_run, "replayed": outcome.replayed}
    keys |= {key: True for key, value in flags.items() if value}
    if outcome.current_version is not None:
        keys["current-version"] = outcome.current_version
    return keys


def _published(outcome: Published) -> dict[str, Value]:
    keys: dict[str, Value] = {"status": "ok", "version": outcome.version}
    if outcome.merge:
        keys |= {"merged": True}
        keys |= {"base-version": outcome.merge.base_version, "their-version": outcome.merge.their_version}
    if outcome.unchanged:
        keys["unchanged"] = True
    if outcome.replayed:
        keys["replayed"] = True
    if outcome.current_version is not None:
        keys["current-version"] = outcome.current_version
    return keys | (_settled(outcome.merge) if outcome.merge else {})


def _fetched(outcome: Fetched) -> dict[str, Value]:
    document = outcome.document
    keys: dict[str, Value] = {"status": "ok", "version": _named(document.version)}
    keys |= {"incarnation": document.incarnation, "digest": document.digest}
    if document.kind != TEXT:
        keys["kind"] = document.kind
    return keys | {"author": document.author, "modified": document.modified}


def _named(version: Version) -> Value:
    """The number; a system that does not count in numbers shows its token."""
    return version.number if version.number is not None else version.token or ""


def _candidate(outcome: Candidate) -> dict[str, Value]:
    keys: dict[str, Value] = {"status": "candidate", "base-version": outcome.base_version}
    keys |= {"their-version": outcome.their_version, "publish-at": outcome.publish_at}
    return keys | _settled(outcome)


def _settled(made: MergeFacts | Candidate) -> dict[str, Value]:
    return {"settled": made.settled, "favour": made.favour} if made.settled and made.favour else {}


def _conflict(outcome: Mismatch | Overlap | Contention | Refused) -> dict[str, Value]:
    keys: dict[str, Value] = {"status": "conflict", "your-version": outcome.your_version}
    keys["current-version"] = outcome.current_version
    match outcome:
        case Overlap():
            keys |= {"mergeable": False, "conflicts": outcome.conflicts}
            if outcome.marker_size != DEFAULT_MARKER_SIZE:
                keys["marker-size"] = outcome.marker_size
        case Contention():
            keys |= {"mergeable": False, "reason": "contention", "retries": outcome.retries}
        case Refused():
            keys["reason"] = outcome.reason
        case Mismatch():
            pass
    return keys


# ── the block ───────────────────────────────────────────────────────────────────────────────────────────────────────


def block(outcome: Outcome) -> bytes:
    """The ``key: value`` lines of an outcome, each with its line end; no empty line, no body."""
    return block_of(fields(outcome))


def block_of(keys: Mapping[str, Value]) -> bytes:
    """The same lines for any ordered mapping of keys."""
    return b"".join(f"{key}: {_text(value)}\n".encode(errors="backslashreplace") for key, value in keys.items())


def body(outcome: Outcome) -> bytes | None:
    """The body that belongs below the block, byte for byte; None where the outcome has none."""
    match outcome:
        case Published() | Overlap() | Candidate() | Decided():
            return outcome.body
        case Fetched():
            return outcome.document.body
        case Mismatch() | Contention() | Refused() | Branched() | Queued():
            return None
    assert_never(outcome)


def exit_status(outcome: Outcome) -> int:
    """0 where what was asked for has happened, 3 where somebody has to look."""
    return 0 if isinstance(outcome, Published | Fetched | Branched | Queued | Decided) else 3


def exit_status_of(exc: BaseException) -> int:
    """The exit status for an error: the class's own, 130 when interrupted, 1 for everything unforeseen."""
    if isinstance(exc, KeyboardInterrupt):
        return 130
    return exc.exit_status if isinstance(exc, MergepubError) else 1


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _one_line(value) if isinstance(value, str) else str(value)


def _one_line(value: str) -> str:
    """``value`` with everything escaped that could end its line or steer a terminal, so no value can forge a key."""
    if value.isprintable():
        return value
    return "".join(c.encode("unicode_escape").decode("ascii") if _is_control(c) else c for c in value)


def _is_control(c: str) -> bool:
    return c < " " or "\x7f" <= c <= "\x9f" or c in "\u2028\u2029"


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def to_json(outcome: Outcome, body: bool = True) -> dict[str, Any]:
    """The whole envelope of an outcome; ``body`` False leaves the body out."""
    keys: dict[str, Any] = dict(fields(outcome))
    if body:
        keys |= _json_body(outcome)
    code = exit_status(outcome)
    if code == 0:
        return envelope(keys)
    return _envelope(False, error={"code": code, "message": sentence(outcome), **keys})


def envelope(result: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope of a success that is no outcome of the loop (a listing, a history, a report)."""
    return _envelope(True, result=dict(result))


def error_json(exc: BaseException) -> dict[str, Any]:
    """The whole envelope of an error: code, message, and the data that the error carries."""
    error: dict[str, Any] = {"code": exit_status_of(exc), "message": str(exc) or type(exc).__name__}
    for key, name in _ERROR_KEYS.items():
        value = getattr(exc, name, None)
        if value is not None:
            error[key] = value
    return _envelope(False, error=error)


_ERROR_KEYS = {
    "your-version": "expected",
    "current-version": "current",
    "reason": "reason",
    "line": "line",
    "limit": "limit",
    "tombstone": "tombstone",
    "retry-after": "after",
    "hint": "hint",
}


def _envelope(ok: bool, **content: Any) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "ok": ok, **content}


def _json_body(outcome: Outcome) -> dict[str, str]:
    content = body(outcome)
    return {} if content is None else json_text("body", content)


def json_text(name: str, content: bytes) -> dict[str, str]:
    """``content`` under ``name``, or in base64 under ``name_base64`` where it is not UTF-8."""
    try:
        return {name: content.decode("utf-8")}
    except UnicodeDecodeError:
        import base64  # noqa: PLC0415 - hardly any body needs it

        return {f"{name}_base64": base64.b64encode(content).decode("ascii")}


def versions_json(revisions: Iterable[Revision]) -> dict[str, Any]:
    """A history under the names that the service uses too."""
    return {"versions": [revision_json(revision) for revision in revisions]}


def revision_json(revision: Revision) -> dict[str, Any]:
    """One row of a history; ``deleted``, ``merged-from`` and ``source`` only where they say something."""
    row: dict[str, Any] = {"version": revision.version, "digest": revision.digest, "size": revision.size}
    row |= {"author": revision.author, "message": revision.message, "modified": revision.modified}
    if revision.deleted:
        row["deleted"] = True
    if revision.merged_from:
        row["merged-from"] = _merged_from(revision.merged_from)
    if revision.source is not None:
        row["source"] = revision.source
    return row


def _merged_from(made: MergedFrom) -> dict[str, Any]:
    return {"base": made.base, "theirs": made.theirs, "digest": made.digest}


def list_json(documents: Iterable[Listed]) -> dict[str, Any]:
    """A listing under the names that the service uses too."""
    return {"documents": [listed_json(listed) for listed in documents]}


def listed_json(listed: Listed) -> dict[str, Any]:
    """One row of a listing; ``deleted`` only where it is true."""
    row: dict[str, Any] = {"path": listed.path, "version": listed.version, "digest": listed.digest}
    row |= {"modified": listed.modified, "kind": listed.kind}
    return row | ({"deleted": True} if listed.deleted else {})


# ── what a person reads ─────────────────────────────────────────────────────────────────────────────────────────────


def sentence(outcome: Outcome) -> str:
    """What happened and what to do about it, in a sentence or two; empty where it simply worked."""
    match outcome:
        case Published() | Fetched() | Branched() | Queued() | Decided():
            return ""
        case Mismatch():
            return _mismatch_sentence(outcome)
        case Overlap():
            return (
                f"Your edits of version {outcome.your_version} overlap with version {outcome.current_version} in "
                f"{_count(outcome.conflicts, 'place')}; nothing was published. Mend the marked lines and publish the "
                f"result at version {outcome.current_version}."
            )
        case Contention():
            return (
                f"Other writers were faster than {_count(outcome.retries, 'merge attempt')}, the head is version "
                f"{outcome.current_version} now; nothing was published. Repeat the command, or allow more retries."
            )
        case Refused():
            return _refused_sentence(outcome)
        case Candidate():
            return (
                f"Version {outcome.their_version} and your edits of version {outcome.base_version} merge without "
                f"overlap; nothing was published. Review the candidate and publish it at version {outcome.publish_at}."
            )
    assert_never(outcome)


def _branched_sentence(outcome: Branched) -> str:
    place = f"{outcome.branch}@{outcome.branch_revision}"
    return (
        f"Your edits are kept as {place}, beside version {outcome.current_version}; nothing was lost and nothing was "
        "decided."
    )


def _mismatch_sentence(outcome: Mismatch) -> str:
    yours, current = outcome.your_version, outcome.current_version
    nothing = "nothing was deleted" if outcome.deleting else "nothing was published"
    if yours == 0:
        return f"The document exists already, its head is version {current}; {nothing}. Fetch it and edit that."
    if yours > current:
        then = "Look at that" if outcome.deleting else "Fetch it and edit that"
        return f"There is no version {yours}, the head is version {current}; {nothing}. {then}."
    start = f"Version {yours} is not the head any more, version {current} is; {nothing}."
    if outcome.deleting:
        return f"{start} Look at version {current} before you delete it."
    return f"{start} Publish with --on-conflict merge to merge your edits into version {current}."


def _refused_sentence(outcome: Refused) -> str:
    yours, current = outcome.your_version, outcome.current_version
    match outcome.reason:
        case "deleted":
            return (
                f"The document was deleted since, version {current} is the tombstone; nothing was done. Version "
                f"{current - 1} holds the last body; publish with expected version 0 to create it anew."
            )
        case "recreated":
            return (
                f"The document was deleted and created anew since version {yours}, the head is version {current}; "
                "nothing was done. Fetch the head and bring your edits over by hand."
            )
        case "base-unavailable":
            return _no_base_sentence(yours, current)
        case "events":
            return (
                f"Events are never merged by line: their order is meaning, and the head is version {current}; nothing "
                "was published. Fetch the head and continue the log from there."
            )
        case "binary":
            return (
                f"A body holds a NUL byte, so your edits and version {current} cannot be merged by line; nothing was "
                f"published. Fetch version {current}, decide, and publish the result at version {current}."
            )
    return _other_refusal(outcome)


def _no_base_sentence(yours: int, current: int) -> str:
    if yours > current:
        return (
            f"There is no version {yours}: the document stands at version {current}; nothing was done. Name the "
            f"version that your edit was made from; fetch version {current} to look."
        )
    return (
        f"Version {yours}, which your edits were made from, cannot be fetched, and without it there is no merge; "
        f"nothing was done. Fetch version {current} and bring your edits over by hand."
    )


def _other_refusal(outcome: Refused) -> str:
    current = outcome.current_version
    if outcome.reason == "no-base":
        return (
            f"The document exists, its head is version {current}, and nothing tells which version your file was made "
            "from (a shallow clone has too little history to tell); nothing was done."
        )
    return f"Refused ({outcome.reason}): the head is version {current}; nothing was done. Fetch it and look."


def hints(outcome: Outcome, path: str, file: str = "FILE") -> list[str]:
    """The lines for standard error: unterminated sides, what happened, and last the next command to type."""
    if isinstance(outcome, Branched):
        return [_branched_sentence(outcome), f"next: mergepub branches {shlex.quote(path)}"]
    if isinstance(outcome, Queued):
        return ["It waits in the local queue.", "next: mergepub sync"]
    if exit_status(outcome) == 0:
        return []
    sides = [f"{side}: no newline at end" for side in outcome.unterminated] if isinstance(outcome, Overlap) else []
    return [*sides, sentence(outcome), f"next: {_next_command(outcome, shlex.quote(path), file)}"]


def _next_command(outcome: Outcome, path: str, file: str) -> str:
    publish = f"mergepub publish {path} {file} --expected-version"
    match outcome:
        case Overlap():
            return f"{publish} {outcome.current_version}"
        case Candidate():
            return f"{publish} {outcome.publish_at}"
        case Contention():
            return f"{publish} {outcome.your_version} --on-conflict merge"
        case Mismatch() if 0 < outcome.your_version < outcome.current_version and not outcome.deleting:
            return f"{publish} {outcome.your_version} --on-conflict merge"
        case Refused(reason="deleted"):
            return f"mergepub fetch {path}/v{outcome.current_version - 1}"
        case _:
            return f"mergepub fetch {path}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
