"""Listings of tools as they come in, made fit for the strict `mcp` package.

One tool of a wrong shape would cost the whole listing there, so it is taken out and noted. Output
schemas are kept for us only: the package would check answers against them on the event loop, with
regular expressions of the server's own.
"""

import contextvars
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from agentd.domain.jsons import is_array, is_object

_VERSIONS: Mapping[str, Mapping[str, Any]] = {
    "2025-11-25": {},
    "2026-07-28": {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"},
}
MESSAGES_MOST = 5000  # in one second
TOOLS_MOST = 5000
_PARTS_MOST = 1000  # of an answer; a tenth is shown
_LISTING_MOST_CHARS = 16 * 1024 * 1024
Item = SessionMessage | Exception


class _Stream(Protocol):
    async def receive(self) -> Item: ...
    async def aclose(self) -> None: ...
    async def __anext__(self) -> Item: ...


@dataclass(slots=True)
class Sifted:
    """What was taken out: tools with the reason, and output schemas by tool.

    `tools`, `chars`: all that the listing has held so far.
    """

    aside: dict[str, str] = field(default_factory=dict[str, str])
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    tools: int = 0
    chars: int = 0

    def clear(self) -> None:
        """Before a new listing."""
        self.aside.clear()
        self.outputs.clear()
        self.tools = self.chars = 0

    @property
    def too_much(self) -> str | None:
        """Why the listing is not gone through to its end, or None."""
        if self.tools > TOOLS_MOST:
            return f"it lists more than {TOOLS_MOST} tools"
        if self.chars > _LISTING_MOST_CHARS:
            return f"its list of tools has more than {_LISTING_MOST_CHARS} characters"
        return None

    def sift(self, item: Item) -> Item:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCResponse):
            tools: object = message.result.get("tools")
            if is_array(tools):
                message.result["tools"] = [each for each in tools if self._is_fit(each)]
            content: object = message.result.get("content")
            if is_array(content):
                # Each that is wrong is described at length, by the package, on the event loop.
                del content[_PARTS_MOST:]
        return item

    def _is_fit(self, tool: object) -> bool:
        if self.too_much is not None:
            return False  # it is refused anyway, and each one costs time on the event loop
        self.tools += 1
        self.chars += len(json.dumps(tool, ensure_ascii=False))
        name = str(tool.get("name", "?")) if is_object(tool) else "?"
        if is_object(tool):
            output = tool.pop("outputSchema", None)
            if is_object(output):
                self.outputs[name] = output
        for version, more in _VERSIONS.items():
            try:
                validate_server_result("tools/list", version, {"tools": [tool], **more})
            except ValidationError as error:
                self.aside[name] = _words(error)
                return False
        self.aside.pop(name, None)
        return True


class SiftedStream:
    """A transport's incoming stream, sifted. `flooded`: told once, when too much comes."""

    def __init__(self, stream: _Stream, sifted: Sifted, flooded: Callable[[str], None]) -> None:
        self._stream = stream
        self._sifted = sifted
        self._flooded = flooded
        self._second = 0
        self._count = 0

    @property
    def last_context(self) -> contextvars.Context | None:
        """Of whoever sent the last item: the package hands it on."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        return self._sift(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return self._sift(await self._stream.__anext__())

    def _sift(self, item: Item) -> Item:
        second = int(anyio.current_time())
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count == MESSAGES_MOST:
            self._flooded(f"it floods: more than {MESSAGES_MOST} messages in a second")
        return self._sifted.sift(item)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _words(error: ValidationError) -> str:
    problem = error.errors()[0]
    way = ".".join(str(part) for part in problem["loc"][2:])
    return f"{way or 'it'}: {problem['msg'].lower()}"
