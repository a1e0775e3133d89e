"""mcp_exec: call a tool of an MCP server, whether or not it is among the model's own."""

from typing import Annotated, Any

from pydantic import Field

from agentd.connectors.proxy import exchange, find_remote
from agentd.connectors.servers import McpManager
from agentd.domain.errors import ToolError
from agentd.domain.run import Run
from agentd.store.events import EventStore
from agentd.toolkit.definition import Effect, tool
from agentd.toolkit.result import ToolResult


@tool(group="mcp", effect=Effect.EXTERNAL, outside=True)
async def mcp_exec(
    mcp: McpManager,
    server: Annotated[str, Field(description="The server's name, from mcp_list_tools.")],
    tool: Annotated[str, Field(description="The tool's name there.")],
    args: Annotated[
        dict[str, Any] | None, Field(description="Its input, as mcp_info describes it.")
    ] = None,
    run: Run | None = None,
    events: EventStore | None = None,
) -> ToolResult:
    """Call a tool of an MCP server. mcp_search finds one, mcp_info says what it takes."""
    its = mcp.get(server)
    remote = await find_remote(its, tool)
    wrong = remote.input.problems(args or {})
    if wrong:
        raise ToolError(
            "input_error",
            f"{server} {tool}: " + "; ".join(wrong),
            next_action_hint=f"mcp_info {server} {tool} shows what it takes. Nothing was done.",
        )
    return await exchange(its, remote, args or {}, run, events, shown_as="mcp_exec")
