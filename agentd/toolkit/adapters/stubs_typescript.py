"""Tools as typed TypeScript functions for programs: each hands one object to `__callTool__`."""

import json
import re
from collections.abc import Iterable
from typing import Any

from agentd.domain.jsons import is_array, is_object
from agentd.toolkit.adapters.code_names import CodeTool, typescript_tools
from agentd.toolkit.definition import Tool
from agentd.toolkit.schema import Schema, value_schema

_HEAD = """\
// The tools that a program may call: `await name({...})`. A failed call throws a ToolError.

/** Given by the sandbox. */
declare function __callTool__(tool: string, input: object): Promise<any>;
"""
_PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def generate_typescript_stubs(tools: Iterable[Tool]) -> str:
    """Source with one async function for each tool that programs may call."""
    found = typescript_tools([tool for tool in tools if tool.for_programs])
    return "\n".join([_HEAD, *(_function(each) for each in found)])


def _function(each: CodeTool) -> str:
    optional = "" if each.schema["required"] else " = {}"
    summary = each.tool.description.splitlines()[0].replace("*/", "*\\/")
    return (
        f"/** {summary} */\n"
        f"export async function {each.name}(\n"
        f"  input: {_type({**each.schema, 'additionalProperties': False})}{optional},\n"
        f"): Promise<{_type(value_schema(each.tool))}> {{\n"
        f"  return await __callTool__({json.dumps(each.tool.name)}, input);\n"
        f"}}\n"
    )


def _type(schema: Any) -> str:
    if not is_object(schema):
        return "any"
    if "const" in schema:
        return _literal(schema["const"])
    if is_array(schema.get("enum")):
        return _union([_literal(each) for each in schema["enum"]])
    branches = schema.get("anyOf", schema.get("oneOf"))
    kind = schema.get("type")
    if branches is None and is_array(kind):
        branches = [{**schema, "type": each} for each in kind]
    if is_array(branches):
        return _union([_type(each) for each in branches])
    return _of_kind(kind, schema)


def _of_kind(kind: Any, schema: Schema) -> str:
    if kind == "array":
        return f"Array<{_type(schema.get('items', {}))}>"
    if kind == "object":
        return _object(schema)
    return _PLAIN.get(kind, "any") if isinstance(kind, str) else "any"


def _object(schema: Schema) -> str:
    properties = schema.get("properties")
    extra = schema.get("additionalProperties")
    if not is_object(properties) or not properties:
        if extra is False:
            return "Record<string, never>"
        return f"Record<string, {_type(extra) if is_object(extra) else 'any'}>"
    required = schema.get("required", [])
    fields = [
        f"{_key(name)}{'' if name in required else '?'}: {_type(each)}"
        for name, each in properties.items()
    ]
    return "{ " + "; ".join(fields) + " }"


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _union(branches: list[str]) -> str:
    found = " | ".join(dict.fromkeys(branches))
    return "any" if not found or "any" in branches else f"({found})"


def _literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str | int | float | bool | None) else "any"
