"""The tools of one installation, by unique names."""

from types import SimpleNamespace
from typing import Annotated

import anyio
import pytest
from pydantic import Field

from agentd.domain.clock import Clock
from agentd.domain.errors import ToolDefinitionError
from agentd.toolkit.adapters.stubs import generate_stubs
from agentd.toolkit.definition import Alias, Tool, tool, tool_of
from agentd.toolkit.inject import CallContext, Injector
from agentd.toolkit.registry import ToolRegistry
from agentd.toolkit.result import ToolResult

Name = Annotated[str, Field(description="A name.")]
happened: list[str] = []


def made(function: object) -> Tool:
    found = tool_of(function)
    assert found is not None
    return found


@tool(group="x", aliases=[Alias("hello")])
def greet(name: Name, times: Annotated[int, Field(description="How often.")] = 1) -> str:
    """Greet somebody."""
    return " ".join(["Hello", name] * times)


@tool(group="x", name="greet", toolsets=("chat",))
def another(name: Name) -> str:
    """Greet differently."""
    return name


@tool(group="x", name="hello")
def same_as_alias() -> str:
    """Hello."""
    return ""


@tool(group="x", aliases=[Alias("twice")], name="twice")
def twice() -> str:
    """Twice."""
    return ""


@tool(group="mail", available=lambda config: bool(config.id and config.secret))
def mail(name: Name) -> str:
    """Mail."""
    return name


async def begin(clock: Clock) -> None:
    assert clock.now()
    happened.append("begin")


def end() -> None:
    happened.append("end")


async def explode() -> None:
    raise OSError("no network")


@tool(group="x", start=begin, stop=end)
def with_life() -> str:
    """Lives."""
    return "alive"


@tool(group="x", start=explode, stop=end, aliases=[Alias("stillborn")])
def broken() -> str:
    """Breaks."""
    return ""


@tool(group="x", stop=explode)
def ends_badly() -> str:
    """Ends badly."""
    return ""


@pytest.mark.requirement("S1-08", "S1-15")
@pytest.mark.parametrize("second", [greet, another, same_as_alias])
def test_a_taken_name_is_refused_and_both_places_are_named(second: object) -> None:
    registry = ToolRegistry(tools=[made(greet)])
    with pytest.raises(ToolDefinitionError) as caught:
        registry.register(made(second))
    assert "test_registry.greet" in str(caught.value)


def test_a_tool_that_has_a_name_twice_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="twice"):
        ToolRegistry(tools=[made(twice)])


@pytest.mark.requirement("S1-15", "S1-03", "S1-12")
def test_registries_know_nothing_of_each_other_and_grow_while_they_are_used() -> None:
    one, two = ToolRegistry(), ToolRegistry(tools=[made(another)])
    one.register(made(greet))
    assert [each.name for each in one.definitions()] == ["greet", "hello"]
    assert [each.name for each in two.definitions()] == ["greet"]


@pytest.mark.requirement("S2-39", "S1-02")
def test_a_toolset_is_a_list_and_nothing_else() -> None:
    registry = ToolRegistry(tools=[made(greet), made(mail)][:1])
    assert [each.name for each in registry.definitions("worker")] == ["greet", "hello"]
    assert not registry.definitions("chat")


@pytest.mark.requirement("S4-03", "S4-02", "S3-04")
@pytest.mark.parametrize(
    ("client_id", "secret", "there"), [("a", "b", True), ("a", "", False), ("", "b", False)]
)
def test_a_tool_is_there_only_where_the_configuration_has_all_that_it_needs(
    client_id: str, secret: str, there: bool
) -> None:
    config = SimpleNamespace(id=client_id, secret=secret)
    registry = ToolRegistry(config, [made(mail)])
    assert [each.name for each in registry.definitions()] == (["mail"] if there else [])


@pytest.mark.requirement("S1-01", "S1-02", "S1-04", "S1-05", "S1-11")
async def test_dispatch_looks_up_validates_and_calls(
    injector: Injector, context: CallContext
) -> None:
    registry = ToolRegistry(tools=[made(greet)])

    async def do(name: str, raw: object) -> ToolResult:
        return await registry.dispatch(name, raw, injector, context)

    assert (await do("greet", {"name": "Ann"})).content == "Hello Ann"
    assert (await do("hello", {"name": "Bob", "times": 2})).content == "Hello Bob Hello Bob"
    assert (await do("greet", {})).error_type == "invalid_arguments"
    unknown = await do("gret", {"anything": 1})
    assert unknown.error_type == "unknown_tool"
    assert "greet" in (unknown.next_action_hint or "")
    assert "greet, hello" in ((await do("zzz", {})).next_action_hint or "")


@pytest.mark.requirement("S1-07", "S0-23", "S0-01")
def test_definitions_for_the_model_come_in_the_same_order_always() -> None:
    tools = [made(greet), made(with_life)]
    forward, backward = ToolRegistry(tools=tools), ToolRegistry(tools=tools[::-1])
    assert forward.to_model_tools() == backward.to_model_tools()
    assert [each["name"] for each in forward.to_model_tools()] == ["greet", "hello", "with_life"]


@pytest.mark.requirement("S3-06", "S3-05")
async def test_tools_start_with_the_daemon_and_stop_with_it(
    injector: Injector, context: CallContext
) -> None:
    happened.clear()
    registry = ToolRegistry(tools=[made(with_life), made(greet)])
    await registry.start(injector, context)
    assert happened == ["begin"]
    await registry.stop(injector, context)
    assert happened == ["begin", "end"]


@pytest.mark.requirement("S3-06")
async def test_a_tool_that_can_not_start_is_left_out_and_stops_nobody(
    injector: Injector, context: CallContext
) -> None:
    happened.clear()
    registry = ToolRegistry(tools=[made(broken), made(with_life), made(ends_badly)])
    await registry.start(injector, context)
    assert [each.name for each in registry.definitions()] == ["ends_badly", "with_life"]
    await registry.stop(injector, context)
    assert happened == ["begin", "end"]


@pytest.mark.requirement("S1-01", "S1-02")
async def test_stubs_are_functions_that_hand_their_arguments_over() -> None:
    source = generate_stubs([made(greet), *made(greet).faces()[1:], made(with_life)])
    assert source == ToolRegistry(tools=[made(greet), made(with_life)]).generate_stubs()
    calls: list[tuple[str, dict[str, object]]] = []

    async def hand_over(name: str, given: dict[str, object]) -> str:
        await anyio.lowlevel.checkpoint()
        calls.append((name, given))
        return "done"

    space: dict[str, object] = {}
    exec(compile(source, "stubs", "exec"), space)
    space["__call_tool__"] = hand_over
    assert await space["greet"]("Ann", times=2) == "done"  # type: ignore[operator]
    await space["with_life"]()  # type: ignore[operator]
    assert calls == [("greet", {"name": "Ann", "times": 2}), ("with_life", {})]


def test_a_name_that_python_does_not_allow_gets_another_in_stubs() -> None:
    @tool(group="x", name="a-b")
    def odd() -> str:
        """Odd."""
        return ""

    found = tool_of(odd)
    assert found is not None
    assert "async def a_b(" in generate_stubs([found])
    compile(generate_stubs([found]), "stubs", "exec")
