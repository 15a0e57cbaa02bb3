"""Which store a URL opens, and what is said when it opens none."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from mergepub import stores
from mergepub.documents import ABSENT
from mergepub.errors import InputError
from mergepub.stores import default_url, open_store
from mergepub.stores.memory import MemoryStore
from tests.stores.conformance import DOC


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's package brings a backend for the scheme ``shelf``."""
    point = EntryPoint("shelf", "mergepub.stores.memory:MemoryStore", stores.ENTRY_POINTS)
    monkeypatch.setattr(stores, "_entry_points", lambda: [point])


@pytest.mark.usefixtures("installed")
def test_a_backend_of_an_installed_package_opens_its_scheme() -> None:
    store = open_store("shelf://top", max_body=7)
    assert isinstance(store, MemoryStore)
    assert (store.url, store.capabilities.max_bytes) == ("shelf://top", 7)


@pytest.mark.usefixtures("installed")
def test_an_unknown_scheme_names_the_installed_ones_too() -> None:
    with pytest.raises(InputError, match="shelf, sqlite, and a plain file path"):
        open_store("drawer://top")


def test_a_missing_extra_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for module in [name for name in sys.modules if name.startswith("mergepub.stores.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(InputError, match=r"extra postgres: pip install 'mergepub\[postgres\]'"):
        open_store("postgresql://localhost/x")


@pytest.mark.parametrize("scheme", ["sqlite", "memory"])
def test_a_backend_is_imported_when_its_scheme_is_opened_and_no_other(scheme: str) -> None:
    code = f"""
import sys
from mergepub.stores import default_url, open_store
open_store({scheme!r} + (":///x" if {scheme!r} == "sqlite" else ":"))
print(*sorted(m for m in ("sqlite3", "requests", "psycopg", "click", "rich") if m in sys.modules))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == (["sqlite3"] if scheme == "sqlite" else [])


def test_a_file_name_that_begins_with_two_slashes_is_a_file_name(tmp_path: Path) -> None:
    store = open_store(f"/{tmp_path}/store.sqlite")
    store.publish(DOC, b"1", ABSENT)
    store.close()
    assert (tmp_path / "store.sqlite").exists()


def test_a_link_to_a_store_opens_the_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store.sqlite"))
    store.publish(DOC, b"1", ABSENT)
    (tmp_path / "link").symlink_to(tmp_path / "store.sqlite")
    linked = open_store(str(tmp_path / "link"))
    assert linked.fetch(DOC).body == b"1"
    linked.publish(DOC, b"2", linked.fetch(DOC).version)
    assert store.fetch(DOC).body == b"2"
    linked.close()
    store.close()


def test_each_backend_names_itself_by_a_url_that_opens_it_again(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/store.sqlite", str(tmp_path / "store.sqlite"), "memory:opening"):
        store = open_store(url)
        assert open_store(store.url).url == store.url
        store.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs is asked itself")
@pytest.mark.parametrize("data", ["", "/data", "relative", None])
def test_the_default_store_is_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch, data: str | None) -> None:
    from platformdirs import user_data_dir

    monkeypatch.delenv("MERGEPUB_STORE", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if data is not None:
        monkeypatch.setenv("XDG_DATA_HOME", data)
    assert default_url() == f"sqlite:///{user_data_dir('mergepub', appauthor=False)}/store.sqlite"
