"""The error tree: what went wrong, told apart by what the caller can do about it.

    MergepubError                     exit 1   internal failure
    ├── InputError                    exit 2   mend the call: path, option, file or body
    │   ├── BadPathError
    │   ├── UnresolvedMarkersError             the body still holds a conflict block (carries the line)
    │   ├── RejectedError                      the store does not take this body or label (carries the limit)
    │   │   └── KeyReusedError                 an append's key, with another body
    │   └── OutputError                        an output that cannot be written
    ├── MergeRefusedError             exit 3   look, decide, publish again
    │   ├── BinaryBodyError                    a real merge is needed and a body holds NUL
    │   ├── VersionConflictError               the head is not what the write builds on
    │   │   ├── DocumentExistsError            expected ABSENT, and there is one
    │   │   ├── DocumentDeletedError           deleted since (carries the tombstone's version)
    │   │   ├── RecreatedError                 the expected version is of an earlier incarnation
    │   │   └── BaseUnavailableError           the expected version is not there, or not the one that was recorded
    │   ├── CheckoutError                      a tracked file, or .mergepub/, is in no state for this
    │   ├── BranchError                        a branch or a decision is in no state for this (carries the reason)
    │   ├── DeniedError                        the store knows us and says no
    │   └── InvalidStoreError                  a store file that is not ours, or of a newer schema
    │       └── DamagedError                   what the store holds contradicts itself
    ├── NotFoundError                 exit 4   no such document, version or branch
    └── UnavailableError              exit 4   the store cannot be reached, opened or locked; try later
        ├── ThrottledError                     repeat after `after` seconds
        ├── ContentionError                    something else moved: repeat the very same call
        └── UnknownOutcomeError                sent, and no answer: it may or may not have happened

Data travels as attributes; messages are whole sentences that say what was wrong, with what, and what to do next.
Nothing here knows about terminals or HTTP. The command line translates errors once, at its edge.
"""

from __future__ import annotations


class MergepubError(Exception):
    """Root of every error this project raises on purpose.

    Attributes: ``exit_status`` the process exit status of the command line; ``reason`` one machine-readable word, or
    None; ``hint`` the next command to type, or None.
    """

    exit_status = 1
    reason: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # The default calls the class with the message alone and so loses, or misses, the keyword-only data.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[MergepubError], args: tuple[object, ...], data: dict[str, object]) -> MergepubError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(data)
    return error


class InputError(MergepubError):
    """The call itself is wrong: usage, option, file or body."""

    exit_status = 2


class BadPathError(InputError):
    """A document path breaks a rule; the message names the rule."""


class UnresolvedMarkersError(InputError):
    """The body holds a complete conflict block; ``line`` (from 1) is where it starts."""

    def __init__(self, message: str, *, line: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.line = line


class RejectedError(InputError):
    """The store does not take this; ``limit`` is the size limit in bytes where that is the cause."""

    def __init__(self, message: str, *, limit: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.limit = limit


class KeyReusedError(RejectedError):
    """The key of an append was used before, for another body."""


class OutputError(InputError):
    """An output cannot be written (a full disk, a read-only directory)."""


class MergeRefusedError(MergepubError):
    """Nothing was written; somebody has to look and decide."""

    exit_status = 3


class BinaryBodyError(MergeRefusedError):
    """A real merge is needed and a body holds a NUL byte."""

    reason = "binary"


class VersionConflictError(MergeRefusedError):
    """Compare-and-swap failed. ``expected`` and ``current`` are version numbers (0 is absent, None where unknown)."""

    def __init__(self, message: str, *, expected: int | None, current: int | None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.expected = expected
        self.current = current


class DocumentExistsError(VersionConflictError):
    """The write expected no document, and there is one."""


class DocumentDeletedError(VersionConflictError):
    """The document was deleted; ``current`` is the tombstone's version."""

    reason = "deleted"


class RecreatedError(VersionConflictError):
    """The expected version belongs to an earlier incarnation than the head's."""

    reason = "recreated"


class BaseUnavailableError(VersionConflictError):
    """The expected version is not in the store, or its body is another than the writer recorded."""

    reason = "base-unavailable"


class CheckoutError(MergeRefusedError):
    """A tracked file, or the ``.mergepub/`` beside it, is in no state for this; nothing was changed.

    ``reason``: one word such as "in-conflict", "stale", "edited", "locked". ``line`` (from 1) where one line shows it.
    """

    def __init__(
        self, message: str, *, reason: str | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.line = line


class BranchError(MergeRefusedError):
    """A branch, a log of events or a decision is in no state for this; nothing was changed.

    ``reason``: one word such as "fenced", "stale", "recreated", "barrier", "effects", "not-an-extension", or the state
    that the branch is in.
    """

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class DeniedError(MergeRefusedError):
    """The store knows who asks and says no."""


class InvalidStoreError(MergeRefusedError):
    """What the URL names is not a store of ours, or one of a newer schema. It is left untouched."""


class DamagedError(InvalidStoreError):
    """What the store holds is not what was put there: it is never handed out. ``mergepub verify`` says what is lost."""


class NotFoundError(MergepubError):
    """No such document, version or branch.

    ``tombstone`` is the tombstone's version where the document was deleted; ``path`` is that of a document that never
    existed, for whoever can name one that was meant.
    """

    exit_status = 4

    def __init__(
        self, message: str, *, tombstone: int | None = None, path: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.tombstone = tombstone
        self.path = path


class UnavailableError(MergepubError):
    """The store cannot be reached, opened or locked right now; ``after`` is the seconds it asked to wait, or None."""

    exit_status = 4

    def __init__(self, message: str, *, after: float | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.after = after


class ThrottledError(UnavailableError):
    """Asked too often; ``after`` is the number of seconds to wait."""

    after: float

    def __init__(self, message: str, *, after: float, hint: str | None = None) -> None:
        super().__init__(message, after=after, hint=hint)


class ContentionError(UnavailableError):
    """Something else moved in the store; the very same call may be repeated at once."""


class UnknownOutcomeError(UnavailableError):
    """The request was sent and no clear answer came: it may or may not have happened. Repeating it is safe."""
