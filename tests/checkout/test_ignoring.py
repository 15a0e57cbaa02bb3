"""What ``.mergepubignore`` leaves out is what git leaves out by the same lines in ``.gitignore``."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from mergepub.checkout.ignoring import rules_of, verdict
from mergepub.checkout.walking import walk

# git counts bytes where these rules count characters: no name here is one character outside ASCII and ".md".
NAMES = ("a", "b", "ab", "a.md", "b.txt", "a b", "x[1]", "éé.md", "!a", "#b")
SEGMENTS = (*NAMES, "*", "a*", "*.md", "?", "[ab]", "[!a]*", "[^b].md", "**", "\\*", "\\!a", "\\#b", "x[[]1]", "[a-b]b")


def line(chance: random.Random) -> str:
    segments = [chance.choice(SEGMENTS) for _ in range(chance.choice((1, 1, 1, 2, 2, 3)))]
    text = ("/" if chance.random() < 0.25 else "") + "/".join(segments) + ("/" if chance.random() < 0.25 else "")
    return ("!" if chance.random() < 0.25 else "") + text + (" " * chance.randrange(2))


def make(chance: random.Random, folder: Path, depth: int = 0) -> None:
    for name in chance.sample(NAMES, 5):
        if depth < 2 and chance.random() < 0.4:
            (folder / name).mkdir()
            make(chance, folder / name, depth + 1)
        else:
            (folder / name).write_bytes(b"")
    if chance.random() < (0.3 if depth else 1):
        (folder / ".mergepubignore").write_text("".join(f"{line(chance)}\n" for _ in range(chance.randrange(1, 5))))


def as_git_sees(folder: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--others", "--exclude-per-directory=.mergepubignore"]
    out = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    return sorted(os.fsdecode(name) for name in out.split(b"\0") if name and b"/." not in b"/" + name)


@pytest.mark.parametrize("seed", range(80))
def test_a_folder_holds_what_git_would_see_in_it(seed: int, tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    make(random.Random(seed), tmp_path)
    assert sorted(walk(str(tmp_path))) == as_git_sees(tmp_path)


SPELLINGS = (
    b"\xef\xbb\xbf*.md\n",
    b"*.md\r\na\r\n",
    b"[[:alpha:]].md\n",
    b"[^[:digit:]].md\n",
    b"[[:nope:]].md\n",
    b"[[:upper:]a].md\n",
    b"***/a.md\n",
    b"deep/***/a.md\n",
    b"deep/***\n",
    b"[]-a].md\n",
    b"*.md\x0b\n",
    b"\\\n",
)


@pytest.mark.parametrize("rules", SPELLINGS, ids=ascii)
def test_rules_are_read_as_git_reads_them(rules: bytes, tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "deep/er").mkdir(parents=True)
    for name in ("a.md", "1.md", "A.md", "a", "deep/a.md", "deep/er/a.md", "deep/er/b"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".mergepubignore").write_bytes(rules)
    assert sorted(walk(str(tmp_path))) == as_git_sees(tmp_path)


def test_rules_above_the_folder_count_up_to_the_checkouts_top(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".mergepubignore").write_text("docs/draft.md\n*.log\n")
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("draft.md", "guide.md", "x.log", "keep.log"):
        (docs / name).write_bytes(b"")
    (docs / ".mergepubignore").write_text("!keep.log\n")
    assert list(walk(str(docs))) == ["guide.md", "keep.log"]


def test_links_to_folders_pipes_and_hidden_names_are_no_documents(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_bytes(b"")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "b.md").symlink_to("real/a.md")
    os.mkfifo(tmp_path / "pipe")
    for hidden in (".mergepub", ".git", ".cache"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "a").write_bytes(b"")
    assert list(walk(str(tmp_path))) == ["b.md", "real/a.md"]


def test_names_that_are_no_utf_8_are_found(tmp_path: Path):
    (tmp_path / os.fsdecode(b"\xff.md")).write_bytes(b"")
    (tmp_path / ".mergepubignore").write_bytes(b"\xfe*\n")
    assert list(walk(str(tmp_path))) == [os.fsdecode(b"\xff.md")]


@pytest.mark.parametrize("text", ["", "\n", "# a", "/", "!", "!/", "[z-a]", "[", "\\"])
def test_lines_that_say_nothing_leave_nothing_out(text: str):
    assert not verdict(rules_of(text), "a", is_folder=False)


def test_a_link_to_a_hidden_file_or_out_of_the_checkout_is_left_out_and_told(tmp_path: Path):
    (tmp_path / "private").write_bytes(b"secret")
    top = tmp_path / "clone"
    (top / "docs").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / ".git" / "config").write_bytes(b"token")
    (top / "guide.md").write_bytes(b"text")
    links = {
        "a.md": "../guide.md",
        "b.md": "../../private",
        "c.md": "../.git/config",
        "d.md": "/etc/passwd",
        "e.md": "b.md",
    }
    for name, target in links.items():
        (top / "docs" / name).symlink_to(target)
    stray: list[str] = []
    assert list(walk(str(top / "docs"), stray)) == ["a.md"]
    assert stray == ["b.md", "c.md", "d.md", "e.md"]
