"""Claude through the official SDK. Streams, puts the blocks together itself, and retries nothing.

The SDK's own accumulation parses the whole partial JSON of a call again for every piece of it; raw
events and one parse at the end of a block cost a tenth, and a block stays as the provider sent it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.usage import Usage
from agentd.models.anthropic_errors import in_stream, translate
from agentd.models.arguments import must_be_sendable, read_arguments
from agentd.models.failures import broken_stream, unreachable
from agentd.models.keys import problem_of_key
from agentd.models.model import ModelReply, ModelRequest

_CONNECT_S = 10.0
_CACHED = {"type": "ephemeral"}
_UNCACHEABLE = frozenset({"thinking", "redacted_thinking"})
_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_KEY_HINT = "Set ANTHROPIC_API_KEY for the daemon, or choose another model (agent.model)."


class AnthropicModel:
    """`base_url` None: the public API. `stall_s`: silence that counts as a broken stream."""

    def __init__(
        self, model: str, *, api_key: str | None, base_url: str | None, stall_s: float
    ) -> None:
        self._model = model
        key = (api_key or "").strip()
        self._client = None
        self._problem = problem_of_key(key, "Anthropic")
        if self._problem is None:
            self._client = anthropic.AsyncAnthropic(
                api_key=key,
                base_url=base_url or "https://api.anthropic.com",
                max_retries=0,
                timeout=httpx2.Timeout(stall_s, connect=_CONNECT_S),
                http_client=anthropic.DefaultAioHttpClient(),
            )

    @property
    def name(self) -> str:
        return f"anthropic:{self._model}"

    async def reply(self, request: ModelRequest) -> ModelReply:
        if self._client is None:
            raise ModelError(ModelErrorKind.AUTHENTICATION, str(self._problem), hint=_KEY_HINT)
        try:
            stream = await self._client.post(
                "/v1/messages",
                content=_body(request),
                cast_to=object,
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
            async with stream:
                return await _gather(stream)
        except anthropic.APIStatusError as error:
            raise translate(error) from error
        except anthropic.APITimeoutError as error:
            raise unreachable(error, ModelErrorKind.TIMEOUT) from error
        except anthropic.APIConnectionError as error:
            raise unreachable(error, ModelErrorKind.CONNECTION) from error
        except httpx2.TimeoutException as error:
            raise unreachable(error, ModelErrorKind.TIMEOUT) from error
        except httpx2.TransportError as error:
            raise unreachable(error, ModelErrorKind.BROKEN_STREAM) from error
        except anthropic.AnthropicError as error:
            raise unreachable(error, ModelErrorKind.INVALID_REQUEST) from error

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()


def _body(request: ModelRequest) -> bytes:
    """The request as JSON. The SDK would walk through and copy all of it at each turn."""
    body = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "stream": True,
        "system": [{"type": "text", "text": request.system, "cache_control": _CACHED}],
        "tools": list(request.tools),
        "messages": with_cache_mark(request.messages),
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def with_cache_mark(messages: Any) -> list[dict[str, Any]]:
    """The messages with a cache breakpoint on the last block that may carry one.

    What stands before it is read from the cache by the next turn, whose messages start the same.
    """
    marked = [dict(message) for message in messages]
    for message in reversed(marked):
        blocks = list(message["content"])
        for place in range(len(blocks) - 1, -1, -1):
            if blocks[place]["type"] not in _UNCACHEABLE:
                blocks[place] = {**blocks[place], "cache_control": _CACHED}
                message["content"] = blocks
                return marked
    return marked


@dataclass(slots=True)
class _Draft:
    """A reply as it comes in."""

    blocks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    json: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    invalid: dict[str, str] = field(default_factory=dict[str, str])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str = ""
    stop_reason: str | None = None
    stopped: bool = False

    def take(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                self.model = event["message"]["model"]
                self.usage |= event["message"]["usage"]
            case "content_block_start":
                self.blocks.append(dict(event["content_block"]))
            case "content_block_delta":
                self._add(event["index"], event["delta"])
            case "content_block_stop":
                self._close(event["index"])
            case "message_delta":
                self.stop_reason = event["delta"]["stop_reason"]
                self.usage |= {k: v for k, v in event["usage"].items() if v is not None}
            case "message_stop":
                self.stopped = True
            case _:
                pass  # a ping, or something newer that does not concern the reply

    def _add(self, index: int, delta: Mapping[str, Any]) -> None:
        block, kind = self.blocks[index], delta["type"]
        if kind == "input_json_delta":
            self.json.setdefault(index, []).append(delta["partial_json"])
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        elif (name := _PIECES.get(kind)) is not None:
            block[name] = block.get(name, "") + delta[name]

    def _close(self, index: int) -> None:
        pieces = self.json.pop(index, None)
        if pieces is None:
            return
        text = "".join(pieces)
        value = read_arguments(text)
        if value is None:
            self.invalid[self.blocks[index]["id"]] = text
        self.blocks[index]["input"] = value or {}


async def _gather(stream: anthropic.AsyncStream[object]) -> ModelReply:
    request_id = stream.response.headers.get("request-id")
    draft = _Draft()
    try:
        async for event in stream.raw_events(stream.response):
            if event.event == "error":
                raise in_stream(event.data, request_id)
            if event.data:
                draft.take(event.json())
        must_be_sendable([draft.blocks, draft.invalid])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # Nobody has checked what events look like: a field may be missing or of another type.
        raise broken_stream(f"the stream makes no sense: {error!r}", request_id) from error
    if not draft.stopped or draft.stop_reason is None:
        raise broken_stream("the stream ended before the reply did", request_id)
    return ModelReply(
        content=draft.blocks,
        stop_reason=draft.stop_reason,
        usage=Usage(
            input_tokens=draft.usage.get("input_tokens") or 0,
            output_tokens=draft.usage.get("output_tokens") or 0,
            cache_write_tokens=draft.usage.get("cache_creation_input_tokens") or 0,
            cache_read_tokens=draft.usage.get("cache_read_input_tokens") or 0,
        ),
        model=draft.model,
        request_id=request_id,
        invalid_inputs=draft.invalid,
    )
