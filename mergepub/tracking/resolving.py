"""Ending a conflict: what FILE becomes, and that only this moves the base to theirs. Prints nothing, starts no editor.

The callers bring the mended text: from an editor or a tool, from a favour, or from FILE itself.
"""

from __future__ import annotations

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.checkout.replacing import replace_file
from mergepub.documents import digest_of
from mergepub.errors import CheckoutError, InputError
from mergepub.outcomes import Outcome, Overlap, Refused
from mergepub.publishing import DEFAULT_MERGE, Favour, MergeOptions
from mergepub.tracking.outputs import take_output
from mergepub.tracking.pulling import Pulled, pull_file
from mergepub.tracking.sending import How, publish_file, unless_stale
from mergepub.tracking.work import block_line
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.checkout import Clash
    from mergepub.merge import Merged
    from mergepub.tracking.work import Work


@dataclass(frozen=True, slots=True)
class Conflict:
    """A FILE in conflict, as somebody is about to mend it.

    ``here`` is what FILE holds, ``marked`` the text to mend; ``base``, ``ours`` and ``theirs`` the bodies it was merged
    from. ``clash`` is the conflict as it was remembered then.
    """

    here: bytes
    marked: bytes
    base: bytes
    ours: bytes
    theirs: bytes
    clash: Clash


def begin(
    work: Work,
    options: MergeOptions = DEFAULT_MERGE,
    *,
    mended: bool = False,
    stale: bool = False,
    allow_revert: bool = False,
) -> Conflict | Pulled | Refused:
    """The conflict of FILE. One that is not in conflict yet gets the head merged in first, like a pull.

    A FILE that holds no conflict block any more, but is not said to be ``mended``, is merged with theirs anew.

    Raises:
        CheckoutError, NotFoundError, UnavailableError: as ``pull_file``.
    """
    if work.record.clash is None:
        pulled = pull_file(work, options=options, stale=stale, allow_revert=allow_revert)
        if not isinstance(pulled, Overlap):
            return pulled
    clash = _clash(work)
    here, base = work.read(), work.base_body
    ours, theirs = work.body(clash.ours), work.body(clash.theirs.digest)
    marked = here
    if not mended and block_line(here, clash.marker_size) is None:
        base = work.body(unless_stale(work, here, stale=stale, allow_revert=allow_revert).digest)
        ours, marked = here, _merged(base, here, theirs, options).body
    return Conflict(here, marked, base, ours, theirs, clash)


def _clash(work: Work) -> Clash:
    if work.record.clash is None:
        raise InputError(f"{work.local.name} is not in conflict", hint=f"mergepub push {quote(work.local.name)}")
    return work.record.clash


def _merged(base: bytes, ours: bytes, theirs: bytes, options: MergeOptions, favour: Favour | None = None) -> Merged:
    from mergepub.merge import diff3  # noqa: PLC0415 - resolving a mended file needs no engine

    return diff3(
        base,
        ours,
        theirs,
        adjacent=options.adjacent,
        granularity=options.granularity,
        style=options.style,
        favour=favour,
        union_first="theirs",
        labels=options.labels,
        marker_size=options.marker_size,
        engine=options.engine,
    )


def favoured(conflict: Conflict, favour: Favour, options: MergeOptions = DEFAULT_MERGE) -> bytes:
    """The text with every conflict settled by one side or by both, theirs first; what was mended by hand stays."""
    size = conflict.clash.marker_size
    if conflict.here != conflict.marked or digest_of(conflict.here) == conflict.clash.marked:
        return _merged(conflict.base, conflict.ours, conflict.theirs, options, favour).body
    from mergepub.merge.markers import Text, parse  # noqa: PLC0415 - only for files that were mended in part

    sides = {"ours": ("ours",), "theirs": ("theirs",), "union": ("theirs", "ours")}[favour]
    return b"".join(
        piece.text if isinstance(piece, Text) else b"".join(getattr(piece, side) for side in sides)
        for piece in parse(conflict.marked, size)
    )


def keep_progress(work: Work, conflict: Conflict, text: bytes) -> None:
    """Write a text that is mended only in part to FILE, which stays in conflict.

    Raises:
        FileChangedError: FILE was saved meanwhile, and stays as it is.
    """
    _check_same(work, conflict)
    replace_file(work.checkout, work.local, conflict.here, text, work.record)


def _check_same(work: Work, conflict: Conflict) -> None:
    if work.record.clash != conflict.clash or work.read() != conflict.here:
        raise CheckoutError(
            f"{work.local.name} was changed while it was being mended; it was left as it is",
            reason="edited",
            hint=f"start again from what it holds now: mergepub resolve {quote(work.local.name)}",
        )


def check_mended(
    work: Work,
    conflict: Conflict,
    text: bytes,
    *,
    ours_meant: bool = False,
    allow_revert: bool = False,
    allow_markers: bool = False,
) -> None:
    """Refuse a text that is not mended.

    Raises:
        CheckoutError: a marker of a conflict block remains (its line is named), the text drops all that theirs did and
            nobody said that ours was meant, or it undoes what was pulled before the conflict.
    """
    name, clash = work.local.name, conflict.clash
    line = leftover(conflict, text, allow_markers=allow_markers)
    if line:
        raise CheckoutError(
            f"line {line} of {name} still belongs to a conflict block; nothing was published",
            reason="in-conflict",
            line=line,
            hint="settle it with --ours, --theirs or --union; --allow-markers takes a line of === that is text; "
            f"or mend it and repeat: mergepub resolve {quote(name)}",
        )
    if not ours_meant and _drops_theirs(conflict, text):
        raise CheckoutError(
            f"this is {name} as it was before the conflict, without anything of version {clash.theirs.version}: it "
            "would revert what others published; nothing was published",
            reason="ours",
            hint=f"if that is meant: mergepub resolve {quote(name)} --ours",
        )
    if text == conflict.here:
        unless_stale(work, text, stale=False, allow_revert=allow_revert)


def leftover(conflict: Conflict, text: bytes, *, allow_markers: bool = False) -> int | None:
    """The line (from 1) of the first marker that was left in the text; None where there is none.

    Markers of that size stand nowhere in what was merged, except in text that was there before. With ``allow_markers``
    one that stands within a block, and is the underline of a heading too, counts for nothing.
    """
    from mergepub.merge.markers import BASE, END, MIDDLE, START, marker_of  # noqa: PLC0415 - as above

    kinds = (START, END) if allow_markers else (START, BASE, MIDDLE, END)

    there = {*conflict.base.splitlines(), *conflict.ours.splitlines(), *conflict.theirs.splitlines()}
    for number, line in enumerate(text.split(b"\n"), 1):
        marker = marker_of(line)
        sized = marker is not None and marker[1] == conflict.clash.marker_size and marker[0] in kinds
        if sized and line.rstrip(b"\r") not in there:
            return number
    return None


def _drops_theirs(conflict: Conflict, text: bytes) -> bool:
    """Whether the text is ours as it was, or undoes all that theirs did elsewhere than in the conflicts."""
    if conflict.ours == conflict.theirs:
        return False
    if text == conflict.ours:
        return True
    elsewhere = _merged(conflict.base, conflict.ours, conflict.theirs, DEFAULT_MERGE, "ours").body
    from mergepub.tracking.stale import undoes_all  # noqa: PLC0415 - as above

    return elsewhere != conflict.ours and undoes_all(conflict.ours, elsewhere, text)


def conclude(work: Work, conflict: Conflict, text: bytes) -> None:
    """Make the mended text FILE's content; the conflict ends, and the base is theirs.

    Raises:
        CheckoutError: FILE was changed meanwhile; it and its conflict stay as they are.
    """
    _check_same(work, conflict)
    record = work.record
    after = replace(record, base=conflict.clash.theirs, clash=None, brought=record.bringing(conflict.ours, text))
    work.checkout.store(after.file, conflict.ours)
    replace_file(work.checkout, work.local, conflict.here, text, after)
    work.record = after


def publish_resolved(work: Work, how: How) -> Outcome:
    """Publish a FILE whose conflict has ended, at the version it was merged with; when that moved on, merged again.

    Where that overlaps anew, FILE is in conflict again, with the newer version.
    """
    outcome = publish_file(work, replace(how, on_conflict="merge", update=True, allow_revert=True))
    if isinstance(outcome, Overlap):
        take_output(work, outcome)
    return outcome
