"""Tools as MCP servers list them, and results as they answer: plain JSON, without the package."""

from collections.abc import Iterable
from typing import Any

from agentd.domain.jsons import is_object
from agentd.toolkit.definition import Effect, Tool
from agentd.toolkit.result import ToolResult, model_content
from agentd.toolkit.schema import input_schema

_CHARS_MOST = 100_000


def to_mcp(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """In the shape of `tools/list`."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": input_schema(tool),
            **_output(tool),
            "annotations": {
                "readOnlyHint": tool.effect is Effect.READ,
                "idempotentHint": tool.effect in (Effect.READ, Effect.IDEMPOTENT),
                "openWorldHint": tool.outside,
            },
        }
        for tool in tools
    ]


def _output(tool: Tool) -> dict[str, Any]:
    """Clients check answers against it, so it keeps every null that may come."""
    if tool.returns is ToolResult or tool.returns is Any:
        return {}
    schema = tool.output.json_schema(mode="serialization")
    if schema.get("type") == "object":
        return {"outputSchema": schema}
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return {"outputSchema": {**wrapped, **definitions}}


def to_mcp_result(result: ToolResult) -> dict[str, Any]:
    """In the shape of the answer to `tools/call`."""
    content = model_content(result, limit_chars=_CHARS_MOST)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    answer: dict[str, Any] = {"content": [_block(each) for each in blocks]}
    if result.is_error:
        return {**answer, "isError": True}
    data = result.content if result.data is None else result.data
    return {**answer, "structuredContent": data if is_object(data) else {"result": data}}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "image":
        return block
    source = block["source"]
    return {"type": "image", "data": source["data"], "mimeType": source["media_type"]}
