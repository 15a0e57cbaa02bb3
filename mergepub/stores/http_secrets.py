"""Where the secret for an HTTP store comes from, and whether it may travel there.

A secret is never an argument of a command and never part of a URL; no message of this module holds one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from mergepub.errors import InputError

VARIABLE = "MERGEPUB_TOKEN"
FILE_VARIABLE = "MERGEPUB_TOKEN_FILE"
KEYRING_SERVICE = "mergepub"
_LONGEST = 4096
_Place = tuple[str, Callable[[], str]]


def check_url(url: str) -> SplitResult:
    """Split ``url`` when it can name an HTTP store.

    Raises:
        InputError: no http or https, no host, a port that is none, or a part that does not belong there - user name and
            password above all, because a URL is shown and logged.
    """
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        raise InputError(
            "the URL of the store is not valid", hint="use https://HOST or https://HOST:PORT, the port up to 65535"
        ) from None
    if "@" in parts.netloc:
        raise InputError(
            f"the URL of the store on {parts.hostname} must not hold a user name or password",
            hint=f"set {VARIABLE} or name a --token-file",
        )
    if not named or parts.query or parts.fragment:
        raise InputError(
            "the URL of the store names no host, or holds a query or a fragment",
            hint="use https://HOST or https://HOST:PORT",
        )
    return parts


def is_loopback(host: str) -> bool:
    """True when ``host`` never leaves this machine: localhost, 127.0.0.0/8, ::1."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def find_token(
    parts: SplitResult,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    *,
    vouched: bool = True,
) -> str:
    """The secret for this URL's host, or "" where there is none.

    Looked for in this order: given by the caller, ``token_file``, the variables MERGEPUB_TOKEN and
    MERGEPUB_TOKEN_FILE, the keyring (service ``mergepub``, user = host) where the package keyring is installed, the
    password in netrc. What the variables hold is for no certain host: where nobody ``vouched`` for this one, it stays.

    Raises:
        InputError: the file cannot be read, the secret is no single line of printable ASCII, it would have to travel
            unencrypted to another machine, or there is none but that of a variable and nobody vouched for the host.
    """
    return locate_token(parts, token, token_file, vouched=vouched)[0]


def locate_token(
    parts: SplitResult,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    *,
    vouched: bool = True,
) -> tuple[str, str]:
    """The secret as ``find_token`` finds it, and the place where it was found, in words."""
    host = parts.hostname or ""
    variable_file = os.environ.get(FILE_VARIABLE)
    for_any_host: tuple[_Place, ...] = (
        (f"the variable {VARIABLE}", lambda: os.environ.get(VARIABLE, "").strip()),
        (f"the file {variable_file}", lambda: _from_file(variable_file)),
    )
    for_this_one: tuple[_Place, ...] = (
        ("the keyring", lambda: _from_keyring(host)),
        ("netrc", lambda: _from_netrc(parts, for_any_host=vouched)),
    )
    given: tuple[_Place, ...] = (
        ("the caller", lambda: token or ""),
        (f"the file {token_file}", lambda: _from_file(token_file)),
    )
    for place, look in (*given, *(for_any_host if vouched else ()), *for_this_one):
        found = look()
        if found:
            _check_token(found)
            _check_channel(parts.scheme, host)
            return found, place
    if not vouched and (os.environ.get(VARIABLE, "").strip() or variable_file):
        raise _not_for(host)
    return "", ""


def _not_for(host: str) -> InputError:
    name = VARIABLE if os.environ.get(VARIABLE) else f"the token file {os.environ.get(FILE_VARIABLE)}"
    return InputError(
        f"{name} is not sent to {host}: this project's files name that store, and you did not",
        hint=f"if the token is for it, say so: export MERGEPUB_TOKEN_HOST={host}, or name the store yourself; "
        "else leave the token out",
    )


def _check_token(token: str) -> None:
    if len(token) > _LONGEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            "the token is not one word of printable ASCII",
            hint=f"give the secret alone, as it was shown when the token was made, in {VARIABLE} or a --token-file",
        )


def _check_channel(scheme: str, host: str) -> None:
    if scheme == "http" and not is_loopback(host):
        raise InputError(
            f"a token is not sent to {host} over plain HTTP, where everybody on the way can read it",
            hint=f"use https://{host}, or unset {VARIABLE} for an open store",
        )


def _from_file(token_file: str | os.PathLike[str] | None) -> str:
    if not token_file:
        return ""
    try:
        text = Path(token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InputError(
            f"the token file {os.fspath(token_file)} cannot be read: {reason}",
            hint=f"name a file that you can read, with --token-file or {FILE_VARIABLE}, or set {VARIABLE}",
        ) from None
    if not text:
        raise InputError(
            f"the token file {os.fspath(token_file)} is empty",
            hint="write the secret into it; one that is lost is not shown again: ask for a new token",
        )
    return text


def _from_keyring(host: str) -> str:
    if find_spec("keyring") is None:
        return ""
    try:
        return import_module("keyring").get_password(KEYRING_SERVICE, host) or ""
    except Exception:  # a keyring that is locked or absent raises what its backend likes
        return ""


def _from_netrc(parts: SplitResult, *, for_any_host: bool) -> str:
    from requests.utils import get_netrc_auth  # noqa: PLC0415 - requests costs start-up time

    found = get_netrc_auth(parts.geturl())
    if not for_any_host and found == get_netrc_auth("https://no-host.invalid"):
        return ""  # netrc's default, or nothing
    return found[1] if found else ""
