"""The public names: what ``__all__`` says is what there is, each found where it is said to live, none too early."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import mergepub
import pytest


def type_checked_imports():
    """(module, name) for everything that the package tells type checkers to be there."""
    tree = ast.parse(Path(mergepub.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mergepub"):
            yield from ((node.module, alias.name) for alias in node.names)


def test_the_public_names_are_sorted_and_each_is_told_to_type_checkers_and_found_at_run_time_alike():
    assert mergepub.__all__ == sorted(mergepub.__all__)
    assert {name: module for module, name in type_checked_imports()} == mergepub._HOME
    assert set(mergepub._HOME) == set(mergepub.__all__)


@pytest.mark.parametrize("name", mergepub.__all__)
def test_a_public_name_is_the_one_of_its_module(name):
    assert getattr(mergepub, name) is getattr(import_module(mergepub._HOME[name]), name)
    assert name in dir(mergepub)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'mergepub' has no attribute 'force_push'"):
        _ = mergepub.force_push


def test_importing_the_package_imports_nothing_else_of_it():
    code = "import sys, mergepub; print([m for m in sys.modules if m.startswith('mergepub.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_the_example_of_the_package_docstring_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "".join(line[4:] + "\n" for line in mergepub.__doc__.splitlines() if line.startswith("    "))
    names = {}
    exec(compile(code, "example", "exec"), names)
    assert names["outcome"].version == 2
    assert mergepub.fetch(names["store"], "/docs/guide.md").document.body == b"# Guide\nMore.\n"
    names["store"].close()
