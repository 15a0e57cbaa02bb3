"""Header values that carry text: labels in the form of RFC 8187, the merge record. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from mergepub.documents import MergedFrom
from mergepub.paths import MAX_VERSION
from mergepub.service.problems import bad_request

MAX_LABEL = 4096
"""Bytes of UTF-8 in a label: encoded, it must still fit into a header line that every client takes."""

# Characters that RFC 8187 lets stand, beyond letters, digits and "_.-~".
_LITERAL = "!#$&+^`|"
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._@<>+-]*[A-Za-z0-9._>+-])?\Z")
_EXTENDED = re.compile(rb"([A-Za-z0-9_.-]+)'([A-Za-z0-9-]*)'((?:[A-Za-z0-9_.~!#$&+^`|-]|%[0-9A-Fa-f]{2})*)\Z")
_MERGED = re.compile(r"\s*([a-z]+)\s*=\s*([0-9a-f]+)\s*\Z")
_NUMBER = re.compile(r"[1-9][0-9]{0,15}\Z|0\Z")


def encode_label(text: str) -> str:
    """``text`` for a header: as it is where that is plain, else ``UTF-8''...``; cut where it is over the limit.

    A label that long never came through the service; the history has it whole.
    """
    if len(text.encode()) > MAX_LABEL:
        text = text.encode()[:MAX_LABEL].decode("utf-8", "ignore") + "…"
    return text if _PLAIN.match(text) else "UTF-8''" + quote(text, safe=_LITERAL)


def decode_label(name: str, value: bytes) -> str:
    """The label in a header: the extended form of RFC 8187, or plain UTF-8.

    Raises:
        ProblemError: 400, when it is neither, too long, or holds CR, LF or NUL.
    """
    extended = _EXTENDED.match(value)
    if extended and extended[1].lower() != b"utf-8":
        raise bad_request(f"{name} names the character set {extended[1].decode()}; only UTF-8 is understood")
    try:
        text = (unquote_to_bytes(extended[3]) if extended else value).decode("utf-8")
    except UnicodeDecodeError:
        raise bad_request(f"{name} is not valid UTF-8") from None
    if any(c in text for c in "\r\n\0"):
        raise bad_request(f"{name} holds CR, LF or NUL; a label is one line")
    if len(text.encode()) > MAX_LABEL:
        raise bad_request(f"{name} has over {MAX_LABEL} bytes")
    return text


def parse_merged_from(value: str) -> MergedFrom:
    """``base=5; theirs=6; digest=HEX``.

    Raises:
        ProblemError: 400, naming the form.
    """
    parts = [_MERGED.match(part) for part in value.split(";")]
    fields = {part[1]: part[2] for part in parts if part}
    wanted = {"base", "theirs", "digest"}
    if not all(parts) or len(parts) != len(wanted) or set(fields) != wanted:
        raise bad_request("Mergepub-Merged-From has the form: base=5; theirs=6; digest=SHA-256-IN-HEX")
    if len(fields["digest"]) != 64:
        raise bad_request("the digest of Mergepub-Merged-From is a SHA-256: 64 hexadecimal digits")
    base, theirs = (parse_number("Mergepub-Merged-From", fields[name]) for name in ("base", "theirs"))
    return MergedFrom(base, theirs, fields["digest"])


def parse_number(name: str, text: str) -> int:
    """A version number: ASCII digits without leading zeros, 0 for none.

    Raises:
        ProblemError: 400, naming the header or parameter.
    """
    if not _NUMBER.match(text) or int(text) > MAX_VERSION:
        raise bad_request(f"{name} is a version number: digits without leading zeros, {MAX_VERSION} at most")
    return int(text)
