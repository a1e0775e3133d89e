"""Tools as OpenAI-compatible servers take them."""

from collections.abc import Iterable
from typing import Any

from agentd.models.openai_messages import function_tool
from agentd.toolkit.adapters.anthropic import to_anthropic
from agentd.toolkit.definition import Tool


def to_openai(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [function_tool(tool) for tool in to_anthropic(tools)]
