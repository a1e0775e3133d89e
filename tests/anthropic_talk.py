"""A Claude model through the real SDK and the server it talks to, for the length of a test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from agentd.domain.errors import ModelError
from agentd.models.anthropic import AnthropicModel
from agentd.models.model import ModelReply, ModelRequest
from tests.messages_api import MessagesApi
from tests.messages_turns import Answer, Body, Turn, script

MODEL = "claude-haiku-4-5"
TOOL = {"name": "ls", "description": "Lists.", "input_schema": {"type": "object"}}
ASKED: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "What is here?"}]}


def asking(*later: dict[str, Any]) -> ModelRequest:
    return ModelRequest(MODEL, "Be brief.", [TOOL], [ASKED, *later], 100, 0)


@dataclass
class Talk:
    api: MessagesApi
    model: AnthropicModel

    async def ask(self, *later: dict[str, Any]) -> ModelReply:
        return await self.model.reply(asking(*later))

    async def fail(self) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask()
        return caught.value


@asynccontextmanager
async def talk(*answers: Answer, stall_s: float = 5) -> AsyncGenerator[Talk]:
    """With turns, played in order; or with one failure, which every request gets."""
    first = answers[0]
    turns = [each for each in answers if isinstance(each, Turn)]

    def same(body: Body) -> Answer:
        return first

    async with MessagesApi(script(*turns) if isinstance(first, Turn) else same) as api:
        model = AnthropicModel(MODEL, api_key="key-1", base_url=api.url, stall_s=stall_s)
        try:
            yield Talk(api, model)
        finally:
            await model.aclose()


def answer_to(reply: ModelReply, *texts: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The reply sent back unchanged, and the results of its calls."""
    calls = [block for block in reply.content if block["type"] == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": made["id"], "content": text}
        for made, text in zip(calls, texts, strict=True)
    ]
    return (
        {"role": "assistant", "content": list(reply.content)},
        {"role": "user", "content": results or [{"type": "text", "text": "Go on."}]},
    )
