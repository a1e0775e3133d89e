"""HTTP to a server: what it answers is bounded, and it leads us nowhere inside.

The package reads a whole answer into memory and asks wherever a server says that its login is.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from agentd.connectors.failures import LoginNeeded, ServerFailed
from agentd.domain.errors import ToolError
from agentd.sandbox.egress import Egress, Rules

ANSWER_MOST_BYTES = 32 * 1024 * 1024
_VALUES_MOST = 1_000_000  # by the marks between them, also those in texts
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_READ_S = 300  # between two pieces of an answer; a call has its own time
_PORTS = {"http": 80, "https": 443}


class TooLong(httpx2.StreamError):
    """The `mcp` package takes it for the failure of one request; the connection goes on."""

    def __init__(self, most: str) -> None:
        super().__init__(f"it answers with more than {most}")


def patience(connect_s: float) -> httpx2.Timeout:
    return httpx2.Timeout(connect_s, read=_READ_S)


@dataclass
class Way:
    """Where requests for the server at `url` may go: to it, and to public addresses.

    A server that is not public itself (this machine, a private network) may name its neighbours.
    """

    url: str
    egress: Egress = field(default_factory=lambda: Egress(Rules()))
    _is_public: bool | None = None

    async def check(self, target: httpx2.URL) -> None:
        """Raises ServerFailed."""
        own = httpx2.URL(self.url)
        if _place(target) == _place(own):
            return
        if self._is_public is None:
            self._is_public = await self._why_not(own) is None
        if self._is_public and (why := await self._why_not(target)) is not None:
            raise ServerFailed(f"it sends us to {target.host}: {why}")

    async def _why_not(self, url: httpx2.URL) -> str | None:
        try:
            await self.egress.addresses(*_place(url)[1:])
        except ToolError as error:
            return error.message
        return None


def client_of(
    url: str,
    *,
    headers: Mapping[str, str] | None,
    timeout: httpx2.Timeout,
    auth: httpx2.Auth | None,
) -> httpx2.AsyncClient:
    """For the server at `url`. Without `auth` a login that is wanted is raised as LoginNeeded."""
    way = Way(url)

    async def ask(request: httpx2.Request) -> None:
        await way.check(request.url)

    async def heed(response: httpx2.Response) -> None:
        # The package keeps the status to itself.
        if auth is None and response.status_code == 401:
            raise LoginNeeded("it wants a login (HTTP status 401)")
        # What is packed small has no bound once it is unpacked.
        packed = response.headers.get("content-encoding", "identity").lower()
        if packed != "identity":
            raise ServerFailed(f"it answers in {packed}, though it was asked for plain text")
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = _Bounded(response.stream, events=events)

    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **(headers or {})},
        timeout=timeout,
        auth=auth,
        event_hooks={"request": [ask], "response": [heed]},
    )


def factory_of(url: str) -> Callable[..., httpx2.AsyncClient]:
    """The same in the shape in which the package makes clients."""

    def make(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return client_of(url, headers=headers, timeout=timeout or httpx2.Timeout(30), auth=auth)

    return make


class _Bounded(httpx2.AsyncByteStream):
    """An answer, or a stream of `events` each of which is one."""

    def __init__(self, stream: Any, *, events: bool) -> None:
        self._stream = stream
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = values = 0
        async for part in self._stream:
            start = max(part.rfind(end) for end in _EVENT_ENDS) if self._events else -1
            if start >= 0:
                size = values = 0
            start = max(start, 0)
            size += len(part) - start
            values += sum(part.count(mark, start) for mark in (b",", b"[", b"{"))
            if size > ANSWER_MOST_BYTES:
                raise TooLong(f"{ANSWER_MOST_BYTES} bytes")
            if values > _VALUES_MOST:
                raise TooLong(f"{_VALUES_MOST} values")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _place(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme, 0)
