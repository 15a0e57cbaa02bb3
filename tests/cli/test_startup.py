"""What each command imports: start-up is a feature, and an import is how it is lost.

The sets are exact. A command that needs one more heavy module says so here; scripts/bench/startup says what it costs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mergepub.cli.app import VERBS
from mergepub.cli.nearby import may_be_tracked
from tests.stores.http_service import HttpService

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

# What takes a millisecond or more, or has no business in most commands. click brings inspect, re, datetime and typing.
HEAVY = """
    click rich requests urllib3 sqlite3 ssl socket http.client email logging asyncio anyio platformdirs pathlib
    urllib.parse json tomllib subprocess tempfile shutil multiprocessing concurrent.futures importlib.metadata decimal
    random secrets difflib unicodedata keyring mcp pydantic fastapi uvicorn starlette psycopg merge3 mergepub.merge
    mergepub.tracking mergepub.checkout mergepub.branching mergepub.service mergepub.coord mergepub.configuration
"""
PROBE = """
import sys
import mergepub.__main__ as entry
heavy = sys.argv.pop(1).split()
try:
    entry.main()
finally:
    sys.stderr.write("\\nIMPORTED " + " ".join(name for name in heavy if name in sys.modules))
"""
LOCAL = {"click", "sqlite3"}
REQUEST = {
    "requests", "urllib3", "ssl", "socket", "http.client", "email", "logging", "pathlib", "urllib.parse", "json",
    "tempfile", "shutil", "random", "unicodedata", "importlib.metadata",
}  # fmt: skip
TRACKING = {"mergepub.tracking", "mergepub.checkout", "json"}

EXPECTED: dict[str, set[str]] = {
    "--version": set(),
    "merge -p ours.md base.md theirs.md": {"mergepub.merge"},
    "merge --stdout --label mine ours.md base.md theirs.md": {"click", "mergepub.merge"},
    "publish /docs/guide.md new.md --expected-version 2": LOCAL,
    "publish /docs/guide.md new.md --expected-version 1 --on-conflict merge": LOCAL | {"mergepub.merge"},
    "publish /docs/guide.md new.md --expected-version 2 --json": LOCAL | {"json"},
    "fetch /docs/guide.md": LOCAL,
    "append /docs/guide.md new.md": LOCAL,
    "versions /docs/guide.md": LOCAL,
    "list": LOCAL,
    "log /docs/guide.md": LOCAL,
    "diff /docs/guide.md": LOCAL | {"mergepub.merge"},
    "revert /docs/guide.md v2": LOCAL | {"mergepub.merge"},
    "delete /docs/guide.md --expected-version 2": LOCAL,
    "verify /docs/guide.md": LOCAL | {"json"},  # what decisions did to branches is kept as JSON
    "doctor --no-proof": LOCAL,
    "status": {"click"} | TRACKING,
    "fetch": {"click"},
    "nonsense": {"click", "difflib"},
}


def imported(*arguments: str) -> set[str]:
    """The heavy modules that a command line leaves imported, in a process of its own."""
    command = [sys.executable, "-c", PROBE, HEAVY, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    assert b"internal error" not in done.stderr
    return set(done.stderr.decode().rpartition("IMPORTED ")[2].split())


@pytest.fixture(autouse=True)
def files(guide: bytes) -> None:
    Path("new.md").write_bytes(guide.replace(b"five", b"FIVE"))
    for name, body in (("ours", b"a\nB\nc\nd\n"), ("base", b"a\nb\nc\nd\n"), ("theirs", b"a\nb\nc\nD\n")):
        Path(f"{name}.md").write_bytes(body)


@pytest.mark.parametrize("line", EXPECTED)
def test_a_command_imports_what_it_needs_and_nothing_else(line: str) -> None:
    assert imported(*line.split()) == EXPECTED[line]


def test_over_http_requests_comes_with_the_first_request_and_no_database(tmp_path: Path) -> None:
    service = HttpService(str(tmp_path / "store.sqlite")).start()
    try:
        remote = ("--store", service.url)
        assert imported("fetch", "/docs/guide.md", *remote) == {"click"} | REQUEST
        assert (
            imported("publish", "/docs/guide.md", "new.md", "--expected-version", "2", *remote) == {"click"} | REQUEST
        )
    finally:
        service.remove()
    assert imported("fetch", "bad path", "--store", "http://127.0.0.1:9") == {"click"}


def test_a_configuration_file_costs_its_parser_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERGEPUB_STORE")
    Path("mergepub.toml").write_text('store = "store.sqlite"\n')
    assert imported("fetch", "/docs/guide.md") == LOCAL | {"tomllib", "mergepub.configuration"}


def test_tracking_is_imported_for_what_is_tracked_alone(mergepub: Runner) -> None:
    assert mergepub("fetch", "/docs/guide.md", "-o", "guide.md").status == 0
    assert imported("status") == LOCAL | TRACKING
    assert imported("publish", "/docs/other.md", "new.md", "--expected-version", "0") == LOCAL
    assert imported("publish", "/docs/guide.md", "guide.md") >= LOCAL | TRACKING


def test_what_is_tracked_is_told_before_tracking_is_imported(mergepub: Runner, monkeypatch) -> None:
    assert not may_be_tracked("guide.md")
    Path("sub").mkdir()
    assert mergepub("fetch", "/docs/guide.md", "-o", "sub/guide.md").status == 0
    Path("link.md").symlink_to("sub/guide.md")
    assert may_be_tracked("sub/guide.md")
    assert may_be_tracked("link.md")
    assert not may_be_tracked("sub/other.md")
    assert not may_be_tracked("new.md")
    monkeypatch.chdir("sub")
    assert may_be_tracked("guide.md")
    assert may_be_tracked(str(Path("guide.md").resolve()))


def test_the_help_of_every_command_needs_no_store_and_no_request() -> None:
    for verb in VERBS:
        assert not imported(verb, "--help") & {"sqlite3", "requests", "rich", "psycopg", "mcp", "fastapi", "tomllib"}, (
            verb
        )
