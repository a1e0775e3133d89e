"""One open connection to a server, whatever the transport. Imports the `mcp` package, so it is
imported by whoever opens the first connection, in a thread.
"""

import logging
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import structlog
from mcp import Client, MCPError
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.client.auth import OAuthFlowError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agentd import __version__
from agentd.connectors.catalog import Listing
from agentd.connectors.failures import LoginNeeded, ServerFailed
from agentd.connectors.network import ANSWER_MOST_BYTES, client_of, factory_of, patience
from agentd.connectors.sieve import Sifted, SiftedStream
from agentd.connectors.specs import ServerSpec
from agentd.connectors.stdio import stdio_streams

_log = structlog.get_logger()
_PAGES_MOST = 200
# Its lines have no place in ours; what matters of them is in the errors.
logging.getLogger("mcp").addHandler(logging.NullHandler())
# They concern parts of the older protocol that servers still use.
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)

Elicit = Callable[[ElicitRequestParams], Awaitable[ElicitResult]]
Progress = Callable[[float, float | None, str | None], None]


@dataclass(frozen=True, slots=True)
class Calling:
    """How a connection is made. `ended`: told why, when it has gone. `changed`: the tools have."""

    spec: ServerSpec
    workdir: Path
    connect_s: float
    close_s: float
    auth: httpx2.Auth | None
    ended: Callable[[str], None]
    changed: Callable[[], None]
    elicit: Elicit


class Session:
    """An open connection. Calls may come from any task."""

    def __init__(self, client: Client, calling: Calling, sifted: Sifted) -> None:
        self._client = client
        self._calling = calling
        self._sifted = sifted

    @property
    def protocol(self) -> str:
        return self._client.protocol_version

    async def tools(self) -> Listing:
        """All pages. Raises ServerFailed when it never ends."""
        self._sifted.clear()
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(_PAGES_MOST):
            page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            found += page.tools
            if (why := self._sifted.too_much) is not None:
                raise ServerFailed(why)
            if page.next_cursor is None or page.next_cursor == cursor:
                return Listing(found, dict(self._sifted.outputs), dict(self._sifted.aside))
            cursor = page.next_cursor
        raise ServerFailed(f"its list of tools has more than {_PAGES_MOST} pages")

    async def call(
        self, tool: str, arguments: dict[str, Any], timeout_s: float, heard: Progress | None
    ) -> CallToolResult:
        """Raises MCPError, ValidationError, RuntimeError: what the server did wrong."""

        async def told(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            assert heard is not None
            heard(progress, total, message)

        return await self._client.call_tool(
            tool,
            arguments,
            read_timeout_seconds=timeout_s,
            progress_callback=None if heard is None else told,
        )

    async def heed_changes(self) -> None:
        """Until cancelled: be told when the tools change, by servers that want to be asked."""
        if self.protocol not in MODERN_PROTOCOL_VERSIONS:
            return
        capability = self._client.server_capabilities.tools
        if capability is None or not capability.list_changed:
            return
        try:
            async with self._client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._calling.changed()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError) as error:
            _log.debug("no word of changes", server=self._calling.spec.name, error=str(error))


@asynccontextmanager
async def open_session(calling: Calling) -> AsyncGenerator[Session]:
    """Raises what the transport raises, mostly in groups; `explain` has words for it."""

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        return await calling.elicit(params)

    async def heard(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            calling.changed()
        await anyio.lowlevel.checkpoint()

    sifted = Sifted()
    client = Client(
        _sifting(_transport(calling), sifted, calling.ended),
        read_timeout_seconds=calling.connect_s,
        elicitation_callback=elicit,
        message_handler=heard,
        client_info=Implementation(name="agentd", version=__version__),
    )
    with anyio.fail_after(calling.connect_s) as connecting:
        async with client:
            connecting.deadline = float("inf")
            yield Session(client, calling, sifted)


def _transport(calling: Calling) -> AbstractAsyncContextManager[Any]:
    spec = calling.spec
    if spec.transport == "stdio":
        return stdio_streams(spec, calling.workdir, calling.close_s, calling.ended)
    if spec.transport == "sse":
        return sse_client(
            spec.url,
            headers=dict(spec.headers),
            timeout=calling.connect_s,
            auth=calling.auth,
            httpx_client_factory=factory_of(spec.url),
        )
    return _http(calling)


@asynccontextmanager
async def _sifting(
    transport: AbstractAsyncContextManager[Any], sifted: Sifted, ended: Callable[[str], None]
) -> AsyncGenerator[Any]:
    async with transport as (read, write):
        yield SiftedStream(read, sifted, ended), write


@asynccontextmanager
async def _http(calling: Calling) -> AsyncGenerator[Any]:
    spec = calling.spec
    timeout = patience(calling.connect_s)
    async with (
        client_of(spec.url, headers=spec.headers, timeout=timeout, auth=calling.auth) as http,
        streamable_http_client(
            spec.url, http_client=http, max_sse_event_size=ANSWER_MOST_BYTES
        ) as streams,
    ):
        yield streams


def explain(error: BaseException) -> str:
    """The first cause of what a connection raised, as one line."""
    first = next(causes(error))
    if isinstance(first, ServerFailed):
        return first.message
    if isinstance(first, TimeoutError):
        return "it does not answer"
    if isinstance(first, httpx2.HTTPStatusError):
        return f"it answers with HTTP status {first.response.status_code}"
    text = " ".join(str(first).split())[:500]
    return text or type(first).__name__


def is_lost(error: BaseException) -> bool:
    """Whether it says no more than that the connection has ended."""
    return any(isinstance(e, MCPError) and e.code == CONNECTION_CLOSED for e in causes(error))


def wants_login(error: BaseException) -> bool:
    """Whether only a person can help, by logging in."""
    return any(
        isinstance(each, OAuthFlowError | LoginNeeded)
        or (isinstance(each, httpx2.HTTPStatusError) and each.response.status_code == 401)
        for each in causes(error)
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """What a group holds, and what each was raised from."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for each in group.exceptions:
            yield from causes(each)
        return
    yield error
    if error.__cause__ is not None:
        yield from causes(error.__cause__)


_KINDS = {
    REQUEST_TIMEOUT: "timeout",
    INVALID_PARAMS: "input_error",
    METHOD_NOT_FOUND: "input_error",
    CONNECTION_CLOSED: "lost",
}


def why_call_failed(error: Exception) -> tuple[str, str]:
    """timeout, input_error, lost or error; and the words for it."""
    if isinstance(error, MCPError):
        return _KINDS.get(error.code, "error"), f"{error.message} ({error.code})"
    if isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError):
        return "lost", "its connection is closed"
    if isinstance(error, ValidationError):
        return "error", f"its answer is no valid result: {error.errors()[0]['msg']}"
    return "error", explain(error)
