"""What ``doctor`` looks at in a store behind HTTP before it publishes anything: token, clock, certificate."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from mergepub.errors import DeniedError, InputError, MergepubError
from mergepub.findings import Finding
from mergepub.stores import http_secrets as secrets
from mergepub.stores.http_session import HttpSession
from mergepub.stores.http_wire import Call, Timeouts

if TYPE_CHECKING:
    from mergepub.stores.contract import Store

OFF_BY = 5.0
"""Seconds by which clocks may differ before it is worth a warning."""

SOON = 21
"""Days; a certificate that ends sooner is worth a warning."""

_TIMEOUT = 10.0


def look(store: Store) -> Iterator[Finding]:
    """Token, clock and channel of the HTTP store, in this order."""
    parts = secrets.check_url(store.url)
    yield from _token(store, parts)
    yield _clock(store, parts)
    yield _certificate(parts) if parts.scheme == "https" else _plain(parts)


def _token(store: Store, parts: SplitResult) -> Iterator[Finding]:
    """Whether the token is accepted; nothing where the store cannot be reached, which is said already."""
    try:
        secret, place = secrets.locate_token(parts)
        next(iter(store.list("/", limit=1)), None)
    except (DeniedError, InputError) as error:
        yield Finding("token", "fail", error.message, error.hint, error.exit_status)
    except MergepubError:
        return
    else:
        found = f"the one from {place} is accepted" if secret else "none is set, and the service asks for none"
        yield Finding("token", "ok", f"{found} for reading")


def _clock(store: Store, parts: SplitResult) -> Finding:
    try:
        before = datetime.now(UTC)
        there = _date(store, parts)
        after = datetime.now(UTC)
    except (MergepubError, ValueError, TypeError) as error:
        return Finding("clock", "warn", f"the service's time is not known: {error}", "check the URL of the store")
    # The header counts whole seconds, and was written at some time between asking and being answered.
    ahead = max((before - there).total_seconds() - 1, (there - after).total_seconds(), 0.0)
    if ahead <= OFF_BY:
        return Finding("clock", "ok", "this machine and the service agree on the time")
    late = "behind" if there < before else "ahead of"
    return Finding(
        "clock",
        "warn",
        f"the service's clock is {ahead:.0f} s {late} this machine's",
        "set both by a time server: times in histories and the ends of tokens are told by the service's clock",
    )


def _date(store: Store, parts: SplitResult) -> datetime:
    direct = secrets.is_loopback(parts.hostname or "")
    session = HttpSession("", Timeouts(), direct=direct)
    try:
        url = f"{store.url}/-/health"
        answer = session.exchange(Call("GET", "/", url), url, {}, None)
        return parsedate_to_datetime(answer.headers["Date"]).astimezone(UTC)
    except KeyError:
        raise ValueError("its answer has no Date") from None
    finally:
        session.close()


def _plain(parts: SplitResult) -> Finding:
    if secrets.is_loopback(parts.hostname or ""):
        return Finding("tls", "ok", "plain HTTP, which does not leave this machine")
    return Finding("tls", "warn", "plain HTTP: everybody on the way can read and change it", "serve it by https")


def _certificate(parts: SplitResult) -> Finding:
    host, port = parts.hostname or "", parts.port or 443
    try:
        ends = _end_of_certificate(host, port)
    except ssl.SSLCertVerificationError as error:
        hint = "renew it, or name its authority with REQUESTS_CA_BUNDLE"
        return Finding("tls", "fail", f"the certificate of {host} is not trusted: {error.verify_message}", hint, 4)
    except OSError as error:
        hint = "check that the address is right, or ask whoever runs the proxy"
        return Finding("tls", "warn", f"the certificate of {host} cannot be looked at: {error.strerror or error}", hint)
    days = (ends - datetime.now(UTC)).days
    said = f"the certificate of {host} is good for {days} more day{'s' * (days != 1)}"
    return Finding("tls", "ok", said) if days >= SOON else Finding("tls", "warn", said, "have it renewed")


def _end_of_certificate(host: str, port: int) -> datetime:
    context = ssl.create_default_context(cafile=_authorities())
    with (
        socket.create_connection((host, port), timeout=_TIMEOUT) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        certificate: dict[str, Any] = secure.getpeercert() or {}
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)


def _authorities() -> str:
    """The same as requests trusts."""
    import certifi  # noqa: PLC0415 - it comes with requests

    return os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or certifi.where()
