"""mcp_list_tools: which MCP servers there are, and what they offer."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agentd.connectors.servers import McpManager
from agentd.toolkit.definition import Effect, tool


@dataclass(frozen=True, slots=True)
class ToolLine:
    """`tool`: its name there; `name`: under which it can be called here."""

    server: str
    tool: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class ServerLine:
    """`problem`: why it can not be used now. `aside`: tools that can never be."""

    server: str
    state: str
    problem: str | None
    aside: list[str]


@dataclass(frozen=True, slots=True)
class ServerTools:
    content: str
    servers: list[ServerLine]
    tools: list[ToolLine]


@tool(group="mcp", effect=Effect.READ, outside=True)
async def mcp_list_tools(
    mcp: McpManager,
    server: Annotated[str | None, Field(description="Only the tools of this server.")] = None,
) -> ServerTools:
    """List the MCP servers and their tools, one line each. mcp_info shows a tool's parameters."""
    asked = [mcp.get(server)] if server else [mcp.servers[name] for name in sorted(mcp.servers)]
    await mcp.settled()
    lines = [
        ServerLine(
            each.spec.name,
            str(each.state),
            each.problem,
            [f"{name}: {why}" for name, why in each.catalog.aside] if each.catalog else [],
        )
        for each in asked
    ]
    names = {each.spec.name for each in asked}
    tools = [
        ToolLine(each.server, each.original, each.name, each.summary)
        for each in mcp.remote_tools()
        if each.server in names
    ]
    return ServerTools(_text(lines, tools), lines, tools)


def _text(servers: list[ServerLine], tools: list[ToolLine]) -> str:
    if not servers:
        return "There are no MCP servers."
    text: list[str] = []
    for server in servers:
        why = f": {server.problem}" if server.problem else ""
        text.append(f"{server.server} ({server.state}{why})")
        text += [f"  {t.tool}: {t.summary}" for t in tools if t.server == server.server]
        text += [f"  (can not be used) {each}" for each in server.aside]
    return "\n".join(text)
