"""What a model provider is. Messages and blocks have the shapes of the Messages API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentd.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """`turn`: how many replies this task has had, from 0. `model`: the provider's name for it."""

    model: str
    system: str
    tools: Sequence[Mapping[str, Any]]
    messages: Sequence[Mapping[str, Any]]
    max_tokens: int
    turn: int


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One complete reply. `content`: the blocks as they came, fit to be sent back unchanged.

    `invalid_inputs`: arguments that were no JSON object, as raw text by the id of their call; the
    `input` of such a call is empty. `is_estimated`: the provider did not count, so we did, roughly.
    """

    content: Sequence[Mapping[str, Any]]
    stop_reason: str
    usage: Usage
    model: str
    request_id: str | None = None
    invalid_inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    is_estimated: bool = False


class Model(Protocol):
    """One model of one provider. `name`: "provider:model"."""

    @property
    def name(self) -> str: ...

    async def reply(self, request: ModelRequest) -> ModelReply:
        """Raises ModelError, and nothing else but cancellation."""
        ...

    async def aclose(self) -> None: ...
