"""What the README shows is run: console blocks with their output, the library example, the quick start."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from mergepub.cli.app import VERBS
from tests.cli.conftest import SCRIPT

if TYPE_CHECKING:
    import pytest
    from tests.cli.conftest import Runner

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}")


def pattern(shown: str) -> str:
    """The output as a regular expression, in which ``...`` stands for anything on its line."""
    return re.escape(shown).replace(re.escape("..."), ".*")


def test_every_console_block_prints_what_the_readme_shows(monkeypatch, scratch: Path):
    on_path(monkeypatch)
    pairs = [pair for block in blocks("console") for pair in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)]
    assert len(pairs) > 20
    for command, shown in pairs:
        done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert re.fullmatch(pattern(shown), done.stdout.decode()), f"{command}\n{done.stdout.decode()}"


def test_the_library_example_holds(scratch: Path):
    (example,) = blocks("python")
    subprocess.run([sys.executable, "-W", "error", "-c", example], check=True)


def test_the_merge_driver_recipe_works(monkeypatch, scratch: Path):
    on_path(monkeypatch)
    recipe = next(block for block in blocks("sh") if "merge.mergepub.driver" in block)
    script = f"""set -e
        git init -q -b main . && git config user.name t && git config user.email t@example.org
        {recipe}
        printf 'a\\nb\\nc\\n' > d.md && git add . && git commit -qm base
        git checkout -qb side && printf 'a\\nB\\nc\\n' > d.md && git commit -qam side
        git checkout -q main && printf 'A\\nb\\nc\\n' > d.md && git commit -qam main
        git merge -q side && cat d.md"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.endswith(b"\nA\nB\nc\n")


def test_the_service_example_publishes_through_a_service(monkeypatch, scratch: Path):
    on_path(monkeypatch)
    (example,) = (block for block in blocks("sh") if "mergepub serve" in block)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (scratch / "guide.md").write_bytes(b"one\n")
    wait = f" 2>log & trap 'kill $!; wait' EXIT; until (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done\n"
    script = "mergepub store init --store docs.sqlite >/dev/null\n" + example.replace("8470", str(port))
    done = subprocess.run(
        ["bash", "-ec", script.replace(" &\n", wait, 1)], stdout=subprocess.PIPE, check=True, timeout=120
    )
    assert done.stdout == b"status: ok\nversion: 1\n"


def test_the_loop_goes_on_after_a_conflict_and_lists_it(monkeypatch, scratch: Path, mergepub: Runner):
    on_path(monkeypatch)
    (loop,) = (block for block in blocks("sh") if "for file in" in block)
    Path("reports").mkdir()
    for name in ("a", "b", "c"):
        Path(f"reports/{name}.md").write_text(f"{name}\n")
    mergepub("publish", "/team/reports/b.md", "--expected-version", "0", stdin=b"there already\n")
    subprocess.run(["bash", "-c", loop], capture_output=True, check=True)
    assert Path("unpublished.txt").read_text() == "reports/b.md\n"
    assert mergepub("fetch", "/team/reports/c.md", "--body-only").out == b"c\n"


def test_the_line_for_cron_publishes_what_changed(monkeypatch, scratch: Path, mergepub: Runner):
    on_path(monkeypatch)
    monkeypatch.setenv("HOME", str(scratch))
    monkeypatch.setenv("MERGEPUB_STORE", str(scratch / "store.sqlite"))
    (line,) = blocks("crontab")
    command = line.split(None, 5)[5]
    Path("site").mkdir()
    for text in (b"one\n", b"two\n"):
        Path("site/page.md").write_bytes(text)
        subprocess.run(["sh", "-c", command], check=True)
        assert mergepub("fetch", "/docs/page.md", "--body-only").out == text
    assert Path("push.log").read_text().count("1 published") == 2


def repository(scratch: Path) -> None:
    script = """set -e
        git init -q -b main . && git config user.name t && git config user.email t@example.org
        mkdir docs && printf 'one\\ntwo\\n' > docs/a.md && printf 'b\\n' > docs/b.md
        git add docs && git commit -qm one
        git init -q --bare ../remote.git && git remote add origin ../remote.git"""
    subprocess.run(["bash", "-c", script], check=True)


def test_the_workflow_step_publishes_what_changed_and_annotates_conflicts(monkeypatch, scratch: Path, mergepub: Runner):
    on_path(monkeypatch)
    (work := scratch / "work").mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("MERGEPUB_STORE", str(scratch / "store.sqlite"))
    (step,) = blocks("yaml")
    (command,) = re.findall(r"^- run: (.*)$", step, re.MULTILINE)
    repository(scratch)
    assert mergepub("push", "docs", "--prefix", "/docs").status == 0
    mergepub("publish", "/docs/a.md", "--expected-version", "1", stdin=b"eins\ntwo\n")
    Path("docs/a.md").write_text("ONE\ntwo\n")
    Path("docs/b.md").write_text("B\n")
    subprocess.run(["git", "commit", "-qam", "two"], check=True)
    subprocess.run(["git", "clone", "-q", str(work), str(scratch / "clone")], check=True)
    monkeypatch.chdir(scratch / "clone")
    monkeypatch.setenv("BEFORE", "HEAD~1")
    done = subprocess.run(["bash", "-e", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "::error file=docs/a.md,line=1,title=mergepub::docs/a.md: your edits overlap" in done.stdout
    assert "0 published, 1 merged, 0 unchanged, 1 conflicted, 0 failed" in done.stdout


def test_the_hook_lets_no_commit_out_that_would_conflict(monkeypatch, scratch: Path, mergepub: Runner):
    on_path(monkeypatch)
    (work := scratch / "work").mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("MERGEPUB_STORE", str(scratch / "store.sqlite"))
    repository(scratch)
    (hook,) = (block for block in blocks("sh") if "pre-push" in block)
    subprocess.run(["bash", "-e", "-c", hook], check=True)
    out = ["git", "push", "-q", "origin", "main"]
    assert subprocess.run(out, capture_output=True, check=False).returncode == 0
    assert mergepub("list", "--json").status == 4
    mergepub("push", "docs", "--prefix", "/docs")
    mergepub("publish", "/docs/a.md", "--expected-version", "1", stdin=b"eins\ntwo\n")
    Path("docs/a.md").write_text("ONE\ntwo\n")
    subprocess.run(["git", "commit", "-qam", "two"], check=True)
    assert subprocess.run(out, capture_output=True, check=False).returncode == 1
    mergepub("resolve", "docs/a.md", "--union")
    assert subprocess.run(out, capture_output=True, check=False).returncode == 0


def test_the_pictures_are_there_and_can_be_drawn_anew(scratch: Path):
    names = re.findall(r"\]\(scripts/screenshots/([\w-]+\.svg)\)", README)
    assert len(names) == 3
    subprocess.run([sys.executable, "-m", "scripts.screenshots._render", str(scratch)], cwd=ROOT, check=True)
    for name in names:
        assert (scratch / name).read_bytes().startswith(b'<svg class="rich-terminal"')
        assert (ROOT / "scripts" / "screenshots" / name).is_file()


def test_the_commands_and_files_that_the_readme_names_exist():
    names = re.findall(r"(scripts/[\w/.-]*\w)|\]\((\w+\.md)\)", README)
    assert len(names) > 8
    for script, page in names:
        assert (ROOT / (script or page)).exists(), script or page
    for script in ("scripts/quickstart", "scripts/test"):
        assert script in README
        assert os.access(ROOT / script, os.X_OK)


def test_the_extras_that_the_readme_names_can_be_installed():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {name for found in re.findall(r"\[([a-z0-9,]+)\][`')]", README) for name in found.split(",")}
    assert {"server", "postgres", "mcp", "coord"} <= named <= set(extras)


def test_the_commands_that_the_readme_names_are_there():
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    calls = re.findall(r"`mergepub (?!coord )([a-z]+(?:-[a-z]+)?)(?![\w.-])", prose)
    assert {"serve", "doctor", "show-conflict"} <= set(calls) <= set(VERBS)


def test_the_quick_start_does_what_it_says(monkeypatch, scratch: Path):
    monkeypatch.setenv("MERGEPUB_BIN", str(SCRIPT.parent))
    monkeypatch.setenv("MERGEPUB_DEMO", str(scratch / "demo"))
    done = subprocess.run(
        [ROOT / "scripts" / "quickstart"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("$ mergepub") > 12
    assert "their-version: 2" in done.stdout
    assert ">>>>>>> theirs" in done.stdout


def test_the_quick_start_fails_when_a_step_does_not_do_what_it_says(monkeypatch, scratch: Path):
    fake = scratch / "bin"
    fake.mkdir()
    (fake / "mergepub").write_text(f'#!/bin/sh\n"{SCRIPT}" "$@" | sed s/ninety/eighty/\n')
    (fake / "mergepub").chmod(0o755)
    monkeypatch.setenv("MERGEPUB_BIN", str(fake))
    monkeypatch.setenv("MERGEPUB_DEMO", str(scratch / "demo"))
    done = subprocess.run([ROOT / "scripts" / "quickstart"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("quickstart: this should have printed the line: ")


def test_the_configuration_is_one(monkeypatch, scratch: Path):
    on_path(monkeypatch)
    monkeypatch.delenv("MERGEPUB_STORE")
    (example,) = blocks("toml")
    Path("mergepub.toml").write_text(example, "utf-8")
    shown = subprocess.run(["mergepub", "config", "publish", "--changed"], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[0].split()[:2] == ["store", "https://docs.example.org"]
    assert "CHANGES*=union" in shown.stdout
