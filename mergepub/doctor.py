"""The proof that a store keeps its promises, made on a scratch document and cleaned up after.

Every step is a finding: what was looked at, the verdict, and what to do next. Nothing here knows a backend; what is
peculiar to HTTP is looked at in ``stores.http_doctor``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.documents import ABSENT, Receipt, Version
from mergepub.errors import DeniedError, MergepubError, NotFoundError, VersionConflictError
from mergepub.findings import Finding

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

DISHONEST = 3
SCRATCH = "/mergepub-doctor"


def passed(check: str, message: str) -> Finding:
    """The finding for a check that was passed."""
    return Finding(check, "ok", message)


def failed(check: str, error: MergepubError) -> Finding:
    """The finding for a check that could not be made."""
    return Finding(
        check, "fail", error.message, error.hint or "mend that and run mergepub doctor again", error.exit_status
    )


def look_at(store: Store) -> Finding:
    """Whether the store opens and can be read."""
    try:
        first = next(iter(store.list("/", limit=1)), None)
    except NotFoundError as error:
        return Finding("store", "warn", f"{store.url}: {error.message}", "mergepub store init", 4)
    except MergepubError as error:
        return failed("store", error)
    return passed("store", f"{store.url} can be read" + ("" if first else "; it holds nothing yet"))


def prove(store: Store, folder: str = SCRATCH) -> Iterator[Finding]:
    """Prove on a scratch document below ``folder`` that compare-and-swap is honest; delete the document again.

    Its history stays in the store, as every history does.
    """
    proof = _Proof(store, f"{folder.rstrip('/')}/{os.urandom(8).hex()}.txt")
    try:
        yield from proof.findings()
    except DeniedError as error:
        yield Finding(
            "publish",
            "warn",
            f"publishing {proof.path} is not allowed, so nothing could be proven: {error.message}",
            "name a folder that the token may publish to: mergepub doctor --scratch /docs",
        )
    except _Broken as broken:
        yield Finding(broken.check, "fail", broken.message, _DO_NOT_TRUST, DISHONEST)
    except MergepubError as error:
        yield failed("publish", error)
    if proof.made:
        yield proof.clean_up()


_DO_NOT_TRUST = "do not publish here until that is mended: an edit can be lost; tell whoever runs the store"


class _Broken(Exception):  # noqa: N818 - no error of the program: a promise that the store did not keep
    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check
        self.message = message


class _Proof:
    """The steps on one scratch document; each needs the ones before it."""

    bodies = (b"first\r\n\x00\xff, without an end of line", b"one writer's\n", b"another writer's\n")

    def __init__(self, store: Store, path: str) -> None:
        self.path = path
        self.made = False
        self._store = store

    def findings(self) -> Iterator[Finding]:
        """Every step that the store passes.

        Raises:
            _Broken: the first promise that it does not keep.
            MergepubError: a call that the store refused.
        """
        yield self._bytes()
        winner, at = self._race()
        yield passed("swap", "of two publishes with the same expected version exactly one was written")
        yield self._retry(winner, at)
        yield self._history(winner, at)
        yield self._stale_delete(at)

    def _bytes(self) -> Finding:
        self.made = True  # from here on there may be something to clean up, whatever the answer
        first = self._publish(self.bodies[0], ABSENT)
        stored = self._store.fetch(self.path)
        if stored.body != self.bodies[0]:
            raise _Broken("bytes", "a body came back with other bytes than were published")
        if first.version.number != 1:
            raise _Broken("bytes", f"a new document began with version {first.version.number}, not 1")
        if self._accepts(lambda: self._publish(self.bodies[1], ABSENT)):
            raise _Broken("swap", "a publish that expected no document replaced one")
        return passed("bytes", "a body of odd bytes came back as it was published")

    def _race(self) -> tuple[bytes, int]:
        """Two writers at once with the same expected version; the winner's body and version."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only a proof needs threads

        base = self._store.fetch(self.path).version
        with ThreadPoolExecutor(2) as writers:
            races = [writers.submit(self._answer, body, base) for body in self.bodies[1:]]
        receipts = [race.result() for race in races]
        written = [(body, receipt) for body, receipt in zip(self.bodies[1:], receipts, strict=True) if receipt]
        if len(written) != 1:
            raise _Broken(
                "swap",
                "two publishes with the same expected version were both accepted: one of them is lost"
                if written
                else "two publishes with the same expected version were both refused",
            )
        body, receipt = written[0]
        if self._store.fetch(self.path).body != body:
            raise _Broken("swap", "the publish that was accepted is not the head")
        return body, receipt.version.number or 0

    def _answer(self, body: bytes, base: Version) -> Receipt | None:
        try:
            return self._publish(body, base)
        except VersionConflictError:
            return None

    def _retry(self, body: bytes, at: int) -> Finding:
        receipt = self._publish(body, Version(at - 1))
        if receipt.version.number != at or not (receipt.replayed or receipt.unchanged):
            raise _Broken("retry", "the very same publish, repeated, was not recognised")
        return passed("retry", "the very same publish, repeated, was recognised and made no second version")

    def _history(self, body: bytes, at: int) -> Finding:
        if self._store.capabilities.history == "none":
            return Finding("history", "warn", "this store keeps no history", "keep the files that you publish tracked")
        found = [self._store.fetch(self.path, number).body for number in (1, at)]
        if found != [self.bodies[0], body]:
            raise _Broken("history", "an earlier version does not answer the bytes that were published as it")
        return passed("history", "earlier versions answer their own bytes")

    def _stale_delete(self, at: int) -> Finding:
        if self._accepts(lambda: self._store.delete(self.path, Version(at - 1), author="", message="")):
            self.made = False
            raise _Broken("delete", "a delete that expected an earlier version deleted the newest")
        return passed("delete", "a delete that expected an earlier version was refused")

    def clean_up(self) -> Finding:
        """Delete the scratch document."""
        try:
            self._store.delete(
                self.path, self._store.fetch(self.path).version, message="Clean up after mergepub doctor"
            )
        except NotFoundError:
            return passed("clean-up", f"{self.path} does not exist")
        except MergepubError as error:
            path = quote(self.path)
            hint = f"delete it by hand: mergepub fetch {path}, then mergepub delete {path} --expected-version N"
            return Finding("clean-up", "warn", f"{self.path} is left behind: {error.message}", hint)
        return passed("clean-up", f"{self.path} is deleted; its history stays, as every history does")

    def _publish(self, body: bytes, expected: Version) -> Receipt:
        return self._store.publish(self.path, body, expected, author="mergepub doctor", message="Prove the store")

    @staticmethod
    def _accepts(write: Callable[[], object]) -> bool:
        try:
            write()
        except VersionConflictError:
            return False
        return True
