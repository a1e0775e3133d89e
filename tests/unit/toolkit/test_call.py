"""Validating, calling, catching: whatever happens, the model gets a result that it can read."""

import time
from enum import StrEnum
from typing import Annotated, Any

import anyio
import pytest
from pydantic import Field

from agentd.domain.errors import NotFound, RunLost, ToolError
from agentd.domain.ids import RunId, TaskId
from agentd.toolkit.call import call
from agentd.toolkit.definition import tool, tool_of
from agentd.toolkit.inject import CallContext, Injector
from agentd.toolkit.result import ToolResult

called: list[Any] = []


class Size(StrEnum):
    SMALL = "small"
    BIG = "big"


@tool(group="x")
async def order(
    count: Annotated[int, Field(ge=1, description="How many.")],
    size: Annotated[Size, Field(description="Which size.")] = Size.SMALL,
    names: Annotated[list[str] | None, Field(description="For whom.")] = None,
) -> str:
    """Order."""
    called.append((count, size, names))
    return f"{count} {size}"


@tool(group="x", timeout_s=0.05)
async def fail(how: Annotated[str, Field(description="In which way.")]) -> str:
    """Fail."""
    match how:
        case "tool error":
            raise ToolError("path_conflict", "it is there", next_action_hint="read it first")
        case "not found":
            raise NotFound("task", "abc", hint="list them")
        case "exception":
            raise ZeroDivisionError("surprise")
        case "run lost":
            raise RunLost(TaskId("t"), RunId("t.1"))
        case _:
            await anyio.sleep(5)
    return ""


@tool(group="x", timeout_s=0.05)
def hang() -> str:
    """Hang in a thread."""
    time.sleep(0.5)
    return ""


async def do(function: object, raw: Any, injector: Injector, context: CallContext) -> ToolResult:
    made = tool_of(function)
    assert made is not None
    return await call(made, raw, injector, context)


@pytest.mark.requirement("S0-12", "S0-40", "S2-02")
async def test_the_function_gets_typed_values(injector: Injector, context: CallContext) -> None:
    called.clear()
    for raw in ({"count": "3", "size": "big"}, '{"count": 3, "size": "big"}'):
        assert (await do(order, raw, injector, context)).content == "3 big"
    assert called == [(3, Size.BIG, None)] * 2


@pytest.mark.requirement("S1-04", "S0-39")
@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({}, "count is missing"),
        ({"count": "many"}, "count: Input should be a valid integer"),
        ({"count": 0}, "greater than or equal to 1"),
        ({"count": 1, "size": "huge"}, "'small' or 'big'"),
        ({"count": 1, "colour": "red"}, "colour is no parameter (there are: count, size, names)"),
        ({"count": 1, "names": "Ann"}, "names: Input should be a valid list"),
        ("{broken", "no valid JSON"),
        ("[1]", "no object but list"),
        (None, "no object but NoneType"),
    ],
)
async def test_a_wrong_call_names_what_is_wrong_and_calls_nothing(
    raw: Any, says: str, injector: Injector, context: CallContext
) -> None:
    called.clear()
    result = await do(order, raw, injector, context)
    assert result.error_type == "invalid_arguments"
    assert says in (result.error or "")
    assert "count, size?, names?" in (result.next_action_hint or "")
    assert not called


@pytest.mark.requirement("S1-04")
async def test_what_is_missing_comes_before_what_is_wrong(
    injector: Injector, context: CallContext
) -> None:
    result = await do(order, {"size": "huge", "colour": 1}, injector, context)
    error = result.error or ""
    assert error.index("count is missing") < error.index("colour is no") < error.index("size:")


@pytest.mark.requirement("S1-05")
@pytest.mark.parametrize(
    ("how", "kind", "says"),
    [
        ("tool error", "path_conflict", "it is there"),
        ("not found", "not_found", "abc"),
        ("exception", "internal_error", "ZeroDivisionError: surprise"),
        ("sleep", "timeout", "0.05 s"),
    ],
)
async def test_it_never_raises(
    how: str, kind: str, says: str, injector: Injector, context: CallContext
) -> None:
    result = await do(fail, {"how": how}, injector, context)
    assert result.error_type == kind
    assert says in (result.error or "")


async def test_a_tool_that_hangs_in_a_thread_is_given_up(
    injector: Injector, context: CallContext
) -> None:
    assert (await do(hang, {}, injector, context)).error_type == "timeout"


async def test_the_loss_of_the_run_passes_through(injector: Injector, context: CallContext) -> None:
    with pytest.raises(RunLost):
        await do(fail, {"how": "run lost"}, injector, context)


async def test_cancellation_passes_through(injector: Injector, context: CallContext) -> None:
    reached: list[object] = []
    with anyio.move_on_after(0.01) as scope:
        made = tool_of(order)
        assert made is not None
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 5)
            reached.append(await call(made, {"count": 1}, injector, context))
            await anyio.sleep(5)
    assert scope.cancelled_caught
    assert len(reached) == 1


async def test_of_a_wrong_value_only_the_start_is_said(
    injector: Injector, context: CallContext
) -> None:
    result = await call(tool_of(order), {"count": ["x" * 5000]}, injector, context)
    assert result.error is not None
    assert "xxx… (5004 characters)" in result.error
    assert len(result.error) < 400
