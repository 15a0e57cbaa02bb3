"""Writing to one's own branch from a checkout: what is remembered of its end, and the publish itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mergepub.checkout.home import Checkout, root_of
from mergepub.checkout.queue import may_wait
from mergepub.checkout.writers import End, Writer, load_end, save_end
from mergepub.cli.streams import say
from mergepub.errors import CheckoutError, OutputError

if TYPE_CHECKING:
    from mergepub.outcomes import Branched
    from mergepub.stores.contract import Store


def _here(file: str) -> Checkout:
    folder = os.path.realpath(os.curdir) if file == "-" else os.path.dirname(os.path.realpath(file))  # noqa: PTH120 - as cli.tracked says it
    return Checkout(root_of(folder))


def known_end(store: Store, path: str, branch: str, author: str, file: str = "-") -> End | None:
    """What the writer's checkout remembers of a branch.

    Raises:
        CheckoutError: the record is damaged.
    """
    return load_end(_here(file), Writer(store.url, path, branch, author))


def remember(store: Store, path: str, author: str, outcome: Branched, file: str = "-") -> None:
    """Keep the end of a branch, and the epoch held on it, in the writer's checkout.

    The store has taken the write by then, so what stands in the way here is said and changes no answer: where nothing
    is remembered, the end that the store knows is the writer's.
    """
    checkout = _here(file)
    try:
        with checkout.locked():
            end = End(outcome.incarnation, outcome.epoch, outcome.branch_revision, outcome.base_version)
            save_end(checkout, Writer(store.url, path, outcome.branch, author), end)
    except (CheckoutError, OutputError) as error:
        say(f"mergepub: it is stored; what you know of {outcome.branch} is not remembered here: {error.message}")


def publish_to_branch(
    store: Store, path: str, branch: str, body: bytes, *, author: str, message: str, file: str
) -> Branched:
    """Add a revision to the end of one's own branch as this checkout knows it.

    Raises:
        BranchError: fenced off, or the branch has another end.
    """
    from mergepub.branching.sending import extend

    checkout = _here(file)
    if checkout.exists and may_wait(checkout):
        from mergepub.queueing import send_former

        with checkout.locked():
            send_former(checkout, store, path)
    end = known_end(store, path, branch, author, file)
    epoch, known = (end.epoch, end.revision) if end else (None, None)
    outcome = extend(store, path, branch, body, author=author, message=message, epoch=epoch, known=known)
    remember(store, path, author, outcome, file)
    return outcome
