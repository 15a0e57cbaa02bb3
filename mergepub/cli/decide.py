"""The verb ``decide``."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from mergepub.cli.answers import Form, answer
from mergepub.cli.bodies import read_body
from mergepub.cli.opening import opened, store_url
from mergepub.cli.options import (
    Digits,
    Label,
    body_options,
    default_author,
    json_option,
    path_argument,
    store_option,
    verb,
)
from mergepub.cli.streams import say
from mergepub.errors import BranchError, InputError
from mergepub.paths import check_path

if TYPE_CHECKING:
    from mergepub.branching.deciding import How
    from mergepub.histories import Place, Standing
    from mergepub.outcomes import Decided, Overlap
    from mergepub.stores.contract import Store

WAYS = ("choose", "continue", "rebase", "reject")


@verb(
    "decide",
    "mergepub decide /docs/guide.md BRANCH@1 --choose --expected-head 2 --reason 'It is the newer measurement'",
    "mergepub decide /docs/guide.md BRANCH@1 --continue merged.md --expected-head 2 --dry-run",
    "mergepub decide /docs/guide.md BRANCH@1 --rebase --approve h1 --expected-head 2",
    "mergepub decide /docs/guide.md --undo DECISION --expected-head 3",
)
@path_argument
@click.argument("branch", metavar="[BRANCH[@R]]", required=False)
@click.argument("file", metavar="[FILE|-]", required=False)
@click.option("--choose", is_flag=True, help="The branch's body becomes the head.")
@click.option("--continue", "continue", is_flag=True, help="Go on from both: with FILE, or for a text merged.")
@click.option("--rebase", is_flag=True, help="Replay what --approve names onto the head.")
@click.option("--reject", is_flag=True, help="The branch is not taken; it stays visible.")
@click.option("--undo", type=Digits(least=1), metavar="DECISION", help="Take a decision back, by a new one.")
@click.option("--approve", metavar="ID", multiple=True, help="A hunk (h1 ...) or an event's id; repeatable.")
@click.option("--expected-head", type=Digits(least=1), help="The head's version that you looked at.")
@click.option("--reason", type=Label(), default="", help="Why; kept with the decision.")
@click.option("--acknowledge-effects", is_flag=True, help="Both sides called tools, and you know of it.")
@click.option("--dry-run", is_flag=True, help="Show the resulting body, change nothing.")
@click.option(
    "--author", type=Label(), envvar="MERGEPUB_AUTHOR", default=default_author, help="Who decides (USER@HOST)."
)
@body_options
@json_option
@store_option
@click.pass_context
def decide_command(context: click.Context, /, path: str, branch: str | None, file: str | None, **given: Any) -> int:
    """Decide about BRANCH of the document PATH. Both branches and the decision stay in the history for good.

    BRANCH@R and --expected-head name both heads that you looked at (mergepub branches shows them): where either has
    moved on since, nothing is decided. On a terminal they may be left out; both are shown then, and confirmed.
    """
    from mergepub.branching.deciding import How

    check_path(path)
    form = Form(given["json"], no_body=given["no_body"], output=given["output"])
    form.check()
    way = _way(given)
    _check_call(path, way, branch, file, given)
    how = How(given["author"], given["reason"], given["acknowledge_effects"], given["dry_run"])
    hints = ["dry run: nothing was changed"] if given["dry_run"] else None
    with opened(store_url(context)) as store:
        if way == "undo":
            outcome: Decided | Overlap = _undo(store, path, given["undo"], given["expected_head"], how)
        else:
            seen, head = _seen(store, path, branch or "", given["expected_head"])
            outcome = _decide(store, path, way, seen, head, file, given["approve"], how)
            hints = _overlap_hints(outcome, path, seen, form, given) or hints
    return answer(outcome, path, form, hints=hints)


def _way(given: dict[str, Any]) -> str:
    ways = [way for way in WAYS if given[way]] + (["undo"] if given["undo"] is not None else [])
    if len(ways) != 1:
        raise InputError(
            "say how to decide, in one way: --choose, --continue [FILE], --rebase --approve ID, --reject or --undo N",
            hint="mergepub decide --help explains them",
        )
    return ways[0]


def _check_call(path: str, way: str, branch: str | None, file: str | None, given: dict[str, Any]) -> None:
    """Refuse arguments that do not belong together, before anything is looked at."""
    wrong = ""
    if way == "undo" and branch is not None:
        wrong = "--undo names a decision and no branch"
    elif way != "undo" and branch is None:
        wrong = "BRANCH is missing: which branch is to be decided about"
    elif file is not None and way != "continue":
        wrong = f"--{way} takes no FILE"
    elif given["approve"] and way != "rebase":
        wrong = f"--{way} takes no --approve"
    if wrong:
        raise InputError(wrong, hint=f"see the branches: mergepub branches {shlex.quote(path)}")


def _undo(store: Store, path: str, number: int, expected: int | None, how: How) -> Decided:
    from mergepub.branching.deciding import undo

    if expected is None:
        if not _on_terminal():
            raise _not_said(path, "--expected-head")
        from mergepub.calls import branching, insist

        keeper = branching(store)
        head, _ = insist(lambda: keeper.branches(path))
        expected = head.version
        _confirm([f"the head of {path} is version {expected} ({head.place})"], f"Undo decision {number}?")
    return undo(store, path, number, expected, how=how)


def _decide(  # noqa: PLR0917 - the arguments of the command line, in its order
    store: Store, path: str, way: str, seen: Place, head: int, file: str | None, approved: tuple[str, ...], how: How
) -> Decided | Overlap:
    from mergepub.branching.deciding import decide

    body = None if file is None else read_body(file, allow_empty=False)
    return decide(store, path, way, seen, head, file=body, approved=approved, how=how)


def _seen(store: Store, path: str, branch: str, expected: int | None) -> tuple[Place, int]:
    """Both heads as the resolver names them; on a terminal they are shown and confirmed where they were left out."""
    from mergepub.calls import branching, insist
    from mergepub.histories import Place, parse_place

    name, revision = parse_place(branch)
    if revision is not None and expected is not None:
        return Place(name, revision), expected
    if not _on_terminal():
        missing = "--expected-head" if expected is None else f"the revision of {name} (BRANCH@R)"
        raise _not_said(path, missing)
    keeper = branching(store)
    standing = insist(lambda: keeper.standing(path, name))
    seen = Place(name, standing.branch.revision if revision is None else revision)
    head = standing.head.version if expected is None else expected
    _confirm(_shown(path, standing), f"Decide about {seen}, with version {head} as the head?")
    return seen, head


def _not_said(path: str, missing: str) -> InputError:
    return InputError(
        f"{missing} is missing: a decision names both heads that you looked at",
        hint=f"see them: mergepub branches {shlex.quote(path)}",
    )


def _shown(path: str, standing: Standing) -> list[str]:
    head, branch = standing.head, standing.branch
    ancestors = ", ".join(map(str, standing.ancestors)) or "nothing"
    return [
        f"the head of {path} is version {head.version} ({head.place}), digest {(head.digest or 'deleted')[:12]}",
        f"the branch {branch.end} is {branch.state}, digest {(branch.digest or '')[:12]}",
        f"they have in common: {ancestors}",
    ]


def _on_terminal() -> bool:
    return os.isatty(0) and os.isatty(2)


def _confirm(lines: list[str], question: str) -> None:
    for line in lines:
        say(line)
    if not click.confirm(question, default=False, err=True):
        raise BranchError("nothing was decided", reason="not-confirmed", hint="look again, and repeat the command")


def _overlap_hints(
    outcome: Decided | Overlap, path: str, seen: Place, form: Form, given: dict[str, Any]
) -> list[str] | None:
    """What to type where the two overlap: decide with the mended file, once the marked body is in one."""
    from mergepub.outcomes import Overlap

    if not isinstance(outcome, Overlap):
        return None
    told = f"the branch and version {outcome.current_version} overlap; nothing was decided."
    marked = form.output
    if marked is not None:
        how = ["--continue", marked]
        told = f"{told} Mend the marked lines of {marked}."
    else:
        name = f"{path.rpartition('/')[2]}.merged"
        how = ["--rebase" if given["rebase"] else "--continue"]
        how += [word for each in given["approve"] for word in ("--approve", each)]
        how += ["-o", "FILE" if os.path.lexists(name) else name]
    heads = ["--expected-head", str(outcome.current_version)]
    reason = ["--reason", given["reason"]] if given["reason"] else []
    return [told, "next: " + shlex.join(["mergepub", "decide", path, str(seen), *how, *heads, *reason])]
