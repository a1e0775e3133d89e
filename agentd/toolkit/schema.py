"""The one way from a pydantic model to JSON Schema that every provider accepts.

A flat object: `type: object` at the root, no union there, `$ref` inlined, no titles, no null
branches. One schema that the Messages API refuses would fail the whole request.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema

from agentd.domain.jsons import is_array, is_object
from agentd.toolkit.definition import Tool

Schema = dict[str, Any]
_ANY_OBJECT: Schema = {"type": "object"}
_ROOT = "#"  # no name of a definition


def input_schema(tool: Tool) -> Schema:
    """The input of a tool: a flat object with `properties` and `required`."""
    if tool.given_input is not None:
        return normalise(tool.given_input.schema)
    return normalise(tool.input_document)


def output_schema(tool: Tool) -> Schema:
    """What the tool returns; what is no object stands under `result`."""
    if tool.given_output is not None:
        given = dict(tool.given_output.schema)
        return _clean(given, _definitions(given), ())
    schema = _clean(tool.output.json_schema(mode="serialization"), {}, ())
    if schema.get("type") == "object":
        return schema
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def value_schema(tool: Tool) -> Schema:
    """What the tool returns, as it is, null included; empty where its type says nothing."""
    try:
        schema: Schema = _inlined(tool.output.json_schema(mode="serialization"), {}, ())
    except PydanticInvalidForJsonSchema:
        return {}
    return schema


def normalise(schema: Mapping[str, Any]) -> Schema:
    """Any JSON Schema of an input as a flat object; also for schemas that others wrote."""
    clean = _clean(schema, _definitions(schema), ())
    roots: list[list[Schema]] = [clean.pop(key, []) for key in ("anyOf", "oneOf", "allOf")]
    properties: Schema = dict(clean.get("properties", {}))
    required: list[str] = list(clean.get("required", []))
    for branch in chain.from_iterable(roots):
        properties |= branch.get("properties", {})
    rest = {key: value for key, value in clean.items() if key not in ("properties", "required")}
    return {**rest, "type": "object", "properties": properties, "required": required}


def _definitions(root: Mapping[str, Any]) -> Schema:
    """What a `$ref` may name, by its last part and, anywhere in the document, by its pointer."""
    return {**root.get("definitions", {}), **root.get("$defs", {}), _ROOT: root}


def _referred(reference: str, definitions: Schema) -> Any:
    """What a `$ref` points to; None when that is not in the document."""
    pointer, _, name = reference.rpartition("/")
    if pointer in ("#/$defs", "#/definitions") and name in definitions:
        return definitions[name]
    here: Any = definitions.get(_ROOT) if reference.startswith("#") else None
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        here = here.get(key) if is_object(here) else None
    return here


def _clean(node: Any, definitions: Schema, inside: tuple[str, ...]) -> Any:
    """Inlined, and without null: an input that may be null may be left out."""
    return _inlined(node, definitions, inside, _without_null)


def _inlined(
    node: Any,
    definitions: Schema,
    inside: tuple[str, ...],
    finish: Callable[[Schema], Schema] = lambda schema: schema,
) -> Any:
    """`inside`: the definitions being inlined; one that holds itself ends as any object."""
    if is_array(node):
        return [_inlined(each, definitions, inside, finish) for each in node]
    if not is_object(node):
        return node
    definitions = {**definitions, **node.get("$defs", {})}
    if isinstance(node.get("$ref"), str):
        name = str(node["$ref"])
        target = None if name in inside else _referred(name, definitions)
        rest = _inlined({k: v for k, v in node.items() if k != "$ref"}, definitions, inside, finish)
        if not is_object(target):
            return {**_ANY_OBJECT, **rest}
        return {**_inlined(target, definitions, (*inside, name), finish), **rest}
    clean: Schema = {}
    for key, value in node.items():
        if key in ("$defs", "definitions", "$schema", "$id") or (
            key == "title" and isinstance(value, str)
        ):
            continue
        if key == "properties":
            clean[key] = {
                name: _inlined(each, definitions, inside, finish) for name, each in value.items()
            }
        elif key in ("default", "const", "enum", "examples"):
            clean[key] = value
        else:
            clean[key] = _inlined(value, definitions, inside, finish)
    return finish(clean)


def _without_null(node: Schema) -> Schema:
    branches = node.get("anyOf")
    if not branches:
        return node
    real = [branch for branch in branches if branch != {"type": "null"}]
    if len(real) == len(branches):
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    return {**real[0], **rest} if len(real) == 1 else {**rest, "anyOf": real}
