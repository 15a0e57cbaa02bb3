"""``diff3()``: one pure function from three bodies to a merged one, made of the modules beside it."""

from __future__ import annotations

from mergepub.merge.lines import converted_ending, offset_before_plain, plain
from mergepub.merge.regions import BOTH, CONFLICT, OURS, THEIRS, anywhere, brought_in_twice, changes, covering
from mergepub.merge.render import FAVOURS, SMALLEST, STYLES, Rendering, render, trimmed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mergepub.merge.lines import Range
    from mergepub.merge.regions import Change, Region

    Bodies = tuple[bytes, bytes, bytes]

_FEW = 64  # changes; of more, none are looked at twice
_HEAD = 1 << 16  # bytes in which nearly every binary file holds a NUL
_FAR = 1 << 62  # behind every body

_CHOICES: dict[str, tuple[str | None, ...]] = {
    "adjacent": ("clean", "conflict"),
    "granularity": ("line", "word"),
    "style": STYLES,
    "favour": (None, *FAVOURS),
    "union_first": ("ours", "theirs"),
    "engine": ("mergepub", "merge3"),
}


class Merged:
    """The result of a merge.

    Attributes: ``body`` the merged bytes, with markers where ``conflicts`` is not 0; ``pieces`` the same bytes
    unjoined, for writing large bodies without another copy; ``regions`` in order, covering the three bodies as given;
    ``marker_size`` the number of characters of the markers; ``settled`` the number of conflicts that a favour settled;
    ``unterminated`` the sides ("ours", "base", "theirs") whose text in a shown conflict has no newline at its end.
    """

    __slots__ = ("_body", "_changes", "_sizes", "conflicts", "marker_size", "pieces", "settled", "unterminated")

    def __init__(
        self,
        pieces: list[bytes | memoryview],
        conflicts: int,
        changes: list[Change],
        sizes: tuple[int, int, int],
        marker_size: int,
        *,
        settled: int = 0,
        unterminated: tuple[str, ...] = (),
    ) -> None:
        self.pieces = pieces
        self.conflicts = conflicts
        self.marker_size = marker_size
        self.settled = settled
        self.unterminated = unterminated
        self._changes = changes
        self._sizes = sizes
        self._body: bytes | None = None

    @property
    def regions(self) -> list[Region]:
        """The regions of the merge in order; made anew at each call, most callers need none."""
        return covering(self._changes, self._sizes)

    @property
    def body(self) -> bytes:
        """The merged bytes, joined on first use."""
        if self._body is None:
            self._body = b"".join(self.pieces)
        return self._body

    def __repr__(self) -> str:
        return f"Merged(conflicts={self.conflicts}, settled={self.settled}, regions={self.regions!r})"


def diff3(
    base: bytes,
    ours: bytes,
    theirs: bytes,
    *,
    adjacent: str = "clean",
    granularity: str = "line",
    style: str = "merge",
    favour: str | None = None,
    union_first: str = "ours",
    labels: Sequence[str | bytes] = ("ours", "base", "theirs"),
    marker_size: int = SMALLEST,
    engine: str = "mergepub",
) -> Merged:
    """Merge two edits of one base.

    Whatever the bytes: where one side changed nothing, the other side is the result; where both sides are the same,
    they are.

    Args:
        base: What both edits were made from.
        ours: The caller's body.
        theirs: The other side's body.
        adjacent: "clean" lets edits of adjacent lines stand; "conflict" gives git's verdicts.
        granularity: "word" also merges edits of different words of the same lines.
        style: "merge", "diff3" or "zdiff3"; the latter two show the base in a conflict.
        favour: "ours", "theirs" or "union" settles every conflict that way; None shows them.
        union_first: The side whose text a union puts first.
        labels: Names of ours, base and theirs on the marker lines.
        marker_size: The smallest number of characters of a marker, 7 or more.
        engine: "mergepub", or "merge3" where that extra is installed.

    Raises:
        BinaryBodyError: A real merge is needed and a body holds a NUL byte.
        InputError: An option has a value it cannot have.
    """
    _check(
        adjacent=adjacent, granularity=granularity, style=style, favour=favour, union_first=union_first, engine=engine
    )
    how = Rendering(
        style=style, favour=favour, union_first=union_first, labels=_labels(labels), marker_size=_size(marker_size)
    )
    by_law = _by_law(base, ours, theirs, marker_size)
    if by_law is not None:
        return by_law
    _refuse_nul(_FAR, base=base)
    _refuse_nul(_HEAD, ours=ours, theirs=theirs)
    how.ending = converted_ending(base, ours, theirs)
    texts = (base, ours, theirs) if how.ending is None else (plain(base), plain(ours), plain(theirs))
    words = granularity == "word"
    found = _find_changes(texts, touching=adjacent == "conflict", engine=engine, words=words)
    if anywhere(b"\0", found, b"", *texts[1:]):
        _refuse_nul(_FAR, ours=ours, theirs=theirs)
    found = _refined(found, texts, words=words, trim=style != "diff3")
    return _rendered(found, base, ours, theirs, how)


def _refined(found: list[Change], texts: Bodies, *, words: bool, trim: bool) -> list[Change]:
    """The changes with their conflicts made fewer, or smaller."""
    if words and any(change[0] == CONFLICT for change in found):
        from mergepub.merge.words import settled_by_words  # noqa: PLC0415 - opt-in, kept out of the start-up

        found = settled_by_words(found, *texts)
    return trimmed(found, texts[1], texts[2]) if trim else found


def _rendered(found: list[Change], base: bytes, ours: bytes, theirs: bytes, how: Rendering) -> Merged:
    if how.ending is not None:
        found = _as_given(found, base, ours, theirs)
    result = render(found, base, ours, theirs, how)
    return Merged(
        result.pieces,
        result.conflicts,
        found,
        (len(base), len(ours), len(theirs)),
        result.marker_size,
        settled=result.settled,
        unterminated=result.unterminated,
    )


def _find_changes(texts: Bodies, *, touching: bool, engine: str, words: bool) -> list[Change]:
    if engine == "merge3":
        from mergepub.merge.merge3_engine import merge3_changes  # noqa: PLC0415 - an extra, imported when it is asked for

        return merge3_changes(*texts)
    if words:
        from mergepub.merge.inplace import changes_in_place  # noqa: PLC0415 - opt-in, kept out of the start-up

        in_place = changes_in_place(texts, touching=touching)
        if in_place is not None:
            return in_place
    from mergepub.merge.myers import edit_scripts  # noqa: PLC0415 - a merge by words may need none

    scripts = edit_scripts(*texts)
    found = changes(texts, *scripts, touching=touching)
    if any(change[0] == CONFLICT for change in found):
        from mergepub.merge.ties import without_ties  # noqa: PLC0415 - most merges have no conflict

        found = without_ties(found, texts, scripts, touching=touching)
    if not touching and len(found) <= _FEW and brought_in_twice(found, *texts[1:]):
        from mergepub.merge.retold import retold  # noqa: PLC0415 - most sides edit nothing alike

        return retold(found, texts, scripts)
    return found


def _by_law(base: bytes, ours: bytes, theirs: bytes, marker_size: int) -> Merged | None:
    """The laws that hold whatever the bytes; None where a real merge is needed."""
    if ours == theirs:
        kind = BOTH
    elif theirs == base:
        kind = OURS
    elif ours == base:
        kind = THEIRS
    else:
        return None
    b, o, t = sizes = len(base), len(ours), len(theirs)
    return Merged([theirs if kind == THEIRS else ours], 0, [(kind, 0, b, 0, o, 0, t, None)], sizes, marker_size)


def _refuse_nul(end: int, **bodies: bytes) -> None:
    for name, body in bodies.items():
        if body.find(b"\0", 0, end) >= 0:
            from mergepub.errors import BinaryBodyError  # noqa: PLC0415 - only a call that fails needs the error tree

            raise BinaryBodyError(
                f"The {name} body holds a NUL byte, so this is not text and cannot be merged line by line; "
                "choose one side whole."
            )


def _as_given(found: list[Change], base: bytes, ours: bytes, theirs: bytes) -> list[Change]:
    """The changes of the plain texts, as ranges into the bodies as they were given."""
    b = _given(base, [change[1:3] for change in found])
    o = _given(ours, [change[3:5] for change in found])
    t = _given(theirs, [change[5:7] for change in found])
    spans = zip(found, b, o, t, strict=True)
    return [(change[0], *in_base, *in_ours, *in_theirs, change[7]) for change, in_base, in_ours, in_theirs in spans]


def _given(body: bytes, spans: Iterable[Range]) -> Iterator[Range]:
    """Ranges of a plain text, in order, as ranges of the body as it was given."""
    done = end = 0
    for plain_start, plain_end in spans:
        start = offset_before_plain(body, end, plain_start - done)
        end = offset_before_plain(body, start, plain_end - plain_start)
        done = plain_end
        yield start, end


def _check(**choices: str | None) -> None:
    for name, value in choices.items():
        if value not in _CHOICES[name]:
            allowed = ", ".join(repr(choice) for choice in _CHOICES[name] if choice)
            raise _wrong(f"{name} cannot be {value!r}; choose one of {allowed}.")


def _size(marker_size: int) -> int:
    if marker_size < SMALLEST:
        raise _wrong(f"A marker of {marker_size} characters could be text; choose a marker size of {SMALLEST} or more.")
    return marker_size


def _labels(labels: Sequence[str | bytes]) -> tuple[bytes, bytes, bytes]:
    if len(labels) != 3:
        raise _wrong(f"There are three labels, of ours, base and theirs; {len(labels)} were given.")
    ours, base, theirs = (_label(label) for label in labels)
    return ours, base, theirs


def _label(label: str | bytes) -> bytes:
    try:
        encoded = label.encode("utf-8", "surrogateescape") if isinstance(label, str) else label
    except UnicodeEncodeError as error:
        raise _wrong(f"The label {label!r} cannot be written in UTF-8; choose another.") from error
    if any(byte < 32 or byte == 127 for byte in encoded):
        raise _wrong(f"The label {encoded!r} holds a control byte, which would break its marker line; leave it out.")
    return encoded


def _wrong(message: str) -> Exception:
    from mergepub.errors import InputError  # noqa: PLC0415 - only a call that fails needs the error tree

    return InputError(message)
