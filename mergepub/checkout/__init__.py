"""Everything local about tracked files: the ``.mergepub/`` directory and the exchange of files. Nothing of stores.

``records`` are the values, ``disk`` the durable steps, ``home`` the directory with its lock, ``replacing`` the
exchange of a FILE with an intent first, ``leftovers`` what killed commands leave beside files, ``moved`` what others
renamed. Whoever decides anything stands above: ``mergepub.tracking``.
"""

from mergepub.checkout.home import Checkout, Local, locate
from mergepub.checkout.records import Base, Brought, Clash, Record, Sent
from mergepub.checkout.replacing import FileChangedError

__all__ = ["Base", "Brought", "Checkout", "Clash", "FileChangedError", "Local", "Record", "Sent", "locate"]
