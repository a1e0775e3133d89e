"""What a server on the network may answer, and how often it is asked."""

import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from agentd.connectors.server import State
from agentd.connectors.specs import ServerSpec
from agentd.domain.errors import ToolError
from tests.mcp_desk import servers, state

_JSON, _EVENTS = "application/json", "text/event-stream"
_LISTED = {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]}
_NEWS = (
    b'data: {"jsonrpc": "2.0", "method": "notifications/message", '
    b'"params": {"level": "info", "data": "x"}}\n\n'
)
Answer = Callable[[int], tuple[str, bytes]]


def refused(request_id: int) -> tuple[str, bytes]:
    """As every request is, with status 401."""
    raise AssertionError(request_id)


def said(request_id: int, text: str = "hi") -> bytes:
    result = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[ServerSpec]:
    """A server whose calls are answered with a head and a body; a body of nothing never ends."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            try:
                while True:
                    await _exchange(stream, answer)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, serve)
        port = listener.extra(SocketAttribute.local_port)
        yield ServerSpec("far", "http", url=f"http://127.0.0.1:{port}/mcp")
        group.cancel_scope.cancel()


async def _exchange(stream: SocketStream, answer: Answer) -> None:
    method, message = await _request(stream)
    if answer is refused:
        await stream.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        return
    if method != "POST" or "id" not in message:
        code = "202 Accepted" if method == "POST" else "405 Method Not Allowed"
        await stream.send(f"HTTP/1.1 {code}\r\nContent-Length: 0\r\n\r\n".encode())
        return
    head, body = _JSON, _reply(message)
    if message["method"] == "tools/call":
        head, body = answer(message["id"])
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    opening = f"HTTP/1.1 200 OK\r\nContent-Type: {head}\r\n{length}\r\n"
    await stream.send(opening.encode() + body)
    piece = b" " * 1_000_000 if head == _JSON else _NEWS * 1000
    while not body:
        await stream.send(piece)


async def _request(stream: SocketStream) -> tuple[str, dict[str, Any]]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    sizes = [int(each.split(":")[1]) for each in lines if each.startswith("content-length:")]
    while len(body) < sum(sizes):
        body += await stream.receive()
    return head.decode().split(" ")[0], json.loads(body or b"{}")


def _reply(message: dict[str, Any]) -> bytes:
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            answer["result"] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            }
        case "tools/list":
            answer["result"] = _LISTED
        case _:
            answer["error"] = {"code": -32601, "message": "no such method"}
    return json.dumps(answer).encode()


async def test_an_answer_without_end_fails_its_call_only(tmp_path: Path) -> None:
    bodies = [b"", b"hi"]

    def answer(request_id: int) -> tuple[str, bytes]:
        return _JSON, bodies.pop(0) and said(request_id)

    async with answering(answer) as far, servers(tmp_path, far) as mcp:
        server = mcp.get("far")
        with pytest.raises(ToolError, match="answers with more than 33554432 bytes"):
            await server.call("say", {})
        assert "hi" in str(await server.call("say", {}))
        assert server.failures == 0


async def test_an_answer_in_an_event_may_be_as_long_as_any_other(tmp_path: Path) -> None:
    text = "x" * 2_000_000

    def answer(request_id: int) -> tuple[str, bytes]:
        return _EVENTS, b"event: message\ndata: " + said(request_id, text) + b"\n\n"

    async with answering(answer) as far, servers(tmp_path, far) as mcp:
        assert text in str(await mcp.get("far").call("say", {}))


@pytest.mark.parametrize("kind", [_JSON, _EVENTS])
async def test_an_answer_of_too_many_values_is_not_taken_apart(kind: str, tmp_path: Path) -> None:
    def answer(request_id: int) -> tuple[str, bytes]:
        many = said(request_id)[:-1] + b', "x": [' + b"[]," * 1_000_000 + b"1]}"
        return kind, many if kind == _JSON else b"event: message\ndata: " + many + b"\n\n"

    async with answering(answer) as far, servers(tmp_path, far) as mcp:
        with pytest.raises(ToolError, match=r"more than 1000000 values|server went away"):
            await mcp.get("far").call("say", {})


async def test_what_is_packed_is_not_unpacked(tmp_path: Path) -> None:
    def answer(request_id: int) -> tuple[str, bytes]:
        return f"{_JSON}\r\nContent-Encoding: gzip", gzip.compress(said(request_id))

    async with answering(answer) as far, servers(tmp_path, far, breaker_threshold=1) as mcp:
        server = mcp.get("far")
        with pytest.raises(ToolError):
            await server.call("say", {})
        await state(server, State.RESTING)
        assert "gzip" in (server.problem or "")


async def test_one_that_floods_is_closed(tmp_path: Path) -> None:
    async with (
        answering(lambda _: (_EVENTS, b"")) as far,
        servers(tmp_path, far, breaker_threshold=1) as mcp,
    ):
        server = mcp.get("far")
        with pytest.raises(ToolError):
            await server.call("say", {})
        await state(server, State.RESTING)
        assert "floods" in (server.problem or "")


async def test_a_new_token_that_is_refused_too_is_not_replaced_again(tmp_path: Path) -> None:
    replaced: list[int] = []

    def renew() -> bool:
        replaced.append(1)
        return True

    async with answering(refused) as far, servers(tmp_path, far) as mcp:
        server = mcp.get("far")
        server.renew = renew
        await state(server, State.LOGIN)
        assert len(replaced) == 1
