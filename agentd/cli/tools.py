"""`agentd tools …`: what the tools are, as the model gets them, and a call of one."""

import json
import sys

import click

from agentd.cli.generated import execute, registry
from agentd.cli.groups import NounGroup
from agentd.cli.output import print_json, print_table
from agentd.toolkit.adapters.anthropic import to_anthropic
from agentd.toolkit.adapters.openai import to_openai
from agentd.toolkit.adapters.stubs import generate_stubs
from agentd.toolkit.adapters.stubs_typescript import generate_typescript_stubs
from agentd.toolkit.definition import Tool
from agentd.toolkit.result import ToolResult


@click.group(cls=NounGroup)
def tools() -> None:
    """See the tools, their schemas, and call one."""


def _names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    names = (tool.name for tool in registry(ctx).definitions())
    return [name for name in names if name.startswith(incomplete)]


@tools.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_(ctx: click.Context, *, as_json: bool) -> None:
    """The tools of this home."""
    found = registry(ctx).definitions()
    if as_json:
        print_json([_facts(tool) for tool in found])
        return
    print_table(
        ("name", "group", "effect", "description"),
        [
            (tool.name, tool.group, _effect(tool), tool.description.splitlines()[0])
            for tool in found
        ],
        empty="No tools.",
    )


@tools.command()
@click.argument("name", required=False, shell_complete=_names)
@click.option(
    "--format",
    "style",
    type=click.Choice(["anthropic", "openai", "python"]),
    default="anthropic",
    show_default=True,
    help="For whom; python: the stubs that sandboxed code calls.",
)
@click.option("--json", is_flag=True, expose_value=False, help="JSON; it is that anyhow.")
@click.pass_context
def schema(ctx: click.Context, *, name: str | None, style: str) -> None:
    """What the model is told of tool NAME, or of all."""
    found = [_find(ctx, name)] if name else list(registry(ctx).definitions())
    if style == "python":
        click.echo(generate_stubs(found), nl=False)
        return
    exported = to_anthropic(found) if style == "anthropic" else to_openai(found)
    click.echo(json.dumps(exported[0] if name else exported, ensure_ascii=False, indent=2))


@tools.command()
@click.option(
    "--language",
    type=click.Choice(["python", "typescript"]),
    default="python",
    show_default=True,
    help="Of the program that is to call them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def stubs(ctx: click.Context, *, language: str, as_json: bool) -> None:
    """The tools as typed functions, as programs of the model call them."""
    found = registry(ctx).definitions("worker")
    generate = generate_stubs if language == "python" else generate_typescript_stubs
    if as_json:
        print_json({"language": language, "source": generate(found)})
    else:
        click.echo(generate(found), nl=False)


@tools.command()
@click.argument("name", shell_complete=_names)
@click.argument("arguments", metavar="JSON", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def call(ctx: click.Context, *, name: str, arguments: str, as_json: bool) -> int:
    """Call tool NAME with a JSON object, as the model does; - reads it from standard input."""
    text = sys.stdin.read() if arguments == "-" else arguments
    return execute(_find(ctx, name), text, as_json)


def _find(ctx: click.Context, name: str) -> Tool:
    found = registry(ctx).find(name)
    if isinstance(found, ToolResult):
        raise click.UsageError(f"{found.error}. {found.next_action_hint}")
    return found


def _effect(tool: Tool) -> str:
    return f"{tool.effect}, terminal" if tool.terminal else str(tool.effect)


def _facts(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "group": tool.group,
        "description": tool.description,
        "effect": str(tool.effect),
        "terminal": tool.terminal,
        "alias_of": tool.alias_of,
        "toolsets": sorted(tool.toolsets),
        "place": tool.place,
    }
