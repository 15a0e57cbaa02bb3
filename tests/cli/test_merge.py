"""``mergepub merge``: the cases through the real command line, labels, statuses, files replaced whole or not at all."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import SCRIPT, Runner, present

CASES = json.loads((Path(__file__).parent.parent / "data" / "merge-cases.json").read_text("utf-8"))
AS_PROCESS = CASES[::12]
CLASH = {"ours.md": b"one\nTWO\nthree\n", "base.md": b"one\ntwo\nthree\n", "theirs.md": b"one\nzwei\nthree\n"}
MARKED = b"one\n<<<<<<< ours.md\nTWO\n=======\nzwei\n>>>>>>> theirs.md\nthree\n"
LABELS = ("-L", "ours", "-L", "base", "-L", "theirs")


def dec(text: str | dict[str, str]) -> bytes:
    return text.encode() if isinstance(text, str) else base64.b64decode(text["b64"])


def write(files: dict[str, bytes]) -> None:
    for name, body in files.items():
        Path(name).write_bytes(body)


def write_case(case: dict) -> None:
    write({side: dec(case[side]) for side in ("ours", "base", "theirs")})


def check_case(case: dict, status: int, out: bytes) -> None:
    want = case["expect"]
    binary = any(b"\0" in dec(case[side]) for side in ("ours", "base", "theirs"))
    if status == 255 and binary and want["clean"] is not True:
        return  # a refusal
    assert status <= 127
    assert want["clean"] in (None, status == 0)
    if want["merged"] is not None:
        assert out == dec(want["merged"])
    if status == 0 and "if_clean" in want:
        assert out == dec(want["if_clean"])
    if want["conflicts"] is not None:
        assert status == want["conflicts"]
    assert all(dec(piece) in out for piece in want["must_contain"])
    assert not any(dec(piece) in out for piece in want["must_not_contain"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_case_comes_out_right_through_the_fast_path(case, mergepub: Runner):
    write_case(case)
    result = mergepub("merge", "-p", *LABELS, "ours", "base", "theirs")
    check_case(case, result.status, result.out)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_case_comes_out_the_same_through_click(case, mergepub: Runner):
    write_case(case)
    fast = mergepub("merge", "-p", *LABELS, "ours", "base", "theirs")
    slow = mergepub("merge", "-p", "--engine", "mergepub", *LABELS, "ours", "base", "theirs")
    assert slow == fast


@pytest.mark.parametrize("case", AS_PROCESS, ids=lambda case: case["name"])
def test_cases_come_out_right_as_a_process(case, process: Runner):
    write_case(case)
    result = process("merge", "-p", *LABELS, "ours", "base", "theirs")
    check_case(case, result.status, result.out)


VARIANTS = [(case, flag) for case in CASES for flag in case.get("git_variants", {})]


@pytest.mark.parametrize(
    ("case", "flag"), VARIANTS, ids=lambda value: value if isinstance(value, str) else value["name"]
)
def test_flags_give_what_git_gives(case, flag, mergepub: Runner):
    write_case(case)
    want = case["git_variants"][flag]
    option = "--marker-size=9" if flag == "marker_size_9" else f"--{flag}"
    result = mergepub("merge", "-p", option, *LABELS, "ours", "base", "theirs")
    assert (result.status, result.out) == (want["conflicts"], dec(want["output"]))


def test_labels_are_the_file_names_as_given(mergepub: Runner):
    write(CLASH)
    result = mergepub("merge", "-p", "ours.md", "./base.md", "theirs.md")
    assert (result.status, result.out) == (1, MARKED)


def test_labels_are_given_in_the_order_ours_base_theirs(mergepub: Runner):
    write(CLASH)
    result = mergepub("merge", "-p", "--diff3", "-L", "mine", "-L", "start", "ours.md", "base.md", "theirs.md")
    assert result.out == (b"one\n<<<<<<< mine\nTWO\n||||||| start\ntwo\n=======\nzwei\n>>>>>>> theirs.md\nthree\n")


def test_ours_is_replaced_and_the_others_are_left_alone(mergepub: Runner):
    write(CLASH)
    result = mergepub("merge", "ours.md", "base.md", "theirs.md")
    assert (result.status, result.out) == (1, b"")
    assert Path("ours.md").read_bytes() == MARKED
    assert {name: Path(name).read_bytes() for name in ("base.md", "theirs.md")} == {
        name: CLASH[name] for name in ("base.md", "theirs.md")
    }
    assert present() == sorted(CLASH)


def test_mode_and_symbolic_link_of_ours_are_kept(mergepub: Runner):
    write(CLASH)
    Path("real.md").write_bytes(CLASH["ours.md"])
    Path("real.md").chmod(0o750)
    Path("ours.md").unlink()
    Path("ours.md").symlink_to("real.md")
    assert mergepub("merge", "ours.md", "base.md", "theirs.md").status == 1
    assert Path("ours.md").is_symlink()
    assert Path("real.md").read_bytes() == MARKED
    assert stat.S_IMODE(Path("real.md").stat().st_mode) == 0o750


def test_more_than_127_conflicts_are_127(mergepub: Runner):
    write({"b": b"".join(b"%d\nkeep %d\n" % (n, n) for n in range(300))})
    write(
        {
            "o": Path("b").read_bytes().replace(b"\nkeep", b" o\nkeep"),
            "t": Path("b").read_bytes().replace(b"\nkeep", b" t\nkeep"),
        }
    )
    result = mergepub("merge", "-p", "o", "b", "t")
    assert result.status == 127
    assert result.out.count(b"<<<<<<< o\n") > 127


def test_conflicts_are_counted_on_standard_error_unless_quiet(mergepub: Runner):
    write(CLASH)
    files = ("ours.md", "base.md", "theirs.md")
    assert mergepub("merge", "-p", *files).err == "mergepub: 1 conflict\n"
    assert mergepub("merge", "-p", "-q", *files).err == ""
    assert "next: edit ours.md" in mergepub("merge", *files).err


def test_a_side_without_final_newline_is_said(mergepub: Runner):
    write({**CLASH, "theirs.md": b"one\ntwo\ndrei", "ours.md": b"one\ntwo\nTHREE\n"})
    result = mergepub("merge", "-p", "ours.md", "base.md", "theirs.md")
    assert "theirs: no newline at end\n" in result.err


ERRORS = {
    "no files": ([], "Missing argument"),
    "two files": (["ours.md", "base.md"], "Missing argument"),
    "four files": (["ours.md", "base.md", "theirs.md", "x"], "unexpected extra argument"),
    "a missing file": (["ours.md", "nowhere.md", "theirs.md"], "cannot read nowhere.md: No such file"),
    "a directory": (["ours.md", ".", "theirs.md"], "cannot read .: Is a directory"),
    "an unknown option": (["--frobnicate", "ours.md", "base.md", "theirs.md"], "No such option"),
    "four labels": (["-L", "a", "-L", "b", "-L", "c", "-L", "d", "ours.md", "base.md", "theirs.md"], "-L was given 4"),
    "a label with a line end": (["-L", "a\nb", "ours.md", "base.md", "theirs.md"], "control"),
    "a short marker": (["--marker-size", "6", "ours.md", "base.md", "theirs.md"], "not between 7 and"),
    "a marker that is no number": (["--marker-size=٩", "ours.md", "base.md", "theirs.md"], "not a whole number"),
    "a huge marker": (["--marker-size", "99999999999", "ours.md", "base.md", "theirs.md"], "not between 7 and"),
    "an unknown style": (["--style", "rcs", "ours.md", "base.md", "theirs.md"], "style"),
    "NUL": (["ours.md", "base.md", "nul.md"], "NUL"),
    "JSON": (["--json", "ours.md", "base.md", "theirs.md"], "No such option"),
}


@pytest.mark.parametrize(("arguments", "words"), ERRORS.values(), ids=ERRORS.keys())
def test_every_error_is_255_in_one_line_and_leaves_ours_alone(arguments, words, mergepub: Runner):
    write({**CLASH, "nul.md": b"one\0\ntwo\n"})
    result = mergepub("merge", *arguments)
    assert result.status == 255
    assert words in result.err
    assert "Traceback" not in result.err
    assert len(result.err.splitlines()) <= 2
    assert Path("ours.md").read_bytes() == CLASH["ours.md"]
    assert present() == sorted([*CLASH, "nul.md"])


def test_a_label_that_no_utf_8_can_hold_stays_as_it_is(process: Runner):
    write(CLASH)
    name = b"ours-\xff.md"
    Path(os.fsdecode(name)).write_bytes(CLASH["ours.md"])
    result = process("merge", "-p", os.fsdecode(name), "base.md", "theirs.md")
    assert b"<<<<<<< " + name + b"\n" in result.out


def test_two_dashes_end_the_options(mergepub: Runner):
    write({**CLASH, "-p": CLASH["ours.md"]})
    assert mergepub("merge", "--stdout", "--", "-p", "base.md", "theirs.md").out.startswith(b"one\n<<<<<<< -p\n")


def test_it_serves_git_as_a_merge_driver(scratch: Path):
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]

    def run(*arguments: str) -> None:
        subprocess.run([*git, *arguments], check=True, capture_output=True)

    run("init", "-q", "-b", "main", ".")
    driver = f"{SCRIPT} merge -L %X -L %S -L %Y --marker-size %L %A %O %B"
    run("config", "merge.mergepub.driver", driver)
    write({".gitattributes": b"*.md merge=mergepub\n", "a.md": b"one\ntwo\nthree\n"})
    run("add", ".")
    run("commit", "-qm", "base")
    run("checkout", "-qb", "side")
    write({"a.md": b"one\nZWEI\nthree\n"})
    run("commit", "-qam", "side")
    run("checkout", "-q", "main")
    write({"a.md": b"ONE\ntwo\nthree\n"})
    run("commit", "-qam", "main")
    run("merge", "-q", "side")
    assert Path("a.md").read_bytes() == b"ONE\nZWEI\nthree\n"


# ── both paths ──────────────────────────────────────────────────────────────────────────────────────────────────────

OPTIONS = [
    ["-p"],
    ["--stdout"],
    ["-q"],
    ["--quiet"],
    ["--diff3"],
    ["--zdiff3"],
    ["--style", "diff3"],
    ["--style=merge"],
    ["--ours"],
    ["--theirs"],
    ["--union"],
    ["--marker-size", "9"],
    ["--marker-size=12"],
    ["--marker-size=3"],
    ["-L", "mine"],
    ["-L", "--ours"],
    ["--adjacent", "conflict"],
    ["--adjacent=clean"],
    ["--granularity=word"],
    ["--granularity", "line"],
    ["--"],
    ["extra"],
]


@pytest.mark.parametrize("first", OPTIONS, ids=" ".join)
def test_both_paths_give_the_same_bytes_and_status(first, mergepub: Runner, monkeypatch: pytest.MonkeyPatch):
    import mergepub.__main__ as entry

    files = {"ours.md": b"a\nB\nc d\nsame\n", "base.md": b"a\nb\nc\nsame\n", "theirs.md": b"A\nb\nc e\nsame"}
    plain = entry.plain_merge
    for options in [(first,), *((first, second) for second in OPTIONS)]:
        given = [word for option in options for word in option]
        results = []
        for parse in (plain, lambda arguments: None):
            monkeypatch.setattr(entry, "plain_merge", parse)
            write(files)
            result = mergepub("merge", *given, "ours.md", "base.md", "theirs.md")
            results.append((result, Path("ours.md").read_bytes()))
        assert results[0] == results[1], given


def test_the_last_of_several_favours_counts(mergepub: Runner):
    write(CLASH)
    files = ("ours.md", "base.md", "theirs.md")
    for engine in ([], ["--engine", "mergepub"]):
        assert mergepub("merge", "-p", "--ours", "--theirs", "--ours", *engine, *files).out == CLASH["ours.md"]
        assert mergepub("merge", "-p", "--ours", "--theirs", *engine, *files).out == CLASH["theirs.md"]


def test_a_variable_sets_an_option_and_the_flag_overrides_it(mergepub: Runner, monkeypatch: pytest.MonkeyPatch):
    write(CLASH)
    files = ("ours.md", "base.md", "theirs.md")
    monkeypatch.setenv("MERGEPUB_MERGE_THEIRS", "1")
    assert mergepub("merge", "-p", *files).out == CLASH["theirs.md"]
    assert mergepub("merge", "-p", "--ours", *files).out == CLASH["ours.md"]
    monkeypatch.setenv("MERGEPUB_MERGE_THEIRS", "0")
    assert mergepub("merge", "-p", *files).status == 1


def test_engine_merge3_answers_through_the_same_command(mergepub: Runner):
    write(CLASH)
    result = mergepub("merge", "-p", "--engine", "merge3", "ours.md", "base.md", "theirs.md")
    assert (result.status, result.out) == (1, MARKED)


def test_option_order_and_union_order_are_gits(mergepub: Runner):
    write(CLASH)
    files = ["ours.md", "base.md", "theirs.md"]
    for options in (["-p", "--union"], ["-p", "--diff3"], ["-p", "--zdiff3"], ["-p", "--marker-size=9"]):
        want = subprocess.run(["git", "merge-file", *options, *files], capture_output=True, check=False)
        for order in ([*options, *files], [*files, *options]):
            got = mergepub("merge", *order)
            assert (got.status, got.out) == (want.returncode, want.stdout)


HEAVY = {
    "click",
    "argparse",
    "re",
    "json",
    "typing",
    "dataclasses",
    "pathlib",
    "importlib.metadata",
    "contextlib",
    "enum",
}


@pytest.mark.parametrize("arguments", [["--version"], ["merge", "-p", "ours.md", "base.md", "theirs.md"]], ids=" ".join)
def test_the_fast_path_imports_nothing_heavy(arguments):
    write(CLASH)
    program = f"import sys; sys.argv[1:] = {arguments!r}; before = set(sys.modules); import mergepub.__main__ as m"
    program += "; m.main(); print(*set(sys.modules) - before, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())
