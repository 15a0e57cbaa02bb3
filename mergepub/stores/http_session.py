"""The HTTP store's sockets: one pooled session on requests, and what its failures mean.

The only module of the store that imports requests, and so itself imported at the first request. It repeats nothing,
follows nothing and knows no status codes.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectTimeout, InvalidHeader, InvalidURL, ProxyError
from urllib3.exceptions import NewConnectionError

from mergepub._version import __version__
from mergepub.errors import InputError, MergepubError, UnavailableError, UnknownOutcomeError
from mergepub.stores.http_wire import Answer, Call, Timeouts, shown, unclear

MAX_ANSWER = 256 * 1024 * 1024
"""Bytes; a longer answer is refused instead of filling the memory."""

_CHUNK = 256 * 1024
# A secret for this machine never leaves it through a proxy that the environment names for the rest of the world.
_NO_PROXY: dict[str, Any] = {"http": None, "https": None, "all": None}
# The request cannot have reached the store when one of these is behind the failure.
_BEFORE_SENDING = (ConnectTimeout, ProxyError, NewConnectionError, ssl.SSLCertVerificationError)


class HttpSession:
    """Sends requests with one secret and the environment's CA bundle and proxies; ``direct`` uses no proxy.

    Cookies are not kept; redirects are answers like any other, so the secret never follows one.
    """

    def __init__(self, token: str, timeouts: Timeouts, *, direct: bool) -> None:
        self._token = token
        self._timeouts = timeouts
        self._proxies = _NO_PROXY if direct else None
        self._session = session = _Session()
        session.auth = _Bearer(token)  # set without a token too: else requests sends netrc's password on any channel
        session.headers.update({"User-Agent": f"mergepub/{__version__}", "Accept-Encoding": "identity"})
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=32, max_retries=0))

    def exchange(self, call: Call, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Send one request and read its whole answer.

        Raises:
            UnavailableError: no whole answer, and the request changed nothing for certain.
            UnknownOutcomeError: a write was sent and no whole answer came.
            InputError: the URL or a header cannot be sent.
        """
        try:
            with self._session.request(
                call.method,
                url,
                headers=dict(headers),
                data=body,
                timeout=(self._timeouts.connect, self._timeouts.read),
                allow_redirects=False,
                stream=True,
                proxies=self._proxies,
            ) as response:
                return Answer(response.status_code, response.headers, _received(call, response), self._token)
        except (requests.RequestException, ValueError) as error:  # some of urllib3's come through as they are
            raise _no_answer(call, error, self._timeouts) from None

    def close(self) -> None:
        """Close the pooled connections."""
        self._session.close()


class _Session(requests.Session):
    """Leaves redirects alone: requests would look at where they lead, and stumble over what is no URL."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002 - requests gives it
        return None


class _Bearer(requests.auth.AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _received(call: Call, response: requests.Response) -> bytes:
    received = bytearray()
    for chunk in response.iter_content(_CHUNK):
        received += chunk
        if len(received) > MAX_ANSWER:
            raise unclear(call, Answer(response.status_code, response.headers, b""), "it does not end")
    return bytes(received)


def _no_answer(call: Call, error: Exception, timeouts: Timeouts) -> MergepubError:
    """The error for a request that got no whole answer, told apart by whether it can have reached the store."""
    if isinstance(error, (InvalidURL, InvalidHeader)):
        return InputError(f"{call.url} cannot be asked: {_cause(error)}", hint="check the URL of the store")
    if isinstance(error, ConnectTimeout):
        why = f"no connection within {timeouts.connect:g} s"
    elif isinstance(error, requests.Timeout):
        why = f"no answer within {timeouts.read:g} s"
    else:
        why = _cause(error)
    if not call.writes or _surely_unsent(error):
        return _unreachable(call, error, why)
    return UnknownOutcomeError(
        f"{call.method} {call.url} was sent and not answered: {why}; it may or may not have been written: repeat it",
        hint=_other_scheme(call) if _is_no_tls(error) else None,
    )


def _unreachable(call: Call, error: Exception, why: str) -> UnavailableError:
    """Told apart by what to do next: waiting helps neither a wrong scheme nor a wrong name nor a wrong certificate."""
    said = f"the store at {call.url} cannot be reached: {why}"
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in _chain(error)):
        return UnavailableError(said, hint="mergepub doctor looks at the certificate; REQUESTS_CA_BUNDLE names a CA")
    if _is_no_tls(error):
        return UnavailableError(said, hint=_other_scheme(call))
    if any(isinstance(each, socket.gaierror) for each in _chain(error)):
        return UnavailableError(said, hint="check the name of the host, and the connection to the network")
    hint = "is the service running there, on that port? mergepub doctor looks closer"
    return UnavailableError(f"{said}; try again later", hint=hint)


def _is_no_tls(error: Exception) -> bool:
    return any(isinstance(each, ssl.SSLError) for each in _chain(error))


def _other_scheme(call: Call) -> str:
    return f"is it plain HTTP there? http://{urlsplit(call.url).netloc}"


def _surely_unsent(error: BaseException) -> bool:
    return any(isinstance(each, _BEFORE_SENDING) for each in _chain(error))


def _cause(error: BaseException) -> str:
    """What the operating system or the protocol said at the bottom of ``error``."""
    bottom = list(_chain(error))[-1]
    said = getattr(bottom, "verify_message", None) or getattr(bottom, "strerror", None) or str(bottom)
    return shown(said) or type(bottom).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """``error`` and what it wraps: requests wraps urllib3's errors as arguments, those wrap theirs as reasons."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        wrapped = [each for each in (*error.args, getattr(error, "reason", None)) if isinstance(each, BaseException)]
        error = wrapped[-1] if wrapped else error.__cause__ or error.__context__
