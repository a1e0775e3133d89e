"""What a call gives, the same for the model, the command line and tests; and the one truncation."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from pydantic import ValidationError

from agentd.domain.jsons import is_array, is_object
from agentd.toolkit.definition import Tool

Blocks = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Either `ok`, with content, or an error, with its type. `data`: the typed output as JSON.

    `content`: text, or content blocks (an image). `next_action_hint`: what to try next.
    `next_call`: given the start of `content` that is shown, the literal call that goes on after it.
    """

    ok: bool
    content: str | Blocks = ""
    data: Any = None
    error: str | None = None
    error_type: str | None = None
    next_action_hint: str | None = None
    next_call: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        wrong = self.error is not None, self.error_type is not None
        if wrong != (not self.ok, not self.ok):
            raise ValueError("a result has an error if and only if it is not ok")

    @property
    def is_error(self) -> bool:
        return not self.ok

    @classmethod
    def success(
        cls,
        content: str | Blocks,
        data: Any = None,
        next_call: Callable[[str], str] | None = None,
    ) -> Self:
        return cls(ok=True, content=content, data=data, next_call=next_call)

    @classmethod
    def failure(cls, error_type: str, error: str, *, next_action_hint: str | None = None) -> Self:
        return cls(ok=False, error=error, error_type=error_type, next_action_hint=next_action_hint)


def render(tool: Tool, value: Any) -> ToolResult:
    """What a tool returned, checked against what it says it returns.

    A string is the text. Else the `content` or `message` of the value is the text, and without one
    its JSON; the value as JSON is the data. A value whose text can be had in parts has a method
    `next_call`, see ToolResult; one that is more than text has `blocks`, which gives the content.
    """
    if isinstance(value, ToolResult):
        return value
    try:
        data = tool.output.dump_python(tool.output.validate_python(value), mode="json")
    except ValidationError as error:
        return ToolResult.failure(
            "invalid_output", f"{tool.name} returned something else than it says: {error}"
        )
    if isinstance(data, str):
        return ToolResult.success(data)
    blocks = getattr(value, "blocks", None)
    if blocks is not None and (shown := blocks()):
        return ToolResult.success(shown, data)
    text = data.get("content", data.get("message")) if is_object(data) else None
    if isinstance(text, str) or is_array(text):
        return ToolResult.success(text, data, getattr(value, "next_call", None))
    return ToolResult.success(json.dumps(data, ensure_ascii=False, indent=1), data)


def model_content(result: ToolResult, *, limit_chars: int) -> str | Blocks:
    """What the model is told."""
    if result.is_error:
        hint = f"\n{result.next_action_hint}" if result.next_action_hint else ""
        return truncate(f"{result.error_type}: {result.error}{hint}", limit_chars)
    if isinstance(result.content, str):
        return truncate(result.content, limit_chars, result.next_call)
    return result.content


def truncate(text: str, limit_chars: int, next_call: Callable[[str], str] | None = None) -> str:
    """The head of `text` with a notice as its end, when it is longer than `limit_chars`."""
    if len(text) <= limit_chars:
        return text
    shown = text[:limit_chars]
    if next_call is not None and "\n" in shown:
        shown = shown[: shown.rindex("\n") + 1]
        how = f"Go on with {next_call(shown)}"
    else:
        how = "Ask for less at a time: a page (offset, limit), a filter, a narrower path."
    missing = len(text) - len(shown)
    return f"{shown}\n[cut: {missing} of {len(text)} characters are missing here. {how}]"
