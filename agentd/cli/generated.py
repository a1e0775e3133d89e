"""`agentd <group> <tool>`: commands made from the tools of this home."""

import click

from agentd.cli.context import Context, Opened
from agentd.cli.output import harmless, is_terminal, plain, print_json
from agentd.config import load_config
from agentd.domain.errors import AgentdError
from agentd.toolkit.adapters.cli import command, long_name, short_name
from agentd.toolkit.definition import Tool
from agentd.toolkit.discover import load_registry
from agentd.toolkit.registry import ToolRegistry
from agentd.toolkit.result import ToolResult

_STATE = "agentd.registry"


def registry(ctx: click.Context) -> ToolRegistry:
    """The tools of the home, or those of the package where there is no home yet."""
    root = ctx.find_root()
    if _STATE not in root.meta:
        context = root.ensure_object(Context)
        config = load_config(context.home, context.overrides)
        root.meta[_STATE], problems = load_registry(config, config.tools_path)
        for problem in problems:
            message = context.redactor().redact(problem.message)
            click.echo(f"A tool is left out: {message}", err=True)
    found: ToolRegistry = root.meta[_STATE]
    return found


def group_names(ctx: click.Context) -> list[str]:
    """The groups that tools name; none when the configuration is wrong: help must always come."""
    try:
        return sorted({tool.group for tool in registry(ctx).definitions()})
    except AgentdError:
        return []


def has_group(ctx: click.Context, name: str) -> bool:
    return any(tool.group == name for tool in registry(ctx).definitions())


def commands(ctx: click.Context, parent: click.Group) -> dict[str, click.Command]:
    """A command for each tool of the group that is named as `parent`.

    Under its short name, or the long one where a hand-written command or another tool has that.
    """
    tools = [tool for tool in registry(ctx).definitions() if tool.group == parent.name]
    shorts = [short_name(tool) for tool in tools]
    made: dict[str, click.Command] = {}
    for tool, short in zip(tools, shorts, strict=True):
        taken = short in parent.commands or shorts.count(short) > 1
        name = long_name(tool) if taken else short
        made[name] = command(tool, name, execute)
        made[name].hidden = tool.terminal  # it ends the run that calls it, and there is none here
    return made


def command_named(ctx: click.Context, parent: click.Group, name: str) -> click.Command | None:
    """The command of a tool of the group, by the name it is listed under or the tool's own."""
    listed = commands(ctx, parent).get(name)
    if listed is not None:
        return listed
    for tool in registry(ctx).definitions():
        if tool.group == parent.name and name in (tool.name, long_name(tool)):
            return command(tool, name, execute)
    return None


def execute(tool: Tool, raw: object, as_json: bool) -> int:
    """Call a tool for the person at the command line and print what it gives."""
    from agentd.app_tools import call_tool, make_toolbox  # noqa: PLC0415 - loads the whole agent
    from agentd.daemon.logs import configure_logs  # noqa: PLC0415 - same

    context = click.get_current_context().find_object(Context)
    assert context is not None
    _ = context.config  # what is secret stands in it, too
    configure_logs(level="warning", style="auto", redactor=context.redactor())

    async def work(opened: Opened) -> ToolResult:
        return await call_tool(make_toolbox(opened.config, opened.store), opened.store, tool, raw)

    return _show(context.run(work), as_json=as_json)


def _show(result: ToolResult, *, as_json: bool) -> int:
    shown = harmless if is_terminal() else str  # a file or another program gets it as it is
    if as_json:
        print_json({"ok": result.ok, **_facts(result)})
    elif result.is_error:
        click.echo(
            f"{click.style('Error:', fg='red', bold=True)} {harmless(result.error or '')}", err=True
        )
        if result.next_action_hint:
            click.echo(harmless(result.next_action_hint), err=True)
    elif isinstance(result.content, str):
        click.echo(shown(result.content))
        if result.notice:
            click.echo(harmless(result.notice), err=True)
    else:
        for block in result.content:
            click.echo(shown(block.get("text", f"({block['type']}: not shown here)")))
    if result.error_type == "invalid_arguments":
        return 2
    return 1 if result.is_error else 0


def _facts(result: ToolResult) -> dict[str, object]:
    if result.is_error:
        return {
            "error_type": result.error_type,
            "error": result.error,
            "next_action_hint": result.next_action_hint,
        }
    return {"data": plain(result.content if result.data is None else result.data)}
