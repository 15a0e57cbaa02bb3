"""The bridge: the six methods of a run's socket as tools of the Model Context Protocol, over standard streams.

It is the run whose directory ``MERGEPUB_RUN_DIR`` names, as every other command inside a run is; it knows no way to be
another. Whoever calls a tool that changes something supplies the idempotency key, and can so repeat a lost call. A
tool answers with the envelope of the command line, as text and as structured content.
Needs the extra ``[mcp]``; the command line lives in ``cli/coord/mcp.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio.to_thread
from mcp.server import MCPServer
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field

from mergepub._version import __version__
from mergepub.coord import client, wire
from mergepub.coord.bounds import BODY_BYTES, EVIDENCE_REFS, KEY_BYTES, WAIT_SECONDS
from mergepub.coord.wire import CoordError

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

SCHEMA_VERSION = "v3"

INSTRUCTIONS = (
    "You are one of several runs that edit the same documents. coord_status says which peers edit a document that "
    "you edit too. Tell them with coord_send, ask them with coord_ask, and read your mail with coord_inbox: act on a "
    "batch, then call it again with the batch's ack_token. Answer a question with coord_reply. When your work is "
    "finished, and only then, report it with coord_report; waiting for a peer is no report. Choose a new "
    "idempotency_key for each message, and repeat a call whose answer was lost with the same one: it is done once. "
    "All of this is advice between writers: nothing is locked, and a receipt says that something is stored, not that "
    "it was read."
)

Run = Annotated[str, Field(description="The peer's run_id, from coord_status.")]
Body = Annotated[str, Field(description=f"The text, at most {BODY_BYTES} bytes.")]
Key = Annotated[
    str,
    Field(description=f"New for each message; the same to repeat a lost call. One line, at most {KEY_BYTES} bytes."),
]

_READS = ToolAnnotations(read_only_hint=True)
_TAKES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)
_REPEATABLE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)


def make_server(place: Path) -> MCPServer:
    """A server whose tools ask at the run's socket ``place``."""
    server = Bridge("mergepub-coord", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    tools = Tools(place)
    for tool, nature in (
        (tools.coord_status, _READS),
        (tools.coord_send, _REPEATABLE),
        (tools.coord_inbox, _TAKES),
        (tools.coord_ask, _REPEATABLE),
        (tools.coord_reply, _REPEATABLE),
        (tools.coord_report, _REPEATABLE),
    ):
        server.tool(annotations=nature)(tool)
    return server


class Bridge(MCPServer):
    """A server that refuses arguments as the socket does: by its rules, in its words, in the envelope."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call the tool ``name``, if these are arguments of its method."""
        try:
            _check(name, arguments)
        except CoordError as error:
            return _refused(error)
        return await super().call_tool(name, arguments, context)


def _check(tool: str, arguments: Mapping[str, Any]) -> None:
    method = tool.replace("_", ".", 1)
    if method not in wire.CAPABILITIES:
        raise CoordError(wire.NO_METHOD, f"{wire.shown(tool)}: there is no such tool")
    known = wire.RUN_METHODS[method]
    # What may be left out may be null here, as clients write it.
    left_out = {name for name, value in arguments.items() if value is None and name in known and known[name].optional}
    given = {name: value for name, value in arguments.items() if name not in left_out}
    wire.check(wire.RUN_METHODS, wire.Request(1, method, given))


class Tools:
    """What the tools do: each method is one, its docstring and parameters are what a caller's model reads."""

    def __init__(self, place: Path) -> None:
        self._place = place

    async def coord_status(self) -> CallToolResult:
        """Who this run is, its task, its peers with the documents that both edit, and how much mail waits."""
        return await self._ask("coord.status", {})

    async def coord_send(self, to_run_id: Run, body: Body, idempotency_key: Key) -> CallToolResult:
        """Send a message to a peer. The receipt says that it is stored, not that it was read."""
        return await self._ask("coord.send", _mail(body, idempotency_key, to_run_id=to_run_id))

    async def coord_inbox(
        self,
        ack_token: Annotated[str | None, Field(description="Of the batch that you have acted on.")] = None,
        wait_seconds: Annotated[
            float | None, Field(ge=0, le=WAIT_SECONDS, description="Wait once so long for mail.")
        ] = None,
    ) -> CallToolResult:
        """Read one batch of mail, oldest first; the same again until its ack_token is given."""
        given = {"ack_token": ack_token, "wait_seconds": wait_seconds}
        return await self._ask("coord.inbox", {name: value for name, value in given.items() if value is not None})

    async def coord_ask(self, to_run_id: Run, body: Body, idempotency_key: Key) -> CallToolResult:
        """Ask a peer a question; its reply comes to the inbox, with the question's id as correlation_id."""
        return await self._ask("coord.ask", _mail(body, idempotency_key, to_run_id=to_run_id))

    async def coord_reply(
        self,
        question_id: Annotated[str, Field(description="The id of the question, from coord_inbox.")],
        body: Body,
        idempotency_key: Key,
    ) -> CallToolResult:
        """Reply to a question; the answer goes to the run that asked."""
        return await self._ask("coord.reply", _mail(body, idempotency_key, question_id=question_id))

    async def coord_report(
        self,
        outcome: Literal["success", "failure", "blocked"],
        summary: Annotated[str, Field(description="What was done, or what stops it.")],
        idempotency_key: Key,
        evidence_refs: Annotated[
            Sequence[str] | None, Field(description=f"Things to look at, at most {EVIDENCE_REFS}.")
        ] = None,
    ) -> CallToolResult:
        """Report how this run's work came out: once, when it is finished. Capturing evidence may take two minutes."""
        refs = {} if evidence_refs is None else {"evidence_refs": list(evidence_refs)}
        given = {"outcome": outcome, "summary": summary, "idempotency_key": idempotency_key}
        return await self._ask("coord.report", given | refs)

    async def _ask(self, method: str, params: Mapping[str, Any]) -> CallToolResult:
        try:
            asked = partial(client.call, self._place, method, params)
            result = await anyio.to_thread.run_sync(asked, abandon_on_cancel=True)
        except CoordError as error:
            return _refused(error)
        return _envelope({"ok": True, "result": result})


def _mail(body: str, key: str, **target: str) -> dict[str, str]:
    return target | {"body": body, "idempotency_key": key}


def _refused(error: CoordError) -> CallToolResult:
    return _envelope({"ok": False, "error": wire.error_of(error)}, is_error=True)


def _envelope(facts: Mapping[str, Any], *, is_error: bool = False) -> CallToolResult:
    envelope = {"schema_version": SCHEMA_VERSION, **facts}
    text = json.dumps(envelope, ensure_ascii=True)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=envelope, is_error=is_error)
