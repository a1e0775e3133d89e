"""A call of a tool of an MCP server, from a tool of ours to its result, beside the bare client.

Of two servers: the bundled one, a server like others, and one that takes no time, so that there is
nothing but our own.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio
from mcp import Client, StdioServerParameters

from agentd.connectors.proxy import proxy
from agentd.connectors.servers import McpManager
from agentd.connectors.specs import ServerSpec
from agentd.store.store import Store
from agentd.toolkit.call import call
from agentd.toolkit.inject import CallContext, Injector
from scripts.benches.figures import Figure
from tests.mcp_desk import SCRIPT, servers, spec

_CALLS = 300
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class _Peer:
    """A server, one of its tools, and what that is called with."""

    spec: ServerSpec
    arguments: Sequence[str]
    tool: str
    input: Mapping[str, str]


_BUNDLED = _Peer(
    ServerSpec("system-info", "stdio", command="agentd-system-info"),
    ("-m", "agentd.connectors.system_info"),
    "disk_info",
    {},
)
_QUICK = _Peer(spec(), ("-I", "-S", str(SCRIPT), "plain"), "echo", {"text": "x" * 100})


def measure_mcp() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        bare_ms, ours_ms = anyio.run(_measure, Path(folder), _BUNDLED)
        least_ms, most_ms = anyio.run(_measure, Path(folder), _QUICK)
    return [
        Figure("MCP call, bare client", bare_ms, "ms"),
        Figure("MCP call, as a tool of agentd", ours_ms, "ms"),
        Figure("… as a ratio", ours_ms / bare_ms, "×", at_most=1.5),
        Figure("… of a server that takes no time", most_ms / least_ms, "×", at_most=1.5),
    ]


async def _measure(folder: Path, peer: "_Peer") -> tuple[float, float]:
    parameters = StdioServerParameters(command=sys.executable, args=list(peer.arguments))
    bare: list[float] = []
    ours: list[float] = []
    async with (
        Store(folder / "agentd.duckdb", busy_s=5) as store,
        servers(folder, peer.spec) as mcp,
        Client(parameters) as client,
    ):
        await client.list_tools()
        for _ in range(_ROUNDS):  # in turns: whatever else the machine does meets both
            bare.append(await _bare(client, peer))
            ours.append(await _ours(mcp, store, peer))
    return median(bare), median(ours)


async def _bare(client: Client, peer: _Peer) -> float:
    start = time.perf_counter()
    for _ in range(_CALLS):
        await client.call_tool(peer.tool, dict(peer.input))
    return (time.perf_counter() - start) / _CALLS * 1000


async def _ours(mcp: McpManager, store: Store, peer: _Peer) -> float:
    """Validated, called, turned into a result; the journal is measured elsewhere."""
    server = mcp.get(peer.spec.name)
    await server.ready()
    remote = server.tool(peer.tool)
    assert remote is not None
    tool, nothing = proxy(server, remote), Injector({})
    start = time.perf_counter()
    for _ in range(_CALLS):
        result = await call(tool, dict(peer.input), nothing, CallContext(store))
        assert result.ok
    return (time.perf_counter() - start) / _CALLS * 1000
