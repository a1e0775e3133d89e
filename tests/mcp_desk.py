"""Servers for tests: the misbehaving one, and a manager of some of them."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from agentd.connectors.server import McpServer, State, Terms
from agentd.connectors.servers import McpManager
from agentd.connectors.specs import Servers, ServerSpec

SCRIPT = Path(__file__).with_name("mcp_server.py")
TERMS = Terms(
    connect_s=5,
    call_s=5,
    close_s=0.1,
    idle_s=600,
    breaker_threshold=3,
    breaker_cooldown_s=60,
    retry_base_s=0.02,
)


def entry(behaviour: str = "plain", **more: Any) -> dict[str, Any]:
    """As it stands in mcp.json."""
    return {"command": sys.executable, "args": ["-I", "-S", str(SCRIPT), behaviour], **more}


def spec(behaviour: str = "plain", name: str = "", **more: Any) -> ServerSpec:
    args = ("-I", "-S", str(SCRIPT), behaviour)
    return ServerSpec(name or behaviour, "stdio", command=sys.executable, args=args, **more)


@asynccontextmanager
async def servers(
    folder: Path, *specs: ServerSpec, most: int = 60, **terms: Any
) -> AsyncIterator[McpManager]:
    """An open manager of these servers."""
    made = McpManager(Servers(specs), replace(TERMS, **terms), folder, folder / "tokens", most=most)
    async with made.open():
        yield made


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(10):
        while True:
            if condition():
                return
            await anyio.sleep(0.005)


async def state(server: McpServer, *states: State) -> None:
    await until(lambda: server.state in states)


def descendants(pid: int) -> set[int]:
    """Of a process, by /proc; also those that another one has taken in are found by `marked`."""
    parents: dict[int, int] = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            stat = (each / "stat").read_text()
        except OSError:
            continue
        parents[int(each.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def marked(mark: str) -> set[int]:
    """The processes whose environment holds AGENTD_TEST_MARK=`mark`, wherever they hang."""
    found: set[int] = set()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if f"AGENTD_TEST_MARK={mark}".encode() in (each / "environ").read_bytes():
                found.add(int(each.name))
        except OSError:
            continue
    return found - {os.getpid()}
