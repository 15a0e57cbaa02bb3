"""What tokens mean: secrets, globs, lifetimes. Pure, and by the words of the command line."""

from __future__ import annotations

import hmac
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from mergepub.errors import InputError
from mergepub.service import tokens
from mergepub.service.tokens import find_token, new_secret, parse_allow, parse_lifetime
from mergepub.stores.tokens import Token

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rule", "matching", "other"),
    [
        ("read:/**", ["/a", "/a/b", "/a/b/c"], []),
        ("read:/*", ["/a", "/ä"], ["/a/b"]),
        ("read:/docs/**", ["/docs/a", "/docs/a/b"], ["/docs", "/docsx/a", "/x/docs/a"]),
        ("read:/docs/*", ["/docs/a"], ["/docs/a/b", "/docs"]),
        ("read:/docs/*/x", ["/docs/a/x"], ["/docs/x", "/docs/a/b/x"]),
        ("read:/docs/**/x", ["/docs/x", "/docs/a/x", "/docs/a/b/x"], ["/docs/ax", "/docs/x/a"]),
        ("read:/docs/*.md", ["/docs/a.md", "/docs/.md"], ["/docs/a.txt", "/docs/a/b.md", "/docs/a.md5"]),
        ("read:/docs/a.b", ["/docs/a.b"], ["/docs/axb", "/docs/a.b/c"]),
        ("read:/a+(b)[c]?", ["/a+(b)[c]?"], ["/aab", "/a+(b)c"]),
    ],
)
def test_a_glob_matches_whole_segments(rule: str, matching: list[str], other: list[str]) -> None:
    allow = parse_allow(rule)
    assert all(allow.allows("read", path) for path in matching)
    assert not any(allow.allows("read", path) for path in other)


def test_publishing_includes_reading_and_nothing_else_includes_anything() -> None:
    allowed = {
        operation: {other for other in tokens.OPERATIONS if parse_allow(f"{operation}:/**").allows(other, "/a")}
        for operation in tokens.OPERATIONS
    }
    assert allowed == {"read": {"read"}, "publish": {"publish", "read"}, "decide": {"decide"}, "admin": {"admin"}}


@pytest.mark.parametrize(
    "rule",
    [
        "read",
        "read:",
        "read:docs",
        "write:/**",
        ":/**",
        "read:/a//b",
        "read:/a/",
        "read:/a**",
        "read:/**b/c",
        "read:/a\n",
    ],
)
def test_a_bad_rule_is_refused_with_the_form(rule: str) -> None:
    with pytest.raises(InputError, match="--allow"):
        parse_allow(rule)


def test_a_lifetime_is_a_number_and_a_unit() -> None:
    assert [parse_lifetime(text) for text in ("90d", "12h", "30m")] == [
        timedelta(days=90),
        timedelta(hours=12),
        timedelta(minutes=30),
    ]
    for text in ("", "90", "0d", "-1d", "1.5h", "1w", "1d ", "٣d", "d"):
        with pytest.raises(InputError, match="--expires"):
            parse_lifetime(text)


def test_a_secret_is_found_by_its_key_and_known_by_its_digest_alone() -> None:
    secret, key, digest = new_secret()
    assert digest == sha256(secret.encode()).hexdigest()
    assert new_secret()[0] != secret
    token = Token("CI", key, digest, ("read:/**",), NOW.isoformat())
    known = {key: token}
    assert find_token(secret, known, NOW) is token
    other = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    for wrong in (other, "", key, secret + "0", secret.upper(), " " + secret, digest, "mergepub_" + key, "\udcff"):
        assert find_token(wrong, known, NOW) is None


def test_an_ended_token_is_no_token() -> None:
    secret, key, digest = new_secret()
    end = (NOW + timedelta(minutes=1)).isoformat()
    expiring = {key: Token("CI", key, digest, ("read:/**",), NOW.isoformat(), expires=end)}
    assert find_token(secret, expiring, NOW)
    assert find_token(secret, expiring, NOW + timedelta(minutes=1)) is None
    revoked = {key: Token("CI", key, digest, ("read:/**",), NOW.isoformat(), revoked=NOW.isoformat())}
    assert find_token(secret, revoked, NOW) is None


def test_every_comparison_is_made_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []

    def spy(mine: str, theirs: str) -> bool:
        compared.append((len(mine), len(theirs)))
        return hmac.compare_digest(mine, theirs)

    monkeypatch.setattr(tokens, "hmac", type("spying", (), {"compare_digest": staticmethod(spy)}))
    secret, key, digest = new_secret()
    known = {key: Token("CI", key, digest, ("read:/**",), NOW.isoformat())}
    for given in (secret, new_secret()[0], "short", ""):
        find_token(given, known, NOW)
    assert compared == [(64, 64)] * 4


def token(store: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run ``mergepub token``."""
    command = [sys.executable, "-m", "mergepub", "token", *arguments, "--store", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def test_the_secret_is_printed_once_alone_and_kept_nowhere(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    made = token(
        store, "create", "--name", "CI", "--allow", "publish:/docs/**", "--allow", "read:/**", "--expires", "90d"
    )
    secret = made.stdout.rstrip("\n")
    assert re.fullmatch(r"mergepub_[0-9a-f]{16}_[0-9a-f]{64}\n", made.stdout)
    assert secret not in made.stderr
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret.encode() not in kept
    assert secret.split("_")[2].encode() not in kept
    assert sha256(secret.encode()).hexdigest().encode() in kept
    listed = token(store, "list").stdout
    assert secret.split("_")[2] not in listed
    assert re.fullmatch(r"CI +alive +\S+ +\S+ +publish:/docs/\*\* read:/\*\*\n", listed)


def test_a_token_is_revoked_by_name_and_its_name_is_free_again(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    create = ("create", "--name", "CI", "--allow", "read:/**")
    token(store, *create)
    assert "already" in token(store, *create, status=2).stderr
    token(store, "revoke", "CI")
    token(store, "revoke", "CI")
    assert "revoked" in token(store, "list").stdout
    token(store, *create)
    assert "alive" in token(store, "list").stdout
    assert "no token" in token(store, "revoke", "other", status=4).stderr


def test_what_create_refuses_makes_no_store(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    token(store, "create", "--name", "CI", status=2)
    token(store, "create", "--name", "CI", "--allow", "write:/**", status=2)
    token(store, "create", "--name", "CI", "--allow", "read:/**", "--expires", "soon", status=2)
    token(store, "create", "--name", " ", "--allow", "read:/**", status=2)
    assert token(store, "list").stdout == ""
    assert not store.exists()


def test_a_store_that_keeps_no_tokens_says_so() -> None:
    command = [sys.executable, "-m", "mergepub", "token", "list", "--store", "http://127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "keeps no tokens" in done.stderr


def test_a_json_answer_holds_the_secret_once(tmp_path: Path) -> None:
    import json

    store = tmp_path / "store.sqlite"
    made = json.loads(token(store, "create", "--name", "CI", "--allow", "read:/**", "--json").stdout)
    assert made["ok"] is True
    assert made["result"]["secret"].startswith("mergepub_")
    listed = json.loads(token(store, "list", "--json").stdout)
    assert [(row["name"], row["state"], row["allow"]) for row in listed["result"]["tokens"]] == [
        ("CI", "alive", ["read:/**"])
    ]
    assert "secret" not in str(listed)
