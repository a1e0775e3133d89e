"""Tools as Python functions for sandboxed code: each hands its arguments to `__call_tool__`."""

import keyword
import re
from collections.abc import Iterable
from typing import Any

from agentd.toolkit.definition import Tool
from agentd.toolkit.schema import input_schema

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


def generate_stubs(tools: Iterable[Tool]) -> str:
    """Source with one async function for each tool; names that Python does not allow get a `_`."""
    return "\n\n".join(_stub(tool) for tool in tools) + "\n"


def _stub(tool: Tool) -> str:
    schema = input_schema(tool)
    required = schema["required"]
    names = sorted(schema["properties"], key=lambda name: name not in required)
    parameters = [_parameter(name, schema["properties"][name], name in required) for name in names]
    given = ", ".join(f"{name!r}: {_identifier(name)}" for name in names)
    summary = tool.description.splitlines()[0]
    return (
        f"async def {_identifier(tool.name)}({', '.join(parameters)}):\n"
        f"    {summary!r}\n"
        f"    given = {{{given}}}\n"
        f"    given = {{name: value for name, value in given.items() if value is not None}}\n"
        f"    return await __call_tool__({tool.name!r}, given)"
    )


def _parameter(name: str, schema: dict[str, Any], required: bool) -> str:
    hint = _TYPES.get(schema.get("type", ""), "object")
    text = f"{_identifier(name)}: {hint}"
    return text if required else f"{text} | None = None"


def _identifier(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    return f"{plain}_" if keyword.iskeyword(plain) or not plain.isidentifier() else plain
