"""A function is the whole tool: everything is read from its signature and docstring."""

import inspect
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

import agentd.toolkit.definition as definition_module
from agentd.config import Config
from agentd.domain.clock import Clock
from agentd.domain.errors import ToolDefinitionError
from agentd.store.connection import Connection
from agentd.toolkit.definition import Alias, Effect, Tool, tool, tool_of

Text = Annotated[str, Field(description="A text.")]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Sum(BaseModel):
    total: int


@tool(group="paint", slash=r"/paint (?P<wall>\w+)", toolsets=("worker", "chat"), timeout_s=5)
async def paint_wall(
    clock: Clock,
    wall: Annotated[str, Field(min_length=2, description="Which wall.")],
    colour: Annotated[Colour, Field(description="Which colour.")] = Colour.RED,
    config: Config | None = None,
) -> Sum:
    """Paint a wall.

    It dries by itself.
    """
    del clock, wall, colour, config
    return Sum(total=1)


def _made() -> Tool:
    made = tool_of(paint_wall)
    assert made is not None
    return made


@pytest.mark.requirement("S0-06", "S0-07", "S0-08", "S2-01", "S2-04", "S1-22")
def test_name_description_and_group() -> None:
    made = _made()
    assert (made.name, made.group) == ("paint_wall", "paint")
    assert made.description == "Paint a wall.\n\nIt dries by itself."
    assert made.effect is Effect.EXTERNAL
    assert not made.terminal


@pytest.mark.requirement("S0-10", "S0-12", "S0-40")
def test_the_input_is_what_is_described_and_nothing_that_is_injected() -> None:
    made = _made()
    assert list(made.input_model.model_fields) == ["wall", "colour"]
    assert {name: need.optional for name, need in made.needs.items()} == {
        "clock": False,
        "config": True,
    }
    assert made.input_model.model_validate({"wall": "west"}).model_dump() == {
        "wall": "west",
        "colour": Colour.RED,
    }


@pytest.mark.requirement("S0-11")
def test_the_output_has_a_shape_too() -> None:
    assert _made().output.json_schema()["properties"]["total"]["type"] == "integer"


@pytest.mark.requirement("S3-01")
def test_a_pattern_for_slash_commands_is_optional() -> None:
    assert _made().slash == r"/paint (?P<wall>\w+)"


@pytest.mark.requirement("S4-01", "S0-04")
def test_the_function_stays_a_plain_function_without_a_base_class() -> None:
    assert inspect.iscoroutinefunction(paint_wall)
    made = _made()
    for name in ("name", "description", "input_model"):
        assert getattr(made, name)


@pytest.mark.requirement("S0-05")
def test_the_type_lives_in_one_small_file() -> None:
    file = Path(inspect.getfile(definition_module))
    assert Tool.__module__ == definition_module.__name__
    assert len(file.read_text().splitlines()) < 300


def test_an_alias_has_its_own_name_defaults_and_description() -> None:
    @tool(
        group="paint",
        aliases=[
            Alias("paint_red", {"colour": "red", "coats": 2}, ("colour",), "Paint it red."),
        ],
    )
    def paint(
        colour: Annotated[Literal["red", "blue"], Field(description="Which.")],
        coats: Annotated[int, Field(description="How many.")] = 1,
    ) -> str:
        """Paint it."""
        return f"{colour} {coats}"

    made = tool_of(paint)
    assert made is not None
    _, alias = made.faces()
    assert (alias.name, alias.alias_of, alias.description) == (
        "paint_red",
        "paint",
        "Paint it red.",
    )
    assert list(alias.input_model.model_fields) == ["coats"]
    assert alias.input_model.model_validate({}).model_dump() == {"coats": 2}
    assert alias.fixed == {"colour": "red"}
    assert alias.function is made.function


def _untyped(x) -> str:  # type: ignore[no-untyped-def]
    """Doc."""
    return x


def _undescribed(x: str) -> str:
    """Doc."""
    return x


def _undocumented(x: Text) -> str:
    return x


def _without_return(x: Text):  # type: ignore[no-untyped-def]
    """Doc."""
    return x


def _fine(x: Text = "") -> str:
    """Doc."""
    return x


@pytest.mark.parametrize(
    ("function", "settings", "says"),
    [
        (_untyped, {}, "'x' has no type"),
        (_undescribed, {}, "write Annotated"),
        (_undocumented, {}, "no docstring"),
        (_without_return, {}, "what it returns"),
        (_fine, {"name": "with space"}, "does not match"),
        (_fine, {"terminal": True}, "effect is transactional"),
        (_fine, {"effect": "reconcilable"}, "belong together"),
        (_fine, {"aliases": [Alias("other", {"y": 1})]}, "['y']"),
    ],
)
def test_a_tool_that_can_not_work_is_refused_where_it_is_written(
    function: object, settings: dict[str, object], says: str
) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(group="x", **settings)(function)  # type: ignore[arg-type]
    assert says in str(caught.value)
    assert "test_definition.py" in str(caught.value)


def test_a_connection_may_be_optional_in_either_notation() -> None:
    @tool(group="x")
    def either(a: Connection | None, b: "Connection | None" = None) -> str:
        """Doc."""
        return f"{a}{b}"

    made = tool_of(either)
    assert made is not None
    assert [need.optional for need in made.needs.values()] == [True, True]
