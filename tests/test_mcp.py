"""The tool server, asked over standard streams by a client of the same protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the tool server is an extra")

from mcp.client.stdio import stdio_client

from mcp import Client, StdioServerParameters

PATH = "/docs/guide.md"
BASE = "one\ntwo\nthree\nfour\nfive\n"

Talk = Callable[[Client], Awaitable[None]]


def talk(store: Path | str, conversation: Talk) -> None:
    """Start the server as a process and hold ``conversation`` with it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MERGEPUB_")}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mergepub", "mcp", "--store", str(store), "--author", "tess@desk"],
        env=environment,
    )

    async def hold() -> None:
        with Path(os.devnull).open("w") as nowhere:
            async with Client(stdio_client(server, errlog=nowhere)) as client:
                await conversation(client)

    asyncio.run(asyncio.wait_for(hold(), 60))


async def call(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
    """Structured content and first text of an answer that is no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content, result.content[0].text


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The envelope of a tool error, the same in both forms."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is not None
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def test_the_tools_are_listed_with_their_parameters(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["mark_publish", "mark_fetch", "mark_append", "mark_versions", "mark_list"]
        publish = tools["mark_publish"].input_schema
        assert publish["required"] == ["path", "body", "expected_version"]
        assert publish["properties"]["on_conflict"]["default"] == "fail"
        assert publish["properties"]["on_conflict"]["enum"] == ["fail", "merge"]
        assert "on_conflict" not in tools["mark_append"].input_schema["properties"]
        assert all(tool.description for tool in tools.values())
        assert "expected_version" in (client.instructions or "")

    talk(tmp_path / "s.sqlite", conversation)


def test_two_writers_merge_and_an_overlap_comes_back_to_be_resolved(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        first, text = await call(client, "mark_publish", path=PATH, body=BASE, expected_version=0)
        assert (first, text) == ({"status": "ok", "version": 1}, "status: ok\nversion: 1\n")
        theirs = BASE.replace("one", "ONE")
        await call(client, "mark_publish", path=PATH, body=theirs, expected_version=1)

        ours = BASE.replace("five", "FIVE")
        answer, _ = await call(client, "mark_publish", path=PATH, body=ours, expected_version=1)
        assert (answer["status"], answer["your-version"], answer["current-version"]) == ("conflict", 1, 2)
        assert "body" not in answer
        how = {"path": PATH, "expected_version": 1, "on_conflict": "merge"}
        answer, text = await call(client, "mark_publish", body=ours, **how)
        merged = theirs.replace("five", "FIVE")
        assert (answer["merged"], answer["version"], answer["body"]) == (True, 3, merged)
        assert text == f"status: ok\nversion: 3\nmerged: true\nbase-version: 1\ntheir-version: 2\n\n{merged}"

        answer, text = await call(client, "mark_publish", body=BASE.replace("one", "eins"), **how)
        assert (answer["status"], answer["mergeable"], answer["conflicts"]) == ("conflict", False, 1)
        assert answer["body"].startswith("<<<<<<< ours\neins\n=======\nONE\n>>>>>>> theirs\ntwo\n")
        assert text.endswith(answer["body"])

        resolved = answer["body"].replace("<<<<<<< ours\neins\n=======\nONE\n>>>>>>> theirs\n", "ONE (eins)\n")
        at = answer["current-version"]
        answer, _ = await call(client, "mark_publish", path=PATH, body=resolved, expected_version=at)
        assert answer == {"status": "ok", "version": 4}

    talk(tmp_path / "s.sqlite", conversation)


def test_a_body_with_markers_left_is_a_tool_error_with_the_envelope(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        marked = "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
        envelope = await refused(client, "mark_publish", path=PATH, body=marked, expected_version=0)
        assert (envelope["ok"], envelope["error"]["code"], envelope["error"]["line"]) == (False, 2, 1)
        how = {"path": PATH, "expected_version": 0, "allow_markers": True}
        assert (await call(client, "mark_publish", body=marked, **how))[0]["version"] == 1

    talk(tmp_path / "s.sqlite", conversation)


def test_errors_carry_code_and_message(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        assert (await refused(client, "mark_fetch", path="/none"))["error"]["code"] == 4
        assert (await refused(client, "mark_fetch", path="none"))["error"]["code"] == 2
        assert (await refused(client, "mark_append", path="/none", body="x"))["error"]["code"] == 4
        assert (await refused(client, "mark_append", path="/none", body=""))["error"]["code"] == 2
        assert (await refused(client, "mark_versions", path="/none"))["error"]["code"] == 4
        assert (await refused(client, "mark_list", prefix="//"))["error"]["code"] == 2
        line = {"path": "/a", "body": "x", "expected_version": 0, "message": "two\nlines"}
        assert "control character" in (await refused(client, "mark_publish", **line))["error"]["message"]
        negative = await refused(client, "mark_publish", path="/a", body="x", expected_version=-1)
        assert "bad arguments of mark_publish: expected_version: " in negative["error"]["message"]
        missing = await refused(client, "mark_publish", path="/a", body="x")
        assert missing["error"]["code"] == 2
        policy = await refused(client, "mark_publish", path="/a", body="x", expected_version=0, on_conflict="branch")
        assert "on_conflict: Input should be 'fail' or 'merge'" in policy["error"]["message"]
        with pytest.raises(AssertionError, match="Unknown tool"):
            await call(client, "mark_delete", path="/a")

    talk(tmp_path / "s.sqlite", conversation)


def test_an_argument_that_a_tool_does_not_have_is_refused_and_nothing_is_done(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        publish = {"path": PATH, "body": BASE, "expected_version": 0}
        error = (await refused(client, "mark_publish", **publish, onconflict="merge"))["error"]
        assert error["code"] == 2
        assert error["message"] == "mark_publish has no argument onconflict; nothing was done"
        known = "path, body, expected_version, on_conflict, message, author, retries, allow_markers"
        assert error["hint"] == f"did you mean on_conflict? its arguments are {known}"
        other = (await refused(client, "mark_append", path=PATH, body="x", on_conflict="merge", x=1))["error"]
        assert other["message"] == "mark_append has no argument on_conflict, x; nothing was done"
        assert not (tmp_path / "s.sqlite").exists()
        assert (await refused(client, "mark_list", prefx="/docs"))["error"]["hint"].startswith("did you mean prefix?")
        for tool in (await client.list_tools()).tools:
            assert tool.input_schema["additionalProperties"] is False

    talk(tmp_path / "s.sqlite", conversation)


def test_a_store_that_cannot_be_reached_is_a_tool_error(tmp_path: Path) -> None:
    (tmp_path / "no-store").write_bytes(b"something else\n" * 100)

    async def conversation(client: Client) -> None:
        assert (await refused(client, "mark_fetch", path=PATH))["error"]["code"] == 3

    talk(tmp_path / "no-store", conversation)


def test_every_body_is_published_and_fetched_byte_for_byte(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        for number, body in enumerate(['{"a": 1}\n', "[1]", "12", "null", '"x"', "\r\n\r", "ü\u2028\x00z", " \n"]):
            await call(client, "mark_publish", path=f"/{number}", body=body, expected_version=0)
            answer, text = await call(client, "mark_fetch", path=f"/{number}")
            assert answer["body"] == body
            assert text.endswith(f"\n\n{body}")
            assert list(answer) == ["status", "version", "incarnation", "digest", "author", "modified", "body"]

    talk(tmp_path / "s.sqlite", conversation)


def test_append_versions_and_list_answer_as_the_command_line_does(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        await call(client, "mark_publish", path="/log", body="a\n", expected_version=0, message="Begin")
        once = {"path": "/log", "body": "b", "idempotency_key": "k1", "author": "ann@home"}
        assert (await call(client, "mark_append", **once))[0] == {"status": "ok", "version": 2}
        assert (await call(client, "mark_append", **once))[0] == {"status": "ok", "version": 2, "replayed": True}
        rows = (await call(client, "mark_versions", path="/log"))[0]["versions"]
        assert [(row["version"], row["author"], row["message"]) for row in rows] == [
            (2, "ann@home", ""),
            (1, "tess@desk", "Begin"),
        ]
        assert [
            row["version"] for row in (await call(client, "mark_versions", path="/log", before=2))[0]["versions"]
        ] == [1]
        listed, text = await call(client, "mark_list")
        assert [(row["path"], row["version"]) for row in listed["documents"]] == [("/log", 2)]
        assert json.loads(text) == listed
        assert (await call(client, "mark_fetch", path="/log", version=1))[0]["body"] == "a\n"

    talk(tmp_path / "s.sqlite", conversation)


def test_a_body_that_is_no_text_is_answered_in_base64(tmp_path: Path) -> None:
    from mergepub import open_store, publish

    with_bytes = open_store(str(tmp_path / "s.sqlite"))
    publish(with_bytes, "/a", b"\xff\x00", 0)
    with_bytes.close()

    async def conversation(client: Client) -> None:
        answer, text = await call(client, "mark_fetch", path="/a")
        assert answer["body_base64"] == "/wA="
        assert text.endswith("\n\n\\xff\x00")

    talk(tmp_path / "s.sqlite", conversation)
