"""A private Git commit of a work tree as it stands: by git's plumbing, with an index of its own, under a ref of ours.

The user's index, HEAD, branches, reflogs and files stay untouched, no hook runs, and nothing of it is pushed or cloned
by default. Objects go into the repository's own store, where the ref keeps them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

REFS = "refs/mergepub/evidence"
LARGEST = 64 * 1024 * 1024
"""Of a new file, in bytes; a larger one that nobody ever committed is named and left out."""

_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.splitIndex": "false",
    "core.logAllRefUpdates": "false",
    "core.fsync": "all",
    "core.fsyncMethod": "batch",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "advice.addEmbeddedRepo": "false",
}
_WHO = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in
        (("NAME", "mergepub"), ("EMAIL", "mergepub@localhost"))}  # fmt: skip
_SHOWN = 3  # names in a note


class GitError(Exception):
    """There is no commit; the message says why."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A work tree: its top folder, the repository behind it, its index, and HEAD's commit ("" before the first)."""

    top: str
    repository: str
    index: str
    head: str
    branch: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, and in sentences what it lacks."""

    id: str
    notes: tuple[str, ...]


def find(folder: str, deadline: float) -> Tree:
    """The work tree that ``folder`` lies in.

    Raises:
        GitError: there is none, git is not installed, or it refuses to look at it.
    """
    git = _Git(folder, deadline)
    out = git.ask("rev-parse", "--show-toplevel", "--git-common-dir", "--git-path", "index")
    top, *places = [os.fsdecode(line) for line in out.rstrip(b"\n").split(b"\n")]
    repository, index = (os.path.realpath(os.path.join(folder, place)) for place in places)
    head = git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail=True)
    branch = git.ask("symbolic-ref", "--quiet", "--short", "HEAD", may_fail=True)
    return Tree(top, repository, index, head.decode().strip(), branch.decode("utf-8", "replace").strip())


def commit(tree: Tree, name: str, message: str, scratch: str, wanted: Iterable[str], *, deadline: float) -> Commit:
    """Commit ``tree`` under the private ref called ``name``.

    Args:
        tree: the work tree.
        name: the last part of the ref.
        message: the commit's message.
        scratch: a file that may be used as an index, and is removed.
        wanted: files that go in although git may be told to ignore them, by their whole names.
        deadline: when it has to be done, as ``time.monotonic()``.

    Raises:
        GitError: it cannot be made, or not in time.
    """
    git = _Git(tree.top, deadline, {"GIT_INDEX_FILE": scratch})
    try:
        _fill(tree, scratch, git)
        notes = [*_add(git, tree.top), *_add_ignored(git, tree.top, wanted)]
        root = git.ask("write-tree").decode().strip()
        parents = ("-p", tree.head) if tree.head else ()
        made = git.ask("commit-tree", root, *parents, "-F", "-", given=message.encode("utf-8", "replace"))
        commit_id = made.decode().strip()
        git.ask("update-ref", f"{REFS}/{name}", commit_id)
    finally:
        for leftover in (scratch, f"{scratch}.lock"):
            with suppress(OSError):
                os.unlink(leftover)
    return Commit(commit_id, tuple(notes))


def remove(repository: str, name: str) -> None:
    """Remove the private ref called ``name``; nothing happens where there is none."""
    with suppress(GitError):
        _Git(repository, time.monotonic() + 30).ask("update-ref", "-d", f"{REFS}/{name}")


def _fill(tree: Tree, scratch: str, git: _Git) -> None:
    """Begin with the user's index, for what it knows of unchanged files; without one, with HEAD."""
    try:
        before = os.stat(tree.index)
        shutil.copyfile(tree.index, scratch)
        # The index's own time tells git which files may have changed in the moment when it was written.
        os.utime(scratch, ns=(before.st_atime_ns, before.st_mtime_ns))
    except OSError:
        git.ask("read-tree", tree.head or "--empty")


def _add(git: _Git, top: str) -> list[str]:
    """Add everything as it stands, as far as it can be read; what was left out."""
    new = list(filter(None, git.ask("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")))
    nested = [name for name in new if name.endswith(b"/")]
    large = [name for name in new if name not in nested and _size(top, name) > LARGEST]
    specs = [b":/", *(b":(top,exclude,literal)" + name for name in (*nested, *large))]
    trouble = git.add(specs, "--all", "--ignore-errors")
    notes = [f"the commit may lack changes: {trouble}"] if trouble else []
    left_out = (("repositories inside this one", nested), (f"new files over {LARGEST >> 20} MiB", large))
    notes += [f"{what} are not in the commit: {_listed(names)}" for what, names in left_out if names]
    if os.path.exists(os.path.join(top, ".gitmodules")):
        notes.append("of submodules the commit names their commits alone")
    return notes


def _add_ignored(git: _Git, top: str, wanted: Iterable[str]) -> list[str]:
    inside = [os.path.relpath(name, top) for name in wanted if os.path.lexists(name)]
    specs = [b":(top,literal)" + os.fsencode(name) for name in inside if not name.startswith("..")]
    trouble = git.add(specs, "--force", "--ignore-errors") if specs else ""
    return [f"the commit may lack edited documents: {trouble}"] if trouble else []


def _listed(names: Sequence[bytes]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(os.fsdecode(name) for name in names[:_SHOWN]) + more


def _size(top: str, name: bytes) -> int:
    try:
        return os.lstat(os.path.join(os.fsencode(top), name)).st_size
    except OSError:
        return 0


class _Git:
    """Calls of git in one folder until a deadline; one that takes longer is ended with all that it started."""

    def __init__(self, folder: str, deadline: float, environment: Mapping[str, str] | None = None) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        self._environment = own | _WHO | quiet | dict(environment or {})
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        self._command = ["git", "-C", folder, *settings]
        self._deadline = deadline

    def ask(self, *arguments: str, given: bytes = b"", may_fail: bool = False) -> bytes:
        """What git prints, b"" where it may fail and does."""
        code, out, trouble = self._run(arguments, given)
        if code and not may_fail:
            raise GitError(f"git {arguments[0]}: {_last(trouble) or f'exit status {code}'}")
        return b"" if code else out

    def add(self, specs: Sequence[bytes], *options: str) -> str:
        """``git add`` of ``specs``; what was wrong with some of it, "" where all went well."""
        arguments = ("add", *options, "--pathspec-from-file=-", "--pathspec-file-nul")
        code, _, trouble = self._run(arguments, b"\0".join(specs))
        return _last(trouble) or f"git add ended with {code}" if code else ""

    def _run(self, arguments: Sequence[str], given: bytes) -> tuple[int, bytes, bytes]:
        try:
            child = subprocess.Popen(
                [*self._command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be started: {error.strerror}") from error
        with child:
            try:
                out, trouble = child.communicate(given, max(0.0, self._deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                raise GitError(f"git {arguments[0]} took too long") from None
        return child.returncode, out, trouble


def _last(trouble: bytes) -> str:
    lines = trouble.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
