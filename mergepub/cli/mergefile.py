"""``mergepub merge`` without its option parser: three files in, the merge into the first or to standard output.

Argument order, labels and exit status are ``git merge-file``'s. No click here: the fast path imports this.
"""

from __future__ import annotations

from mergepub.cli.streams import (
    INTERRUPTED,
    complain,
    parts_of,
    read_file,
    replace_file,
    say,
    size_of,
    write_stdout,
)

TYPE_CHECKING = False  # what typing calls by this name, without importing typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mergepub.merge import Merged
    from mergepub.merge.sparse import Outcome

ERROR = 255
MOST_CONFLICTS = 127
MARKER_SIZES = range(7, 1001)
HUGE = 1 << 22  # bytes of a base; of less, all bodies are held


def merge_guarded(files: Sequence[str], given: Mapping[str, Any], labels: Sequence[str]) -> int:
    """``merge_files`` with every error turned into one line and 255, an interrupt into 130."""
    try:
        return merge_files(files, given, labels)
    except KeyboardInterrupt as interrupt:
        complain(interrupt)
        return INTERRUPTED
    except Exception as error:  # a merge driver must never read a crash as conflicts
        complain(error)
        return ERROR


def merge_files(files: Sequence[str], given: Mapping[str, Any], labels: Sequence[str] = ()) -> int:
    """Merge the files OURS, BASE, THEIRS and return the exit status: the number of conflicts, 127 at most.

    Args:
        files: the three names, in that order.
        given: ``stdout`` and ``quiet``, and keyword arguments of ``diff3`` (style, favour, adjacent, …) as they were
            given; what is missing keeps its default.
        labels: up to three, in the order of the files; the file names stand for the others.

    Raises:
        InputError: a file that cannot be read, a label that holds a control character, too many labels.
        BinaryBodyError: a real merge is needed and a file holds a NUL byte.
        OutputError: the result cannot be written, or OURS was changed meanwhile; OURS is then as it was.
    """
    how = dict(given)
    stdout, quiet = how.pop("stdout", False), how.pop("quiet", False)
    if len(labels) > len(files):
        from mergepub.errors import InputError

        raise InputError(f"-L was given {len(labels)} times", hint="give it up to three times: ours, base, theirs")
    how["labels"] = (*labels, *files[len(labels) :])
    merged: Merged | Outcome
    if stdout and _are_huge(files, how):
        merged = _merged_past(files, how)
    else:
        ours, base, theirs = (read_file(name) for name in files)
        from mergepub.merge import diff3  # after the files: a wrong name costs nothing

        merged = diff3(base, ours, theirs, **how)
    if not quiet:
        _warn(merged, None if stdout else files[0])
    if stdout:
        write_stdout(*merged.pieces)
    elif merged.pieces != [ours]:
        replace_file(files[0], *merged.pieces, instead_of=ours)
    return min(merged.conflicts, MOST_CONFLICTS)


def _are_huge(files: Sequence[str], how: Mapping[str, Any]) -> bool:
    """Whether it pays not to hold the sides, most of the time of such a merge being that of fresh memory, and can be.

    What is no regular file is read once.
    """
    if size_of(files[1]) < HUGE or how.get("granularity") == "word" or how.get("engine") not in (None, "mergepub"):
        return False
    return size_of(files[0]) >= 0 and size_of(files[2]) >= 0


def _merged_past(files: Sequence[str], how: Mapping[str, Any]) -> Merged | Outcome:
    """The merge of huge files; the sides are read past once, if that is enough, and held only if not."""
    base = read_file(files[1])
    from mergepub.merge import diff3
    from mergepub.merge.sparse import merge_parts

    options = {name: value for name, value in how.items() if name not in ("granularity", "engine")}
    try:
        outcome = merge_parts(base, parts_of(files[0]), parts_of(files[2]), **options)
    except OSError:
        outcome = None  # why, reading the whole file says
    return outcome or diff3(base, read_file(files[0]), read_file(files[2]), **how)


def _warn(merged: Merged | Outcome, edited: str | None) -> None:
    for side in merged.unterminated:
        say(f"{side}: no newline at end")
    if merged.conflicts:
        say(f"mergepub: {merged.conflicts} conflict" + "s" * (merged.conflicts != 1))
    if merged.conflicts and edited:
        say(f"next: edit {edited} where it says <<<<<<<")
