"""What tools and their parameters are called in programs, where fewer names are allowed."""

import builtins
import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agentd.toolkit.definition import Tool
from agentd.toolkit.schema import Schema, input_schema

_PYTHON = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_TYPESCRIPT = frozenset(
    """
    abstract any arguments as async await boolean break case catch class const continue debugger
    declare default delete do else enum eval export extends false finally for from function get
    if implements import in instanceof interface let namespace never new null number object of
    package private protected public require return set static string super switch symbol this
    throw true try type typeof undefined unknown var void while with yield
    """.split()  # noqa: SIM905 - sixty lines else
)


@dataclass(frozen=True, slots=True)
class CodeTool:
    """One tool in code. `parameters`: the name in code to its own; required ones come first."""

    name: str
    tool: Tool
    schema: Schema
    parameters: Mapping[str, str]


def python_tools(tools: Sequence[Tool]) -> list[CodeTool]:
    """Those of `tools`, in their order, as Python calls them."""
    return _named(tools, _PYTHON)


def typescript_tools(tools: Sequence[Tool]) -> list[CodeTool]:
    """The same for TypeScript, where arguments are one object and keep their names."""
    return _named(tools, _TYPESCRIPT)


def _named(tools: Sequence[Tool], reserved: Collection[str]) -> list[CodeTool]:
    names = _unique([tool.name for tool in tools], reserved)
    found: list[CodeTool] = []
    for tool, name in zip(tools, names, strict=True):
        schema = input_schema(tool)
        required = schema["required"]
        own = sorted(schema["properties"], key=lambda each: each not in required)
        parameters = dict(zip(_unique(own, reserved), own, strict=True))
        found.append(CodeTool(name, tool, schema, parameters))
    return found


def _unique(names: Sequence[str], reserved: Collection[str]) -> list[str]:
    """A name that is fine as it is keeps it; the others get what is left."""
    taken = {name for name in names if _identifier(name, reserved) == name}
    made: list[str] = []
    for name in names:
        plain = _identifier(name, reserved)
        if plain != name:
            number = 1
            while plain in taken:
                number += 1
                plain = f"{_identifier(name, reserved)}_{number}"
            taken.add(plain)
        made.append(plain)
    return made


def _identifier(name: str, reserved: Collection[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not plain or plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if plain in reserved else plain
