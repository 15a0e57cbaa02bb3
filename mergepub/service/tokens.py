"""Tokens: making secrets, what they allow, when they end. Pure but for the randomness of new secrets.

A secret reads ``mergepub_KEY_SECRET``. The key finds the token and is no secret; of the whole only a SHA-256 is kept,
and that is what is compared, in constant time. Storing tokens is the business of ``stores.tokens``.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.stores.tokens import Token

OPERATIONS = ("read", "publish", "decide", "admin")
MAX_NAME = 200

_SECRET = re.compile(r"mergepub_([0-9a-f]{16})_[0-9a-f]{64}\Z")
_LIFETIME = re.compile(r"([1-9][0-9]{0,5})([dhm])\Z")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}
_NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class Rule:
    """One ``--allow``: an operation on the paths that a glob matches."""

    operation: str
    glob: str

    def allows(self, operation: str, path: str) -> bool:
        """Whether this rule allows ``operation`` on ``path``; publishing includes reading."""
        covered = self.operation == operation or (self.operation == "publish" and operation == "read")
        return covered and _pattern(self.glob).match(path) is not None


def parse_allow(text: str) -> Rule:
    """``publish:/docs/**``.

    Raises:
        InputError: naming the rule that it breaks.
    """
    operation, colon, glob = text.partition(":")
    if operation not in OPERATIONS or not colon:
        raise InputError(
            f"bad --allow {text!r}: it is OPERATION:GLOB, and the operations are {', '.join(OPERATIONS)}",
            hint="--allow 'publish:/docs/**' lets read and publish below /docs",
        )
    if not glob.startswith("/") or "//" in glob or (glob.endswith("/") and glob != "/"):
        raise InputError(
            f"bad --allow {text!r}: the glob starts with / and names segments, none of them empty",
            hint=f"--allow '{operation}:/docs/**' stands for everything below /docs",
        )
    if any("**" in segment and segment != "**" for segment in glob.split("/")):
        raise InputError(
            f"bad --allow {text!r}: ** stands for whole segments, alone between two /",
            hint="in one segment write *: /docs/draft-*",
        )
    if not glob.isprintable():
        raise InputError(f"bad --allow {text!r}: the glob holds a control character", hint="take it out")
    return Rule(operation, glob)


def parse_lifetime(text: str) -> timedelta:
    """``90d``, ``12h`` or ``30m``.

    Raises:
        InputError: it has another form.
    """
    match = _LIFETIME.match(text)
    if not match:
        raise InputError(f"bad --expires {text!r}", hint="write a number and a unit: 90d, 12h or 30m")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def check_name(name: str) -> str:
    """A token's name labels what is published with it: one line, not empty, 200 characters at most.

    Raises:
        InputError: it is not.
    """
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
        raise InputError(
            f"bad token name {name!r}", hint=f"give one line of 1 to {MAX_NAME} printable characters, such as ana"
        )
    return name


def new_secret() -> tuple[str, str, str]:
    """A new secret, its key, and the digest to keep."""
    key = secrets.token_hex(8)
    secret = f"mergepub_{key}_{secrets.token_hex(32)}"
    return secret, key, digest_of_secret(secret)


def digest_of_secret(secret: str) -> str:
    """SHA-256 in hex. The secret has 256 random bits, so a slow hash would add nothing."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def find_token(secret: str, tokens: dict[str, Token], now: datetime) -> Token | None:
    """The living token that ``secret`` belongs to; ``tokens`` by key. Comparing takes the same time for any secret."""
    match = _SECRET.match(secret)
    token = tokens.get(match[1]) if match else None
    same = hmac.compare_digest(digest_of_secret(secret), token.digest if token else _NO_DIGEST)
    return token if token and same and is_alive(token, now) else None


def is_alive(token: Token, now: datetime) -> bool:
    """Neither revoked nor past its end."""
    return token.revoked is None and (token.expires is None or now < datetime.fromisoformat(token.expires))


def allows(token: Token, operation: str, path: str) -> bool:
    """Whether one of the token's rules allows ``operation`` on ``path``."""
    return any(_rule(text).allows(operation, path) for text in token.allow)


@lru_cache(1024)
def _rule(text: str) -> Rule:
    return parse_allow(text)


@lru_cache(1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """``*`` is anything in one segment, ``**`` any segments: at the end at least one, in the middle none or more."""
    parts = glob[1:].split("/")
    pattern = ""
    for index, part in enumerate(parts):
        if part == "**":
            pattern += r"(?:/[^/]+)+" if index == len(parts) - 1 else r"(?:/[^/]+)*"
        else:
            one = r"[^/]+" if part == "*" else "[^/]*".join(re.escape(piece) for piece in part.split("*"))
            pattern += "/" + one
    return re.compile(pattern + r"\Z")
