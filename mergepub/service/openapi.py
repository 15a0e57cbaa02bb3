"""How the service describes itself in OpenAPI. Data for FastAPI, and what FastAPI leaves open; serves no requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mergepub.documents import EVENTS, TEXT
from mergepub.paths import MAX_VERSION
from mergepub.service.listings import BY_DEFAULT, MOST
from mergepub.service.problems import MEDIA_TYPE

if TYPE_CHECKING:
    from fastapi import FastAPI

    Described = dict[str, Any]

DESCRIPTION = """A store of documents. A document is a body of bytes at a path; every change makes the next version,
and a version never changes. A write names the version that it builds on; when the head is another one, nothing is
written and the answer is 412. Every write may be repeated as it is: it is recognised and done once.

A path is taken as it is sent, never normalised: each segment percent-encoded UTF-8 in normal form NFC, no empty, `.` or
`..` segment, no control character, no encoded `/`, 1,024 bytes at most. `/docs/guide.md/v5` is version 5 of
`/docs/guide.md`. Everything below `/-/` is the service's own."""

_TAG = {"type": "string", "pattern": '^"[!#-~]*"$', "example": '"d4ca8efff92326487c2c8c0d5252e523.5"'}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": MAX_VERSION}
_COUNT = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string"}
_DIGEST = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def _ref(name: str) -> Described:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: Described, optional: Described | None = None) -> Described:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


_MERGED = _object({"base": _NUMBER, "theirs": _NUMBER, "digest": _DIGEST})

SCHEMAS: Described = {
    "Problem": _object(
        {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT},
        {"your-version": _NUMBER, "current-version": _NUMBER, "reason": _TEXT, "limit": _COUNT},
    ),
    "Receipt": _object(
        {"version": _COUNT},
        {"unchanged": {"const": True}, "replayed": {"const": True}, "current-version": _COUNT, "merged": _MERGED},
    ),
    "Version": _object(
        {"version": _COUNT, "digest": _DIGEST, "size": _NUMBER, "author": _TEXT, "message": _TEXT, "modified": _TEXT},
        {"incarnation": _TEXT, "deleted": {"const": True}, "merged-from": _MERGED, "source": _TEXT},
    ),
    "Document": _object(
        {"path": _TEXT, "version": _COUNT, "digest": _DIGEST, "modified": _TEXT, "kind": {"enum": [TEXT, EVENTS]}},
        {"deleted": {"const": True}},
    ),
    "Versions": _object({"versions": {"type": "array", "items": _ref("Version")}}),
    "Documents": _object({"documents": {"type": "array", "items": _ref("Document")}}),
    "Faults": _object({"faults": {"type": "array", "items": _TEXT}}),
    "Status": _object({"status": _TEXT}),
    "Branch": _object({"branch": _TEXT, "incarnation": _TEXT, "state": _TEXT, "revision": _NUMBER}),
    "Branches": _object(
        {},
        {
            "head": {"type": "object"},
            "branches": {"type": "array", "items": _ref("Branch")},
            "branch": _ref("Branch"),
            "ancestors": {"type": "array", "items": _TEXT},
            "unresolved": {"type": "array", "items": _object({"path": _TEXT, "count": _COUNT, "branch": _TEXT})},
        },
    ),
    "Branched": _object(
        {"incarnation": _TEXT},
        {
            "version": _COUNT,
            "branch": _TEXT,
            "branch-revision": _NUMBER,
            "base-version": _NUMBER,
            "current-version": _COUNT,
            "epoch": _NUMBER,
            "unchanged": {"const": True},
            "replayed": {"const": True},
        },
    ),
    "Decision": _object(
        {"decision": _COUNT, "strategy": _TEXT, "head-version": _COUNT, "head": _TEXT, "branch": _TEXT},
        {"version": _COUNT, "result": _TEXT, "resolver": _TEXT, "reason": _TEXT, "modified": _TEXT, "undoes": _COUNT},
    ),
    "Decisions": _object({"decisions": {"type": "array", "items": _ref("Decision")}}, {"after": _COUNT}),
    "Decided": _object(
        {"version": _COUNT, "decision": _ref("Decision")}, {"replayed": {"const": True}, "current-version": _COUNT}
    ),
}

_MEANINGS = {
    400: "The request is malformed: the path breaks a rule, a header or parameter has not its form.",
    401: "A token is missing or not known.",
    403: "The token does not allow this.",
    404: "There is nothing here, or nothing that the token may read.",
    408: "The request did not arrive in time.",
    409: "The document is in no state for this; `reason` says why: a log of events only grows at its end.",
    410: "The document was deleted; `current-version` is the tombstone's.",
    412: "The head is not the version that the request names.",
    413: "The body is over the limit.",
    414: "The request target is too long.",
    415: "The body is encoded; bodies are stored as they are sent.",
    421: "The service does not answer for this host name.",
    422: "The key was used for another body, or what stands before the body is no list.",
    428: "The write names no version to build on, or no key.",
    429: "Asked too often.",
    431: "Request line and headers are too large.",
    500: "The service failed.",
    503: "The store does not answer; nothing was written.",
    504: "The outcome of a write is unknown; repeat it as it is.",
}
_EVERYWHERE = (400, 401, 408, 414, 421, 429, 431, 500, 503)
_WRITING = (403, 409, 412, 413, 415, 504)


def _parameter(name: str, place: str, schema: Described, text: str, *, required: bool = False) -> Described:
    return {"name": name, "in": place, "schema": schema, "description": text, "required": required}


def _header(name: str, schema: Described, text: str, *, required: bool = False) -> Described:
    return _parameter(name, "header", schema, text, required=required)


def _path(pattern: str, text: str) -> Described:
    schema = {"type": "string", "minLength": 1, "maxLength": 1023, "pattern": pattern}
    return _parameter("path", "path", schema, text, required=True)


# What generators put for {path} is one segment; that there may be several is said in words: OpenAPI has no other way.
_SEGMENT = r"^(?!\.{1,2}$)(?!-$)(?!v[0-9]+$)[^/\u0000-\u001f\u007f-\u009f]+$"
_FOLDER = r"^(?!\.{1,2}$)(?!-$)[^/\u0000-\u001f\u007f-\u009f]+$"
_DOCUMENT_PATH = _path(_SEGMENT, "The document's path without its first /: one segment or several with / between them.")
_FOLDER_PATH = _path(_FOLDER, "The folder's path without its first /; empty for everything.")

_READ_CONDITIONS = [
    _header("If-None-Match", _TAG, "304 where the version has one of these tags."),
    _header("If-Match", _TAG, "412 where the version has none of these tags."),
]
_WRITE_CONDITIONS = [
    _header("If-Match", _TAG, "The ETag of the version that this builds on."),
    _header("Mergepub-Expected-Version", _NUMBER, "Its number; 0: there must be no document now."),
]
_ONLY_AT = _header(
    "Mergepub-Expected-Version",
    _NUMBER,
    "Append to this version alone: 412 where it is not the head. Without it, an id that a log of events has is 400.",
)
_CREATE = _header("If-None-Match", {"const": "*"}, "There must be no document now.")
_PLAIN = {"type": "string", "pattern": "^[ -~]*$"}
_LABELS = [
    _header("Mergepub-Author", _PLAIN, "Who writes: UTF-8, plain or as RFC 8187 has it. With a token, its name."),
    _header("Mergepub-Message", _PLAIN, "What the version is about, in the same form."),
]
_MADE_OF = r"^base=(0|[1-9][0-9]{0,14}); theirs=(0|[1-9][0-9]{0,14}); digest=[0-9a-f]{64}$"
_PROVENANCE = [
    _header(
        "Mergepub-Merged-From",
        {"type": "string", "pattern": _MADE_OF, "example": f"base=5; theirs=6; digest={64 * '0'}"},
        "What a merged body was made of.",
    ),
    _header("Mergepub-Source", _PLAIN, "The commit that the body comes from."),
    _header("Mergepub-Kind", {"enum": [TEXT, EVENTS]}, "The kind of a document, at its creation."),
]
_KEY = _header(
    "Idempotency-Key",
    {"type": "string", "pattern": r"^[!#-~]{1,200}$", "example": "7d6f2c0e9b1a4f53"},
    "Made once per append; the same key and body answer the first version.",
    required=True,
)
_LIMIT = _parameter(
    "limit", "query", {"type": "integer", "minimum": 1, "maximum": MOST, "default": BY_DEFAULT}, "Rows of a page."
)
_AFTER_VERSION = _parameter("after", "query", _NUMBER, "Only versions below this number.")
_AFTER_PATH = _parameter("after", "query", {"type": "string", "pattern": r"^[^\u0000]*$"}, "Only paths above this one.")
_DELETED = _parameter("deleted", "query", {"enum": ["0", "1"]}, "1: deleted documents too.")

_BRANCH_NAME = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}(@[1-9][0-9]{0,14})?$"}
_BRANCH_QUERY = [
    _parameter("revision", "query", _BRANCH_NAME, "The body of this revision, or of the branch's end."),
    _parameter("standing", "query", _BRANCH_NAME, "This branch alone, and its common ancestors with the head."),
    _parameter("version", "query", _NUMBER, "With standing: this version in the head's place."),
    _parameter("unresolved", "query", {"enum": ["0", "1"]}, "1: documents at or below the path with open branches."),
    _parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": MOST}, "With unresolved: so many."),
]
_SEEN_HEAD = _header(
    "Mergepub-Expected-Version", _NUMBER, "The version that this builds on, or that was seen.", required=True
)
_BASE = [
    _header("Mergepub-Base-Incarnation", _PLAIN, "The incarnation that was recorded with the base."),
    _header("Mergepub-Base-Digest", _DIGEST, "The digest that was recorded with the base."),
]
_BRANCH_NAMED = _header("Mergepub-Branch", _BRANCH_NAME, "The branch; BRANCH@R names its known end.", required=True)
_PLACE = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}@[1-9][0-9]{0,14}$"}
_NAMES = {"type": "string", "pattern": r'^\[("[a-z0-9]{0,9}"(, "[a-z0-9]{0,9}"){0,9})?\]$'}
_BRANCH_SEEN = _header("Mergepub-Branch", _PLACE, "BRANCH@R that was seen; not of an undo.")
_ACTION = _header("Mergepub-Action", {"enum": ["extend", "take", "abandon"]}, "What to do; extend by default.")
_EPOCH = _header("Mergepub-Epoch", _NUMBER, "The epoch that the writer holds.")
_STRATEGY = _header(
    "Mergepub-Decision", {"enum": ["choose", "continue", "rebase", "reject", "undo"]}, "How.", required=True
)
_DECIDING = [
    _header("Mergepub-Reason", _PLAIN, "Why; in the form of a label."),
    _header("Mergepub-Approved", _NAMES, "A JSON list of what a rebase replays; in the form of a label."),
    _header("Mergepub-Approved-Size", _NUMBER, "Instead of a long list: so many bytes of it stand before the body."),
    _header("Mergepub-Acknowledge-Effects", {"enum": ["true", "false"]}, "Conflicting effects of tools are known."),
    _header("Mergepub-Undoes", _NUMBER, "The decision that an undo takes back."),
]
_AFTER_DECISION = _parameter("after", "query", _NUMBER, "Only decisions below this number.")
_REVISION_HEADERS = {
    "Mergepub-Branch": "Of a revision: its name, BRANCH@R.",
    "Mergepub-Parents": "What it was made from.",
    "Repr-Digest": "SHA-256 of its body (RFC 9530).",
}

_VERSION_HEADERS = {
    "ETag": "The strong tag of the version: incarnation and number.",
    "Mergepub-Version": "Its number.",
    "Mergepub-Incarnation": "The id of the document's life.",
    "Mergepub-Open-Branches": "Of a write: how many branches wait for a decision, 100 if more; not sent where none.",
}
_DOCUMENT_HEADERS = {
    **_VERSION_HEADERS,
    "Mergepub-Current-Version": "The head's number.",
    "Mergepub-Modified": "When it was published, exactly.",
    "Mergepub-Kind": "text or events.",
    "Repr-Digest": "SHA-256 of the body (RFC 9530).",
    "Last-Modified": "When it was published.",
    "Cache-Control": "immutable for a version.",
}


def _answer(text: str, content: Described | None = None, headers: dict[str, str] | None = None) -> Described:
    named = {name: {"description": said, "schema": _TEXT} for name, said in (headers or {}).items()}
    return {"description": text, **({"content": content} if content else {}), **({"headers": named} if named else {})}


def _json(schema: str) -> Described:
    return {"application/json": {"schema": _ref(schema)}}


def _refusals(*statuses: int, body: bool = True) -> Described:
    content = {MEDIA_TYPE: {"schema": _ref("Problem")}} if body else None
    return {str(status): _answer(_MEANINGS[status], content) for status in sorted({*_EVERYWHERE, *statuses})}


def _read(summary: str, text: str, content: Described, *statuses: int, **extra: Any) -> Described:
    headers = extra.pop("headers", None)
    answers = {"200": _answer(text, content, headers), **_refusals(*statuses)}
    return {"summary": summary, "responses": answers, **extra}


def _write(summary: str, answers: Described, *statuses: int, **extra: Any) -> Described:
    return {"summary": summary, "responses": {**answers, **_refusals(*_WRITING, *statuses)}, **extra}


_BODY = {"required": True, "content": _BYTES}
_SOME_BODY = {
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
}
_NOT_MODIFIED = _answer("The caller has this version already.", headers={"ETag": "Its tag."})
_DONE = {
    "200": _answer("Unchanged, or done before.", _json("Receipt"), _VERSION_HEADERS),
    "201": _answer("A new version.", _json("Receipt"), _VERSION_HEADERS),
}
_BRANCHED = {
    "200": _answer("Unchanged, or done before; the branch after an action.", _json("Branched")),
    "201": _answer("A new version, or a new revision of a branch.", _json("Branched")),
}
_TOMBSTONE = {"204": _answer("Deleted.", headers={"Mergepub-Version": "The tombstone's number."})}
_PAGED = {"Link": 'The next page, rel="next", where there is one.'}

_OPERATIONS: dict[tuple[str, str], Described] = {
    ("GET", "/{path:path}"): _read(
        "Fetch the head, or a version",
        "The body.",
        _BYTES,
        *(404, 410, 412),
        headers=_DOCUMENT_HEADERS,
        parameters=[_DOCUMENT_PATH, *_READ_CONDITIONS],
    ),
    ("PUT", "/{path:path}"): _write(
        "Publish by compare-and-swap",
        _DONE,
        428,
        parameters=[_DOCUMENT_PATH, *_WRITE_CONDITIONS, _CREATE, *_LABELS, *_PROVENANCE],
        requestBody=_BODY,
    ),
    ("POST", "/{path:path}"): _write(
        "Append",
        _DONE,
        *(404, 410, 412, 422, 428),
        parameters=[_DOCUMENT_PATH, _KEY, _WRITE_CONDITIONS[0], _ONLY_AT, *_LABELS],
        requestBody=_SOME_BODY,
    ),
    ("DELETE", "/{path:path}"): _write(
        "Delete by compare-and-swap; history stays",
        _TOMBSTONE,
        428,
        parameters=[_DOCUMENT_PATH, *_WRITE_CONDITIONS, *_LABELS],
    ),
    ("GET", "/-/versions/{path:path}"): _read(
        "History, newest first",
        "A page of it.",
        _json("Versions"),
        404,
        headers=_PAGED,
        parameters=[_DOCUMENT_PATH, _LIMIT, _AFTER_VERSION],
    ),
    ("GET", "/-/list/{path:path}"): _read(
        "Documents below a prefix, by path",
        "A page of them.",
        _json("Documents"),
        headers=_PAGED,
        parameters=[_FOLDER_PATH, _LIMIT, _AFTER_PATH, _DELETED],
    ),
    ("GET", "/-/verify/{path:path}"): _read(
        "Check one document: bodies, hash chains, numbering, branches, decisions",
        "What is wrong, one sentence each; nothing where it is sound.",
        _json("Faults"),
        404,
        parameters=[_DOCUMENT_PATH],
    ),
    ("GET", "/-/branches/{path:path}"): _read(
        "Branches of a document against its head; one revision's body; documents with open branches",
        "What was asked for.",
        {**_json("Branches"), **_BYTES},
        *(404, 409, 410, 412),
        headers=_REVISION_HEADERS,
        parameters=[_DOCUMENT_PATH, *_BRANCH_QUERY],
    ),
    ("PUT", "/-/branches/{path:path}"): _write(
        "Publish where the head is the expected version, else keep the body as a sibling of that version",
        _BRANCHED,
        *(404, 428),
        parameters=[_DOCUMENT_PATH, _SEEN_HEAD, *_BASE, *_LABELS, *_PROVENANCE[1:]],
        requestBody={"content": _BYTES},
    ),
    ("POST", "/-/branches/{path:path}"): _write(
        "Extend one's own branch, take one over, or abandon one",
        _BRANCHED,
        *(404, 428),
        parameters=[_DOCUMENT_PATH, _BRANCH_NAMED, _ACTION, _EPOCH, *_LABELS],
        requestBody={"content": _BYTES},
    ),
    ("GET", "/-/decisions/{path:path}"): _read(
        "The decisions about branches, newest first",
        "A page of them; `after` names the next one.",
        _json("Decisions"),
        404,
        parameters=[_DOCUMENT_PATH, _AFTER_DECISION],
    ),
    ("POST", "/-/decisions/{path:path}"): _write(
        "Decide about a branch, with both heads compared",
        {"200": _answer("Decided before.", _json("Decided")), "201": _answer("Decided.", _json("Decided"))},
        *(404, 422, 428),
        parameters=[_DOCUMENT_PATH, _STRATEGY, _SEEN_HEAD, _BRANCH_SEEN, *_DECIDING, _LABELS[0]],
        requestBody={"content": _BYTES},
    ),
    ("GET", "/-/health"): _read("The process answers", "It does.", _json("Status")),
    ("GET", "/-/ready"): _read("The store answers", "It does.", _json("Status")),
    ("GET", "/-/metrics"): _read("Counters for Prometheus", "Those of one worker.", {"text/plain": {}}, 404),
    ("GET", "/-/openapi.json"): _read("This description", "OpenAPI 3.1.", {"application/json": {}}),
    ("GET", "/-/docs"): _read("This description as a page", "It needs nothing else.", {"text/html": {}}),
}
_OPERATIONS["GET", "/{path:path}"]["responses"]["304"] = _NOT_MODIFIED


def operation(method: str, path: str) -> Described:
    """The arguments that describe an operation to FastAPI; HEAD is its GET without the bodies."""
    described = _OPERATIONS["GET" if method == "HEAD" else method, path]
    if method == "HEAD":
        described = described | {"responses": _without_content(described["responses"])}
    room = path.removeprefix("/-/").partition("/")[0].partition(".")[0]
    name = room if path.startswith("/-/") else "document"
    extra = {key: value for key, value in described.items() if key != "summary"}
    return {"summary": described["summary"], "operation_id": f"{method.lower()}_{name}", "openapi_extra": extra}


def _without_content(responses: Described) -> Described:
    return {status: {k: v for k, v in answer.items() if k != "content"} for status, answer in responses.items()}


def document(app: FastAPI) -> Described:
    """The OpenAPI document of ``app``."""
    described: Described = app.openapi()
    described["components"] = {
        "schemas": SCHEMAS,
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    described["security"] = [{}, {"token": []}]
    return described
