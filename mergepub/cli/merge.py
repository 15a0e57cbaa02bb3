"""The verb ``merge``: the options of ``mergefile.merge_files``, for what the fast path does not know."""

from __future__ import annotations

from typing import Any

import click

from mergepub.cli.mergefile import MARKER_SIZES, merge_files
from mergepub.cli.options import Digits, Ordered, last_given, switch, verb


@verb(
    "merge",
    "mergepub merge -p ours.md base.md theirs.md",
    "mergepub merge --union -L mine -L start -L other ours.md base.md theirs.md",
)
@click.argument("ours_file", metavar="OURS")
@click.argument("base_file", metavar="BASE")
@click.argument("theirs_file", metavar="THEIRS")
@click.option("-p", "--stdout", is_flag=True, help="Print the result, leave OURS as it is.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings.")
@click.option("-L", "--label", "label", multiple=True, help="Label for ours, base, theirs, in that order.")
@switch("ours", "Settle conflicts with our lines.")
@switch("theirs", "Settle conflicts with their lines.")
@switch("union", "Settle conflicts with the lines of both, ours first.")
@switch("diff3", "Show the base in conflicts.")
@switch("zdiff3", "The same, with common lines taken out at both ends.")
@click.option(
    "--style", cls=Ordered, type=click.Choice(["merge", "diff3", "zdiff3"]), help="Style of the conflict blocks."
)
@click.option("--marker-size", type=Digits(MARKER_SIZES[0], MARKER_SIZES[-1]), help="Least length of the markers.")
@click.option(
    "--adjacent",
    type=click.Choice(["clean", "conflict"]),
    help="Whether edits of neighbouring lines merge or conflict.",
)
@click.option("--granularity", type=click.Choice(["line", "word"]), help="Merge inside a conflict word by word.")
@click.option("--engine", type=click.Choice(["mergepub", "merge3"]), help="What merges; merge3 needs that package.")
@click.pass_context
def merge_command(context: click.Context, /, label: tuple[str, ...], **given: Any) -> int:
    """Merge THEIRS into OURS, both made from BASE; offline, as git merge-file does.

    Exit status: 0 clean, the number of conflicts (127 at most), 255 for every error. OURS is replaced whole or not at
    all.
    """
    files = [given.pop(f"{side}_file") for side in ("ours", "base", "theirs")]
    favours, styles = ("ours", "theirs", "union"), ("diff3", "zdiff3", "style")
    style = last_given(context, *styles)
    chosen = {name: value for name, value in given.items() if value and name not in favours + styles}
    chosen |= {"favour": last_given(context, *favours), "style": given["style"] if style == "style" else style}
    return merge_files(files, {name: value for name, value in chosen.items() if value}, label)
