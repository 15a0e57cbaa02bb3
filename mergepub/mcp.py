"""The tool server: publishing with conflict awareness as tools of the Model Context Protocol, over standard streams.

A tool answers with the keys of the status block, as text with the body below and as structured content with the body
beside them. A conflict is an answer, not an error: it carries the marked body, so that whoever called can resolve it
and publish again. What could not be tried at all is a tool error with the same envelope as the command line's
``--json``.
Needs the extra ``[mcp]``; the command line lives in ``cli/mcp.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent, Tool, ToolAnnotations
from pydantic import Field, ValidationError

from mergepub import publishing, status
from mergepub._version import __version__
from mergepub.errors import InputError
from mergepub.paths import MAX_VERSION, check_path, check_prefix

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

    from mergepub.outcomes import Outcome
    from mergepub.stores.contract import Store

INSTRUCTIONS = (
    "Documents are published by compare-and-swap: fetch one, edit its body, and publish the whole body with the "
    "version that you fetched as expected_version (0 creates a document). When somebody else published meanwhile, "
    'nothing is written and the status is conflict. Publish again with on_conflict "merge" and the same '
    "expected_version to merge your edits with theirs. Where both changed the same lines, the answer holds the "
    "body with conflict markers and the current-version: resolve every block between <<<<<<< and >>>>>>>, keeping "
    "what both sides meant, and publish the resolved body with that current-version as expected_version. To add "
    "to the end of a log, use mark_append, which never conflicts."
)

Path = Annotated[str, Field(description="The document's path, such as /docs/guide.md.")]
Message = Annotated[str, Field(description="What this version is about, in one line.")]
Author = Annotated[str, Field(description="Who writes; empty for the author that the server was started with.")]
Limit = Annotated[int, Field(ge=1, le=1000, description="The most rows to answer.")]
Number = Annotated[int, Field(ge=0, le=MAX_VERSION)]

_READS = ToolAnnotations(read_only_hint=True)
_REPEATABLE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)


def make_server(store: Store, *, author: str = "") -> MCPServer:
    """A server whose tools work on ``store``; ``author`` signs what is written without one."""
    server = Strict("mergepub", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    tools = Tools(store, author)
    for tool, nature in (
        (tools.mark_publish, _REPEATABLE),
        (tools.mark_fetch, _READS),
        (tools.mark_append, _ADDS),
        (tools.mark_versions, _READS),
        (tools.mark_list, _READS),
    ):
        server.tool(annotations=nature)(tool)
    return server


class Strict(MCPServer):
    """A server that refuses arguments which a tool does not have: a misspelled one would leave a default in force."""

    async def list_tools(self) -> list[Tool]:
        """The tools, each saying that it takes no other arguments."""
        closed = {"additionalProperties": False}
        listed = await super().list_tools()
        return [tool.model_copy(update={"input_schema": {**tool.input_schema, **closed}}) for tool in listed]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call the tool ``name``; what is wrong with its arguments is a tool error with the envelope."""
        known = next(
            (list(each.input_schema["properties"]) for each in await self.list_tools() if each.name == name), None
        )
        try:
            if known is not None:
                _check_names(name, arguments, known)
            return await super().call_tool(name, arguments, context)
        except InputError as error:
            return _refusal(error)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.__cause__.errors())
            return _refusal(InputError(f"bad arguments of {name}: {wrong}", hint="call it again with these mended"))


def _check_names(tool: str, arguments: Iterable[str], known: list[str]) -> None:
    """Refuse arguments that the tool does not have, naming those it has.

    Raises:
        InputError: there is one.
    """
    unknown = [name for name in arguments if name not in known]
    if unknown:
        near = get_close_matches(unknown[0], known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InputError(
            f"{tool} has no argument {', '.join(unknown)}; nothing was done",
            hint=f"{meant}its arguments are {', '.join(known)}",
        )


def _answering(tool: Callable[..., CallToolResult]) -> Callable[..., CallToolResult]:
    """Turn whatever ``tool`` raises into a tool error with the envelope."""

    @wraps(tool)
    def answer(*args: Any, **kwargs: Any) -> CallToolResult:
        try:
            return tool(*args, **kwargs)
        except Exception as error:  # the caller can act on an envelope, never on a trace
            return _refusal(error)

    return answer


class Tools:
    """What the tools do: each method is one, its docstring and parameters are what a caller's model reads."""

    def __init__(self, store: Store, author: str) -> None:
        self._store = store
        self._author = author

    @_answering
    def mark_publish(
        self,
        path: Path,
        body: Annotated[str, Field(description="The whole new body.")],
        expected_version: Annotated[
            int, Field(ge=0, le=MAX_VERSION, description="The version your edit was made from; 0: none exists yet.")
        ],
        *,
        on_conflict: Annotated[
            Literal["fail", "merge"], Field(description="When the head is another version: report it, or merge.")
        ] = "fail",
        message: Message = "",
        author: Author = "",
        retries: Annotated[int, Field(ge=1, le=100, description="Merges that may lose the race.")] = 3,
        allow_markers: Annotated[bool, Field(description="Permit a body that holds a conflict block.")] = False,
    ) -> CallToolResult:
        """Publish the body as the next version of a document, if nobody else published since expected_version.

        status "conflict" means that nothing was written. With on_conflict "merge" both edits are merged; where they
        overlap, the answer's body holds conflict markers: resolve them and publish at the answer's current-version.
        """
        outcome = publishing.publish(
            self._store,
            path,
            _bytes(body),
            expected_version,
            on_conflict=on_conflict,
            retries=retries,
            author=_label("author", author) or self._author,
            message=_label("message", message),
            allow_markers=allow_markers,
        )
        return _answer(outcome)

    @_answering
    def mark_fetch(
        self,
        path: Path,
        version: Annotated[Number | None, Field(description="A version; without it the newest.")] = None,
    ) -> CallToolResult:
        """Fetch the newest version of a document, or one of its earlier versions, with its version number."""
        return _answer(publishing.fetch(self._store, path, version))

    @_answering
    def mark_append(
        self,
        path: Path,
        body: Annotated[str, Field(description="What to add.")],
        *,
        message: Message = "",
        author: Author = "",
        idempotency_key: Annotated[
            str, Field(description="Makes repeating safe: the same key and body are added once.")
        ] = "",
    ) -> CallToolResult:
        """Add to the end of a document, whatever its newest version is. Appends never conflict."""
        outcome = publishing.append(
            self._store,
            path,
            _bytes(body),
            key=_label("idempotency_key", idempotency_key) or None,
            author=_label("author", author) or self._author,
            message=_label("message", message),
        )
        return _answer(outcome)

    @_answering
    def mark_versions(
        self,
        path: Path,
        limit: Limit = 50,
        before: Annotated[Number | None, Field(description="Only versions below this one.")] = None,
    ) -> CallToolResult:
        """List the versions of a document, newest first: number, time, size, author, message."""
        rows = self._store.versions(check_path(path), before=before, limit=limit)
        return _rows(status.versions_json(rows))

    @_answering
    def mark_list(
        self,
        prefix: Annotated[str, Field(description="A folder or a document.")] = "/",
        limit: Limit = 200,
        after: Annotated[str, Field(description="Only paths that sort after this one.")] = "",
        deleted: Annotated[bool, Field(description="Deleted documents too.")] = False,
    ) -> CallToolResult:
        """List the documents at or below a prefix, by path, each with its newest version."""
        rows = self._store.list(check_prefix(prefix), after=after or None, limit=limit, deleted=deleted)
        return _rows(status.list_json(rows))


def _bytes(body: str) -> bytes:
    try:
        return body.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(
            "the body holds half a surrogate pair, which is no text", hint="send the character whole"
        ) from None


def _label(name: str, text: str) -> str:
    if not text.isprintable():
        raise InputError(f"the {name} holds a control character", hint="write it on one line")
    return text


def _answer(outcome: Outcome) -> CallToolResult:
    """The keys with the body: as text the block, the empty line and the body, as on the command line."""
    envelope = status.to_json(outcome)
    texts = [status.block(outcome).decode()]
    body = status.body(outcome)
    if body is not None:
        texts[0] += "\n" + body.decode("utf-8", "backslashreplace")
    texts += filter(None, [status.sentence(outcome)])
    return _result(envelope.get("result") or envelope["error"], *texts)


def _rows(rows: Mapping[str, Any]) -> CallToolResult:
    facts = {"status": "ok", **rows}
    return _result(facts, json.dumps(facts, ensure_ascii=False))


def _refusal(error: Exception) -> CallToolResult:
    envelope = status.error_json(error)
    return _result(envelope, json.dumps(envelope, ensure_ascii=False), is_error=True)


def _result(facts: Mapping[str, Any], *texts: str, is_error: bool = False) -> CallToolResult:
    content = [TextContent(type="text", text=text) for text in texts]
    return CallToolResult(content=[*content], structured_content=dict(facts), is_error=is_error)
