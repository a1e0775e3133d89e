"""Tools as typed Python functions for programs: each hands its arguments to `__call_tool__`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agentd.domain.jsons import is_array, is_object
from agentd.toolkit.adapters.code_names import CodeTool, python_tools
from agentd.toolkit.definition import Tool
from agentd.toolkit.schema import Schema, value_schema

_HEAD = '''\
"""The tools that a program may call: `await name(...)`. A failed call raises RuntimeError."""

from typing import Any, Literal, NotRequired, TypedDict


async def __call_tool__(tool: str, arguments: dict[str, Any]) -> Any:
    """Given by the sandbox."""
    raise NotImplementedError(tool)
'''
_PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_LITERALS = (str, int, bool, type(None))


def generate_stubs(tools: Iterable[Tool]) -> str:
    """Source with one async function for each tool that programs may call, and their types."""
    parts = [_HEAD]
    for each in python_tools([tool for tool in tools if tool.for_programs]):
        types = _Types(_camel(each.name))
        function = _function(each, types)
        parts += [*types.definitions, function]
    return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)


@dataclass
class _Types:
    """Writes a schema as a type; objects get a name and a definition."""

    prefix: str
    definitions: list[str] = field(default_factory=list[str])

    def of(self, schema: Any, name: str) -> str:
        if not is_object(schema):
            return "Any"
        if "const" in schema:
            return _literal([schema["const"]])
        if is_array(schema.get("enum")):
            return _literal(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if is_array(schema.get(key)):
                return self._union(schema[key], name)
        kind = schema.get("type")
        if is_array(kind):
            return self._union([{**schema, "type": each} for each in kind], name)
        return self._of_kind(kind, schema, name)

    def _of_kind(self, kind: Any, schema: Schema, name: str) -> str:
        if kind == "array":
            return f"list[{self.of(schema.get('items', {}), f'{name}Item')}]"
        if kind == "object":
            return self._object(schema, name)
        return _PLAIN.get(kind, "Any") if isinstance(kind, str) else "Any"

    def _union(self, branches: list[Any], name: str) -> str:
        found = [self.of(each, f"{name}{n or ''}") for n, each in enumerate(branches)]
        return "Any" if "Any" in found else " | ".join(dict.fromkeys(found)) or "Any"

    def _object(self, schema: Schema, name: str) -> str:
        properties = schema.get("properties")
        if not is_object(properties) or not properties:
            extra = schema.get("additionalProperties")
            return f"dict[str, {self.of(extra, f'{name}Value') if is_object(extra) else 'Any'}]"
        required = schema.get("required", [])
        fields: list[str] = []
        for key, each in properties.items():
            hint = self.of(each, f"{name}{_camel(key)}")
            fields.append(f"{key!r}: {hint if key in required else f'NotRequired[{hint}]'}")
        title = f"{self.prefix}{name}"
        lines = "".join(f"    {each},\n" for each in fields)
        self.definitions.append(f"{title} = TypedDict({title!r}, {{\n{lines}}})")
        return title


def _function(each: CodeTool, types: _Types) -> str:
    required = each.schema["required"]
    parameters: list[str] = []
    for name, own in each.parameters.items():
        hint = types.of(each.schema["properties"][own], _camel(name))
        parameters.append(
            f"{name}: {hint}" if own in required else f"{name}: {_optional(hint)} = None"
        )
    given = ", ".join(f"{own!r}: {name}" for name, own in each.parameters.items())
    returns = types.of(value_schema(each.tool), "Result")
    summary = each.tool.description.splitlines()[0]
    # No name of its own: it could be that of a parameter.
    return (
        f"async def {each.name}({', '.join(parameters)}) -> {returns}:\n"
        f"    {summary!r}\n"
        f"    return await __call_tool__(\n"
        f"        {each.tool.name!r},\n"
        f"        {{k: v for k, v in {{{given}}}.items() if v is not None}},\n"
        f"    )\n"
    )


def _optional(hint: str) -> str:
    return hint if hint == "Any" or hint.endswith("None") else f"{hint} | None"


def _literal(values: list[Any]) -> str:
    if not values or not all(isinstance(each, _LITERALS) for each in values):
        return "Any"
    return f"Literal[{', '.join(repr(each) for each in values)}]"


def _camel(name: str) -> str:
    words = "".join(each if each.isascii() and each.isalnum() else " " for each in name).split()
    return "".join(word[0].upper() + word[1:] for word in words) or "_"
