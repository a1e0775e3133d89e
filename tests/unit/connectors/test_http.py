"""Servers on the network: streamable HTTP, the older SSE, and one that goes away."""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from agentd.connectors.failures import ServerFailed
from agentd.connectors.server import McpServer, State
from agentd.connectors.specs import ServerSpec
from agentd.domain.errors import ToolError
from tests.mcp_desk import servers, state

_SCRIPT = Path(__file__).parents[2] / "mcp_http_server.py"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@asynccontextmanager
async def running(port: int) -> AsyncIterator[Process]:
    async with await anyio.open_process([sys.executable, str(_SCRIPT), str(port)]) as process:
        with anyio.fail_after(15):
            while True:
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                except OSError:
                    await anyio.sleep(0.02)
                else:
                    break
        try:
            yield process
        finally:
            process.kill()


async def echo(server: McpServer) -> str:
    answer = await server.call("echo", {"text": "hi"})
    return str(answer.content[0].text)  # type: ignore[union-attr] - the server gives text only


@pytest.mark.requirement("S4-23")
async def test_a_server_on_the_network_is_called(tmp_path: Path) -> None:
    port = free_port()
    far = ServerSpec("far", "http", url=f"http://127.0.0.1:{port}/mcp")
    old = ServerSpec("old", "sse", url=f"http://127.0.0.1:{port}/sse")
    async with running(port), servers(tmp_path, far, old) as mcp:
        assert await echo(mcp.get("far")) == "hi"
        assert await echo(mcp.get("old")) == "hi"


async def test_one_that_goes_away_fails_its_calls_and_is_found_again(tmp_path: Path) -> None:
    port = free_port()
    far = ServerSpec("far", "http", url=f"http://127.0.0.1:{port}/mcp")
    async with servers(tmp_path, far, breaker_threshold=2, breaker_cooldown_s=0.1) as mcp:
        server = mcp.get("far")
        async with running(port):
            await state(server, State.READY)
            assert await echo(server) == "hi"
        with pytest.raises((ToolError, ServerFailed)):
            await echo(server)
        async with running(port):
            with anyio.fail_after(15):
                while True:
                    try:
                        assert await echo(server) == "hi"
                    except (ToolError, ServerFailed):
                        await anyio.sleep(0.05)
                    else:
                        break
