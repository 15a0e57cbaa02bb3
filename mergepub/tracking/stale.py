"""Editor buffers that are older than their file: does FILE undo what was brought into it? Pure but for reading bodies.

A hunk that a pull or a write-back brought in is *undone* where its new text is gone from FILE and the old is back,
*overwritten* where both are gone, and has *survived* otherwise. Hunks that the remembered base does not hold count for
nothing: undoing them reverts nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.errors import CheckoutError
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.checkout import Base, Local, Record

UNDONE, OVERWRITTEN, SURVIVED = "undone", "overwritten", "survived"
Hunk = tuple[int, int, int, int]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What FILE undoes. ``base``: it undoes everything, and this is what it has to be merged from instead.

    ``lines``: it undoes some of it; the lines (from 1) where that text stood.
    """

    base: Base | None = None
    lines: tuple[int, ...] = ()


def judge(record: Record, ours: bytes, body_of: Callable[[str], bytes]) -> Verdict:
    """Compare FILE's bytes with what the remembered pulls and write-backs brought in; ``body_of`` reads bodies."""
    if not record.brought or ours == (base := body_of(record.base.digest)):
        return Verdict()
    after = body_of(record.brought[-1].after)
    gone_here, gone_there = _gone(after, ours), _gone(after, base)
    found: list[tuple[int, Base]] = []
    lines: tuple[int, ...] = ()
    for change in reversed(record.brought):
        before = body_of(change.before)
        fates = list(_fates(before, after, (ours, gone_here), (base, gone_there)))
        kinds = {kind for kind, _ in fates}
        if UNDONE in kinds and SURVIVED not in kinds:
            found.append((_distance(before, ours), change.base))
        elif change is record.brought[-1]:
            lines = tuple(_line(after, hunk[2]) for kind, hunk in fates if kind == UNDONE)
    if found:
        return Verdict(base=min(found, key=lambda each: each[0])[1])
    return Verdict(lines=lines)


def undoes_all(before: bytes, after: bytes, now: bytes) -> bool:
    """Whether ``now`` has nothing of what the change from ``before`` to ``after`` did, and some of what was before."""
    remains = _Remains(before, after, now, _gone(after, now))
    fates = {remains.fate(hunk) for hunk in _script(before, after)}
    return UNDONE in fates and SURVIVED not in fates


def refusal(local: Local, record: Record) -> CheckoutError:
    """FILE undoes everything that was brought into it last."""
    return CheckoutError(
        f"{local.name} undoes everything that was last brought into it from {record.path}: it looks like an editor "
        "that was opened before and saved after; nothing was published",
        reason="stale",
        hint="--allow-revert takes it as it is; to merge from the text before that: "
        f"mergepub push {quote(local.name)} --stale",
    )


def warning(local: Local, lines: tuple[int, ...]) -> str:
    """FILE undoes some of what was brought into it last."""
    places = ", ".join(map(str, lines))
    return f"warning: {local.name} undoes text that was brought into it last, at line {places} of it then"


def _fates(
    before: bytes, after: bytes, ours: tuple[bytes, list[Span]], base: tuple[bytes, list[Span]]
) -> Iterator[tuple[str, Hunk]]:
    """What became of every hunk from ``before`` to ``after`` that the base holds.

    ``ours`` and ``base`` come with the ranges of ``after`` that they do not hold.
    """
    here, there = _Remains(before, after, *ours), _Remains(before, after, *base)
    for hunk in _script(before, after):
        if there.fate(hunk) == SURVIVED:
            yield here.fate(hunk), hunk


def _script(a: bytes, b: bytes) -> list[Hunk]:
    from mergepub.merge.myers import edit_script  # noqa: PLC0415 - only for files that were pulled and edited

    return edit_script(a, b)


def _gone(text: bytes, now: bytes) -> list[Span]:
    return [hunk[:2] for hunk in _script(text, now)]


class _Remains:
    """What a text still has of the text before and the text after a change."""

    def __init__(self, before: bytes, after: bytes, now: bytes, gone_after: list[Span]) -> None:
        self.after = after
        self.gone_before = _gone(before, now)
        self.gone_after = gone_after

    def fate(self, hunk: Hunk) -> str:
        old, new = hunk[:2], hunk[2:]
        old_is_back = not any(low < old[1] and old[0] < high for low, high in self.gone_before)
        if new[0] == new[1]:
            return UNDONE if old_is_back else SURVIVED
        if not _is_gone(self.after, new, self.gone_after):
            return SURVIVED
        return UNDONE if old_is_back else OVERWRITTEN


def _is_gone(text: bytes, span: Span, gone: list[Span]) -> bool:
    """Whether nothing of the range is left; of a range with words, whether no word is (blank lines look all alike)."""
    left, at = [], span[0]
    for low, high in gone:
        if low < span[1] and at < high:
            left.append(text[at : max(at, low)])
            at = min(high, span[1])
    rest = b"".join([*left, text[at : span[1]]])
    return not rest or (not _has_words(rest) and _has_words(text[slice(*span)]))


def _has_words(text: bytes) -> bool:
    return any(chr(byte).isalnum() or byte > 127 for byte in text)


def _distance(a: bytes, b: bytes) -> int:
    return sum(hunk[1] - hunk[0] + hunk[3] - hunk[2] for hunk in _script(a, b))


def _line(text: bytes, offset: int) -> int:
    return text.count(b"\n", 0, offset) + 1
