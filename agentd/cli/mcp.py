"""`agentd mcp …`: the MCP servers whose tools are used, and the server that agentd is."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentd.cli.context import Context, home_option, json_option, pass_context
from agentd.cli.groups import NounGroup
from agentd.cli.output import one_line, print_json, print_table
from agentd.config import Config
from agentd.connectors import editing
from agentd.connectors.specs import Servers, ServerSpec, entries, load_servers, read_document
from agentd.domain.errors import AgentdError, NotFound

if TYPE_CHECKING:
    from agentd.connectors.server import McpServer
    from agentd.connectors.servers import McpManager

T = TypeVar("T")


@click.group(cls=NounGroup)
def mcp() -> None:
    """Use tools of MCP servers, and serve agentd's own."""


def _names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    context = ctx.find_root().ensure_object(Context)
    try:
        found = entries(read_document(context.home / "mcp.json"))
    except AgentdError:
        return []
    return [name for name in found if name.startswith(incomplete)]


@mcp.command()
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", help="The address of a server on the network, instead of COMMAND.")
@click.option("--transport", type=click.Choice(["stdio", "http", "sse"]), help="If not plain.")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="For its environment.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="For each request.")
@click.option("--allow", multiple=True, metavar="TOOL", help="Only these tools; * as in files.")
@click.option("--deny", multiple=True, metavar="TOOL", help="Not these tools.")
@click.option("--replace", is_flag=True, help="Take the place of a server of that name.")
@home_option
@pass_context
def add(  # noqa: PLR0913 - one parameter for each option
    context: Context,
    *,
    name: str,
    command: tuple[str, ...],
    url: str | None,
    transport: str | None,
    env: tuple[str, ...],
    headers: tuple[str, ...],
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    replace: bool,
) -> None:
    """Write server NAME into mcp.json. After -- stands its command line; system-info needs none."""
    entry: dict[str, Any] = {}
    if not command and url is None:
        entry |= editing.BUNDLED.get(name, {})
    if command:
        entry |= {"command": command[0], "args": list(command[1:])}
    if url is not None:
        entry["url"] = url
    facts = {
        "transport": transport,
        "env": _pairs(env, "--env"),
        "headers": _pairs(headers, "--header"),
        "allow": list(allow),
        "deny": list(deny),
    }
    entry |= {key: value for key, value in facts.items() if value}
    editing.add(context.config.mcp_path, name, entry, replace=replace)
    click.echo(f"Added {name}. A daemon that runs takes it up when it is started again.")


@mcp.command()
@click.argument("name", shell_complete=_names)
@home_option
@pass_context
def remove(context: Context, *, name: str) -> None:
    """Take server NAME out of mcp.json, and forget its login."""
    from agentd.connectors.tokens import forget  # noqa: PLC0415 - seldom needed

    editing.remove(context.config.mcp_path, name)
    forget(name, context.config.mcp_tokens_path)
    click.echo(f"Removed {name}.")


@mcp.command("list")
@json_option
@home_option
@pass_context
def list_(context: Context, *, as_json: bool) -> None:
    """The servers of mcp.json. Nothing is started; ping does that."""
    found = load_servers(context.config.mcp_path)
    _show_problems(found)
    if as_json:
        print_json([_facts(spec) for spec in found.specs])
        return
    print_table(
        ("name", "transport", "enabled", "where"),
        [
            (spec.name, spec.transport, "yes" if spec.enabled else "no", one_line(spec.where))
            for spec in found.specs
        ],
        empty="No MCP servers. `agentd mcp add` adds one.",
    )


@mcp.command()
@click.argument("name", required=False, shell_complete=_names)
@json_option
@home_option
@pass_context
def ping(context: Context, *, name: str | None, as_json: bool) -> int:
    """Start server NAME, or each, and say whether and how fast it answers."""

    async def work(manager: "McpManager") -> list[dict[str, Any]]:
        from agentd.connectors.pinging import ping_all  # noqa: PLC0415 - loads `mcp`

        return await ping_all(manager)

    found = _with_servers(context, name, work)
    if as_json:
        print_json(found)
    else:
        print_table(
            ("server", "ok", "connect_ms", "ping_ms", "protocol", "tools", "problem"),
            [
                (
                    each["server"],
                    "yes" if each["ok"] else "no",
                    each["connect_ms"],
                    each["ping_ms"],
                    each["protocol"],
                    each["tools"],
                    one_line(each["problem"] or "", 500),
                )
                for each in found
            ],
            empty="No MCP servers.",
        )
    left_out = name is None and load_servers(context.config.mcp_path).problems
    return 0 if all(each["ok"] for each in found) and not left_out else 1


@mcp.command()
@click.argument("name", required=False, shell_complete=_names)
@json_option
@home_option
@pass_context
def tools(context: Context, *, name: str | None, as_json: bool) -> int:
    """The tools of server NAME, or of each; also those that can not be used, and why."""

    async def work(manager: "McpManager") -> list[dict[str, Any]]:
        await manager.settled(patience_s=3600)
        return [row for each in manager.servers.values() for row in _tool_rows(each)]

    found = _with_servers(context, name, work)
    if as_json:
        print_json(found)
    else:
        print_table(
            ("server", "tool", "effect", "description"),
            [
                (
                    row["server"],
                    one_line(row["tool"]),
                    row["effect"],
                    one_line(row["problem"] or row["description"], 500),
                )
                for row in found
            ],
            empty="No tools.",
        )
    return 1 if any(row["tool"] == "" for row in found) else 0


@mcp.command()
@click.argument("server", shell_complete=_names)
@click.argument("tool")
@click.argument("arguments", metavar="JSON", default="{}")
@json_option
@home_option
@pass_context
def call(context: Context, *, server: str, tool: str, arguments: str, as_json: bool) -> int:
    """Call TOOL of SERVER with a JSON object; - reads it from standard input."""
    from agentd.cli.generated import show_result  # noqa: PLC0415 - loads the toolkit
    from agentd.connectors.proxy import by_hand  # noqa: PLC0415 - same

    text = sys.stdin.read() if arguments == "-" else arguments

    async def work(manager: "McpManager") -> Any:
        return await by_hand(manager.get(server), tool, text)

    return show_result(_with_servers(context, server, work), as_json=as_json)


@mcp.command()
@click.argument("name", shell_complete=_names)
@click.option("--paste", is_flag=True, help="Paste the address you were sent to; no browser here.")
@home_option
@pass_context
def login(context: Context, *, name: str, paste: bool) -> None:
    """Log in to server NAME with OAuth. The tokens stay in the home, readable by nobody else."""
    from agentd.connectors.login import log_in  # noqa: PLC0415 - loads `mcp`

    spec = _spec(context.config, name)
    asked = log_in(
        spec, context.config.mcp_tokens_path, paste=paste, tell=lambda t: click.echo(t, err=True)
    )
    click.echo(f"Logged in to {name}." if asked else f"{name} did not ask for a login.")


@mcp.command()
@click.argument("name", shell_complete=_names)
@home_option
@pass_context
def logout(context: Context, *, name: str) -> None:
    """Forget the tokens of server NAME."""
    from agentd.connectors.tokens import forget  # noqa: PLC0415 - seldom needed

    was_there = forget(name, context.config.mcp_tokens_path)
    click.echo(f"Logged out of {name}." if was_there else f"There was no login for {name}.")


@mcp.command()
@click.option("--http", metavar="[HOST:]PORT", help="Streamable HTTP instead of stdio; loopback.")
@home_option
@pass_context
def serve(context: Context, *, http: str | None) -> None:
    """Offer agentd's tools to MCP clients, over standard input and output or HTTP.

    Tasks that are put into the queue are worked by `agentd run`. With --http the token that
    clients must send stands in the home's run/mcp-token.
    """
    from agentd.cli.mcp_serve import serve_over  # noqa: PLC0415 - loads the whole agent

    serve_over(context, http)


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE", param_hint=option)
        pairs[name] = value
    return pairs


def _facts(spec: ServerSpec) -> dict[str, Any]:
    """Without values that may be secret."""
    return {
        "name": spec.name,
        "transport": spec.transport,
        "enabled": spec.enabled,
        "where": spec.where,
        "env": sorted(spec.env),
        "headers": sorted(spec.headers),
        "allow": spec.allow,
        "deny": spec.deny,
    }


def _tool_rows(server: "McpServer") -> list[dict[str, Any]]:
    row = {"server": server.spec.name, "tool": "", "name": "", "effect": "", "description": ""}
    if server.catalog is None:
        return [{**row, "problem": server.problem}]
    usable = [
        {
            "server": each.server,
            "tool": each.original,
            "name": each.name,
            "effect": str(each.effect),
            "description": each.summary,
            "problem": None,
        }
        for each in server.catalog.tools
    ]
    return usable + [{**row, "tool": n, "problem": why} for n, why in server.catalog.aside]


def _show_problems(found: Servers) -> None:
    for problem in found.problems:
        click.echo(f"A server is left out: {problem.message}", err=True)


def _spec(config: Config, name: str) -> ServerSpec:
    found = load_servers(config.mcp_path)
    for spec in found.specs:
        if spec.name == name:
            return spec
    for problem in found.problems:
        if repr(name) in problem.message:
            raise problem
    there = ", ".join(spec.name for spec in found.specs) or "none"
    raise NotFound("MCP server", name, hint=f"There are: {there}.")


def _with_servers(
    context: Context, name: str | None, work: Callable[["McpManager"], Awaitable[T]]
) -> T:
    """What `work` gives, with the server of that name, or all, running meanwhile."""
    import anyio  # noqa: PLC0415 - only where servers are started

    from agentd.connectors.servers import McpManager  # noqa: PLC0415 - same
    from agentd.daemon.logs import configure_logs  # noqa: PLC0415 - same

    configure_logs(level="critical", style="auto")
    if name is None:
        found = load_servers(context.config.mcp_path)
        _show_problems(found)
    else:
        found = Servers((replace(_spec(context.config, name), enabled=True),))

    async def main() -> T:
        # A person sees the failure and decides: no second try behind his back.
        manager = McpManager.of(context.config, found, breaker_threshold=1)
        async with manager.open():
            return await work(manager)

    return anyio.run(main)
