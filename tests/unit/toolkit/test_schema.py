"""One way to a JSON Schema that every provider takes: a flat object."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from agentd.toolkit.adapters.anthropic import to_anthropic
from agentd.toolkit.adapters.openai import to_openai
from agentd.toolkit.definition import Tool, tool, tool_of
from agentd.toolkit.discover import discover
from agentd.toolkit.schema import input_schema, normalise


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int = Field(description="Across.")
    colour: Colour = Colour.RED


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


@tool(group="x")
def draw(
    points: Annotated[list[Point], Field(description="Where.")],
    tree: Annotated[Tree | None, Field(description="A tree.")] = None,
    note: Annotated[str | None, Field(description="A note.")] = None,
    size: Annotated[int | str, Field(description="How big.")] = 1,
) -> str:
    """Draw."""
    return f"{points}{tree}{note}{size}"


def _draw() -> Tool:
    made = tool_of(draw)
    assert made is not None
    return made


def _all_nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for each in node.values():
            yield from _all_nodes(each)
    elif isinstance(node, list):
        for each in node:
            yield from _all_nodes(each)


@pytest.mark.requirement("S0-41", "S2-40", "C24")
def test_references_are_inlined_titles_and_nulls_are_gone() -> None:
    schema = input_schema(_draw())
    assert schema["type"] == "object"
    assert schema["required"] == ["points"]
    assert schema["properties"]["points"]["items"]["properties"]["colour"]["enum"] == [
        "red",
        "blue",
    ]
    assert schema["properties"]["note"] == {"type": "string", "description": "A note."}
    for node in _all_nodes(schema):
        assert "$ref" not in node
        assert "$defs" not in node
        assert not isinstance(node.get("title"), str)
        assert node.get("type") != "null"


def test_a_model_that_holds_itself_ends_as_any_object() -> None:
    tree = input_schema(_draw())["properties"]["tree"]
    inner = tree["properties"]["children"]["items"]
    assert inner["type"] == "object"


@pytest.mark.requirement("S2-40", "C24")
@pytest.mark.parametrize("union", ["anyOf", "oneOf", "allOf"])
def test_a_union_at_the_root_becomes_a_flat_object(union: str) -> None:
    branches = [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "integer"}}},
    ]
    flat = normalise({union: branches})
    assert union not in flat
    assert flat["type"] == "object"
    assert set(flat["properties"]) == {"a", "b"}


def test_a_schema_without_anything_is_an_object() -> None:
    assert normalise({}) == {"type": "object", "properties": {}, "required": []}


def test_a_parameter_may_be_named_title_or_default() -> None:
    schema = normalise(
        {"properties": {"title": {"type": "string"}, "default": {"type": "object"}}, "title": "X"}
    )
    assert set(schema["properties"]) == {"title", "default"}


@pytest.mark.requirement("S0-02", "S0-23", "S1-07")
def test_for_anthropic_name_description_and_schema() -> None:
    (exported,) = to_anthropic([_draw()])
    assert set(exported) == {"name", "description", "input_schema"}
    assert exported["input_schema"]["required"] == ["points"]


@pytest.mark.requirement("S2-40")
def test_for_openai_an_object_at_the_root() -> None:
    (exported,) = to_openai([_draw()])
    assert exported["type"] == "function"
    assert exported["function"]["parameters"]["type"] == "object"


@pytest.mark.requirement("S2-01", "S2-39")
def test_every_tool_of_the_package_exports_what_every_provider_takes() -> None:
    tools = [face for made in discover().tools for face in made.faces()]
    assert len(tools) >= 13
    for exported in to_anthropic(tools):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", exported["name"])
        schema = exported["input_schema"]
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf"} & set(schema)
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(each.get("description") for each in schema["properties"].values())
