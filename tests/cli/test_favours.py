"""``--favour-path``: patterns as in ignore files, checked against git's own reading of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergepub.cli.favours import favour_for, matches
from mergepub.errors import InputError

TABLE = [
    ("CHANGES*", "/CHANGES.md", True),
    ("CHANGES*", "/docs/CHANGES.md", True),
    ("CHANGES*", "/CHANGES/other.md", False),
    ("*.md", "/a/b/c.md", True),
    ("*.md", "/a/b/c.mdx", False),
    ("/CHANGES.md", "/CHANGES.md", True),
    ("/CHANGES.md", "/docs/CHANGES.md", False),
    ("docs/*.md", "/docs/a.md", True),
    ("docs/*.md", "/docs/sub/a.md", False),
    ("docs/*.md", "/other/docs/a.md", False),
    ("docs/**", "/docs/sub/a.md", True),
    ("docs/**", "/docs", False),
    ("docs/", "/docs/sub/a.md", True),
    ("**/log.md", "/log.md", True),
    ("**/log.md", "/a/b/log.md", True),
    ("a/**/z", "/a/z", True),
    ("a/**/z", "/a/b/c/z", True),
    ("a/**/z", "/a/b/c/y", False),
    ("?.md", "/a.md", True),
    ("?.md", "/ab.md", False),
    ("[ab].md", "/b.md", True),
    ("[!ab].md", "/b.md", False),
    ("[a-c]*", "/bee", True),
    (r"\*.md", "/*.md", True),
    (r"\*.md", "/a.md", False),
    ("a.c", "/abc", False),
    ("a+(b)", "/a+(b)", True),
    ("[", "/[", True),
]


@pytest.mark.parametrize(("glob", "path", "wanted"), TABLE)
def test_a_pattern_matches_as_in_an_ignore_file(glob, path, wanted):
    assert matches(path, glob) is wanted


WORDS = st.sampled_from(["a", "b", "ab", "c.md"])
PARTS = st.sampled_from(["a", "b", "*", "a*", "*b", "?", "**", "[ab]", "*.md"])


@settings(max_examples=60, deadline=None)
@given(globs=st.lists(PARTS, min_size=2, max_size=4), path=st.lists(WORDS, min_size=1, max_size=4))
def test_anchored_patterns_agree_with_git(tmp_path_factory, globs, path):
    """git also ignores what lies below a folder that matches; a document has no such folder, so only files count."""
    if globs[-1] == "**" or all(glob == "**" for glob in globs):
        globs = [*globs, "*"]
    folder = repository(tmp_path_factory)
    (folder / ".gitignore").write_text("/" + "/".join(globs) + "\n")
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-v", "-n", "--stdin"],
        input="".join("/".join(path[: n + 1]) + "\n" for n in range(len(path))),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    ignored = [not line.startswith("::") for line in done.stdout.splitlines()]
    if not any(ignored[:-1]):
        assert matches("/" + "/".join(path), "/" + "/".join(globs)) is ignored[-1]


def repository(factory) -> Path:
    folder = factory.getbasetemp() / "favours"
    if not folder.exists():
        subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def test_any_of_several_rules_will_do():
    assert favour_for("/docs/a.txt", ["*.md=union", "*.txt=union"]) == "union"
    assert favour_for("/docs/a.rst", ["*.md=union", "*.txt=union"]) is None
    assert favour_for("/docs/a=b", ["a=b=union"]) == "union"


@pytest.mark.parametrize("rule", ["", "*.md", "=union", "*.md=", "*.md=ours", "[z-a]=union"])
def test_a_rule_that_is_none_is_refused_even_behind_one_that_matches(rule):
    with pytest.raises(InputError):
        favour_for("/a.md", ["*.md=union", rule])
