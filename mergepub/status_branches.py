"""Branches and decisions as keys, as rows for a person, as sentences with the command to type next. Like ``status``.

Nothing here writes anything anywhere. The HTTP service uses the same names.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mergepub.documents import TEXT
from mergepub.stores.contract import MOST_COUNTED

if TYPE_CHECKING:
    from mergepub.branching.looking import Against, Changes, Overview
    from mergepub.histories import Branch, BranchRevision, Decision, HeadPlace, Owner, Place, Standing, Unresolved


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def head_json(head: HeadPlace) -> dict[str, Any]:
    """The head and the revision it refers to; ``deleted`` only where it is true."""
    keys: dict[str, Any] = {"version": head.version, "incarnation": head.incarnation, "kind": head.kind}
    keys |= {"branch": head.place.branch, "revision": head.place.revision, "digest": head.digest}
    return keys | ({"deleted": True} if head.digest is None else {})


def branch_json(branch: Branch) -> dict[str, Any]:
    """One branch by itself."""
    return {
        "branch": branch.name,
        "incarnation": branch.incarnation,
        "state": branch.state,
        "revision": branch.revision,
        "digest": branch.digest,
        "parent": branch.parent,
        "base-revision": branch.base_revision,
        "base-digest": branch.base_digest,
        "base-version": branch.base_version,
        "origins": _names(branch.origins),
        "owners": [owner_json(owner) for owner in branch.owners],
    }


def owner_json(owner: Owner) -> dict[str, Any]:
    """One writer of a branch."""
    return {"name": owner.name, "epoch": owner.epoch, "revision": owner.revision}


def overview_json(overview: Overview) -> dict[str, Any]:
    """The head and all branches of a document."""
    return {"head": head_json(overview.head), "branches": [_against_json(row) for row in overview.branches]}


def _against_json(row: Against) -> dict[str, Any]:
    keys = branch_json(row.branch) | {"ancestors": _names(row.ancestors)}
    return keys if row.ahead is None else keys | {"ahead": row.ahead, "behind": row.behind}


def revision_keys(revision: BranchRevision, branch: Branch) -> dict[str, Any]:
    """One revision, in the order of its block."""
    keys: dict[str, Any] = {"status": "ok", "branch": revision.place.branch, "branch-revision": revision.place.revision}
    keys |= {"state": branch.state, "base-version": branch.base_version}
    keys |= {"incarnation": revision.incarnation, "digest": revision.digest}
    if revision.kind != TEXT:
        keys["kind"] = revision.kind
    return keys | {"author": revision.author, "modified": revision.modified}


def changes_json(changes: Changes) -> dict[str, Any]:
    """What a branch changed: both heads, the ancestors, and the hunks or events by the names that --approve takes."""
    standing = changes.standing
    keys: dict[str, Any] = {"head": head_json(standing.head), "branch": str(standing.branch.end)}
    keys["ancestors"] = _names(standing.ancestors)
    if changes.hunks or not changes.events:
        keys["hunks"] = [
            {"id": hunk.id, "line": hunk.line, "removed": _shown(hunk.removed), "added": _shown(hunk.added)}
            for hunk in changes.hunks
        ]
    if changes.events:
        keys["events"] = [
            {"id": event.id, "type": event.type, "approvable": not event.is_barrier} for event in changes.events
        ]
    return keys


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def decision_json(decision: Decision) -> dict[str, Any]:
    """One row of the audit history; what a decision has not is left out."""
    keys: dict[str, Any] = {"decision": decision.number, "strategy": decision.strategy}
    keys |= {"incarnation": decision.incarnation, "head-version": decision.head_version, "head": str(decision.head)}
    keys |= {"branch": str(decision.branch), "resolver": decision.resolver, "reason": decision.reason}
    keys["modified"] = decision.modified
    optional = {
        "version": decision.result_version,
        "result": None if decision.result is None else str(decision.result),
        "approved": list(decision.approved) or None,
        "acknowledged-effects": decision.effects or None,
        "undoes": decision.undoes,
    }
    return keys | {key: value for key, value in optional.items() if value is not None}


def _names(places: Iterable[Place]) -> list[str]:
    return [str(place) for place in places]


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────

BRANCH_HEADING = ("state", "branch", "made from", "common ancestor", "ahead/behind", "owners")
DECISION_HEADING = ("decision", "modified", "strategy", "branch", "head", "result", "resolver", "reason")


def branch_row(row: Against) -> tuple[str, ...]:
    """One branch: state, end, base, common ancestors, revisions that each side has alone, owners with their epochs."""
    branch = row.branch
    base = f"{branch.parent}@{branch.base_revision}" if branch.parent else "-"
    counts = "-" if row.ahead is None else f"+{row.ahead} -{row.behind}"
    owners = ", ".join(f"{owner.name} (epoch {owner.epoch})" for owner in branch.owners) or "-"
    state = branch.state if row.ahead is not None else f"{branch.state} (earlier life)"
    return state, str(branch.end), base, ", ".join(_names(row.ancestors)) or "-", counts, owners


def decision_row(decision: Decision) -> tuple[str, ...]:
    """One decision: number, time, strategy, both heads, result, who and why."""
    strategy = decision.strategy if decision.undoes is None else f"{decision.strategy} of {decision.undoes}"
    effects = " (effects acknowledged)" if decision.effects else ""
    result = "-" if decision.result is None else f"v{decision.result_version} ({decision.result})"
    head = f"v{decision.head_version} ({decision.head})"
    who = (decision.resolver or "-", decision.reason + effects or "-")
    return str(decision.number), decision.modified, strategy, str(decision.branch), head, result, *who


# ── what a person reads ─────────────────────────────────────────────────────────────────────────────────────────────


def unresolved_hints(found: Sequence[Unresolved]) -> list[str]:
    """Documents with branches that nobody has decided about, each with the command to type next."""
    lines = []
    for each in found:
        many = "1 unresolved branch" if each.count == 1 else f"{_counted(each.count)} unresolved branches"
        lines.append(f"{each.path} has {many}; next: mergepub branches {shlex.quote(each.path)}")
    return lines


def _counted(count: int) -> str:
    return f"{count} or more" if count >= MOST_COUNTED else str(count)


def overview_hints(overview: Overview) -> list[str]:
    """The command that looks at the first open branch, where there is one."""
    names = [row.branch for row in overview.branches if row.branch.state == "open" and row.ahead is not None]
    if not names:
        return []
    path = shlex.quote(overview.path)
    return [f"next: mergepub branch show {path} {names[0].end} --diff"]


def decide_hint(path: str, standing: Standing) -> str:
    """The command that decides about a branch, with both heads filled in."""
    heads = f"--expected-head {standing.head.version}"
    return (
        f"next: mergepub decide {shlex.quote(path)} {standing.branch.end} {heads} "
        "and one of --choose, --continue [FILE], --rebase --approve ID, --reject"
    )
