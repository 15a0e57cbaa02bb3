"""The merge engine: three bodies in, one merged body out. Pure: bytes and values, no files, no clock, no randomness.

For a caller there is :func:`diff3`, and :mod:`~mergepub.merge.markers` to read a marked body back. For the next
engineer, the way of a merge from top to bottom:

1. ``diff3.py`` asks the laws first. Where a side equals the base, or the sides equal each other, the answer is known
   whatever the bytes. Then a NUL byte is refused. Where a side converted every line ending of the document, the three
   texts are merged in their plain form and written in the new one (``lines.py``).
2. Two edit scripts, base to ours and base to theirs, are found (``myers.py``). Where edits are few the search runs on
   the raw bytes, and nothing is ever split into lines (``bytewise.py``, after E. Myers, *An O(ND) Difference Algorithm
   and Its Variations*, 1986). Where they are dense, a window of lines is split, stripped of lines that the other side
   lacks, cut at lines that are unique on both sides (``anchors.py``, Bram Cohen's patience diff), and solved exactly
   between these cuts (``lcs.py``: Hunt and Szymanski 1977; bit-parallel rows, Crochemore et al. 2001, Hyyrö 2004).
   Lines are numbers there, and the base's are numbered once for both scripts (``dense.py``). Two kinds of texts are
   told early, since they are common and the long way is not needed: those that share nothing but blank lines, and those
   that were edited in their places, where the numbers of the shared lines ascend as they are.
3. The scripts are made canonical: pure insertions and deletions slide down as far as they go (``slide.py``), so that
   the same insertion made by both sides stands at the same point; matches of weak lines inside a rewritten block are
   given up (``weak.py``), so that one blank line never holds two halves of a rewrite apart.
4. One walk over both scripts groups the hunks that concern each other and makes *changes* of them (``regions.py``): a
   kind and three byte ranges, in one flat tuple. This value stands between the algorithm and every output; regions,
   which cover what did not change too, are made of it for who asks. What conflicts is decided in two predicates there
   and nowhere else. (S. Khanna, K. Kunal and B. Pierce, *A Formal Investigation of Diff3*, 2007,
   say what a line merge can promise and what it cannot.)
5. Where two sides clash, other scripts of the same length may not (``ties.py``); where a line that one side replaced
   by another would stand twice, a script of the same length may say that both sides replaced it (``retold.py``): of
   scripts that are equally short, the one is true that has most in common with the other side's. On request different
   words of the same lines may merge (``words.py``): the same scripts and the same walk, with words for lines. Where all
   edits put one word in the place of another, they are found before anything else, and no scripts on lines are needed
   (``inplace.py``).
6. ``render.py`` turns changes into bytes: three styles, three favours, the marker size at which no text can be mistaken
   for a marker. ``markers.py`` writes marker lines and reads them back; a test takes every merge through both.

No step reads all of a body that a step before has read, if it can be helped: what did not change is searched once, in
the base, and nothing is searched for a marker, a carriage return or a NUL byte again in the sides but where they differ
(``regions.anywhere``). That is half of the time of a merge of 100,000 lines.

Of huge bodies even that is little beside the memory in which they stand: to have it made costs more than to search it.
Where the result is only written out, ``sparse.py`` walks along the base and a side that comes in parts, with the same
steps, keeps the edits alone, and merges the few lines around those that meet. What it cannot be sure of it leaves to
``diff3()`` on the whole bodies, and so the result is the same.

All positions are byte offsets at line boundaries, all ranges half open; no text is copied before it is rendered, so
memory grows with the edits and not with the document. Nothing below imports a module that is slow to load: a merge from
the command line takes hardly longer than Python needs to start.
"""

from __future__ import annotations

from mergepub.merge.diff3 import Merged, diff3

__all__ = ["Merged", "diff3"]
