"""mcp_info: what one tool of an MCP server takes and gives."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from agentd.connectors.proxy import find_remote
from agentd.connectors.servers import McpManager
from agentd.toolkit.definition import Effect, tool


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """`name`: under which it can be called here. `effect`: what a crash in the middle means."""

    content: str
    server: str
    tool: str
    name: str
    description: str
    effect: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None


@tool(group="mcp", effect=Effect.READ, outside=True)
async def mcp_info(
    mcp: McpManager,
    server: Annotated[str, Field(description="The server's name, from mcp_list_tools.")],
    tool: Annotated[str, Field(description="The tool's name there.")],
) -> ToolInfo:
    """Show the description and the input schema of one tool of an MCP server."""
    remote = await find_remote(mcp.get(server), tool)
    schema = json.dumps(remote.input.schema, ensure_ascii=False, indent=1)
    return ToolInfo(
        content=f"{server} {remote.original}\n{remote.description}\n\nInput:\n{schema}",
        server=remote.server,
        tool=remote.original,
        name=remote.name,
        description=remote.description,
        effect=str(remote.effect),
        input_schema=dict(remote.input.schema),
        output_schema=dict(remote.output.schema) if remote.output else None,
    )
