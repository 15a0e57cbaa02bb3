"""Pushing many files at once, a bounded number of them at a time. Prints nothing.

What one file comes to stops no other; a store that is away stops all, for each would wait for it in vain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from mergepub.errors import ContentionError, ThrottledError, UnavailableError
from mergepub.tracking.clones import Commits
from mergepub.tracking.pushing import Pushed, push_files

if TYPE_CHECKING:
    from concurrent.futures import Future

    from mergepub.checkout import Checkout, Local
    from mergepub.stores.contract import Store
    from mergepub.tracking.sending import How

PATIENCE = 3
"""So many files in a row that the store could not be reached for; then the rest is not tried."""

Pair = tuple["Local", str]


def push_many(
    store: Store,
    checkout: Checkout,
    pairs: Sequence[Pair],
    how: Callable[[str], How],
    *,
    jobs: int = 1,
    dry_run: bool = False,
) -> Iterator[Pushed]:
    """Push every (file, path) pair, at most ``jobs`` at a time, and tell what each came to, in their order.

    The files are those of ``checkout``, whose lock is held; each is there once, and so is each path. ``how`` says how
    to publish a path. Whoever stops asking stops the rest: what was begun is finished, nothing else is.
    """
    batch = _Batch(store, checkout, how, dry_run=dry_run)
    if min(jobs, len(pairs)) < 2:
        yield from map(batch.push, pairs)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - one file alone needs no threads

    pool = ThreadPoolExecutor(jobs, thread_name_prefix="push")
    try:
        rest = iter(pairs)
        running: deque[Future[Pushed]] = deque(pool.submit(batch.push, pair) for pair in islice(rest, 2 * jobs))
        while running:
            yield running.popleft().result()
            running.extend(pool.submit(batch.push, pair) for pair in islice(rest, 1))
    finally:
        batch.stopped = True
        pool.shutdown(cancel_futures=True)


class _Batch:
    """What the files of one batch share. ``away`` counts, in a row, those that the store could not be reached for."""

    def __init__(self, store: Store, checkout: Checkout, how: Callable[[str], How], *, dry_run: bool) -> None:
        self.store = store
        self.checkout = checkout
        self.how = how
        self.dry_run = dry_run
        self.commits = Commits()
        self.away = 0
        self.stopped = False

    def push(self, pair: Pair) -> Pushed:
        local, path = pair
        if self.stopped or self.away >= PATIENCE:
            return Pushed(local.name, path, "failed", error=_not_tried())
        how = self.how(path)
        how = replace(how, source=how.source or partial(self.commits.source_of, local))
        (pushed,) = push_files(self.store, self.checkout, [pair], how, dry_run=self.dry_run)
        self.away = self.away + 1 if is_away(pushed) else 0
        return pushed


def is_away(pushed: Pushed) -> bool:
    """Whether the store could not be reached for this file."""
    error = pushed.error
    return isinstance(error, UnavailableError) and not isinstance(error, ContentionError | ThrottledError)


def _not_tried() -> UnavailableError:
    return UnavailableError("not tried, for the store cannot be reached", hint="repeat the command when it can")
