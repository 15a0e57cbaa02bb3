"""Stores around stores: retrying, logging, read-only, fault-injecting. Each keeps the contract of what it wraps.

URL and capabilities pass through. What a wrapper does stands in its ``_around``, which every operation goes through;
nothing here knows what the operations mean beyond ``Call``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from mergepub.documents import TEXT, Document, Listed, MergedFrom, Receipt, Revision, Version
from mergepub.errors import (
    ContentionError,
    DeniedError,
    MergepubError,
    ThrottledError,
    UnavailableError,
    UnknownOutcomeError,
)
from mergepub.stores.branch_wrapper import BranchWrapper
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.stores.contract import Capabilities, Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a store, as wrappers see it: never a body, never a label."""

    name: str
    path: str | None = None
    writes: bool = False
    size: int | None = None
    expected: int | None = None


class Wrapper(BranchWrapper):
    """A store around ``inner`` that changes nothing. Override ``_around``."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def _around(self, call: Call, operation: Callable[[], T]) -> T:  # noqa: ARG002 - what subclasses look at
        return operation()

    @property
    def url(self) -> str:
        """The inner store's URL."""
        return self._inner.url

    @property
    def capabilities(self) -> Capabilities:
        """What the inner store can do."""
        return self._inner.capabilities

    def fetch(self, path: str, version: int | None = None) -> Document:
        """See ``Store.fetch``."""
        return self._around(Call("fetch", path), lambda: self._inner.fetch(path, version))

    def publish(
        self,
        path: str,
        body: bytes,
        expected: Version,
        *,
        author: str = "",
        message: str = "",
        merged_from: MergedFrom | None = None,
        source: str | None = None,
        kind: str = TEXT,
    ) -> Receipt:
        """See ``Store.publish``."""
        return self._around(
            Call("publish", path, writes=True, size=len(body), expected=expected.number),
            lambda: self._inner.publish(
                path,
                body,
                expected,
                author=author,
                message=message,
                merged_from=merged_from,
                source=source,
                kind=kind,
            ),
        )

    def append(
        self,
        path: str,
        body: bytes,
        *,
        key: str,
        author: str = "",
        message: str = "",
        expected: Version | None = None,
    ) -> Receipt:
        """See ``Store.append``."""
        return self._around(
            Call("append", path, writes=True, size=len(body), expected=None if expected is None else expected.number),
            lambda: self._inner.append(path, body, key=key, author=author, message=message, **_given(expected)),
        )

    def delete(self, path: str, expected: Version, *, author: str = "", message: str = "") -> Receipt:
        """See ``Store.delete``."""
        return self._around(
            Call("delete", path, writes=True, expected=expected.number),
            lambda: self._inner.delete(path, expected, author=author, message=message),
        )

    def versions(self, path: str, *, before: int | None = None, limit: int | None = None) -> Iterator[Revision]:
        """See ``Store.versions``."""
        return self._around(Call("versions", path), lambda: self._inner.versions(path, before=before, limit=limit))

    def list(
        self, prefix: str = "/", *, after: str | None = None, limit: int | None = None, deleted: bool = False
    ) -> Iterator[Listed]:
        """See ``Store.list``."""
        return self._around(
            Call("list", prefix), lambda: self._inner.list(prefix, after=after, limit=limit, deleted=deleted)
        )

    def verify(self, path: str | None = None) -> Iterator[str]:
        """See ``Store.verify``."""
        return self._around(Call("verify", path), lambda: self._inner.verify(path))

    def close(self) -> None:
        """Close the inner store."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently ``Retrying`` repeats: times in seconds. Tests put ``instant()`` in its place."""

    attempts: int = 4
    first_wait: float = 0.1
    factor: float = 2.0
    longest_wait: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def instant(cls, attempts: int = 4) -> RetryPolicy:
        """A policy that never sleeps."""
        return cls(attempts, sleep=lambda _: None)

    def wait_for(self, error: UnavailableError, attempt: int) -> float:
        """Seconds to wait after ``attempt`` (from 1) failed with ``error``; spread, so that callers lose step."""
        if isinstance(error, ThrottledError):
            return min(error.after, self.longest_wait)
        wait = min(self.first_wait * self.factor ** (attempt - 1), self.longest_wait)
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - spreads waiting, protects nothing


class Retrying(Wrapper):
    """Repeats what may succeed when repeated as it is.

    Every write is recognised by the store when it comes again (a publish by its content, an append by its key, a delete
    by its tombstone), so a write of unknown outcome is repeated too; but not where the system keeps no full history,
    because there the first one would look like somebody else's.
    """

    def __init__(self, inner: Store, policy: RetryPolicy | None = None) -> None:
        super().__init__(inner)
        self._policy = policy or RetryPolicy()

    def _around(self, call: Call, operation: Callable[[], T]) -> T:
        for attempt in range(1, self._policy.attempts):
            try:
                return _whole(operation())
            except UnavailableError as error:
                if not self._repeatable(call, error):
                    raise
                self._policy.sleep(self._policy.wait_for(error, attempt))
        return _whole(operation())

    def _repeatable(self, call: Call, error: UnavailableError) -> bool:
        if isinstance(error, UnknownOutcomeError) and call.writes:
            return self.capabilities.history == "full"
        return True


class Logging(Wrapper):
    """Tells ``write`` one line for each call: operation, path, sizes, outcome, milliseconds. No bodies, no labels."""

    def __init__(self, inner: Store, write: Callable[[str], None]) -> None:
        super().__init__(inner)
        self._write = write

    def _around(self, call: Call, operation: Callable[[], T]) -> T:
        begun = time.perf_counter()
        try:
            answer = operation()
        except BaseException as error:
            self._tell(call, type(error).__name__, begun)  # the class alone: a message may quote what it should not
            raise
        self._tell(call, _outcome(answer), begun)
        return answer

    def _tell(self, call: Call, outcome: str, begun: float) -> None:
        said = [call.name, call.path or "-"]
        said += [] if call.expected is None else [f"expected={call.expected}"]
        said += [] if call.size is None else [f"bytes={call.size}"]
        self._write(" ".join([*said, "->", outcome, f"{(time.perf_counter() - begun) * 1000:.1f} ms"]))


class ReadOnly(Wrapper):
    """Refuses every write."""

    def _around(self, call: Call, operation: Callable[[], T]) -> T:
        if call.writes:
            raise DeniedError(f"the store {self.url} is opened for reading only; {call.name} was not done")
        return operation()


@dataclass(frozen=True, slots=True)
class Fault:
    """An error to raise ``before`` the inner call, so that nothing happens, or ``after`` it, so that it happened."""

    when: Literal["before", "after"]
    error: MergepubError


def lost_answer() -> Fault:
    """The call reaches the store and its answer is lost."""
    return Fault("after", UnknownOutcomeError("the answer was lost: it may or may not have happened"))


def lost_request() -> Fault:
    """The call never reaches the store, and nobody can tell."""
    return Fault("before", UnknownOutcomeError("no answer came: it may or may not have happened"))


def contention() -> Fault:
    """Something else moved in the store; nothing happened."""
    return Fault("before", ContentionError("something else moved; repeat it"))


class FaultInjecting(Wrapper):
    """Follows a script: one entry for each call, a ``Fault`` or None; after its end every call passes."""

    def __init__(self, inner: Store, script: Iterable[Fault | None] = ()) -> None:
        super().__init__(inner)
        self._script = iter(script)

    def _around(self, call: Call, operation: Callable[[], T]) -> T:  # noqa: ARG002 - the script counts calls only
        fault = next(self._script, None)
        if fault and fault.when == "before":
            raise fault.error
        answer = operation()
        if fault:
            raise fault.error
        return answer


def _given(expected: Version | None) -> dict[str, Version]:
    """The argument as it was given: a store without it is only asked to compare where somebody wants that."""
    return {} if expected is None else {"expected": expected}


def _whole(answer: T) -> T:
    """An iterator's items drawn at once, so that a fault halfway is a fault of the call."""
    return cast("T", iter([*answer])) if isinstance(answer, Iterator) else answer


def _outcome(answer: Any) -> str:
    if not isinstance(answer, Receipt | Document):
        return "ok"
    said = [f"version={answer.version.number}"]
    said += [word for word in ("unchanged", "replayed") if getattr(answer, word, False)]
    return " ".join(said)
