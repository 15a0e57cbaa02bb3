"""The verb ``token``: make, list and end the tokens of a store; what they mean stands in ``service.tokens``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from mergepub import status
from mergepub.cli.answers import write_json
from mergepub.cli.history import show
from mergepub.cli.opening import is_open_to_others, opened, store_url
from mergepub.cli.options import Label, group, json_option, store_option, verb
from mergepub.cli.streams import say, write_stdout
from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.stores.tokens import Token, TokenStore


@group("token", "mergepub token create --name ana --allow 'publish:/docs/**'", "mergepub token list")
def token_command(**_: Any) -> None:
    """Make, list and revoke the tokens that close the HTTP service of a store."""


@contextmanager
def _tokens(context: click.Context) -> Iterator[TokenStore]:
    from mergepub.stores.tokens import token_store

    with opened(store_url(context)) as store:
        tokens = token_store(store)
        if tokens is None:
            raise InputError(
                f"the store {store.url} keeps no tokens", hint="name the SQLite or PostgreSQL store behind the service"
            )
        yield tokens


def new_token(name: str, allow: tuple[str, ...], expires: str | None) -> tuple[str, Token]:
    """A new secret and the token to keep for it.

    Raises:
        InputError: a rule, the name or the lifetime has not the right form.
    """
    from datetime import datetime

    from mergepub.service.tokens import check_name, new_secret, parse_allow, parse_lifetime
    from mergepub.stores.contract import now
    from mergepub.stores.tokens import Token

    if not allow:
        raise InputError("a token that allows nothing is of no use", hint="add --allow 'publish:/docs/**'")
    for rule in allow:
        parse_allow(rule)
    created = now()
    ends = f"{datetime.fromisoformat(created) + parse_lifetime(expires):%Y-%m-%dT%H:%M:%S.%fZ}" if expires else None
    secret, key, digest = new_secret()
    return secret, Token(check_name(name), key, digest, allow, created, ends)


@verb(
    "create",
    "mergepub token create --name CI --allow 'publish:/docs/**' --allow 'read:/**' --expires 90d",
    "(umask 077; mergepub token create --name ana --allow 'publish:/docs/**' > ana.token)",
)
@click.option("--name", required=True, type=Label(), help="Who has it: the author of what is published with it.")
@click.option(
    "--allow", multiple=True, metavar="OPERATION:GLOB", help="read, publish, decide or admin, on these paths."
)
@click.option("--expires", metavar="90d|12h|30m", help="How long it lives; without it, until it is revoked.")
@json_option
@store_option
@click.pass_context
def create_command(context: click.Context, /, name: str, allow: tuple[str, ...], **given: Any) -> int:
    """Make a token and print its secret: once, and never again. Only its SHA-256 is kept.

    In a glob * is one segment and ** any number; publish includes read. Put globs in quotes, or the shell looks for
    files. Whoever can read the secret can use it: let umask 077 stand before writing it to a file, as below.
    """
    secret, token = new_token(name, allow, given["expires"])
    with _tokens(context) as tokens:
        tokens.add(token)
    if given["json"]:
        write_json(status.envelope({"status": "ok", **_row(token), "secret": secret}))
    else:
        write_stdout(f"{secret}\n".encode())
    say(f"mergepub: the token {token.name} is kept; this is the only time that its secret is shown")
    if is_open_to_others(1):
        say("mergepub: warning: others on this machine can read the file that it was written to; next: chmod 600 FILE")
    return 0


@verb("list", "mergepub token list")
@json_option
@store_option
@click.pass_context
def list_command(context: click.Context, /, **given: Any) -> int:
    """List the tokens: name, state, what it allows. Secrets are not kept, so none are shown."""
    with _tokens(context) as tokens:
        rows = [_row(token) for token in tokens.load()]
    if given["json"]:
        write_json(status.envelope({"status": "ok", "tokens": rows}))
    elif not rows:
        say("mergepub: there are no tokens in this store: its service is open to this machine alone")
        say("hint: mergepub token create --name NAME --allow 'publish:/docs/**'")
    else:
        headings = ("name", "state", "created", "expires", "allow")
        show(headings, [(r["name"], r["state"], r["created"], r["expires"] or "-", " ".join(r["allow"])) for r in rows])
    return 0


@verb("revoke", "mergepub token revoke CI")
@click.argument("name", metavar="NAME")
@json_option
@store_option
@click.pass_context
def revoke_command(context: click.Context, /, name: str, **given: Any) -> int:
    """End the token NAME for good. Services notice within five seconds."""
    with _tokens(context) as tokens:
        tokens.revoke(name)
    if given["json"]:
        write_json(status.envelope({"status": "ok", "name": name}))
    say(f"mergepub: the token {name} is revoked")
    return 0


for _command in (create_command, list_command, revoke_command):
    token_command.add_command(_command)


def _row(token: Token) -> dict[str, Any]:
    from datetime import UTC, datetime

    from mergepub.service.tokens import is_alive

    ended = "revoked" if token.revoked else "expired"
    return {
        "name": token.name,
        "state": "alive" if is_alive(token, datetime.now(UTC)) else ended,
        "allow": list(token.allow),
        "created": token.created,
        "expires": token.expires,
        "revoked": token.revoked,
    }
