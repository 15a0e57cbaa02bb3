"""The raw request target: decoded strictly, segment by segment, and never normalised. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote_to_bytes

from mergepub.errors import BadPathError
from mergepub.service.problems import bad_request

_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*?)\.?)(?::[0-9]*)?\Z")
_SHOWN = 120


def split_origin(target: bytes) -> tuple[bytes | None, bytes]:
    """Authority and path of a request target; the authority is None but in the absolute form ``http://host/path``."""
    for scheme in (b"http://", b"https://"):
        if target[: len(scheme)].lower() == scheme:
            authority, slash, path = target[len(scheme) :].partition(b"/")
            return authority, slash + path
    return None, target


def decode_path(raw: bytes) -> str:
    """The path that ``raw`` spells: each segment percent-decoded once, as UTF-8.

    Raises:
        BadPathError: naming the rule: a broken escape, an encoded slash, a bare #, no UTF-8.
    """
    if b"#" in raw:
        raise _bad(raw, "a # must be encoded")
    if b"%" not in raw:
        return _text(raw, raw)
    if _BROKEN_ESCAPE.search(raw):
        raise _bad(raw, "a % must be followed by two hexadecimal digits")
    segments = [unquote_to_bytes(segment) for segment in raw.split(b"/")]
    if any(b"/" in segment for segment in segments):
        raise _bad(raw, "a segment holds an encoded /")
    return _text(b"/".join(segments), raw)


def _text(path: bytes, raw: bytes) -> str:
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        raise _bad(raw, "it must be valid UTF-8") from None


def _bad(raw: bytes, rule: str) -> BadPathError:
    return BadPathError(f"bad path {raw[:_SHOWN].decode('ascii', 'backslashreplace')!r}: {rule}")


def parse_query(raw: bytes) -> dict[str, str]:
    """The parameters of a query, each of which may stand once.

    Raises:
        ProblemError: 400, when one stands twice or is not UTF-8.
    """
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise bad_request("the query is not valid: percent-encoded UTF-8, 20 parameters at most") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise bad_request("a parameter of the query stands twice")
    return parameters


@lru_cache(256)
def host_name(value: str) -> str:
    """The name in a ``Host`` header, or in a setting: without port and brackets, in lower case, addresses as they are
    usually written. What has not the form of a host stays as it is, so that it is no name of anybody's.
    """
    name = value.strip().lower()
    host = _HOST.match(name)
    name = name if host is None else host[1] or host[2]
    try:
        return str(ip_address(name))
    except ValueError:
        return name


@lru_cache(256)
def is_loopback(name: str) -> bool:
    """True for names and addresses that never leave this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
