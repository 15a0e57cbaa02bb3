r"""Word by word inside a conflict: edits of different words merge where an unchanged word stands between them.

Words are what stands between white space, on raw bytes, so that the letters of every language stay whole. White space
inside a line and at its end is no text: where it changed, it gives way. A line break with the white space that begins
the next line is a token like any word, so that a change of indentation or of the number of lines is an edit like any
other. The token lists are compared by the same diff and the same walk as lines are, a token taking the place of a line;
hunks that merely touch conflict, and one conflict among the words leaves the whole conflict as it was.
"""

from __future__ import annotations

from itertools import pairwise

from mergepub.merge.inplace import NO_WORD, merged_in_place
from mergepub.merge.myers import hunks_between
from mergepub.merge.regions import CONFLICT, OURS, THEIRS, UNCHANGED, WORDS, Region, changes, covering
from mergepub.merge.scripts import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mergepub.merge.regions import Change

_TOP, _BREAK, _BOTTOM = b"\0^", b"\0", b"\0$"
"""Keys: the start of a text, a line break, the end of a text. No word holds a NUL byte, no indentation a ^ or $."""

_COMMIT = 64  # bytes; some ten words that go on unchanged prove as much as that many lines


def settled_by_words(found: Sequence[Change], base: bytes, ours: bytes, theirs: bytes) -> list[Change]:
    """The changes, with every conflict that can be settled word by word turned into one of kind WORDS."""
    return [_settled(change, base, ours, theirs) if change[0] == CONFLICT else change for change in found]


def _settled(conflict: Change, base: bytes, ours: bytes, theirs: bytes) -> Change:
    _, b0, b1, o0, o1, t0, t1, _ = conflict
    parts = base[b0:b1], ours[o0:o1], theirs[t0:t1]
    text = merged_in_place(*parts) or merge_words(*parts)
    return conflict if text is None else (WORDS, b0, b1, o0, o1, t0, t1, text)


def merge_words(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The text in which both sides' edits stand; None where they cannot both."""
    b, o, t = Tokens(base), Tokens(ours), Tokens(theirs)
    scripts = [canonical(b.keys, keys, hunks_between(b.keys, keys, commit=_COMMIT)) for keys in (o.keys, t.keys)]
    changed = changes((b.keys, o.keys, t.keys), *scripts, touching=True)
    if any(change[0] == CONFLICT for change in changed) or not words_between(changed, b.keys):
        return None
    found = covering(changed, (len(b.keys), len(o.keys), len(t.keys)))
    if _phrases(o.keys, [r.ours for r in found if r.kind == OURS]) & _phrases(
        t.keys, [r.theirs for r in found if r.kind == THEIRS]
    ):
        return None  # both brought in one phrase, each at a place of its own: it would stand twice
    return b"".join(_written(found, b, o, t))


def words_between(changed: Sequence[Change], keys: bytes) -> bool:
    """Whether an unchanged word stands between each two changes of different sides; punctuation alone is no word."""
    return all(
        kind == next_kind or keys[end:start].translate(None, NO_WORD)
        for (kind, _, end, *_), (next_kind, start, *_) in pairwise(changed)
    )


def _phrases(keys: bytes, spans: list[tuple[int, int]]) -> set[tuple[bytes, bytes]]:
    """Every two words in a row that stand in one of the ranges."""
    found: set[tuple[bytes, bytes]] = set()
    for start, end in spans:
        words = [key for key in keys[start:end].split(b"\n") if key.translate(None, NO_WORD)]
        found.update(pairwise(words))
    return found


class Tokens:
    """A text as tokens, each with the white space before it.

    Attributes: ``text`` as given; ``keys`` what its tokens are compared by, one token a line. Where in the text a token
    stands is worked out only where a change begins or ends.
    """

    __slots__ = ("_line", "_lines", "keys", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._line = 0
        self._lines: list[tuple[int, int, int, int, bool]] = []
        keys: list[bytes] = []
        key, key_at, line_at, end = _TOP, 0, 0, 0
        for line in text.split(b"\n"):
            core = line.lstrip()
            indent = len(line) - len(core) if core else 0
            start = key + line[:indent] + b"\n"
            words = _one_a_line(core)
            length = len(line.rstrip())
            self._lines.append((key_at, end, key_at + len(start), line_at + indent, len(words) == length - indent + 1))
            keys += (start, words)
            key, key_at = _BREAK, key_at + len(start) + len(words)
            end = line_at + length
            line_at += len(line) + 1
        self._lines.append((key_at, end, key_at + len(_BOTTOM) + 1, len(text), False))
        self.keys = b"".join(keys) + _BOTTOM + b"\n"

    def part(self, span: tuple[int, int]) -> bytes:
        """The text of a range of the keys; ranges are asked for in order."""
        return self.text[self._offset(span[0]) : self._offset(span[1])]

    def _offset(self, key_at: int) -> int:
        """Where the token before a place of the keys ends in the text."""
        while self._line + 1 < len(self._lines) and self._lines[self._line + 1][0] <= key_at:
            self._line += 1
        line_key, end, words_key, words, one_blank = self._lines[self._line]
        if key_at == line_key:
            return end
        if key_at == words_key:
            return words
        if one_blank:  # between two words, as nearly everywhere
            return words + key_at - words_key - 1
        for word in self.keys[words_key : key_at - 1].split():
            words = self.text.index(word, words) + len(word)
        return words


def _one_a_line(core: bytes) -> bytes:
    """The words of a line that begins with one, each on a line of its own; nothing for a blank line."""
    return b"\n".join([*core.split(), b""])


def _written(found: Sequence[Region], base: Tokens, ours: Tokens, theirs: Tokens) -> Iterator[bytes]:
    for region in found:
        if region.kind == OURS:
            yield ours.part(region.ours)
        elif region.kind == THEIRS:
            yield theirs.part(region.theirs)
        else:  # both sides have these words, if need be with other white space
            our_part, their_part = ours.part(region.ours), theirs.part(region.theirs)
            if our_part == their_part:
                yield our_part
            else:
                old = base.part(region.base) if region.kind == UNCHANGED else None
                yield _respaced(ours.keys[slice(*region.ours)], old, our_part, their_part)


def _respaced(keys: bytes, base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """The words of the keys, with the white space of the side that changed it."""
    tokens = [b"" if key == _BOTTOM else _text_of(key) for key in keys.split(b"\n")[:-1]]
    our_spaces, their_spaces = _spaces(ours, tokens), _spaces(theirs, tokens)
    if base is None:
        spaces = map(_least, our_spaces, their_spaces)
    else:
        spaces = map(_space, _spaces(base, tokens), our_spaces, their_spaces)
    return b"".join([part for pair in zip(spaces, tokens, strict=True) for part in pair])


def _text_of(key: bytes) -> bytes:
    if key.startswith(_TOP):
        return key[len(_TOP) :]
    return key.replace(_BREAK, b"\n")


def _spaces(part: bytes, tokens: list[bytes]) -> list[bytes]:
    """The white space before each token of a part of a text; that before the end of the text is all that is left."""
    spaces, at = [], 0
    for number, token in enumerate(tokens, 1):
        start = part.index(token, at) if token or number < len(tokens) else len(part)
        spaces.append(part[at:start])
        at = start + len(token)
    return spaces


def _space(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """The white space of the side that changed it."""
    if base in (ours, theirs):
        return theirs if ours == base else ours
    return _least(ours, theirs)


def _least(ours: bytes, theirs: bytes) -> bytes:
    """One of two changes of white space, the same one whichever side it comes from."""
    return min(ours, theirs, key=lambda space: (len(space), space))
