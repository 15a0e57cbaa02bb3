"""The bridge, asked over standard streams by a client of its protocol, at the sockets of a real daemon."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.coord.living import PATIENCE, Living, living

pytest.importorskip("mcp", reason="the tool server is an extra")

from mcp.client.stdio import stdio_client

from mcp import Client, StdioServerParameters

TOOLS = ["coord_status", "coord_send", "coord_inbox", "coord_ask", "coord_reply", "coord_report"]

Talk = Callable[[Client], Awaitable[None]]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Living]:
    with living() as made:
        yield made


def talk(run_dir: Path, conversation: Talk) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MERGEPUB")}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mergepub", "coord", "mcp"],
        env=environment | {"MERGEPUB_RUN_DIR": str(run_dir)},
    )

    async def hold() -> None:
        with Path(os.devnull).open("w") as nowhere:
            async with Client(stdio_client(server, errlog=nowhere)) as client:
                await conversation(client)

    asyncio.run(asyncio.wait_for(hold(), 60))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The envelope, the same in both forms, and told an error exactly where it is one."""
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    assert json.loads(result.content[0].text) == result.structured_content
    assert result.is_error == (not result.structured_content["ok"])
    assert result.structured_content["schema_version"] == "v3"
    return result.structured_content


def test_the_six_methods_are_tools_and_keys_are_the_callers(daemon: Living) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == TOOLS
        required = {name: set(tool.input_schema.get("required", ())) for name, tool in tools.items()}
        assert {name for name, names in required.items() if "idempotency_key" in names} == {
            "coord_send", "coord_ask", "coord_reply", "coord_report"
        }  # fmt: skip
        assert not any("from" in name for tool in tools.values() for name in tool.input_schema["properties"])
        assert all(tool.description for tool in tools.values())

    talk(daemon.folder, conversation)


def test_mail_goes_to_and_fro_and_a_repetition_gives_the_first_receipt(daemon: Living) -> None:
    one, two = daemon.pair()

    async def ask(client: Client) -> None:
        status = await call(client, "coord_status")
        assert status["result"]["run_id"] == one
        assert two in [peer["run_id"] for peer in status["result"]["peers"]]
        asked = await call(client, "coord_ask", to_run_id=two, body="é?", idempotency_key="k1")
        again = await call(client, "coord_ask", to_run_id=two, body="é?", idempotency_key="k1")
        assert asked == again
        other = await call(client, "coord_ask", to_run_id=two, body="other", idempotency_key="k1")
        assert (other["error"]["code"], other["error"]["data"]["reason"]) == (-32003, "key-reused")

    async def reply(client: Client) -> None:
        inbox = (await call(client, "coord_inbox"))["result"]
        (question,) = inbox["messages"]
        assert (question["kind"], question["body"], question["from_run_id"]) == ("question", "é?", one)
        await call(client, "coord_reply", question_id=question["id"], body="yes", idempotency_key="k1")
        acked = (await call(client, "coord_inbox", ack_token=inbox["ack_token"], wait_seconds=0))["result"]
        assert (acked["acked"], acked["messages"]) == (True, [])

    async def hear(client: Client) -> None:
        (answer,) = (await call(client, "coord_inbox", wait_seconds=5))["result"]["messages"]
        assert (answer["kind"], answer["body"]) == ("reply", "yes")
        report = await call(client, "coord_report", outcome="success", summary="done", idempotency_key="r1")
        assert report["result"]["evidence_refs"] == [report["result"]["evidence_ref"]]

    for run, conversation in ((one, ask), (two, reply), (one, hear)):
        talk(daemon.socket(run).parent, conversation)


def test_what_the_wire_refuses_is_a_tool_error_with_its_code(daemon: Living) -> None:
    (one,) = daemon.runs(1)

    async def conversation(client: Client) -> None:
        for body, key in (("x" * 4097, "k"), ("x", "k" * 257), ("x", "a\nb"), ("x\0", "k")):
            refused = await call(client, "coord_send", to_run_id="run-x", body=body, idempotency_key=key)
            assert refused["error"]["code"] == -32602
        missing = await call(client, "coord_send", to_run_id="run-x", body="x", idempotency_key="k")
        assert missing["error"]["code"] == -32000

    talk(daemon.socket(one).parent, conversation)


WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    ("coord_send", {"to_run_id": "run-x", "body": "x"}, -32602, "coord.send: the parameter idempotency_key is missing"),
    ("coord_send", {"to_run_id": 5, "body": "x", "idempotency_key": "k"}, -32602, "coord.send: to_run_id must be"),
    ("coord_send", {"to_run_id": "r", "body": None, "idempotency_key": "k"}, -32602, "coord.send: body must be"),
    ("coord_status", {"run_id": "run-x"}, -32602, "coord.status: there is no parameter 'run_id'"),
    ("coord_inbox", {"wait_seconds": 31}, -32602, "coord.inbox: wait_seconds must be between"),
    ("coord_inbox", {"wait_seconds": "1"}, -32602, "coord.inbox: wait_seconds must be a number"),
    (
        "coord_report",
        {"outcome": "great", "summary": "s", "idempotency_key": "k"},
        -32602,
        "coord.report: outcome must",
    ),
    ("coord_report", {"outcome": "blocked", "summary": " ", "idempotency_key": "k"}, -32602, "coord.report: summary"),
    ("coord_task", {}, -32601, "coord_task: there is no such tool"),
    ("run_report", {"state": "working"}, -32601, "run_report: there is no such tool"),
]


def test_arguments_that_are_wrong_are_refused_in_the_same_envelope(daemon: Living) -> None:
    async def conversation(client: Client) -> None:
        for tool, arguments, code, words in WRONG:
            error = (await call(client, tool, **arguments))["error"]
            assert (error["code"], error["message"][: len(words)]) == (code, words)
        taken = await call(client, "coord_inbox", ack_token=None, wait_seconds=None)
        assert taken["result"]["messages"] == []

    talk(daemon.socket(daemon.runs(1)[0]).parent, conversation)


def test_lines_that_are_no_requests_end_nothing(daemon: Living) -> None:
    environment = daemon.environment | {"MERGEPUB_RUN_DIR": str(daemon.socket(daemon.runs(1)[0]).parent)}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    command = [sys.executable, "-m", "mergepub", "coord", "mcp"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for line in (b"junk", b"\xff\xfe", b"[]", b"{}", b"[" * 100_000, b"x" * 1_000_000):
            server.stdin.write(line + b"\n")
        for number, method, params in ((1, "initialize", hello), (2, "tools/call", {"name": "coord_status"})):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            while (answer := json.loads(server.stdout.readline())).get("id") != number:
                pass
        assert json.loads(answer["result"]["content"][0]["text"])["ok"] is True
        server.stdin.close()
        assert server.wait(PATIENCE) == 0


def test_without_a_socket_every_tool_says_so(daemon: Living) -> None:
    async def conversation(client: Client) -> None:
        refused = await call(client, "coord_status")
        assert (refused["error"]["code"], refused["error"]["data"]["reason"]) == (-32004, "no-socket")

    talk(daemon.folder / "nowhere", conversation)
