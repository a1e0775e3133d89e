"""agentd's own tools for other MCP clients, from the same definitions as the model's."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import Server, ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from agentd import __version__
from agentd.domain.run import Run
from agentd.toolkit.adapters.mcp import to_mcp, to_mcp_result
from agentd.toolkit.definition import Effect, Tool
from agentd.toolkit.progress import Tell
from agentd.toolkit.registry import ToolRegistry
from agentd.toolkit.result import ToolResult

CallTool = Callable[[Tool, dict[str, Any], Tell], Awaitable[ToolResult]]
_INSTRUCTIONS = (
    "agentd works on tasks in the background. create_task puts one into its queue, await_task "
    "waits for its end and gives its output, view_task and list_tasks show the queue."
)
# Besides those that only read. They put work into the queue; nothing of them acts at once.
_USUAL = frozenset({"create_task", "update_task", "schedule"})
_Told = tuple[float, float | None, str | None]


def offered(registry: ToolRegistry, more: Sequence[str]) -> list[Tool]:
    """The tools for clients: what reads, what fills the queue, and those named in `more`."""
    return [tool for tool in registry.definitions() if _is_offered(tool, more)]


def _is_offered(tool: Tool, more: Sequence[str]) -> bool:
    if any(need.kind is Run and not need.optional for need in tool.needs.values()):
        return False  # it works only inside a run
    if tool.name in _USUAL or any(fnmatchcase(tool.name, each) for each in more):
        return True
    return tool.effect is Effect.READ and tool.group != "mcp"


def make_server(tools: Iterable[Tool], call: CallTool) -> Server[Any]:
    """A server of these tools; `call` carries one out and never raises."""
    by_name = {tool.name: tool for tool in tools}
    listed = ListToolsResult.model_validate({"tools": to_mcp(by_name.values())})

    async def list_tools(
        context: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del context, params
        return listed

    async def call_tool(
        context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            known = ", ".join(sorted(by_name))
            result = ToolResult.failure(
                "unknown_tool", f"there is no tool {params.name!r}", next_action_hint=known
            )
        else:
            result = await _call(context, tool, params.arguments or {}, call)
        return CallToolResult.model_validate(to_mcp_result(result))

    return Server(
        "agentd",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call(
    context: ServerRequestContext[Any], tool: Tool, arguments: dict[str, Any], call: CallTool
) -> ToolResult:
    """Pass on what the tool tells of its progress while it works."""
    tell, told = anyio.create_memory_object_stream[_Told](16)

    async def pass_on() -> None:
        async with told:
            async for done, total, message in told:
                await context.session.report_progress(done, total, message)

    result = ToolResult.failure("cancelled", f"{tool.name} was cancelled")
    async with anyio.create_task_group() as group:
        group.start_soon(pass_on)
        async with tell:
            result = await call(tool, arguments, _without_waiting(tell))
    return result


def _without_waiting(stream: MemoryObjectSendStream[_Told]) -> Tell:
    def tell(done: float, total: float | None, message: str | None) -> None:
        try:
            stream.send_nowait((done, total, message))
        except anyio.WouldBlock:
            return  # the client reads slowly; the next one says more

    return tell
