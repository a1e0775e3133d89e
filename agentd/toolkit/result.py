"""What a call gives, the same for the model, the command line and tests, and how it is worded."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
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
    `notice`: stands last, behind all content. `inline_chars`: up to this length the content is
    shown whole; None: as configured. `outside_of`: the tool through which strangers say this.
    """

    ok: bool
    content: str | Blocks = ""
    data: Any = None
    error: str | None = None
    error_type: str | None = None
    next_action_hint: str | None = None
    next_call: Callable[[str], str] | None = None
    notice: str | None = None
    inline_chars: int | None = None
    outside_of: str | None = None

    def __post_init__(self) -> None:
        wrong = self.error is not None, self.error_type is not None
        if wrong != (not self.ok, not self.ok):
            raise ValueError("a result has an error if and only if it is not ok")

    @property
    def is_error(self) -> bool:
        return not self.ok

    @property
    def text(self) -> str | None:
        """What it says: the error's message or the content, None when that is no text."""
        if self.error is not None:
            return self.error
        return self.content if isinstance(self.content, str) else None

    def showing(self, text: str, notice: str | None = None) -> "ToolResult":
        """The same with another text, and with `notice` behind it if there is one."""
        notice = notice or self.notice
        if self.error is not None:
            return replace(self, error=text, notice=notice)
        return replace(self, content=text, notice=notice)

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
    `next_call`, see ToolResult; `notice`, `inline_chars` and `outside_of` are taken from it, too.
    One that is more than text has `blocks`, which gives the content.
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
        return replace(
            ToolResult.success(text, data, getattr(value, "next_call", None)),
            notice=getattr(value, "notice", None),
            inline_chars=getattr(value, "inline_chars", None),
            outside_of=getattr(value, "outside_of", None),
        )
    return ToolResult.success(json.dumps(data, ensure_ascii=False, indent=1), data)


def model_content(result: ToolResult, *, limit_chars: int | None = None) -> str | Blocks:
    """What the model is told. `limit_chars`: None when the text was cut to size already."""
    if result.is_error:
        hint = f"\n{result.next_action_hint}" if result.next_action_hint else ""
        said = truncate(f"{result.error_type}: {result.error}{hint}", limit_chars)
    elif isinstance(result.content, str):
        said = truncate(result.content, limit_chars, result.next_call)
    elif result.notice:
        return [*result.content, {"type": "text", "text": result.notice}]
    else:
        return result.content
    return f"{said}\n{result.notice}" if result.notice else said


def truncate(
    text: str, limit_chars: int | None, next_call: Callable[[str], str] | None = None
) -> str:
    """The head of `text` with a notice as its end, when it is longer than `limit_chars`."""
    shown, notice = (text, None) if limit_chars is None else head(text, limit_chars, next_call)
    return f"{shown}\n{notice}" if notice else shown


def head(
    text: str, limit_chars: int, next_call: Callable[[str], str] | None = None
) -> tuple[str, str | None]:
    """The start of `text` that is shown, and a notice when that is not all."""
    if len(text) <= limit_chars:
        return text, None
    shown = text[:limit_chars]
    if next_call is not None and "\n" in shown:
        shown = shown[: shown.rindex("\n") + 1]
        how = f"Go on with {next_call(shown)}"
    else:
        how = "Ask for less at a time: a page (offset, limit), a filter, a narrower path."
    missing = len(text) - len(shown)
    return shown, f"[cut: {missing} of {len(text)} characters are missing here. {how}]"
