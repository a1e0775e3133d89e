"""A call of a tool of an MCP server, from a tool of ours to its result, beside the bare client."""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import anyio
from mcp import Client, StdioServerParameters

from agentd.connectors.proxy import proxy
from agentd.connectors.servers import McpManager
from agentd.store.store import Store
from agentd.toolkit.call import call
from agentd.toolkit.inject import CallContext, Injector
from scripts.benches.figures import Figure
from tests.mcp_desk import SCRIPT, servers, spec

_CALLS = 300
_ROUNDS = 5
_INPUT = {"text": "x" * 100}


def measure_mcp() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        bare_ms, ours_ms = anyio.run(_measure, Path(folder))
    return [
        Figure("MCP call, bare client", bare_ms, "ms"),
        Figure("MCP call, as a tool of agentd", ours_ms, "ms"),
        Figure("… as a ratio", ours_ms / bare_ms, "×", at_most=1.5),
    ]


async def _measure(folder: Path) -> tuple[float, float]:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-I", "-S", str(SCRIPT), "plain"]
    )
    bare: list[float] = []
    ours: list[float] = []
    async with (
        Store(folder / "agentd.duckdb", busy_s=5) as store,
        servers(folder, spec()) as mcp,
        Client(parameters) as client,
    ):
        await client.list_tools()
        for _ in range(_ROUNDS):  # in turns: whatever else the machine does meets both
            bare.append(await _bare(client))
            ours.append(await _ours(mcp, store))
    return median(bare), median(ours)


async def _bare(client: Client) -> float:
    start = time.perf_counter()
    for _ in range(_CALLS):
        await client.call_tool("echo", _INPUT)
    return (time.perf_counter() - start) / _CALLS * 1000


async def _ours(mcp: McpManager, store: Store) -> float:
    """Validated, called, turned into a result; the journal is measured elsewhere."""
    server = mcp.get("plain")
    await server.ready()
    remote = server.tool("echo")
    assert remote is not None
    tool, nothing = proxy(server, remote), Injector({})
    start = time.perf_counter()
    for _ in range(_CALLS):
        result = await call(tool, _INPUT, nothing, CallContext(store))
        assert result.ok
    return (time.perf_counter() - start) / _CALLS * 1000
