"""What git knows about a file: the present commit, ancestors, the bytes at a commit. Reads alone; asks git itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mergepub.checkout import disk
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.checkout.home import Local

_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Repository:
    """A git work tree, by its top folder."""

    top: str

    @classmethod
    def of(cls, local: Local) -> Repository | None:
        """The work tree that the file lies in; None where there is none, or no git."""
        folder = os.path.dirname(local.target)
        out = _git(folder, "rev-parse", "--show-toplevel") if _below_git(folder) else None
        return cls(os.fsdecode(out.rstrip(b"\n"))) if out else None

    def head(self) -> str | None:
        """The present commit; None before the first."""
        out = _git(self.top, "rev-parse", "--verify", "--quiet", "HEAD")
        return out.decode().strip() if out else None

    def is_shallow(self) -> bool:
        """Whether history is cut off."""
        return _git(self.top, "rev-parse", "--is-shallow-repository") != b"false\n"

    def is_in_history(self, commit: str) -> bool:
        """Whether the commit is the present one or an ancestor of it; False for one that is not here, or no commit."""
        if commit.startswith("-"):
            return False
        return _git(self.top, "merge-base", "--is-ancestor", commit, "HEAD") is not None

    def body_at(self, commit: str, local: Local) -> bytes | None:
        """The file's bytes at a commit, as a checkout would write them; None where it was not there."""
        inside = os.path.relpath(local.target, self.top)
        return _git(self.top, "cat-file", "--filters", f"{commit}:{inside}")

    def changed_since(self, revision: str) -> list[str] | None:
        """The files that differ from ``revision`` and are here, with their full names; None where git knows no such.

        A diff notes in the index what it has found to be unchanged; so it gets a copy of it.
        """
        options = ["--name-only", "-z", "--no-renames", "--diff-filter=d", "--end-of-options"]
        with self._copy_of_index() as variables:
            out = _git(self.top, "diff", *options, revision, "--", **variables)
        if out is None:
            return None
        return [os.path.realpath(os.path.join(self.top, os.fsdecode(name))) for name in out.split(b"\0") if name]

    @contextmanager
    def _copy_of_index(self) -> Iterator[dict[str, str]]:
        from tempfile import NamedTemporaryFile  # noqa: PLC0415 - few commands need it

        index = _git(self.top, "rev-parse", "--path-format=absolute", "--git-path", "index") or b""
        body = disk.read(os.fsdecode(index.rstrip(b"\n")))
        with NamedTemporaryFile(prefix="mergepub-index-") as copy:
            copy.write(body or b"")
            copy.flush()
            yield {"GIT_INDEX_FILE": copy.name} if body else {}


def _below_git(folder: str) -> bool:
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above
    return True


def _git(folder: str, *arguments: str, **variables: str) -> bytes | None:
    """What git prints; None where it fails, or is not installed."""
    import subprocess  # noqa: PLC0415 - most files lie in no git work tree, or are tracked without asking

    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**_environment(), **variables},
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


_OF_ONE_REPOSITORY = frozenset(
    (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    )
)


def _environment() -> dict[str, str]:
    """Without what a hook of git is told of its own repository: FILE may lie in another. Nothing is locked."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ONE_REPOSITORY}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0"}
