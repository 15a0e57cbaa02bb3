"""Tracked files: what a FILE was made from is remembered, so that no version number needs typing and no edit is lost.

The loops of pull, push, publish, resolve and status over a store (the contract alone) and a checkout
(``mergepub.checkout``: all local I/O). They decide and return values; they print nothing.

The invariant, whatever crashes when: no published edit and no local edit is ever reverted, lost or doubled. It rests on
one rule: the remembered base is a common ancestor of FILE and the head, and is never advanced past text that FILE does
not contain.
"""

from mergepub.tracking.pulling import Pulled, Taken, fetch_into, pull_file
from mergepub.tracking.sending import How, publish_file
from mergepub.tracking.work import Work, at_hand, locked

__all__ = ["How", "Pulled", "Taken", "Work", "at_hand", "fetch_into", "locked", "publish_file", "pull_file"]
