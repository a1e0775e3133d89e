"""A model of Chat Completions through the real SDK and its server, for the length of a test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from agentd.domain.errors import ModelError
from agentd.models.model import ModelReply, ModelRequest
from agentd.models.openai import OpenAiModel
from tests.anthropic_talk import ASKED, TOOL
from tests.chat_api import ChatApi, Pieces, chat_script
from tests.messages_turns import Failure, Turn

MODEL = "test-model"


def asking(*later: dict[str, Any]) -> ModelRequest:
    return ModelRequest(MODEL, "Be brief.", [TOOL], [ASKED, *later], 100, 0)


@dataclass
class Talk:
    api: ChatApi
    model: OpenAiModel

    async def ask(self, *later: dict[str, Any]) -> ModelReply:
        return await self.model.reply(asking(*later))

    async def fail(self) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask()
        return caught.value


@asynccontextmanager
async def talk(*answers: Turn | Pieces | Failure, stall_s: float = 5) -> AsyncGenerator[Talk]:
    """With turns, played in order; or with one failure, which every request gets."""
    turns = [each for each in answers if not isinstance(each, Failure)]
    behave = chat_script(*turns) if turns else lambda _: answers[0]
    async with ChatApi(behave) as api:  # type: ignore[arg-type]
        model = OpenAiModel(MODEL, api_key="key-1", base_url=api.base_url, stall_s=stall_s)
        try:
            yield Talk(api, model)
        finally:
            await model.aclose()
