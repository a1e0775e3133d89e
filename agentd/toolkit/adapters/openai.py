"""Tools as OpenAI-compatible servers take them."""

from collections.abc import Iterable
from typing import Any

from agentd.toolkit.definition import Tool
from agentd.toolkit.schema import input_schema


def to_openai(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": input_schema(tool),
            },
        }
        for tool in tools
    ]
