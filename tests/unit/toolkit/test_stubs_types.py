"""The stubs that programs are written against type-check, however awkward a tool is."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agentd.sandbox.code.typescript import find_deno
from agentd.toolkit.adapters.code_names import python_tools, typescript_tools
from agentd.toolkit.adapters.stubs import generate_stubs
from agentd.toolkit.adapters.stubs_typescript import generate_typescript_stubs
from agentd.toolkit.definition import Tool, tool, tool_of
from agentd.toolkit.discover import discover
from agentd.toolkit.result import ToolResult

What = Annotated[str, Field(description="What.")]


class Inner(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    with_dash: int = Field(alias="with-dash", default=1)
    tags: list[Literal["a", 'b"c', "d\ne"]] = []


@dataclass
class Tree:
    name: str
    children: "list[Tree]"


@dataclass
class Out:
    """`class` and `from` are words of the languages."""

    names: dict[str, list[int | None]]
    inner: Inner
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


@tool(group="x", name="server__get-thing")
def get_thing(
    class_: What = "",
    inner: Annotated[Inner | None, Field(description="I.")] = None,
    given__: What = "",
) -> Out:
    r"""Get */ a "thing" ''' with \ signs."""
    raise NotImplementedError


@tool(group="x", name="server__get_thing")
def get_thing_too(kind: Annotated[Literal[1, "two", True], Field(description="K.")]) -> Tree:
    """Get."""
    raise NotImplementedError


@tool(group="x", name="print")
def print_(one: Annotated[int | str | list[Inner], Field(description="O.")]) -> list[Tree]:
    """Print."""
    raise NotImplementedError


@tool(group="x", name="1st-class")
def first(*, lambda_: Annotated[str, Field(description="L.", alias="lambda")]) -> ToolResult:
    """First."""
    raise NotImplementedError


@tool(group="x", name="delete")
def delete(things: Annotated[dict[str, Inner], Field(description="T.")]) -> None:
    """Delete."""


def awkward() -> list[Tool]:
    found = [tool_of(each) for each in (get_thing, get_thing_too, print_, first, delete)]
    return [each for each in found if each is not None]


def test_names_in_code_are_allowed_and_unique() -> None:
    assert [each.name for each in python_tools(awkward())] == [
        "server__get_thing_2",
        "server__get_thing",
        "print_",
        "_1st_class",
        "delete",
    ]
    assert [each.name for each in typescript_tools(awkward())][2:] == [
        "print",
        "_1st_class",
        "delete_",
    ]


@pytest.mark.timeout(60)
def test_python_stubs_type_check(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(generate_stubs(discover().tools))
    (tmp_path / "awkward.py").write_text(
        generate_stubs(awkward())
        + "\n\nasync def use() -> int | None:\n"
        + '    await delete({"a": {"with-dash": 1, "tags": ["a"]}})\n'
        + '    return (await server__get_thing_2(class_="x"))["inner"].get("with-dash")\n'
    )
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    checked = subprocess.run(
        [str(Path(sys.executable).with_name("basedpyright")), "--project", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.timeout(60)
@pytest.mark.requirement("S1-06")
@pytest.mark.skipif(find_deno() is None, reason="deno is not installed (extra: deno)")
def test_typescript_stubs_type_check(tmp_path: Path) -> None:
    (tmp_path / "own.ts").write_text(generate_typescript_stubs(discover().tools))
    (tmp_path / "awkward.ts").write_text(
        generate_typescript_stubs(awkward())
        + 'const n: number | undefined = (await server__get_thing_2()).inner["with-dash"];\n'
        + "console.log(n);\n"
    )
    checked = subprocess.run(
        [str(find_deno()), "check", "own.ts", "awkward.ts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"NO_COLOR": "1", "DENO_DIR": str(tmp_path / "cache")},
    )
    assert checked.returncode == 0, checked.stderr


def test_tools_that_programs_may_not_call_have_no_stub() -> None:
    source = generate_stubs(discover().tools)
    assert "async def read(" in source
    assert "complete_task" not in source
    assert "execute_code" not in source
