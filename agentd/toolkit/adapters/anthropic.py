"""Tools as the Messages API takes them."""

from collections.abc import Iterable
from typing import Any

from agentd.toolkit.definition import Tool
from agentd.toolkit.schema import input_schema


def to_anthropic(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": input_schema(tool),
        }
        for tool in tools
    ]
