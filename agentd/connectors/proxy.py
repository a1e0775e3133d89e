"""A tool of a server as a tool of ours: the same validation, effects, journal and results."""

from typing import TYPE_CHECKING, Any

from agentd.connectors.failures import ServerFailed
from agentd.connectors.server import McpServer
from agentd.domain.errors import ToolError
from agentd.domain.run import Run
from agentd.store.events import EventStore
from agentd.toolkit.call import validate
from agentd.toolkit.definition import Effect, Need, Tool
from agentd.toolkit.given import Given, GivenSchema
from agentd.toolkit.result import ToolResult

if TYPE_CHECKING:  # it loads the package `mcp-types`: not where there is no server
    from agentd.connectors.catalog import RemoteTool

GROUP = "mcp"
_NEEDS = {"run": Need(Run, optional=True), "events": Need(EventStore, optional=True)}
_ANYTHING = GivenSchema({"type": "object"})


def proxy(server: McpServer, remote: "RemoteTool") -> Tool:
    """Calls `remote` wherever a tool can be called."""

    async def call_remote(
        arguments: dict[str, Any], run: Run | None, events: EventStore | None
    ) -> ToolResult:
        return await exchange(server, remote, arguments, run, events, shown_as=remote.name)

    return _tool(
        call_remote,
        remote.name,
        remote.description,
        remote.effect,
        remote.input,
        remote.output,
    )


def awaited(server: McpServer, name: str, rest: str) -> Tool:
    """A tool of a server that has not listed its tools yet: looked up once it has."""

    async def call_later(
        arguments: dict[str, Any], run: Run | None, events: EventStore | None
    ) -> ToolResult:
        remote = await find_remote(server, name, rest)
        return await exchange(server, remote, arguments, run, events, shown_as=name)

    about = f"A tool of the MCP server {server.spec.name}, which is still starting."
    return _tool(call_later, name, about, Effect.EXTERNAL, _ANYTHING, None)


async def find_remote(server: McpServer, *names: str) -> "RemoteTool":
    """The tool, once the server has listed its own. Raises ToolError."""
    if server.catalog is None:
        try:
            await server.ready()
        except ServerFailed as error:
            raise _unavailable(error) from error
    for name in names:
        if (found := server.tool(name)) is not None:
            return found
    aside = dict(server.catalog.aside) if server.catalog else {}
    if names[-1] in aside:
        raise ToolError("unusable_tool", f"{names[-1]} is set aside: {aside[names[-1]]}")
    raise ToolError(
        "unknown_tool",
        f"MCP server {server.spec.name} has no tool {names[-1]!r}",
        next_action_hint="mcp_list_tools and mcp_search show what there is.",
    )


async def by_hand(server: McpServer, name: str, raw: str) -> ToolResult:
    """A person's call of a tool, with JSON text. Never raises."""
    try:
        remote = await find_remote(server, name)
        checked = validate(proxy(server, remote), raw)
        if isinstance(checked, ToolResult):
            return checked
        assert isinstance(checked, Given)
        return await exchange(server, remote, checked.arguments, None, None, shown_as=remote.name)
    except ToolError as error:
        return ToolResult.failure(error.error_type, error.message, next_action_hint=error.hint)


async def exchange(
    server: McpServer,
    remote: "RemoteTool",
    arguments: dict[str, Any],
    run: Run | None,
    events: EventStore | None,
    *,
    shown_as: str,
) -> ToolResult:
    """Call, answer what the server asks as far as a person has, and say how it went.

    A call that only reads is made again once when the server went away under it.
    """
    from agentd.connectors.asking import Interview  # noqa: PLC0415 - loads the package `mcp`
    from agentd.connectors.results import to_result  # noqa: PLC0415 - same

    interview = Interview(server.spec.name, shown_as, run, events)
    for last in (False, True):
        try:
            answer = await server.call(remote.original, arguments, ask=interview.answer)
        except ToolError as error:
            again = remote.effect is Effect.READ and error.error_type == "server_lost"
            if last or not again:
                raise
        except ServerFailed as error:
            raise _unavailable(error) from error
        else:
            return interview.outcome() or to_result(answer, remote.output)
    raise AssertionError


def _unavailable(error: ServerFailed) -> ToolError:
    return ToolError("server_unavailable", error.message, next_action_hint=error.hint)


def _tool(
    function: Any,
    name: str,
    description: str,
    effect: Effect,
    given_input: GivenSchema,
    given_output: GivenSchema | None,
) -> Tool:
    return Tool(
        name=name,
        description=description,
        group=GROUP,
        function=function,
        fields={},
        needs=_NEEDS,
        returns=Any,
        effect=effect,
        outside=True,
        given_input=given_input,
        given_output=given_output,
    )
