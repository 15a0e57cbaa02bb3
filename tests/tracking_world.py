"""Two people with two checkouts of shared documents on one store: what can go wrong, and what they want.

Every line is a token that stands nowhere else. Whoever edits inserts new tokens and drops old ones, so it is known at
any time which tokens are alive. From that follows what no merge may ever see:

- a token that both sides hold and the base does not: it would be put in twice;
- an alive token that the base holds and a side does not: it would be taken out again, though nobody dropped it.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from mergepub.checkout import disk, home, locate, replacing
from mergepub.errors import CheckoutError, MergepubError, UnknownOutcomeError
from mergepub.merge.markers import Text, parse
from mergepub.outcomes import Overlap, Published
from mergepub.stores.memory import MemoryStore
from mergepub.tracking import How, at_hand, fetch_into, locked, publish_file, pull_file, resolving, sending
from mergepub.tracking.outputs import take_output
from mergepub.tracking.resolving import begin, check_mended, conclude, publish_resolved

SHM = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112


class Killed(BaseException):
    """The process is no more."""


class Fuse:
    """Kills at the n-th step on the disk or towards the store; from then on nothing is done any more."""

    def __init__(self):
        self.left = None
        self.dead = False

    def step(self):
        if self.dead:
            raise Killed
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.dead = True
                raise Killed

    def light(self, left):
        self.left, self.dead = left, False


class MortalOs:
    """``os`` for a process that may be killed at each step that changes anything. What the kernel closes is closed."""

    steps = ("replace", "rename", "link", "unlink", "mkdir", "rmdir", "write", "ftruncate", "pwrite")

    def __init__(self, fuse):
        self.fuse = fuse

    def __getattr__(self, name):
        found = getattr(os, name)
        return partial(self.mortally, found) if name in self.steps else found

    def mortally(self, call, *args, **how):
        self.fuse.step()
        return call(*args, **how)

    def open(self, name, flags, *mode):
        if flags & os.O_CREAT:
            self.fuse.step()
        return os.open(name, flags, *mode)

    def fsync(self, fd):
        """Synced enough: it is processes that are killed here, not machines."""
        self.fuse.step()


class Faulty:
    """A store on a bad line: a request is lost, an answer is lost, a request arrives much later."""

    def __init__(self, store, fuse):
        self.store = store
        self.fuse = fuse
        self.losses = []
        self.late = []

    def __getattr__(self, name):
        return getattr(self.store, name)

    def publish(self, *args, **how):
        self.fuse.step()
        loss = self.losses.pop(0) if self.losses else None
        if loss == "late":
            self.late.append(partial(self.store.publish, *args, **how))
        if loss in ("request", "late"):
            raise UnknownOutcomeError("no answer came")
        receipt = self.store.publish(*args, **how)
        self.fuse.step()
        if loss == "answer":
            raise UnknownOutcomeError("no answer came")
        return receipt

    def deliver(self):
        """Let everything arrive that was on its way."""
        for call in self.late:
            with suppress(MergepubError):
                call()
        self.late = []


def tokens(body):
    return [line for line in body.split(b"\n") if line.startswith(b"L")]


def text_of(lines):
    return b"".join(line + b"\n" for line in lines)


@dataclass
class Person:
    """One checkout: FILE by document; ``buffer`` the text in an editor that is open."""

    name: str
    root: Path
    buffer: dict = field(default_factory=dict)

    def file(self, path):
        return self.root / path.strip("/")


class World:
    """The store, the people, and what is alive."""

    paths = ("/a", "/b")

    def __init__(self, monkeypatch, store=None, *, exchanges=True):
        self.folder = Path(tempfile.mkdtemp(dir=SHM))
        self.patch = monkeypatch
        self.fuse = Fuse()
        self.store = Faulty(store or MemoryStore(), self.fuse)
        self.alive = {path: set() for path in self.paths}
        self.dead = {path: set() for path in self.paths}
        self.serial = 0
        self.middle = None
        self.people = [Person(name, self.folder / name) for name in ("ann", "bob")]
        self._mortal(exchanges)
        for path in self.paths:
            lines = [self.new_token(path) for _ in range(8)]
            self.store.publish(path, text_of(lines), sending.publishing.ABSENT)
            self.watched = path
            for person in self.people:
                person.root.mkdir(exist_ok=True)
                (person.root / "mergepub.toml").touch()
                checkout, local = locate(str(person.file(path)))
                with locked(checkout):
                    fetch_into(self.store, checkout, local, self.store.fetch(path))

    def close(self):
        shutil.rmtree(self.folder)

    def _mortal(self, exchanges):
        mortal = MortalOs(self.fuse)
        for module in (disk, home, replacing):
            self.patch.setattr(module, "os", mortal)
        exchange = disk.exchange

        def exchanged(a, b):
            self.fuse.step()
            if self.middle:
                save, self.middle = self.middle, None
                save()
            if not exchanges:
                return False
            done = exchange(a, b)
            self.fuse.step()
            return done

        self.patch.setattr(disk, "exchange", exchanged)
        from mergepub import merge

        diff3 = merge.diff3

        def watched(base, ours, theirs, **how):
            self.check_merge(base, ours, theirs)
            return diff3(base, ours, theirs, **how)

        self.patch.setattr(merge, "diff3", watched)

    # ── what is wanted ──────────────────────────────────────────────────────────────────────────────────────────────

    def new_token(self, path):
        self.serial += 1
        token = b"L%d" % self.serial
        self.alive[path].add(token)
        return token

    def drop(self, path, token):
        self.alive[path].discard(token)
        self.dead[path].add(token)

    def check_merge(self, base, ours, theirs):
        if ours == theirs:
            return
        base, ours, theirs = (set(tokens(body)) for body in (base, ours, theirs))
        alive = self.alive[self.watched]
        assert not (ours & theirs) - base, "both sides hold what the base does not: it would be put in twice"
        assert not (base - ours) & alive, "ours lacks what nobody dropped"
        assert not (base - theirs) & alive, "theirs lacks what nobody dropped"

    def check_head(self, path):
        """Nothing alive ever vanishes from the head again, nothing is there twice."""
        rows = list(self.store.store.versions(path))
        bodies = [tokens(self.store.store.fetch(path, row.version).body) for row in rows]
        for later, earlier in itertools.pairwise(bodies):
            assert not (set(earlier) - set(later)) & self.alive[path], "reverted"
        assert len(bodies[0]) == len(set(bodies[0])), "doubled"
        return set(bodies[0])

    def check_nothing_is_lost(self):
        for path in self.paths:
            there = self.check_head(path)
            for person in self.people:
                there |= set(tokens(self.here(person, path)))
                there |= set(tokens(person.buffer.get(path, b"")))
                for beside in person.root.glob(".mergepub-*"):  # a killed command's; the next one finds it
                    there |= set(tokens(beside.read_bytes()))
            assert not self.alive[path] - there - self.kept(), "lost"

    def kept(self):
        """What was taken out of a file and is kept for good: text that was saved in the very moment of a kill."""
        files = [file for person in self.people for file in person.root.glob(".mergepub/kept/*")]
        return {token for file in files for token in tokens(file.read_bytes())}

    # ── what people do ──────────────────────────────────────────────────────────────────────────────────────────────

    def edited(self, path, body, kind, at):
        """``body`` with one edit: a new line, a line replaced or a line dropped."""
        lines = body.split(b"\n")[:-1]
        places = [n for n, line in enumerate(lines) if line in self.alive[path]]
        if not places:
            return body
        place = places[at % len(places)]
        if kind == "insert":
            lines.insert(place + (at % 2), self.new_token(path))
        else:
            self.drop(path, lines[place])
            lines[place : place + 1] = [self.new_token(path)] if kind == "replace" else []
        return text_of(lines)

    def here(self, person, path):
        """FILE's bytes; after a kill, where names cannot be exchanged, it may be gone until the next command."""
        file = person.file(path)
        return file.read_bytes() if file.exists() else b"<<<<<<<"

    def edit(self, person, path, kind, at):
        file, body = person.file(path), self.here(person, path)
        if path not in person.buffer and b"<<<<<<<" not in body:
            file.write_bytes(self.edited(path, body, kind, at))

    def open_editor(self, person, path):
        body = self.here(person, path)
        if b"<<<<<<<" not in body:
            person.buffer.setdefault(path, body)

    def save_editor(self, person, path, at):
        """Save the buffer with one more line, over whatever FILE holds by now."""
        if path in person.buffer:
            body = person.buffer.pop(path)
            if body != self.here(person, path):
                here = set(tokens(self.here(person, path)))
                places = [n for n, line in enumerate(body.split(b"\n")) if line in here]
                at = places[at % len(places)] if places else 0
            lines = body.split(b"\n")[:-1]
            lines.insert(at % (len(lines) + 1), self.new_token(path))
            person.file(path).write_bytes(text_of(lines))

    def save_in_the_middle(self, person, path, how):
        """What an editor does in the very moment of an exchange: one more line, written in place or renamed over it."""

        def save():
            file = person.file(path)
            body = file.read_bytes()
            if b"<<<<<<<" in body or path in person.buffer:
                return
            body = self.edited(path, body, "insert", 3)
            if how == "rename":
                beside = file.with_name("editor-" + file.name)
                beside.write_bytes(body)
                beside.replace(file)
            else:
                file.write_bytes(body)

        return save

    def command(self, person, path, do, *, fuse=None, losses=(), middle=None):
        """Run one command on one file, with what goes wrong in it. Answers what it came to."""
        self.watched = path
        self.fuse.light(fuse)
        self.store.losses = list(losses)
        self.middle = middle and self.save_in_the_middle(person, path, middle)
        try:
            checkout, local = locate(str(person.file(path)))
            with locked(checkout):
                return do(at_hand(self.store, checkout, local))
        except Killed:
            return "killed"
        except (UnknownOutcomeError, CheckoutError) as error:
            return error
        finally:
            self.fuse.light(None)
            self.store.losses, self.middle = [], None

    def stale_or_not(self, person, path, do, **faults):
        """Run a command; when FILE is taken for an old editor's, say whether it is."""
        came = self.command(person, path, partial(do, said={}), **faults)
        if isinstance(came, CheckoutError) and came.reason == "stale":
            word = "stale" if self.is_stale(person, path) else "allow_revert"
            came = self.command(person, path, partial(do, said={word: True}))
        return came

    def is_stale(self, person, path):
        """Whether FILE lacks what is alive in its base, or has back what was dropped there: nobody meant that."""
        checkout, local = locate(str(person.file(path)))
        record = checkout.load(local)
        base = set(tokens(checkout.body(record, record.base.digest)))
        here = set(tokens(local.read()))
        return bool((base - here) & self.alive[path] or (here - base) & self.dead[path])

    def pull(self, person, path, **faults):
        return self.stale_or_not(person, path, lambda work, said: pull_file(work, **said), **faults)

    def push(self, person, path, *, update=True, policy="merge", **faults):
        def do(work, said):
            return publish_file(work, How(on_conflict=policy, update=update, **said))

        return self.stale_or_not(person, path, do, **faults)

    def publish_into(self, person, path, *, policy="merge", **faults):
        """``publish -o FILE``."""

        def do(work, said):
            outcome = publish_file(work, How(on_conflict=policy, update=True, **said))
            take_output(work, outcome)
            return outcome

        return self.stale_or_not(person, path, do, **faults)

    def resolve(self, person, path, **faults):
        def do(work, said):
            found = begin(work, **said)
            if isinstance(found, resolving.Conflict):
                text = self.mended(path, found)
                check_mended(work, found, text, ours_meant=True)
                conclude(work, found, text)
                return publish_resolved(work, How())
            return found

        return self.stale_or_not(person, path, do, **faults)

    def mended(self, path, conflict):
        """What somebody makes of the marked body who wants all that is alive, once."""
        lines = []
        for piece in parse(conflict.marked, conflict.clash.marker_size):
            parts = [piece.text] if isinstance(piece, Text) else [piece.theirs, piece.ours]
            for line in b"".join(parts).split(b"\n"):
                if line and line not in lines and line not in self.dead[path]:
                    lines.append(line)
        return text_of(lines)

    def fetch(self, person, path, **faults):
        """``fetch -o``: refused where FILE holds anything of its own."""
        before = tokens(self.here(person, path))
        came = self.command(
            person,
            path,
            lambda work: fetch_into(self.store, work.checkout, work.local, self.store.fetch(path)),
            **faults,
        )
        if not isinstance(came, CheckoutError):
            there = {*tokens(self.here(person, path)), *self.check_head(path)}
            assert not set(before) & self.alive[path] - there, "replaced what is nowhere else"

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self):
        """Everybody saves, resolves, pushes and pulls; then all hold the same, and just what is wanted."""
        self.store.deliver()
        for person in self.people:
            for path in self.paths:
                self.save_editor(person, path, 0)
        for _ in range(3):
            for person in self.people:
                for path in self.paths:
                    self.sync(person, path)
        for path in self.paths:
            body = self.store.store.fetch(path).body
            there = tokens(body)
            assert len(there) == len(set(there)), "doubled"
            back = set(there) - self.alive[path]
            assert not back, f"came back: {back}"
            assert not self.alive[path] - set(there) - self.kept(), "lost"
            assert body == text_of(tokens(body)), "nothing but tokens"
            for person in self.people:
                assert person.file(path).read_bytes() == body
            for person in self.people:
                self.command(person, path, self.check_settled)

    def sync(self, person, path):
        came = self.push(person, path)
        if isinstance(came, Overlap) or (isinstance(came, CheckoutError) and came.reason == "in-conflict"):
            came = self.resolve(person, path)
        if isinstance(came, Overlap):  # the version that it was merged with had moved on
            came = self.resolve(person, path)
        assert isinstance(came, Published), came
        assert not isinstance(self.pull(person, path), Exception)

    def check_settled(self, work):
        assert not work.record.sent
        assert not work.record.clash
        names = {p.name for p in Path(work.local.target).parent.iterdir()}
        assert names == {".mergepub", "mergepub.toml", *(path.strip("/") for path in self.paths)}, "left behind"
        assert not list(Path(work.checkout.inside("intents")).glob("*"))


LOSSES = [
    (),
    (),
    (),
    ("answer", "request"),
    ("request", "answer"),
    ("request", "request"),
    ("late", "late"),
    ("answer", "answer"),
    ("request", "late"),
]


def random_history(seed, steps=12, store=None):
    """One random history from begin to end; what it proves wrong is raised."""
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        world = World(patch, store, exchanges=chance.random() < 0.6)
        try:
            for _ in range(steps):
                random_step(world, chance)
                world.check_nothing_is_lost()
            world.finish()
        finally:
            world.close()


def random_step(world, chance):
    person, path = chance.choice(world.people), chance.choice(["/a", "/a", "/a", "/b"])
    for _ in range(chance.randrange(3)):
        kind = chance.choice(["insert", "insert", "replace", "drop"])
        world.edit(chance.choice(world.people), path, kind, chance.randrange(12))
    faults = {
        "fuse": chance.choice([None, None, chance.randrange(70)]),
        "middle": chance.choice([None, None, "rename", "in place"]),
    }
    losses = chance.choice(LOSSES)
    acts = {
        "pull": lambda: world.pull(person, path, **faults),
        "push": lambda: world.push(
            person,
            path,
            update=chance.random() < 0.5,
            policy=chance.choice(["merge", "merge", "fail"]),
            losses=losses,
            **faults,
        ),
        "into": lambda: world.publish_into(
            person, path, policy=chance.choice(["merge", "candidate"]), losses=losses, **faults
        ),
        "resolve": lambda: world.resolve(person, path, losses=losses, **faults),
        "open": lambda: world.open_editor(person, path),
        "save": lambda: world.save_editor(person, path, chance.randrange(12)),
        "fetch": lambda: world.fetch(person, path, **faults),
        "late": world.store.deliver,
    }
    acts[chance.choice([*acts, "pull", "push", "push", "save"])]()
