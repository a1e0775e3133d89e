"""mcp_search: which tools of the MCP servers fit some words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from agentd.connectors.ranking import rank
from agentd.connectors.servers import McpManager
from agentd.domain.errors import ToolError
from agentd.toolkit.definition import Effect, tool

if TYPE_CHECKING:  # it loads the package `mcp-types`: not where there is no server
    from agentd.connectors.catalog import RemoteTool


@dataclass(frozen=True, slots=True)
class Match:
    server: str
    tool: str
    summary: str
    score: float


@dataclass(frozen=True, slots=True)
class Matches:
    content: str
    matches: list[Match]


@tool(group="mcp", effect=Effect.READ, outside=True)
async def mcp_search(
    mcp: McpManager,
    query: Annotated[str, Field(min_length=1, description="What the tool should do, in words.")],
    keyword_only: Annotated[
        bool, Field(description="Match words only; it is so as long as there is no other search.")
    ] = False,
    semantic_only: Annotated[
        bool, Field(description="Match meaning only; it can not be done yet.")
    ] = False,
    limit: Annotated[int, Field(ge=1, le=100, description="How many at the most.")] = 10,
) -> Matches:
    """Find tools of the MCP servers by what they do; the best first. Call them with mcp_exec."""
    del keyword_only
    if semantic_only:
        raise ToolError(
            "unavailable",
            "tools can not be searched by meaning yet",
            next_action_hint="Leave semantic_only out.",
        )
    await mcp.settled()
    tools = mcp.remote_tools()
    found = rank(query, [_document(each) for each in tools])[:limit]
    matches = [
        Match(tools[at].server, tools[at].original, tools[at].summary, round(score, 3))
        for at, score in found
    ]
    lines = [f"{each.server} {each.tool}: {each.summary}" for each in matches]
    return Matches("\n".join(lines) or f"Nothing fits among {len(tools)} tools.", matches)


def _document(remote: "RemoteTool") -> str:
    """The name counts twice: it says most."""
    parameters = " ".join(remote.input.schema.get("properties", {}))
    name = f"{remote.server} {remote.original}"
    return f"{name} {remote.original} {remote.description} {parameters}"
