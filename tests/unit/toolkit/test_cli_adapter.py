"""The same definition as a command (agentd/toolkit/adapters/cli.py)."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner
from pydantic import BaseModel, Field

from agentd.toolkit.adapters.cli import command, long_name, short_name
from agentd.toolkit.call import validate
from agentd.toolkit.definition import Tool, tool, tool_of
from agentd.toolkit.result import ToolResult


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


@tool(group="context")
def context_paint(
    ref: Annotated[str, Field(description="What to paint.")],
    count: Annotated[int, Field(ge=1, description="How many coats.")],
    colour: Annotated[Colour, Field(description="Which colour.")] = Colour.RED,
    tags: Annotated[list[Literal["a", "b"]] | None, Field(description="Tags.")] = None,
    meta: Annotated[dict[str, Any] | None, Field(description="Facts.")] = None,
    where: Annotated[Point | None, Field(description="The place.")] = None,
    dry_run: Annotated[bool, Field(description="Only look.")] = False,
    max_depth: Annotated[int | None, Field(description="How deep.")] = None,
) -> str:
    """Paint something.

    It dries by itself.
    """
    return f"{ref}{count}{colour}{tags}{meta}{where}{dry_run}{max_depth}"


def made() -> Tool:
    found = tool_of(context_paint)
    assert found is not None
    return found


def given(*arguments: str, stdin: str = "") -> dict[str, Any]:
    """What the command hands over."""
    seen: list[dict[str, Any]] = []

    def execute(_tool: Tool, raw: dict[str, Any], _as_json: bool) -> int:
        seen.append(raw)
        return 0

    done = CliRunner().invoke(command(made(), "paint", execute), arguments, input=stdin)
    assert done.exit_code == 0, done.output
    return seen[0]


@pytest.mark.requirement("S0-28", "S0-29", "S0-31")
def test_what_is_required_is_positional_and_the_rest_are_options() -> None:
    assert given("disk:/a", "2", "--max-depth", "3") == {
        "ref": "disk:/a",
        "count": 2,
        "max_depth": 3,
    }


def test_lists_pairs_objects_and_flags() -> None:
    raw = given(
        *("x", "1", "--tags", "a", "--tags", "b", "--meta", "k=1", "--meta", "name=Ann"),
        *("--where", '{"x": 4}', "--dry-run", "--colour", "blue"),
    )
    assert raw["tags"] == ["a", "b"]
    assert raw["meta"] == {"k": 1, "name": "Ann"}
    assert raw["where"] == {"x": 4}
    assert raw["dry_run"] is True
    assert given("x", "1", "--no-dry-run")["dry_run"] is False
    assert given("x", "1", "--meta", '{"a": [1]}')["meta"] == {"a": [1]}
    assert not isinstance(validate(made(), raw), ToolResult)


def test_a_text_may_come_from_standard_input() -> None:
    assert given("-", "1", stdin="long text\n")["ref"] == "long text\n"


@pytest.mark.requirement("S0-31", "S0-39")
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("x",),
        ("x", "many"),
        ("x", "0"),
        ("x", "1", "--colour", "green"),
        ("x", "1", "--tags", "c"),
    ],
)
def test_what_is_wrong_is_said_by_the_validation_that_the_model_meets(
    arguments: tuple[str, ...],
) -> None:
    checked = validate(made(), given(*arguments))
    assert isinstance(checked, ToolResult)
    assert checked.error_type == "invalid_arguments"


@pytest.mark.requirement("S0-07", "S0-10")
def test_help_shows_the_description_and_every_parameter() -> None:
    shown = CliRunner().invoke(command(made(), "paint", lambda *_: 0), ["--help"]).output
    for text in ("Paint something.", "What to paint.", "How many coats.", "REF COUNT"):
        assert text in shown
    for text in ("--colour [red|blue]", "[default: red]", "--max-depth", "--dry-run", "--json"):
        assert text in shown


def test_choices_are_completed() -> None:
    made_command = command(made(), "paint", lambda *_: 0)
    (option,) = [each for each in made_command.params if "--colour" in each.opts]
    context = click.Context(made_command)
    items = option.type.shell_complete(context, option, "b")
    assert [item.value for item in items] == ["blue"]


def test_the_exit_code_is_what_the_call_gives() -> None:
    done = CliRunner().invoke(
        command(made(), "paint", lambda *_: 3), ["x", "1"], standalone_mode=False
    )
    assert done.return_value == 3


@pytest.mark.requirement("S0-06", "S0-30")
@pytest.mark.parametrize(
    ("name", "group", "short"),
    [
        ("search_semantic", "search", "semantic"),
        ("context_read", "context", "read"),
        ("create_task", "task", "create"),
        ("list_tasks", "task", "list"),
        ("read", "fs", "read"),
        ("read_file", "fs", "read-file"),
        ("task", "task", "task"),
    ],
)
def test_a_command_drops_the_word_of_its_group(name: str, group: str, short: str) -> None:
    @tool(group=group, name=name)
    def any_tool() -> str:
        """Any."""
        return ""

    found = tool_of(any_tool)
    assert found is not None
    assert short_name(found) == short
    assert long_name(found) == name.replace("_", "-")
