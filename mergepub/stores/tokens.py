"""Where the tokens of the HTTP service are kept: a table beside the documents of a SQL store.

What a token means (secrets, globs, lifetimes) is decided in service/tokens.py; here rows are kept. A revoked token
keeps its row: a service that was closed by its first token never opens again by itself.
"""

from __future__ import annotations

from dataclasses import astuple
from shlex import quote
from typing import TYPE_CHECKING

from mergepub.errors import InputError, NotFoundError
from mergepub.stores.contract import now
from mergepub.values import dataclass

if TYPE_CHECKING:
    from mergepub.stores.contract import Store
    from mergepub.stores.sql import SqlStore, Transaction

_SELECT = "SELECT name, key, digest, allowed, created, expires, revoked FROM tokens ORDER BY name"
_INSERT = """INSERT INTO tokens (name, key, digest, allowed, created, expires, revoked)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
# A name for the lock of a backend that locks by path; no document can have it.
_PLACE = "/-/tokens"


@dataclass(frozen=True, slots=True)
class Token:
    """One token without its secret.

    ``key`` finds it and is no secret, ``digest`` is the SHA-256 of the secret in hex, ``allow`` are its rules as they
    were given (``publish:/docs/**``), times are RFC 3339 in UTC.
    """

    name: str
    key: str
    digest: str
    allow: tuple[str, ...]
    created: str
    expires: str | None = None
    revoked: str | None = None


class TokenStore:
    """The tokens of one SQL store. Safe for threads and processes, as the store is."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def load(self) -> list[Token]:
        """All tokens by name, the revoked and expired ones too; none where the store has not been made yet."""
        try:
            rows = self._store._read(lambda tx: tx.rows(_SELECT))
        except NotFoundError:
            return []
        return [_token(row) for row in rows]

    def add(self, token: Token) -> None:
        """Keep ``token``; the name of a revoked one may be taken again. Makes the store where there is none.

        Raises:
            InputError: a living token has this name.
        """
        self._store._write(_PLACE, lambda tx: _add(tx, token), creates=True)

    def revoke(self, name: str) -> None:
        """End the token ``name`` for good. Revoking twice is fine.

        Raises:
            NotFoundError: there is no such token.
        """
        self._store._write(_PLACE, lambda tx: _revoke(tx, name))


def token_store(store: Store) -> TokenStore | None:
    """The tokens of ``store``, or None where its backend keeps none (a store behind another service, in memory)."""
    from mergepub.stores.sql import SqlStore  # noqa: PLC0415 - a client of a remote store needs no SQL

    return TokenStore(store) if isinstance(store, SqlStore) else None


def _token(row: tuple[str, ...]) -> Token:
    name, key, digest, allowed, created, expires, revoked = row
    return Token(name, key, digest, tuple(allowed.split("\n")), created, expires, revoked)


def _add(tx: Transaction, token: Token) -> Token:
    known = tx.row("SELECT revoked FROM tokens WHERE name = ?", token.name)
    if known and known[0] is None:
        raise InputError(
            f"there is a token {token.name!r} already",
            hint=f"revoke it first: mergepub token revoke {quote(token.name)}",
        )
    # Not one that somebody else has added since: its name is taken then.
    tx.run("DELETE FROM tokens WHERE name = ? AND revoked IS NOT NULL", token.name)
    tx.run(_INSERT, *(("\n".join(value) if isinstance(value, tuple) else value) for value in astuple(token)))
    return token


def _revoke(tx: Transaction, name: str) -> None:
    ended = tx.run("UPDATE tokens SET revoked = COALESCE(revoked, ?) WHERE name = ?", now(), name)
    if not ended:
        raise NotFoundError(f"there is no token {name!r}", hint="mergepub token list")
