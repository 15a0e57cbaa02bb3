"""The files below a folder that a push of the folder means: not hidden, not left out by ``.mergepubignore``."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mergepub.checkout import disk
from mergepub.checkout.home import CONFIGURATION, root_of
from mergepub.checkout.ignoring import NAME, Rule, rules_of, verdict
from mergepub.errors import InputError

Level = tuple[str, list[Rule]]
"""A folder and the rules in it."""


def walk(folder: str, stray: list[str] | None = None) -> Iterator[str]:
    """The files below ``folder`` by their paths from it, in order.

    Hidden names, ``mergepub.toml`` unless a rule takes it in, and what is no regular file are left out; links to
    folders are not followed. So are links to files that
    are hidden themselves or lie outside the checkout: whoever brought a link that leads to a private file does not get
    it published. Those are noted in ``stray``. Rules above ``folder``, up to the checkout's top, count too.

    Raises:
        InputError: a folder, or the rules in it, cannot be read.
    """
    top = os.path.realpath(folder)
    root = root_of(top)
    for inside in _below(top, "", _levels_above(top, root)):
        name = os.path.join(top, inside)
        if os.path.islink(name) and not any(_is_open(os.path.realpath(name), at) for at in (top, root)):
            if stray is not None:
                stray.append(inside)
        else:
            yield inside


def _is_open(target: str, root: str) -> bool:
    """Whether the file lies below ``root``, and is not hidden there."""
    return not any(part.startswith(".") for part in os.path.relpath(target, root).split(os.sep))


def _levels_above(top: str, root: str) -> list[Level]:
    levels, at = list[Level](), top
    while at != root and os.path.dirname(at) != at:
        at = os.path.dirname(at)
        levels.append((at, _rules_in(at)))
    return levels[::-1]


def _rules_in(folder: str) -> list[Rule]:
    name = os.path.join(folder, NAME)
    try:
        text = disk.read(name)
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}", hint="see that it is a readable file") from None
    return rules_of(os.fsdecode(text)) if text else []


def _below(folder: str, inside: str, above: list[Level]) -> Iterator[str]:
    levels = [*above, (folder, _rules_in(folder))]
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror}", hint="leave it out") from None
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or _is_left_out(levels, entry.path, is_folder=is_folder):
            continue
        if is_folder:
            yield from _below(entry.path, f"{inside}{entry.name}/", levels)
        elif entry.is_file():
            yield inside + entry.name


def _is_left_out(levels: list[Level], name: str, *, is_folder: bool) -> bool:
    """What the nearest folder with a matching rule says; where none does, our own configuration is left out alone."""
    for folder, rules in reversed(levels):
        found = verdict(rules, os.path.relpath(name, folder), is_folder=is_folder) if rules else None
        if found is not None:
            return found
    return not is_folder and os.path.basename(name) == CONFIGURATION
