"""HTTP to a server on the network, with a bound on what it may answer.

The `mcp` package reads an answer whole, however long it is; only events of a stream are bounded
there. A login asks the same way, so its answers are bounded, too.
"""

from collections.abc import AsyncIterator
from typing import Any, cast

import httpx2

from agentd.connectors.failures import LoginNeeded, ServerFailed

ANSWER_MOST_BYTES = 32 * 1024 * 1024
_READ_S = 300  # between two pieces of an answer; a call has its own time


class TooLong(httpx2.StreamError):
    """The `mcp` package takes it for the failure of one request; the connection goes on."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"it answers with more than {most_bytes} bytes")


def bounded_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """As the `mcp` package makes its clients; without `auth` a server that wants it is told of."""
    hooks = [_bound] if auth is not None else [_bound, _heed_login]
    return httpx2.AsyncClient(
        # What is packed small has no bound once it is unpacked.
        headers={"Accept-Encoding": "identity", **(headers or {})},
        timeout=timeout,
        auth=auth,
        event_hooks={"response": cast("list[Any]", hooks)},
    )


def patience(connect_s: float) -> httpx2.Timeout:
    return httpx2.Timeout(connect_s, read=_READ_S)


async def _bound(response: httpx2.Response) -> None:
    packed = response.headers.get("content-encoding", "identity").lower()
    if packed != "identity":
        raise ServerFailed(f"it answers in {packed}, though it was asked for plain text")
    kind = response.headers.get("content-type", "").lower()
    if not kind.startswith("text/event-stream"):
        stream = cast("httpx2.AsyncByteStream", response.stream)
        response.stream = _Bounded(stream, ANSWER_MOST_BYTES)


async def _heed_login(response: httpx2.Response) -> None:
    # The package keeps the status to itself.
    if response.status_code == 401:
        raise LoginNeeded("it wants a login (HTTP status 401)")


class _Bounded(httpx2.AsyncByteStream):
    """A stream that ends with TooLong when too much comes."""

    def __init__(self, stream: httpx2.AsyncByteStream, most_bytes: int) -> None:
        self._stream = stream
        self._most_bytes = most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left_bytes = self._most_bytes
        async for part in self._stream:
            left_bytes -= len(part)
            if left_bytes < 0:
                raise TooLong(self._most_bytes)
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
