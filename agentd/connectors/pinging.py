"""Whether servers answer, and how fast."""

from collections.abc import Mapping
from typing import Any

import anyio

from agentd.connectors.failures import ServerFailed
from agentd.connectors.server import McpServer
from agentd.connectors.servers import McpManager


async def ping_all(manager: McpManager) -> list[dict[str, Any]]:
    """One row for each server, by name; all are asked at once."""
    rows: dict[str, dict[str, Any]] = {}

    async def ask(server: McpServer) -> None:
        rows[server.spec.name] = {"server": server.spec.name, **await _ping(server)}

    async with anyio.create_task_group() as group:
        for each in manager.servers.values():
            group.start_soon(ask, each)
    return [rows[name] for name in sorted(rows)]


async def _ping(server: McpServer) -> Mapping[str, Any]:
    started = anyio.current_time()
    try:
        await server.ready()
        connected = anyio.current_time()
        await server.list_again()
    except ServerFailed as error:
        return {
            "ok": False,
            "connect_ms": None,
            "ping_ms": None,
            "protocol": None,
            "tools": None,
            "problem": server.problem or error.message,
        }
    return {
        "ok": True,
        "connect_ms": round((connected - started) * 1000),
        "ping_ms": round((anyio.current_time() - connected) * 1000, 1),
        "protocol": server.protocol,
        "tools": server.tools_count,
        "problem": None,
    }
