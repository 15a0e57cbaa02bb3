"""The merge engine: three bodies in, one merged body out. Pure: bytes and values, no files, no clock, no randomness.

For a caller there is :func:`diff3`, and :mod:`~mergepub.merge.markers` to read a marked body back. For the next
engineer, the way of a merge from top to bottom:

1. ``diff3()``, below, asks the laws first. Where a side equals the base, or the sides equal each other, the answer is
   known whatever the bytes. Then a NUL byte is refused. Where a side converted every line ending of the document, the
   three texts are merged in their plain form and written in the new one (``lines.py``).
2. Two edit scripts, base to ours and base to theirs, are found (``myers.py``). Where edits are few the search runs on
   the raw bytes, and nothing is ever split into lines (after E. Myers, *An O(ND) Difference Algorithm and Its
   Variations*, 1986). Where they are dense, a window of lines is split, stripped of lines that the other side
   lacks, cut at lines that are unique on both sides (``anchors.py``, Bram Cohen's patience diff), and solved exactly
   between these cuts (``lcs.py``: Hunt and Szymanski 1977; bit-parallel rows, Crochemore et al. 2001, Hyyrö 2004).
   Lines are numbers there, and the base's are numbered once for both scripts (``dense.py``). Two kinds of texts are
   told early, since they are common and the long way is not needed: those that share nothing but blank lines, and those
   that were edited in their places, where the numbers of the shared lines ascend as they are.
3. The scripts are made canonical (``scripts.py``): pure insertions and deletions slide down as far as they go, so that
   the same insertion made by both sides stands at the same point; matches of weak lines inside a rewritten block are
   given up, so that one blank line never holds two halves of a rewrite apart.
4. One walk over both scripts groups the hunks that concern each other and makes *changes* of them (``regions.py``): a
   kind and three byte ranges, in one flat tuple. This value stands between the algorithm and every output; regions,
   which cover what did not change too, are made of it for who asks. What conflicts is decided in two predicates there
   and nowhere else. (S. Khanna, K. Kunal and B. Pierce, *A Formal Investigation of Diff3*, 2007,
   say what a line merge can promise and what it cannot.)
5. Where two sides clash, other scripts of the same length may not (``scripts.py``); where a line that one side replaced
   by another would stand twice, a script of the same length may say that both sides replaced it (``retold.py``): of
   scripts that are equally short, the one is true that has most in common with the other side's. On request different
   words of the same lines may merge (``words.py``): the same scripts and the same walk, with words for lines. Where all
   edits put one word in the place of another, they are found before anything else, and no scripts on lines are needed
   (``inplace.py``).
6. ``render.py`` turns changes into bytes: three styles, three favours, the marker size at which no text can be mistaken
   for a marker. ``markers.py`` reads marker lines back; a test takes every merge through both.

No step reads all of a body that a step before has read, if it can be helped: what did not change is searched once, in
the base, and nothing is searched for a marker, a carriage return or a NUL byte again in the sides but where they differ
(``regions.anywhere``). That is half of the time of a merge of 100,000 lines.

Of huge bodies even that is little beside the memory in which they stand: to have it made costs more than to search it.
Where the result is only written out, ``sparse.py`` walks along the base and a side that comes in parts, with the same
steps, keeps the edits alone, and merges the few lines around those that meet. What it cannot be sure of it leaves to
``diff3()`` on the whole bodies, and so the result is the same.

All positions are byte offsets at line boundaries, all ranges half open; no text is copied before it is rendered, so
memory grows with the edits and not with the document. Nothing below imports a module that is slow to load: a merge from
the command line takes hardly longer than Python needs to start. For the same reason what is needed together stands
together: to load a file costs more than a hundred lines in it.
"""

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

__all__ = ["Merged", "diff3"]

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
        from mergepub.merge.scripts import without_ties  # noqa: PLC0415 - as above

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
