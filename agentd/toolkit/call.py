"""Validating, calling, catching. The one place where an exception of a tool becomes a result.

Order: required, type, value, handler. Cancellation and the loss of the run pass through.
"""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import structlog
from pydantic import BaseModel, ValidationError

from agentd.domain.errors import AgentdError, RunLost, ToolError
from agentd.domain.jsons import is_object
from agentd.toolkit.definition import Tool
from agentd.toolkit.given import Given
from agentd.toolkit.inject import CallContext, Injector
from agentd.toolkit.result import ToolResult, render
from agentd.toolkit.schema import input_schema

_log = structlog.get_logger()
_GIVEN_CHARS = 200


class RolledBack(Exception):
    """Raised around a transactional call that gave an error, so that nothing of it stays."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result
        super().__init__(result.error)


async def call(tool: Tool, raw: Any, injector: Injector, context: CallContext) -> ToolResult:
    """Validate `raw` (an object, or JSON text of one) and call. Never raises."""
    checked = validate(tool, raw)
    if isinstance(checked, ToolResult):
        return checked
    return await invoke(tool, checked, injector, context)


def validate(tool: Tool, raw: Any) -> BaseModel | ToolResult:
    """The typed input, or a result that names everything that is wrong with it."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError as error:
            return _refusal(tool, [f"the arguments are no valid JSON: {error}"])
    if not is_object(raw):
        return _refusal(tool, [f"the arguments are no object but {type(raw).__name__}"])
    if tool.given_input is not None:
        wrong = tool.given_input.problems(raw)
        return _refusal(tool, wrong) if wrong else Given(arguments=raw)
    try:
        return tool.input_model.model_validate(raw)
    except ValidationError as error:
        return _refusal(tool, _problems(tool, error))


async def invoke(
    tool: Tool, arguments: BaseModel, injector: Injector, context: CallContext
) -> ToolResult:
    """Call with arguments that `validate` gave. Never raises; an error is a result."""
    value = await _value_or_failure(tool, tool.function, arguments, injector, context)
    return _rendered(tool, value)


async def reconcile(
    tool: Tool, arguments: BaseModel, injector: Injector, context: CallContext
) -> ToolResult | None:
    """Ask the world whether an interrupted call happened. None: it did not, run it again."""
    assert tool.reconcile is not None
    value = await _value_or_failure(tool, tool.reconcile, arguments, injector, context)
    return None if value is None else _rendered(tool, value)


def _rendered(tool: Tool, value: Any) -> ToolResult:
    result = render(tool, value)
    return replace(result, outside_of=tool.name) if tool.outside else result


async def _value_or_failure(
    tool: Tool,
    function: Callable[..., Any],
    arguments: BaseModel,
    injector: Injector,
    context: CallContext,
) -> Any:
    """What the function returns, or the ToolResult of what it raised."""
    try:
        with anyio.fail_after(tool.timeout_s):
            return await _run(tool, function, arguments, injector, context)
    except RunLost:
        raise
    except ToolError as error:
        return ToolResult.failure(
            error.error_type, error.message, next_action_hint=error.next_action_hint
        )
    except AgentdError as error:
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
        return ToolResult.failure(kind, error.message, next_action_hint=error.hint)
    except TimeoutError:
        return ToolResult.failure("timeout", f"{tool.name} took longer than {tool.timeout_s} s")
    except Exception as error:  # noqa: BLE001 - the one place that catches what a tool raises
        _log.exception("a tool raised", tool=tool.name)
        return ToolResult.failure("internal_error", f"{type(error).__name__}: {error}")


async def _run(
    tool: Tool,
    function: Callable[..., Any],
    arguments: BaseModel,
    injector: Injector,
    context: CallContext,
) -> Any:
    given = {name: getattr(arguments, name) for name in type(arguments).model_fields}
    async with injector.open(tool.needs, context) as capabilities:
        bound = partial(function, **{**tool.fixed, **given}, **capabilities)
        if inspect.iscoroutinefunction(function):
            return await bound()
        # A thread can not be stopped; a cancelled call leaves it behind to end by itself.
        return await anyio.to_thread.run_sync(bound, abandon_on_cancel=True)


_ORDER = {"missing": 0, "extra_forbidden": 1}


def _problems(tool: Tool, error: ValidationError) -> list[str]:
    found: list[tuple[int, str]] = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        match problem["type"]:
            case "missing":
                text = f"{name} is missing"
            case "extra_forbidden":
                known = ", ".join(tool.input_model.model_fields) or "none"
                text = f"{name} is no parameter (there are: {known})"
            case _:
                text = f"{name}: {problem['msg']}, got {_start(problem['input'])}"
        found.append((_ORDER.get(problem["type"], 2), text))
    return [text for _, text in sorted(found)]


def _start(given: Any) -> str:
    """Enough of what was given to know it again: it may be a whole file."""
    text = json.dumps(given, default=str)
    return text if len(text) <= _GIVEN_CHARS else f"{text[:_GIVEN_CHARS]}… ({len(text)} characters)"


def _refusal(tool: Tool, problems: list[str]) -> ToolResult:
    schema = input_schema(tool)
    names = ", ".join(
        name if name in schema["required"] else f"{name}?" for name in schema["properties"]
    )
    return ToolResult.failure(
        "invalid_arguments",
        f"{tool.name}: " + "; ".join(problems),
        next_action_hint=f"Parameters (? = optional): {names}. Nothing was done.",
    )
