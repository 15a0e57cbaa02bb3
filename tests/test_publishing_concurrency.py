"""Many writers of one document: whatever the interleaving, an acknowledged edit is never silently lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.errors import UnknownOutcomeError
from mergepub.outcomes import Contention, Overlap, Published
from mergepub.publishing import fetch, publish
from mergepub.stores import open_store
from mergepub.stores.memory import MemoryStore

PATH = "/docs/guide.md"
PARAGRAPHS = 6


# ── random interleavings, one store call at a time ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Edit:
    """One writer's edit of one paragraph, by lines that stand nowhere else: ``kind`` replace, insert or delete."""

    kind: str
    paragraph: int
    name: str

    def of(self, body):
        """The edited body, the lines that went and the lines that came."""
        lines = body.split(b"\n")
        at = next((n for n, line in enumerate(lines) if line.startswith(b"p%d " % self.paragraph)), None)
        if at is None:
            return None
        new = b"p%d by %s" % (self.paragraph, self.name.encode())
        if self.kind == "insert":
            return b"\n".join([*lines[: at + 1], b"+ " + new, *lines[at + 1 :]]), set(), {b"+ " + new}
        came = [new] if self.kind == "replace" else []
        return b"\n".join([*lines[:at], *came, *lines[at + 1 :]]), {lines[at]}, set(came)


class Turns:
    """Runs writers as threads, one store call at a time, in the order that ``choices`` says."""

    def __init__(self, choices):
        self.choices = choices
        self.back = threading.Semaphore(0)

    def run(self, writers):
        gates = [threading.Semaphore(0) for _ in writers]
        failures = []

        def body(writer, gate):
            gate.acquire()
            try:
                writer(lambda: (self.back.release(), gate.acquire()))
            except BaseException as failure:
                failures.append(failure)
            finally:
                done.add(gate)
                self.back.release()

        done = set()
        threads = [threading.Thread(target=body, args=pair) for pair in zip(writers, gates, strict=True)]
        for thread in threads:
            thread.start()
        while waiting := [gate for gate in gates if gate not in done]:
            waiting[next(self.choices, 0) % len(waiting)].release()
            self.back.acquire()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]


class TakesTurns:
    """A store that waits for its turn before every call, and loses answers (or requests) as ``losses`` says."""

    def __init__(self, store, wait, losses):
        self.store = store
        self.capabilities = store.capabilities
        self.wait = wait
        self.losses = losses

    def fetch(self, path, version=None):
        self.wait()
        return self.store.fetch(path, version)

    def publish(self, *args, **kw):
        self.wait()
        loss = next(self.losses, "none")
        if loss == "request":
            raise UnknownOutcomeError("timed out")
        receipt = self.store.publish(*args, **kw)
        if loss == "answer":
            raise UnknownOutcomeError("reset by peer")
        return receipt


@dataclass
class Log:
    """What the writers were told."""

    edits: dict = field(default_factory=dict)  # name -> (lines gone, lines come)
    acknowledged: dict = field(default_factory=dict)  # name -> Published


def writer(store, edits, losses, log):
    def run(wait):
        mine = TakesTurns(store, wait, losses)
        for edit in edits:
            base = fetch(mine, PATH).document
            edited = edit.of(base.body)
            if edited is None:
                continue
            log.edits[edit.name] = edited[1:]
            outcome = until_answered(mine, edit.name, edited[0], base.version.number)
            assert isinstance(outcome, Published | Overlap | Contention)
            if isinstance(outcome, Published):
                log.acknowledged[edit.name] = outcome

    return run


def until_answered(store, name, body, expected):
    while True:
        try:
            return publish(store, PATH, body, expected, on_conflict="merge", retries=2, message=name)
        except UnknownOutcomeError:
            continue


def lines_of(store, version):
    return set(store.fetch(PATH, version).body.split(b"\n"))


def check(store, log):
    """Every version differs from the one before by exactly one writer's edit, and every acknowledged edit is one."""
    revisions = sorted(store.versions(PATH), key=lambda r: r.version)
    assert [r.version for r in revisions] == list(range(1, len(revisions) + 1))
    for revision in revisions[1:]:
        gone, come = log.edits[revision.message]
        before, after = lines_of(store, revision.version - 1), lines_of(store, revision.version)
        assert after == (before - gone) | come, revision
    made = [r.message for r in revisions[1:]]
    assert len(made) == len(set(made)), "an edit was published twice"
    for name, outcome in log.acknowledged.items():
        gone, come = log.edits[name]
        lines = lines_of(store, outcome.version)
        assert come <= lines, "an acknowledged edit is not in the version that it was acknowledged with"
        assert not gone & lines
        assert name in made or outcome.unchanged or outcome.replayed


def seeded():
    store = MemoryStore()
    text = b"\n\n\n".join(b"p%d at first\nunder %d" % (n, n) for n in range(PARAGRAPHS))
    publish(store, PATH, text + b"\n", 0)
    return store


edit = st.tuples(st.sampled_from(["replace", "replace", "insert", "delete"]), st.integers(0, PARAGRAPHS - 1))


@settings(max_examples=150, deadline=None)
@given(
    plans=st.lists(st.lists(edit, min_size=1, max_size=3), min_size=2, max_size=4),
    choices=st.lists(st.integers(0, 11), max_size=60),
    losses=st.lists(st.sampled_from(["none", "none", "none", "answer", "request"]), max_size=12),
)
def test_in_every_interleaving_each_version_is_one_acknowledged_edit_on_top_of_the_one_before(plans, choices, losses):
    store, log, lost = seeded(), Log(), iter(losses)
    writers = [
        writer(store, [Edit(*e, f"w{w}e{n}") for n, e in enumerate(plan)], lost, log) for w, plan in enumerate(plans)
    ]
    Turns(iter(choices)).run(writers)
    check(store, log)


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(2, PARAGRAPHS),
    choices=st.lists(st.integers(0, 11), max_size=80),
    losses=st.lists(st.sampled_from(["none", "answer", "request"]), max_size=12),
)
def test_writers_of_different_paragraphs_all_get_in_when_they_repeat_after_contention(count, choices, losses):
    store, lost = seeded(), iter(losses)

    def persistent(number):
        def run(wait):
            mine = TakesTurns(store, wait, lost)
            base = fetch(mine, PATH).document
            body = Edit("replace", number, f"w{number}").of(base.body)[0]
            while isinstance(until_answered(mine, f"w{number}", body, base.version.number), Contention):
                pass

        return run

    Turns(iter(choices)).run([persistent(number) for number in range(count)])
    body = store.fetch(PATH).body
    assert all(b"p%d by w%d\n" % (n, n) in body for n in range(count))
    assert store.fetch(PATH).version.number == 1 + count


# ── processes on one SQLite file ────────────────────────────────────────────────────────────────────────────────────

WRITER = """
import sys
from mergepub.outcomes import Contention, Published
from mergepub.publishing import fetch, publish
from mergepub.stores import open_store

url, path, number, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = open_store(url)
base = fetch(store, path).document
print("ready", flush=True)
sys.stdin.readline()
for round in range(1, rounds + 1):
    lines = base.body.split(b"\\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(b"writer %d:" % number))
    lines[at] += b" %d" % round
    while True:
        outcome = publish(
            store, path, b"\\n".join(lines), base.version.number, on_conflict="merge", message=f"{number}.{round}"
        )
        if not isinstance(outcome, Contention):
            break
    assert isinstance(outcome, Published), outcome
    print(round, outcome.version, flush=True)
    base = fetch(store, path).document
store.close()
"""


@pytest.mark.parametrize(("writers", "rounds"), [(3, 20), (16, 6)])
def test_concurrent_writer_processes_end_with_every_edit_in_the_final_document(tmp_path, writers, rounds):
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    store = open_store(url)
    publish(store, PATH, b"\n\n".join(b"writer %d:" % n for n in range(writers)) + b"\n", 0)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, PATH, str(n), str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for n in range(writers)
    ]
    for process in processes:
        assert process.stdout.readline() == b"ready\n", process.stderr.read()
    for process in processes:  # all at once, and only then wait for the first
        process.stdin.write(b"go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0] * writers, [err.decode() for _, err in answers]
    numbers = b" ".join(b"%d" % n for n in range(1, rounds + 1))
    assert store.fetch(PATH).body == b"\n\n".join(b"writer %d: %s" % (n, numbers) for n in range(writers)) + b"\n"
    acknowledged = [int(line.split()[1]) for out, _ in answers for line in out.splitlines()]
    assert sorted(acknowledged) == list(range(2, 2 + writers * rounds))
    assert [r.version for r in store.versions(PATH)] == list(range(1 + writers * rounds, 0, -1))
    assert list(store.verify()) == []
    store.close()
