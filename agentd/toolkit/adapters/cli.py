"""Tools as commands: arguments, options and help from the same definition as the model's schema.

Required parameters are positional, in their order; the others are options. Values are not checked
here: they go to the validation that a model's call goes through, so the messages are the same.
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from agentd.toolkit.definition import Tool
from agentd.toolkit.schema import input_schema

Execute = Callable[[Tool, dict[str, Any], bool], int]  # tool, raw arguments, --json → exit code
Schema = dict[str, Any]


def short_name(tool: Tool) -> str:
    """The name without the word of its group: create_task of group task → create."""
    words = tool.name.split("_")
    own = [word for word in words if word not in (tool.group, f"{tool.group}s")]
    return "-".join(own or words)


def long_name(tool: Tool) -> str:
    return tool.name.replace("_", "-")


def command(tool: Tool, name: str, execute: Execute) -> click.Command:
    """The command that calls `tool`. Exit code 2 for wrong arguments, 1 for other errors."""
    schema = input_schema(tool)
    properties: dict[str, Schema] = schema["properties"]
    parameters: list[click.Parameter] = []
    for parameter, its in properties.items():
        required = parameter in schema["required"]
        parameters.append(_argument(parameter, its) if required else _option(parameter, its))
    parameters.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))

    def run(*, as_json: bool, **given: Any) -> int:
        raw = {
            parameter: _raw(given[_identifier(parameter)], its)
            for parameter, its in properties.items()
            if given[_identifier(parameter)] not in (None, ())
        }
        return execute(tool, raw, as_json)

    lines = [
        f"  {each.upper()}  {properties[each].get('description', '')}"
        for each in schema["required"]
    ]
    said = [_as_it_stands(each) for each in tool.description.split("\n\n")]
    helped = "\n\n".join([*said, *(["\b\n" + "\n".join(lines)] if lines else [])])
    summary = tool.description.splitlines()[0]
    return click.Command(name, params=parameters, callback=run, help=helped, short_help=summary)


def _as_it_stands(paragraph: str) -> str:
    """An example or a list keeps its lines; click fills what is not marked."""
    return f"\b\n{paragraph}" if re.search(r"^[ *+-]", paragraph, re.MULTILINE) else paragraph


class _AnyOf(click.ParamType[str]):
    """Offers choices to the shell's completion and to help, and refuses nothing itself."""

    name = "choice"

    def __init__(self, choices: list[str]) -> None:
        self.choices = choices

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        del param, ctx
        return f"[{'|'.join(self.choices)}]"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del ctx, param
        return [CompletionItem(each) for each in self.choices if each.startswith(incomplete)]


def _argument(name: str, schema: Schema) -> click.Argument:
    # Never required for click: what is missing is named by the tool's own validation.
    many = _is_many(schema)
    return click.Argument(
        [_identifier(name)],
        required=False,
        nargs=-1 if many else 1,
        type=_type(schema),
        metavar=f"{name.upper()}..." if many else name.upper(),
    )


def _option(name: str, schema: Schema) -> click.Option:
    flag = name.replace("_", "-")
    described = schema.get("description", "")
    default = schema.get("default")
    if default not in (None, "", [], {}):
        described = f"{described} [default: {default}]"
    if schema.get("type") == "boolean":
        return click.Option(
            [f"--{flag}/--no-{flag}", _identifier(name)], default=None, help=described
        )
    return click.Option(
        [f"--{flag}", _identifier(name)],
        multiple=_is_many(schema),
        type=_type(schema),
        metavar=None if "enum" in schema else _metavar(schema),
        help=described,
    )


def _identifier(name: str) -> str:
    """A name that click keeps as it is: it lowers letters, and takes only what Python does."""
    return "given_" + re.sub(r"\W", "_", name).lower()


def _is_many(schema: Schema) -> bool:
    if schema.get("type") == "array":
        return True
    return schema.get("type") == "object" and not schema.get("properties")


def _type(schema: Schema) -> click.ParamType[str]:
    choices = schema.get("enum") or schema.get("items", {}).get("enum")
    return _AnyOf([str(each) for each in choices]) if choices else click.STRING


def _metavar(schema: Schema) -> str:
    match schema.get("type"):
        case "object":
            return "JSON" if schema.get("properties") else "KEY=VALUE"
        case "array":
            return str(schema.get("items", {}).get("type", "text")).upper()
        case str(kind):
            return kind.upper().replace("STRING", "TEXT")
        case _:
            return "VALUE"


def _raw(value: Any, schema: Schema) -> Any:
    """What a model would have sent, as far as the text allows; else the text."""
    match schema.get("type"):
        case "array":
            return [_raw(each, schema.get("items", {})) for each in value]
        case "object" if not schema.get("properties"):
            return _pairs(value)
        case "string":
            return sys.stdin.read() if value == "-" else value
        case "boolean":
            return value
        case _:
            return _json_or_text(value)


def _pairs(given: tuple[str, ...]) -> object:
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        return _json_or_text(given[0])
    split = [each.partition("=") for each in given]
    return {key: _json_or_text(value) for key, _, value in split}


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
