"""Branches in the memory store, in the simplest code that keeps the contract: lists of revisions, under one lock.

The rules stand in branchrules.py; how they are kept shares nothing with the SQL backends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mergepub.documents import MergedFrom, Receipt, Version, digest_of
from mergepub.errors import VersionConflictError
from mergepub.histories import (
    ABANDONED,
    CHOOSE,
    CONTINUE,
    DEFAULT,
    MAIN,
    OPEN,
    REBASE,
    REJECTED,
    SUPERSEDED,
    UNDO,
    Branch,
    BranchReceipt,
    BranchRevision,
    Decision,
    DecisionReceipt,
    DecisionRequest,
    HeadPlace,
    Owner,
    Place,
    Standing,
    Unresolved,
)
from mergepub.stores import branchrules, refusals
from mergepub.stores.contract import MOST_COUNTED

if TYPE_CHECKING:
    from mergepub.stores.contract import Capabilities

States = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Entry:
    """One revision; as an entry of a history, one version. A ``body`` of None is a tombstone."""

    number: int
    body: bytes | None
    digest: str
    incarnation: str
    kind: str
    author: str
    message: str
    modified: str
    merged_from: MergedFrom | None = None
    source: str | None = None
    branch: str = MAIN
    revision: int = 1
    parents: tuple[Place, ...] = ()


@dataclass(slots=True)
class Line:
    """One branch: its revisions from 1, its owners with epoch and known end."""

    name: str
    incarnation: str
    state: str
    base: Place | None = None
    base_digest: str | None = None
    base_version: int = 0
    revisions: list[Entry] = field(default_factory=list)
    owners: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def revision(self) -> int:
        """Its newest revision's number."""
        return len(self.revisions)

    @property
    def end(self) -> Place:
        """Its newest revision."""
        return Place(self.name, self.revision)

    def seen(self) -> Branch:
        """The branch as a value."""
        last = self.revisions[-1]
        return Branch(
            self.name,
            self.incarnation,
            self.state,
            self.base.branch if self.base else None,
            self.base.revision if self.base else 0,
            self.base_digest,
            self.base_version,
            self.revision,
            None if last.body is None else last.digest,
            self.revisions[0].parents,
            tuple(Owner(name, *held) for name, held in sorted(self.owners.items())),
        )


@dataclass(slots=True)
class History:
    """Everything about one path."""

    entries: list[Entry] = field(default_factory=list)
    keys: dict[str, tuple[str, int]] = field(default_factory=dict)  # append key -> digest, version
    lines: dict[tuple[str, str], Line] = field(default_factory=dict)  # incarnation and name -> branch
    decisions: list[tuple[str, Decision, States]] = field(default_factory=list)  # request, row, states

    @property
    def head(self) -> Entry:
        """The newest version."""
        return self.entries[-1]

    def present(self) -> list[Entry]:
        """The entries of the head's incarnation, oldest first."""
        return [e for e in self.entries if e.incarnation == self.head.incarnation]

    def open_branches(self) -> int:
        """How many branches of the head's incarnation wait for a decision."""
        life = self.head.incarnation
        return sum(line.state == OPEN for (owner, _), line in self.lines.items() if owner == life)

    def line(self, incarnation: str, name: str) -> Line:
        """A branch that is there."""
        return self.lines[incarnation, name]

    def head_place(self, version: int | None = None, path: str = "") -> HeadPlace:
        """The head, or a version, as resolvers see it."""
        if version is not None and not 1 <= version <= self.head.number:
            raise branchrules.other_head(path, version, self.head.number)
        head = self.head if version is None else self.entries[version - 1]
        place = Place(head.branch, head.revision)
        digest = None if head.body is None else head.digest
        return HeadPlace(head.number, head.incarnation, head.kind, place, digest)

    def number_of(self, incarnation: str, place: Place) -> int:
        """The newest version that refers to a revision; 0 where none does."""
        found = [
            e.number
            for e in self.entries
            if (e.incarnation, e.branch, e.revision) == (incarnation, place.branch, place.revision)
        ]
        return max(found, default=0)

    def origins(self, name: str, incarnation: str) -> tuple[Place, ...]:
        """The parents of a branch's first revision."""
        return self.line(incarnation, name).revisions[0].parents


class MemoryBranches:
    """The operations of ``BranchStore`` on histories in memory."""

    _documents: dict[str, History]
    _lock: threading.Lock
    _clock: Callable[[], str]

    if TYPE_CHECKING:

        @property
        def capabilities(self) -> Capabilities: ...  # noqa: D102 - the store's

        def publish(  # noqa: D102 - the store's
            self, path: str, body: bytes, expected: Version, *, author: str, message: str, source: str | None, kind: str
        ) -> Receipt: ...

        def _history(self, path: str) -> History: ...

        def _check(self, body: bytes, author: str, message: str, source: str | None = None) -> None: ...

    def branch(
        self,
        path: str,
        body: bytes,
        expected: Version,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,
        incarnation: str | None = None,
        digest: str | None = None,
        kind: str = "text",
    ) -> Receipt | BranchReceipt:
        """See ``BranchStore.branch``."""
        number = refusals.number_of(expected)
        with self._lock:
            _check_base(path, self._documents.get(path), number, incarnation, digest)
        try:
            return self.publish(path, body, expected, author=author, message=message, source=source, kind=kind)
        except VersionConflictError as conflict:
            if conflict.reason:
                raise
        with self._lock:  # the head never moves back, so it is no less a mismatch now
            history = self._history(path)
            if history.head.body is None:
                raise refusals.deleted(path, number, history.head.number)
            entry = Entry(0, body, digest_of(body), "", "", author, message, self._clock(), None, source)
            return _sibling(path, history, entry, number)

    def extend(
        self,
        path: str,
        branch: str,
        body: bytes,
        *,
        author: str = "",
        message: str = "",
        source: str | None = None,
        epoch: int | None = None,
        known: int | None = None,
    ) -> BranchReceipt:
        """See ``BranchStore.extend``."""
        self._check(body, author, message, source)
        with self._lock:
            history, line = self._line(path, branch)
            seen = line.seen()
            branchrules.check_present(path, seen, history.head.incarnation)
            done = _extended_before(history, line, author, digest_of(body), known)
            if done:
                return done
            branchrules.check_open(path, seen, "extended")
            owner = branchrules.check_owner(path, seen, author, epoch)
            end = owner.revision if known is None else known
            if end != line.revision:
                raise branchrules.grown(path, seen, end)
            last = line.revisions[-1]
            branchrules.check_extension(path, last.kind, last.body or b"", body)
            labels = (author, message, max(self._clock(), last.modified))
            place = (line.name, end + 1, (line.end,))
            facts = (0, body, digest_of(body), line.incarnation, last.kind)
            line.revisions.append(Entry(*facts, *labels, None, source, *place))
            line.owners[author] = (owner.epoch, end + 1)
            return _receipt(history, line, author, end + 1)

    def branches(self, path: str) -> tuple[HeadPlace, list[Branch]]:
        """See ``BranchStore.branches``."""
        with self._lock:
            history = self._history(path)
            lives = list(dict.fromkeys(entry.incarnation for entry in history.entries))
            seen = [line.seen() for line in history.lines.values()]
            seen.sort(key=lambda b: (lives.index(b.incarnation), b.base_version, b.name))
            return history.head_place(), seen

    def revision(self, path: str, branch: str, revision: int | None = None) -> BranchRevision:
        """See ``BranchStore.revision``."""
        with self._lock:
            history, line = self._line(path, branch)
            number = line.revision if revision is None else revision
            if not 1 <= number <= line.revision:
                raise branchrules.no_revision(path, branch, number, line.revision)
            entry = line.revisions[number - 1]
            if entry.body is None:
                raise refusals.is_tombstone(path, history.number_of(line.incarnation, Place(branch, number)))
            facts = (entry.parents, entry.author, entry.message, entry.modified, entry.kind)
            return BranchRevision(line.incarnation, Place(branch, number), entry.body, entry.digest, *facts)

    def standing(self, path: str, branch: str, *, version: int | None = None, revision: int | None = None) -> Standing:
        """See ``BranchStore.standing``."""
        with self._lock:
            history, line = self._line(path, branch)
            head, found = history.head_place(version, path), tuple[Place, ...]()
            end = Place(branch, line.revision if revision is None else revision)
            if not 0 < end.revision <= line.revision:
                raise branchrules.no_revision(path, branch, end.revision, line.revision)
            if line.incarnation == head.incarnation:
                found = branchrules.common_ancestors(head.place, end, lambda n: history.origins(n, head.incarnation))
            return Standing(head, line.seen(), found)

    def unresolved(self, prefix: str = "/", *, limit: int = 1000) -> list[Unresolved]:
        """See ``BranchStore.unresolved``."""
        below = prefix if prefix.endswith("/") else prefix + "/"
        found = []
        with self._lock:
            for path, history in sorted(self._documents.items()):
                if (path == prefix or path.startswith(below)) and history.head.body is not None:
                    names = [
                        line.name
                        for (life, _), line in history.lines.items()
                        if life == history.head.incarnation and line.state == OPEN
                    ]
                    found += [Unresolved(path, min(len(names), MOST_COUNTED), max(names))] if names else []
        return found[:limit]

    def take(self, path: str, branch: str, *, author: str) -> Branch:
        """See ``BranchStore.take``."""
        with self._lock:
            history, line = self._line(path, branch)
            branchrules.check_present(path, line.seen(), history.head.incarnation)
            branchrules.check_open(path, line.seen(), "taken over")
            line.owners[author] = (line.seen().epoch + 1, line.revision)
            return line.seen()

    def abandon(self, path: str, branch: str, *, author: str, epoch: int | None = None) -> Branch:
        """See ``BranchStore.abandon``."""
        with self._lock:
            history, line = self._line(path, branch)
            branchrules.check_present(path, line.seen(), history.head.incarnation)
            branchrules.check_owner(path, line.seen(), author, epoch)
            if line.state != ABANDONED:
                branchrules.check_open(path, line.seen(), "abandoned")
                line.state = ABANDONED
            return line.seen()

    def decide(self, path: str, request: DecisionRequest) -> DecisionReceipt:
        """See ``BranchStore.decide``."""
        branchrules.check_request(request)
        self._check(request.body or b"", request.resolver, request.reason)
        with self._lock:
            return _Deciding(path, self._history(path), request, self._clock()).receipt()

    def decisions(self, path: str, *, before: int | None = None, limit: int | None = None) -> list[Decision]:
        """See ``BranchStore.decisions``."""
        with self._lock:
            rows = [row for _, row, _ in reversed(self._history(path).decisions)]
        return [row for row in rows if before is None or row.number < before][:limit]

    def _line(self, path: str, name: str) -> tuple[History, Line]:
        history = self._history(path)
        for incarnation in reversed(list(dict.fromkeys(entry.incarnation for entry in history.entries))):
            if (incarnation, name) in history.lines:
                return history, history.lines[incarnation, name]
        raise branchrules.no_branch(path, name)


def _check_base(path: str, history: History | None, number: int, incarnation: str | None, digest: str | None) -> None:
    if history is None or history.head.body is None or number == 0:
        return
    head = history.head
    if incarnation not in (None, "", head.incarnation):
        raise refusals.recreated(path, number, head.number)
    if digest is not None and number >= history.present()[0].number:
        entry = history.entries[number - 1] if number <= head.number else None
        if entry is None or entry.digest != digest:
            raise refusals.other_base(path, number, head.number)


def _sibling(path: str, history: History, entry: Entry, number: int) -> BranchReceipt:
    head = history.head
    if number > head.number:
        raise refusals.other_base(path, number, head.number)
    base = history.entries[number - 1] if number else None
    if base and base.digest == entry.digest:
        return BranchReceipt("", 0, 0, number, head.number, head.incarnation, unchanged=True)
    place = Place(base.branch, base.revision) if base else Place(history.present()[0].branch, 0)
    name = branchrules.sibling_name(number, place, entry.digest)
    known = history.lines.get((head.incarnation, name))
    if known:
        return _own_again(history, known, entry.author)
    parent = base.body or b"" if base else b""
    branchrules.check_extension(path, head.kind, parent, entry.body or b"")
    line = Line(name, head.incarnation, OPEN, place, base.digest if base else None, number)
    modified = max(entry.modified, base.modified if base else "")
    parents = (place,) if base else ()
    line.revisions.append(
        replace(entry, incarnation=head.incarnation, kind=head.kind, modified=modified, branch=name, parents=parents)
    )
    line.owners[entry.author] = (1, 1)
    history.lines[head.incarnation, name] = line
    return _receipt(history, line, entry.author, 1)


def _own_again(history: History, line: Line, author: str) -> BranchReceipt:
    if author in line.owners:
        return _receipt(history, line, author, 1, replayed=True)
    line.owners[author] = (line.seen().epoch or 1, 1)
    if line.state in (ABANDONED, REJECTED):
        line.state = OPEN
    return _receipt(history, line, author, 1)


def _receipt(
    history: History, line: Line, author: str, revision: int, *, unchanged: bool = False, replayed: bool = False
) -> BranchReceipt:
    epoch = line.owners[author][0]
    facts = (line.base_version, history.head.number, line.incarnation)
    return BranchReceipt(line.name, revision, epoch, *facts, unchanged, replayed)


def _extended_before(history: History, line: Line, author: str, digest: str, known: int | None) -> BranchReceipt | None:
    if author not in line.owners:
        return None
    if known is not None and known < line.revision and line.revisions[known].digest == digest:
        return _receipt(history, line, author, known + 1, replayed=True)
    if line.revisions[-1].digest == digest:
        return _receipt(history, line, author, line.revision, unchanged=True)
    return None


class _Deciding:
    """One decision on one history."""

    def __init__(self, path: str, history: History, request: DecisionRequest, modified: str) -> None:
        self.path = path
        self.history = history
        self.request = request
        self.modified = modified
        self.head = history.head
        digest = None if request.body is None else digest_of(request.body)
        self.key = branchrules.request_key(request, self.head.incarnation, digest)

    def receipt(self) -> DecisionReceipt:
        """Decide, or answer as before."""
        for key, row, _ in self.history.decisions:
            if key == self.key:
                version = row.result_version or row.head_version
                current = None if version == self.head.number else self.head.number
                return DecisionReceipt(row, version, replayed=True, current=current)
        if self.head.body is None:
            raise refusals.deleted(self.path, self.request.expected_head, self.head.number)
        branchrules.check_seen(self.path, self.request, self.head.number)
        return self._undo() if self.request.strategy == UNDO else self._decide()

    def _decide(self) -> DecisionReceipt:
        assert self.request.seen is not None, "check_request saw to it"
        line = self._find(self.request.seen.branch)
        seen, head = line.seen(), self.head
        branchrules.check_present(self.path, seen, head.incarnation)
        branchrules.check_decidable(self.path, self.request, seen, Place(head.branch, head.revision))
        after = branchrules.states_after(self.request.strategy, line.name, head.branch)
        states = {name: (self._line(name).state, state) for name, state in after.items()}
        result = self._result(line)
        if self.request.strategy == CONTINUE and result:
            states[result.branch] = (SUPERSEDED, DEFAULT)
        return self._record(line.end, result, states)

    def _find(self, name: str) -> Line:
        found = [line for (_, each), line in self.history.lines.items() if each == name]
        if not found:
            raise branchrules.no_branch(self.path, name)
        present = [line for line in found if line.incarnation == self.head.incarnation]
        return (present or found)[-1]

    def _line(self, name: str) -> Line:
        return self.history.line(self.head.incarnation, name)

    def _result(self, line: Line) -> Entry | None:
        here = self._line(self.head.branch)
        if self.request.strategy == CHOOSE:
            return self._move(line.revisions[-1])
        if self.request.strategy == CONTINUE:
            return self._move(
                self._on_new_branch(self.head, self.request.body or b"", (here.end, line.end), self.head.number)
            )
        if self.request.strategy == REBASE:
            body = self.request.body or b""
            branchrules.check_extension(self.path, self.head.kind, self.head.body or b"", body)
            here.revisions.append(self._entry(here, body, (here.end,), self.head.modified))
            return self._move(here.revisions[-1])
        return None

    def _entry(self, line: Line, body: bytes, parents: tuple[Place, ...], since: str) -> Entry:
        labels = (self.request.resolver, self.request.reason, max(self.modified, since))
        facts = (0, body, digest_of(body), line.incarnation, self.head.kind)
        return Entry(*facts, *labels, branch=line.name, revision=line.revision + 1, parents=parents)

    def _on_new_branch(self, base: Entry, body: bytes, parents: tuple[Place, ...], base_version: int) -> Entry:
        branchrules.check_extension(self.path, self.head.kind, base.body or b"", body)
        name = branchrules.continuation_name(self.head.number + 1, self.request.strategy)
        place = Place(base.branch, base.revision)
        line = Line(name, self.head.incarnation, DEFAULT, place, base.digest, base_version)
        line.revisions.append(self._entry(line, body, parents, base.modified))
        self.history.lines[self.head.incarnation, name] = line
        return line.revisions[0]

    def _move(self, entry: Entry) -> Entry:
        self.history.entries.append(replace(entry, number=self.head.number + 1))
        return entry

    def _undo(self) -> DecisionReceipt:
        number = self.request.undoes or 0
        if not 1 <= number <= len(self.history.decisions):
            raise branchrules.no_decision(self.path, number)
        _, row, kept = self.history.decisions[number - 1]
        if not self._stands(row, kept):
            raise branchrules.not_undoable(self.path, number, self.head.number)
        states = {name: (after, before) for name, (before, after) in kept.items()}
        result = None if row.result_version is None else self._back(row.head, row.head_version, states)
        return self._record(row.branch, result, states)

    def _stands(self, row: Decision, states: States) -> bool:
        if row.incarnation != self.head.incarnation:
            return False
        if row.result_version is not None:
            return row.result_version == self.head.number
        return all(self._line(name).state == after for name, (_, after) in states.items())

    def _back(self, former: Place, version: int, states: States) -> Entry:
        line = self._line(former.branch)
        entry = line.revisions[former.revision - 1]
        if line.revision == former.revision:
            return self._move(entry)
        made = self._on_new_branch(entry, entry.body or b"", (former,), version)
        states[former.branch] = (DEFAULT, SUPERSEDED)
        states[made.branch] = (SUPERSEDED, DEFAULT)
        return self._move(made)

    def _record(self, seen: Place, result: Entry | None, states: States) -> DecisionReceipt:
        for name, (_, after) in states.items():
            self._line(name).state = after
        head, request = self.head, self.request
        row = Decision(
            len(self.history.decisions) + 1,
            head.incarnation,
            request.strategy,
            head.number,
            Place(head.branch, head.revision),
            seen,
            head.number + 1 if result else None,
            Place(result.branch, result.revision) if result else None,
            request.resolver,
            request.reason,
            max([self.modified, *(row.modified for _, row, _ in self.history.decisions[-1:])]),
            request.approved,
            request.effects,
            request.undoes,
        )
        self.history.decisions.append((self.key, row, states))
        return DecisionReceipt(row, self.history.head.number)
