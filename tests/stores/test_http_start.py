"""What the HTTP store costs before it is used: nothing that takes time."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from mergepub.stores import open_store
store = open_store("https://docs.example.org")
store.close()
print(sorted({"requests", "urllib3", "ssl", "keyring"} & set(sys.modules)))
"""


def test_opening_a_store_imports_no_client_and_connects_nowhere() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
