"""The wire of the HTTP service as the client sees it: values to headers, answers to values, refusals to errors.

Pure: bytes and headers in, values and errors out. Sockets, time-outs and secrets live in http.py and http_secrets.py.

The rule behind every function: only a clear yes is a yes. A status, a version, a digest or a content type that is not
exactly what was promised raises ``UnavailableError``, which quotes what came instead; and a plain no ("no such
document", "another version") is believed only in the service's own form, a problem document, because a proxy or a wrong
address says 404 too.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from shlex import quote as shell_quote
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote, urljoin, urlsplit

from mergepub.documents import TEXT, Document, Listed, MergedFrom, Receipt, Revision, Version
from mergepub.errors import (
    BaseUnavailableError,
    BranchError,
    DeniedError,
    DocumentDeletedError,
    DocumentExistsError,
    InputError,
    KeyReusedError,
    MergepubError,
    NotFoundError,
    RecreatedError,
    RejectedError,
    ThrottledError,
    UnavailableError,
    UnknownOutcomeError,
    VersionConflictError,
)
from mergepub.stores import branchrules, refusals
from mergepub.values import dataclass

_Row = TypeVar("_Row")

QUOTED = 200
"""How many characters of an unclear answer an error quotes."""

LONGEST_WAIT = 3600.0
"""Seconds; a Retry-After beyond this is taken as this."""

DEFAULT_WAIT = 1.0
"""Seconds to wait after a 429 that names no time."""

_NEXT_LINK = re.compile(r"""<([^<>]*)>\s*;[^,]*\brel="?next\b""")
_PLAIN_KEY = re.compile(
    r"[!#$&-~]+"
)  # neither a quote, which the service takes off, nor %, which says that it is encoded
# RFC 8187 attr-char beyond what urllib.parse.quote never encodes.
_LABEL_SAFE = "!#$&+^`|"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect, and without a byte of the answer."""

    connect: float = 5.0
    read: float = 30.0


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked: the method, the document path or prefix, the URL without secrets, the expected number."""

    method: str
    path: str
    url: str
    expected: int | None = None
    version: int | None = None  # the version asked for; None is the head

    @property
    def writes(self) -> bool:
        """True for everything that may change the store."""
        return self.method != "GET"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whole. ``headers`` answers names in any case; ``secret`` is what no message may repeat."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    secret: str = field(default="", repr=False)

    def quoted(self) -> str:
        """The status and the start of the answer, safe to show on a terminal."""
        kind = self.shown(self.headers.get("Content-Type", "no content type"))
        start = self.shown(self.body[: 64 * QUOTED].decode("utf-8", "replace"))
        return f'{self.status}, {kind}, "{start}"' if start else f"{self.status}, {kind}, an empty body"

    def shown(self, text: str, most: int = QUOTED) -> str:
        """``text`` from this answer for a message: a failing server may print the request with the secret in it."""
        return shown(text.replace(self.secret, "***") if self.secret else text, most)


@dataclass(frozen=True, slots=True)
class Page(Generic[_Row]):
    """Some rows of a history or listing, and the address of the page after it."""

    rows: Sequence[_Row]
    following: str | None


DAMAGED = "urn:mergepub:problem:damaged"
"""The type of the problem that says so; nothing was written then."""

KEY_REUSED = "urn:mergepub:problem:key-reused"


class DamagedAnswerError(UnavailableError):
    """The answer came whole and its bytes are not the ones that it names; or the service has none that are."""


class ForeignAnswerError(UnavailableError):
    """The answer is not that of a mergepub service; asking again will not change it."""


def shown(text: str, most: int = QUOTED) -> str:
    """The first ``most`` characters of ``text``; what is not printable is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[:most])


# -- values to requests ------------------------------------------------------------------------------------------------


def quote_path(path: str) -> str:
    """``path`` with every segment percent-encoded as UTF-8."""
    return quote(path, safe="/")


def encode_label(text: str) -> str:
    """``text`` in the extended form of RFC 8187, which carries any characters in an ASCII header."""
    return "UTF-8''" + quote(text, safe=_LABEL_SAFE)


def decode_label(value: str) -> str:
    """The inverse of ``encode_label``; a value in plain form is taken as it stands."""
    charset, quotes, encoded = value.partition("''")
    return unquote(encoded) if quotes and charset.lower() == "utf-8" else value


def precondition(expected: Version) -> dict[str, str]:
    """The header that makes a write a compare-and-swap.

    An ETag is sent where the version has one, because it names the incarnation too; else the number, 0 for a document
    that must not exist. A token that is no ETag is another system's and proves nothing here.

    Raises:
        InputError: ``expected`` has neither.
    """
    if expected.token and expected.token.startswith('"'):
        return {"If-Match": expected.token}
    if expected.number is None:
        raise InputError("the expected version has neither number nor token; fetch the document again")
    return {"Mergepub-Expected-Version": str(expected.number)}


def labels(author: str, message: str) -> dict[str, str]:
    """The headers that label a version; empty labels send nothing."""
    named = {"Mergepub-Author": author, "Mergepub-Message": message}
    return {name: encode_label(value) for name, value in named.items() if value}


def provenance(merged_from: MergedFrom | None, source: str | None, kind: str) -> dict[str, str]:
    """The headers that say what a version was made of."""
    headers = {}
    if merged_from is not None:
        made_of = f"base={merged_from.base}; theirs={merged_from.theirs}; digest={merged_from.digest}"
        headers["Mergepub-Merged-From"] = made_of
    if source:
        headers["Mergepub-Source"] = encode_label(source)
    if kind != TEXT:
        headers["Mergepub-Kind"] = kind
    return headers


def quote_key(key: str) -> str:
    """``key`` as a header can carry it; a key of visible ASCII without quotes, as ours are, stays as it is."""
    return key if _PLAIN_KEY.fullmatch(key) else quote(key, safe="")


# -- answers to values -------------------------------------------------------------------------------------------------


def document(call: Call, answer: Answer) -> Document:
    """The document in a 200, its bytes checked against the digest that came with them.

    Raises:
        UnavailableError: anything that a document's answer must name is missing or does not fit.
    """
    number = version_header(answer)
    incarnation = answer.headers.get("Mergepub-Incarnation", "")
    if number is None or not incarnation or call.version not in (None, number):
        raise unclear(call, answer, "it does not name the version that it answers")
    digest = checked_digest(call, answer)
    return Document(
        path=call.path,
        body=answer.body,
        version=Version(number, token=answer.headers.get("ETag"), ref=f"{call.path}/v{number}"),
        digest=digest,
        incarnation=incarnation,
        author=decode_label(answer.headers.get("Mergepub-Author", "")),
        message=decode_label(answer.headers.get("Mergepub-Message", "")),
        modified=_modified(answer),
        kind=answer.headers.get("Mergepub-Kind", TEXT),
        current=positive(answer.headers.get("Mergepub-Current-Version")) or (None if call.version else number),
    )


def receipt(call: Call, answer: Answer) -> Receipt:
    """The store's yes to a PUT or POST.

    A new version of a publish is expected + 1; any other number is not the answer to this request.

    Raises:
        UnknownOutcomeError: the answer is no JSON object, contradicts itself, or names no version or another one.
    """
    facts = json_object(call, answer)
    number = facts.get("version", version_header(answer))
    unchanged, replayed = facts.get("unchanged", False), facts.get("replayed", False)
    current = facts.get("current-version")
    if not (_is_count(number) and number == (version_header(answer) or number)):
        raise unclear(call, answer, "it does not say clearly which version was made")
    if not (isinstance(unchanged, bool) and isinstance(replayed, bool) and (current is None or _is_count(current))):
        raise unclear(call, answer, "its fields are not of the promised types")
    if call.expected and not (unchanged or replayed) and number != call.expected + 1:
        raise unclear(call, answer, f"version {call.expected + 1} was to be made")
    return Receipt(
        version=Version(number, token=answer.headers.get("ETag"), ref=f"{call.path}/v{number}"),
        incarnation=answer.headers.get("Mergepub-Incarnation", ""),
        unchanged=unchanged,
        replayed=replayed,
        current=current,
        merged_from=_merged_from(facts.get("merged")) if replayed else None,
        open_branches=_open_branches(answer),
    )


def _open_branches(answer: Answer) -> int:
    """How many branches wait for a decision: a courtesy, so what is no number is none."""
    value = answer.headers.get("Mergepub-Open-Branches", "")
    return int(value) if re.fullmatch(r"[1-9][0-9]{0,5}", value) else 0


def deletion(call: Call, answer: Answer) -> Receipt:
    """The store's yes to a DELETE, all of it in headers.

    Raises:
        UnknownOutcomeError: it names no tombstone, or not the one at expected + 1.
    """
    number = version_header(answer)
    if number is None or (call.expected is not None and number != call.expected + 1):
        raise unclear(call, answer, "it does not name the tombstone that was made")
    replayed = answer.headers.get("Mergepub-Replayed") == "true"
    return Receipt(Version(number), answer.headers.get("Mergepub-Incarnation", ""), replayed=replayed)


def page(key: str, parse: Callable[[dict[str, Any]], _Row], call: Call, answer: Answer) -> Page[_Row]:
    """The rows under ``key``, each read by ``parse``.

    Raises:
        UnavailableError: the answer or one row is not in the promised form, or the next page is of another origin.
    """
    rows = json_object(call, answer).get(key)
    if not isinstance(rows, list):
        raise unclear(call, answer, f"a list of {key} was promised")
    try:
        parsed = [parse(row) for row in rows]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise unclear(call, answer, f"its {key} are not in the promised form") from None
    return Page(parsed, _next_url(call, answer))


def _next_url(call: Call, answer: Answer) -> str | None:
    link = next_link(answer)
    if link is None:
        return None
    following = on_same_origin(call.url, link)
    if following is None:
        raise unclear(call, answer, "its next page is not on this store")
    return following


def on_same_origin(url: str, reference: str) -> str | None:
    """The address that ``reference`` means at ``url``; None where it leads to another scheme, host or port."""
    try:
        target = urljoin(url, reference)
        return target if urlsplit(target)[:2] == urlsplit(url)[:2] else None
    except ValueError:
        return None


def revision(row: Mapping[str, Any]) -> Revision:
    """One row of a history page.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or of another type.
    """
    number, size = row["version"], row["size"]
    if not (_is_count(number) and isinstance(size, int)):
        raise ValueError("version and size are numbers")
    return Revision(
        version=number,
        size=size,
        digest=_text(row["digest"]),
        author=_text(row["author"]),
        message=_text(row["message"]),
        modified=_text(row["modified"]),
        incarnation=_text(row.get("incarnation") or ""),
        deleted=row.get("deleted", False) is True,
        merged_from=_merged_from(row.get("merged-from")),
        source=row.get("source"),
    )


def listed(row: Mapping[str, Any]) -> Listed:
    """One row of a listing page.

    Raises:
        KeyError, TypeError, ValueError: a field is missing or of another type.
    """
    if not _is_count(row["version"]):
        raise ValueError("version is a number")
    return Listed(
        path=_text(row["path"]),
        version=row["version"],
        digest=_text(row["digest"]),
        modified=_text(row["modified"]),
        kind=_text(row.get("kind", TEXT)),
        deleted=row.get("deleted", False) is True,
    )


def faults(call: Call, answer: Answer) -> list[str]:
    """What the service's own check found.

    Raises:
        UnavailableError: the answer is no list of sentences.
    """
    found = json_object(call, answer).get("faults")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise unclear(call, answer, "a list of faults was promised")
    return [shown(each, 3 * QUOTED) for each in found]


def json_object(call: Call, answer: Answer) -> dict[str, Any]:
    """The JSON object in a yes.

    Raises:
        UnavailableError: the answer is empty, of another type, or no JSON object.
    """
    facts = _parsed(answer) if _media_type(answer) == "application/json" else None
    if facts is None:
        raise unclear(call, answer, "a JSON object was promised")
    return facts


def next_link(answer: Answer) -> str | None:
    """The address of the next page in ``Link``, None on the last one."""
    found = _NEXT_LINK.search(answer.headers.get("Link", ""))
    return found[1] if found else None


def version_header(answer: Answer) -> int | None:
    """The number in ``Mergepub-Version``, None where there is none."""
    return positive(answer.headers.get("Mergepub-Version"))


def positive(text: str | None) -> int | None:
    """The number from 1 that ``text`` spells in ASCII digits without leading zeros, else None."""
    if text and len(text) <= 18 and text.isascii() and text.isdigit() and text[0] != "0":
        return int(text)
    return None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was promised")
    return value


def _merged_from(value: object) -> MergedFrom | None:
    if not isinstance(value, dict):
        return None
    base, theirs, digest = value.get("base"), value.get("theirs"), value.get("digest")
    if not (isinstance(base, int) and isinstance(theirs, int)):
        return None
    return MergedFrom(base, theirs, digest if isinstance(digest, str) else "")


def checked_digest(call: Call, answer: Answer) -> str:
    """The digest of the answer's body, which must be the one that came with it."""
    promised = _promised_digest(answer)
    if promised is None:
        raise unclear(call, answer, "it names no SHA-256 digest of its body")
    made = sha256(answer.body)
    if made.digest() != promised:
        raise DamagedAnswerError(
            f"the body of {call.url} has {len(answer.body)} bytes with the digest {made.hexdigest()}, but"
            f" {promised.hex()} was promised: the answer was cut short or changed on its way; try again"
        )
    return made.hexdigest()


def _promised_digest(answer: Answer) -> bytes | None:
    for member in answer.headers.get("Repr-Digest", "").split(","):
        name, _, value = member.strip().partition("=")
        if name == "sha-256" and len(value) > 2 and value[0] == value[-1] == ":":
            try:
                return b64decode(value[1:-1], validate=True)
            except ValueError:
                return None
    return None


def _modified(answer: Answer) -> str:
    exact = answer.headers.get("Mergepub-Modified")
    if exact:
        return exact
    try:
        return parsedate_to_datetime(answer.headers["Last-Modified"]).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (KeyError, ValueError):
        return ""


# -- refusals to errors ------------------------------------------------------------------------------------------------


def refusal(call: Call, answer: Answer) -> MergepubError:
    """The error that says what a status other than the promised ones means for the caller."""
    problem = _problem(answer)
    if problem is not None and answer.status in _PLAIN_NO:
        return _PLAIN_NO[answer.status](call, problem)
    if answer.status in (401, 403):
        return _denied(call, answer, problem)
    if answer.status == 413:
        return _too_large(call, problem or {})
    if answer.status == 429:
        wait = retry_after(answer)
        message = f"the store at {call.url} was asked too often; try again later (it answered {answer.quoted()})"
        return ThrottledError(message, after=DEFAULT_WAIT if wait is None else wait)
    if answer.status == 408 or answer.status >= 500:
        return _failed(call, answer, problem)
    return unclear(call, answer, "this is no answer of a mergepub service; check the URL")


def unclear(call: Call, answer: Answer, why: str) -> UnavailableError:
    """An answer that is neither a clear yes nor a clear no. After a write nobody knows what happened."""
    message = f"unclear answer to {call.method} {call.url}: {why} (it answered {answer.quoted()})"
    wait = retry_after(answer)
    if call.writes and answer.status < 300:
        return UnknownOutcomeError(f"{message}; it may or may not have been written: repeat it", after=wait)
    return (ForeignAnswerError if answer.status < 500 else UnavailableError)(message, after=wait)


def retry_after(answer: Answer) -> float | None:
    """The seconds in ``Retry-After``, as a number or a date, between 0 and an hour; None where there is none."""
    value = answer.headers.get("Retry-After", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_WAIT)
    try:
        seconds = (parsedate_to_datetime(value).astimezone(UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _media_type(answer: Answer) -> str:
    return answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _parsed(answer: Answer) -> dict[str, Any] | None:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _problem(answer: Answer) -> dict[str, Any] | None:
    problem = _parsed(answer) if _media_type(answer) == "application/problem+json" else None
    if problem is not None and isinstance(problem.get("detail"), str):
        problem["detail"] = answer.shown(problem["detail"], 3 * QUOTED)
    return problem


def _said(call: Call, problem: Mapping[str, Any], otherwise: str) -> str:
    detail = problem.get("detail")
    said = detail if isinstance(detail, str) and detail else otherwise
    return f"{said} ({call.method} {call.url})"


def _number(problem: Mapping[str, Any], key: str) -> int | None:
    value = problem.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _failed(call: Call, answer: Answer, problem: Mapping[str, Any] | None) -> UnavailableError:
    if problem is not None and problem.get("type") == DAMAGED:
        return DamagedAnswerError(_said(call, problem, "what the store holds is damaged"))
    wait = retry_after(answer)
    said = f"the store at {call.url} cannot answer now; try again later (it answered {answer.quoted()})"
    # Our own 503 says that nothing was written, and after 408 the request was never whole; a gateway in between knows
    # nothing about what went on behind it.
    ours = answer.status == 503 and problem is not None and problem.get("reason") != "unknown"
    surely_not_written = ours or answer.status == 408
    if call.writes and not surely_not_written:
        return UnknownOutcomeError(f"{said}; it may or may not have been written: repeat it", after=wait)
    return UnavailableError(said, after=wait)


def _denied(call: Call, answer: Answer, problem: Mapping[str, Any] | None) -> DeniedError:
    said = _said(call, problem or {}, f"the store refuses {call.method} of {call.path} (it answered {answer.quoted()})")
    if answer.status == 403:
        hint = "whoever runs the service can make a token that allows this; see token create --help there"
    elif answer.secret:
        hint = "mergepub doctor says where this token was found; set another with MERGEPUB_TOKEN or --token-file"
    else:
        hint = "set MERGEPUB_TOKEN or name a --token-file; whoever runs the service makes the token"
    return DeniedError(said, hint=hint)


def _too_large(call: Call, problem: Mapping[str, Any]) -> RejectedError:
    limit = _number(problem, "limit")
    named = f"the limit is {limit} bytes" if limit is not None else "the store did not name its limit"
    said = _said(call, problem, f"the body for {call.path} is too large")
    return RejectedError(f"{said}: {named}", limit=limit, hint="make the document smaller or split it")


def _bad_request(call: Call, problem: Mapping[str, Any]) -> InputError:
    said = _said(call, problem, "the store does not take this request")
    return RejectedError(said) if call.writes else InputError(said)


def _unprocessable(call: Call, problem: Mapping[str, Any]) -> InputError:
    if problem.get("type") != KEY_REUSED:
        return _bad_request(call, problem)
    said = _said(call, problem, "the append key was used for another body")
    return KeyReusedError(said, hint=refusals.NEW_KEY)


def _not_found(call: Call, problem: Mapping[str, Any]) -> NotFoundError:
    if call.version is not None:
        said = _said(call, problem, f"there is no {call.path}/v{call.version} in this store")
        return NotFoundError(said, hint=f"mergepub versions {shell_quote(call.path)}")
    said = _said(call, problem, f"there is no {call.path} in this store")
    return NotFoundError(said, path=call.path, hint=refusals.creation(call.path))


def _gone(call: Call, problem: Mapping[str, Any]) -> MergepubError:
    tombstone = _number(problem, "current-version") if call.version is None else call.version
    said = _said(call, problem, f"{call.path} was deleted (version {tombstone})")
    place = shell_quote(call.path)
    if call.writes and call.method != "POST":
        return DocumentDeletedError(said, expected=call.expected, current=tombstone, hint=f"mergepub versions {place}")
    hint = f"mergepub fetch {place}/v{tombstone - 1}" if tombstone and tombstone > 1 else f"mergepub versions {place}"
    return NotFoundError(said, tombstone=tombstone, hint=hint)


def _precondition_failed(call: Call, problem: Mapping[str, Any]) -> MergepubError:
    current, yours = _number(problem, "current-version"), _number(problem, "your-version")
    expected = call.expected if call.expected is not None else yours
    said = _said(call, problem, f"the head of {call.path} is version {current}, not {expected}")
    facts: dict[str, Any] = {
        "expected": expected,
        "current": current,
        "hint": f"mergepub fetch {shell_quote(call.path)}",
    }
    if problem.get("reason") == "recreated":
        return RecreatedError(said, **facts)
    if problem.get("reason") == "deleted":
        return DocumentDeletedError(said, **facts | {"hint": f"mergepub versions {shell_quote(call.path)}"})
    if problem.get("reason") == "base-unavailable":
        return BaseUnavailableError(said, **facts)
    if current == 0:
        return NotFoundError(said, path=call.path, hint=refusals.creation(call.path))
    if expected == 0:
        return DocumentExistsError(said, **facts)
    return VersionConflictError(said, **facts)


def _misdirected(call: Call, problem: Mapping[str, Any]) -> InputError:
    said = _said(call, problem, "the service does not answer for this host name")
    return InputError(said, hint="use the name that the service was given, or start it with --public-name")


def _unconditional(call: Call, problem: Mapping[str, Any]) -> MergepubError:
    return MergepubError(_said(call, problem, "the service asks for a precondition that this client sent"))


def _refused_state(call: Call, problem: Mapping[str, Any]) -> BranchError:
    reason = problem.get("reason")
    said = _said(call, problem, f"{call.path} is in no state for this")
    word = reason if isinstance(reason, str) and reason else "conflict"
    return BranchError(said, reason=word, hint=branchrules.advice(call.path, word, ""))


_PLAIN_NO: dict[int, Callable[[Call, Mapping[str, Any]], MergepubError]] = {
    400: _bad_request,
    404: _not_found,
    409: _refused_state,
    410: _gone,
    412: _precondition_failed,
    421: _misdirected,
    422: _unprocessable,
    428: _unconditional,
}
