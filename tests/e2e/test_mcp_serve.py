"""agentd as an MCP server: any client can hand work to the daemon."""

import json
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from agentd.cli.context import Opened, open_store
from agentd.cli.mcp_serve import make_home_server
from agentd.config import load_config
from tests.processes import Home, new_home

pytestmark = pytest.mark.timeout(60)  # several processes one after another
_DONE = '[[turn]]\n[[turn.call]]\ntool = "complete_task"\ninput = { summary = "42" }\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    script = tmp_path / "done.toml"
    script.write_text(_DONE)
    return new_home(tmp_path, AGENT__MODEL=f"scripted:{script}")


def stdio(home: Home) -> StdioServerParameters:
    command = [*home.command("mcp", "serve")]
    return StdioServerParameters(command=command[0], args=command[1:], env=home.environment)


@asynccontextmanager
async def http(home: Home) -> AsyncIterator[tuple[str, str]]:
    """Address and token of a server that runs meanwhile."""
    async with await anyio.open_process(
        home.command("mcp", "serve", "--http", "0"), env=home.environment
    ) as process:
        assert process.stderr is not None
        with anyio.fail_after(15):
            said = (await process.stderr.receive()).decode()
        yield said.split()[0], (home.path / "run/mcp-token").read_text().strip()
        process.terminate()
        with anyio.fail_after(10):
            assert await process.wait() == 0


@asynccontextmanager
async def client_here(home: Path, **settings: Any) -> AsyncIterator[Client]:
    """Of the same server without a process and its pipes. `settings`: those of section `mcp`."""
    config = load_config(home, {f"mcp.{name}": value for name, value in settings.items()})
    async with (
        open_store(config) as store,
        make_home_server(Opened(config, store)) as server,
        Client(server) as client,
    ):
        yield client


async def test_a_client_enqueues_a_task_and_gets_its_output(home: Home) -> None:
    told: list[str | None] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        told.append(message)

    async with home.daemon(), Client(stdio(home)) as client:
        made: Any = await client.call_tool("create_task", {"prompt": "What is 6 x 7?"})
        task_id = made.structured_content["task"]["id"]
        ended: Any = await client.call_tool(
            "await_task", {"id": task_id}, progress_callback=progress
        )
        events: Any = await client.call_tool("read_session", {"id": task_id})
        cost: Any = await client.call_tool("show_cost")
    assert ended.structured_content["state"] == "completed"
    assert ended.structured_content["output"] == "42"
    assert events.structured_content["result"][0]["kind"] == "user"
    assert not cost.is_error


async def test_what_is_offered_reads_or_fills_the_queue(home: Home) -> None:
    async with client_here(home.path) as client:
        listed = await client.list_tools()
        unknown: Any = await client.call_tool("write_file", {"path": "x", "content": "y"})
    names = {tool.name for tool in listed.tools}
    assert {"create_task", "await_task", "list_tasks", "list_sessions", "show_cost"} <= names
    assert not names & {"write", "write_file", "complete_task", "delete_task", "mcp_exec"}
    assert all(
        tool.annotations and tool.annotations.read_only_hint
        for tool in listed.tools
        if tool.name not in ("create_task", "update_task", "schedule", "cron")
    )
    assert unknown.is_error


async def test_more_is_offered_by_configuration(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    async with client_here(home.path, serve=["write*"]) as client:
        written: Any = await client.call_tool("write_file", {"path": "x", "content": "y"})
    assert not written.is_error
    assert (home.workspace / "x").read_text() == "y"


async def test_over_http_only_the_token_lets_in(home: Home) -> None:
    async with http(home) as (url, token):
        path = home.path / "run/mcp-token"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as with_token,
            Client(streamable_http_client(url, http_client=with_token)) as client,
        ):
            listed: Any = await client.call_tool("list_tasks")
        assert listed.structured_content == {"result": []}
        async with httpx2.AsyncClient() as without:
            assert (await without.post(url, json={})).status_code == 401
            wrong = {"Authorization": "Bearer wrong"}
            assert (await without.post(url, json={}, headers=wrong)).status_code == 401
            foreign = {"Authorization": f"Bearer {token}", "Host": "evil.example"}
            assert (await without.post(url, json={}, headers=foreign)).status_code == 421


async def test_no_port_is_opened_to_others(home: Home) -> None:
    done = await home.run("mcp", "serve", "--http", "0.0.0.0:0")
    assert done.code == 2
    assert "loopback" in done.err


async def test_a_port_that_is_taken_is_said(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = await home.run("mcp", "serve", "--http", str(port))
    assert done.code == 2
    assert f"127.0.0.1 port {port} can not be listened at" in done.err


@pytest.mark.requirement("S4-24", "S4-25")
async def test_the_bundled_server_tells_of_the_machine(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    assert (await home.run("mcp", "add", "system-info")).code == 0
    listed = await home.run("mcp", "tools", "system-info", "--json")
    rows = json.loads(listed.out)
    assert {row["name"] for row in rows} == {
        "system-info__system_info",
        "system-info__disk_info",
        "system-info__network_info",
    }
    assert {row["effect"] for row in rows} == {"read"}


@pytest.mark.requirement("S4-25")
async def test_the_bundled_server_writes_nothing_but_the_protocol() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    calls = [
        {**request, "id": number, "params": {"name": name, "arguments": {}}}
        for number, name in enumerate(("system_info", "disk_info", "network_info"), start=1)
    ]
    async with await anyio.open_process(
        [sys.executable, "-m", "agentd.connectors.system_info"]
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [json.dumps(each) for each in (hello, ready, *calls)]
        await process.stdin.send(("\n".join(lines) + "\n").encode())
        out = b""
        with anyio.fail_after(15):
            while out.count(b"\n") < 4:
                out += await process.stdout.receive()
        await process.stdin.aclose()
    answers = {each["id"]: each["result"] for each in map(json.loads, out.splitlines())}
    system = answers[1]["structuredContent"]
    assert system["cpu_count"] >= 1
    assert system["memory_total_bytes"] > system["memory_available_bytes"] > 0
    assert answers[2]["structuredContent"]["disks"][0]["total_bytes"] > 0
    names = {each["name"] for each in answers[3]["structuredContent"]["interfaces"]}
    assert "lo" in names
