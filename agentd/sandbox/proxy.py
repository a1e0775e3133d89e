"""The proxy for commands that were granted network: a Unix socket, served while they run.

Speaks what every HTTP client speaks to a proxy: CONNECT, and requests with a whole URL. Each
connection goes to an address that the policy has checked, and leaves a line in the log.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import h11
import structlog

from agentd.domain.errors import ToolError
from agentd.domain.hosts import HostPort
from agentd.sandbox.egress import Egress
from agentd.sandbox.hops import parse_url

_log = structlog.get_logger()
_CHUNK_BYTES = 65_536
_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
# Of one connection only (RFC 9110, 7.6.1), and the proxy makes another one; or its own to say.
_NOT_PASSED_ON = frozenset(
    b"connection host keep-alive proxy-authorization proxy-connection te upgrade".split()
)


@dataclass(frozen=True, slots=True)
class Limits:
    """`idle_s`: after it a connection on which nothing moves is closed."""

    connections: int = 64
    head_bytes: int = 16_384
    head_s: float = 10.0
    connect_s: float = 15.0
    idle_s: float = 120.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """The head of a request, and where it leads. `path`: None for a tunnel. `netloc`: for Host."""

    head: h11.Request
    host: str
    port: int
    netloc: bytes
    path: bytes | None


class _BadRequest(Exception):
    """What a client sent is no request to a proxy."""


@asynccontextmanager
async def proxy(path: Path, egress: Egress, limits: Limits | None = None) -> AsyncGenerator[None]:
    """Serves on a socket at `path` while the block runs; its folder must be nobody else's."""
    server = _Proxy(egress, limits or Limits())
    async with await anyio.create_unix_listener(path, mode=0o600) as listener:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(listener.serve, server.serve)
                yield
                group.cancel_scope.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # of the block: serving raises nothing
        finally:
            path.unlink(missing_ok=True)  # noqa: ASYNC240 - one system call


class _Proxy:
    def __init__(self, egress: Egress, limits: Limits) -> None:
        self._egress = egress
        self._limits = limits
        self._open = 0

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        self._open += 1
        try:
            async with client:
                with suppress(*_BROKEN):
                    if self._open > self._limits.connections:
                        await _say(client, 503, "too many connections of this command")
                    else:
                        await self._answer(client)
        finally:
            self._open -= 1

    async def _answer(self, client: anyio.abc.SocketStream) -> None:
        incoming = h11.Connection(h11.SERVER, self._limits.head_bytes)
        try:
            with anyio.fail_after(self._limits.head_s):
                asked = _asked(await _next(incoming, client))
        except (h11.ProtocolError, _BadRequest) as error:
            await _say(client, 400, f"this is a proxy for HTTP: {error}")
            return
        except TimeoutError:
            await _say(client, 408, "the request took too long")
            return
        try:
            there = await self._connect(asked)
        except ToolError as error:
            _log.warning(
                "a command may not connect", host=asked.host, port=asked.port, why=error.message
            )
            refused = error.error_type in ("address_refused", "invalid_url")
            await _say(client, 403 if refused else 502, f"{error.error_type}: {error.message}")
            return
        async with there:
            traffic = _Traffic(client, there, self._limits.idle_s)
            try:
                await self._pass_on(asked, incoming, traffic)
            finally:
                _log.info(
                    "a command connected",
                    host=asked.host,
                    port=asked.port,
                    sent_bytes=traffic.sent_bytes,
                    received_bytes=traffic.received_bytes,
                )

    async def _connect(self, asked: _Asked) -> anyio.abc.SocketStream:
        try:
            with anyio.fail_after(self._limits.connect_s):
                return await self._egress.connect(
                    asked.host, asked.port, partial(anyio.connect_tcp, remote_port=asked.port)
                )
        except TimeoutError as error:
            raise ToolError("timeout", f"{asked.host}:{asked.port} does not answer") from error

    async def _pass_on(self, asked: _Asked, incoming: h11.Connection, traffic: "_Traffic") -> None:
        if asked.path is None:
            await traffic.client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            early, _ = incoming.trailing_data
            await traffic.tunnel(early)
        else:
            await traffic.request(asked, incoming)


class _Traffic:
    """What goes to and fro between a client and a server, until both have ended or it stands."""

    def __init__(
        self, client: anyio.abc.SocketStream, there: anyio.abc.SocketStream, idle_s: float
    ) -> None:
        self.client, self.there = client, there
        self.sent_bytes = self.received_bytes = 0
        self._idle_s = idle_s
        self._scope = anyio.CancelScope()

    async def tunnel(self, early: bytes) -> None:
        await self._send(early)
        with self._scope:
            self._moved()
            async with anyio.create_task_group() as group:
                group.start_soon(self._receive_all)
                await self._send_all()

    async def request(self, asked: _Asked, incoming: h11.Connection) -> None:
        """One request; its body goes out while the answer comes in, and the answer ends it."""
        outgoing = h11.Connection(h11.CLIENT)
        # Host is that of the URL, which was checked, whatever the client says it is.
        headers = [each for each in asked.head.headers if each[0] not in _NOT_PASSED_ON]
        head = h11.Request(
            method=asked.head.method,
            target=asked.path or b"/",
            headers=[(b"host", asked.netloc), *headers, (b"connection", b"close")],
        )
        with self._scope:
            self._moved()
            async with anyio.create_task_group() as group:
                group.start_soon(self._send_request, outgoing, head, incoming)
                await self._receive_all()
                group.cancel_scope.cancel()

    async def _send_request(
        self, outgoing: h11.Connection, head: h11.Request, incoming: h11.Connection
    ) -> None:
        event: h11.Event = head
        try:
            while True:
                await self._send(outgoing.send(event) or b"")
                if isinstance(event, h11.EndOfMessage):
                    return
                event = await _next(incoming, self.client)
        except (h11.ProtocolError, *_BROKEN):
            self._scope.cancel()  # the server would wait for the rest

    async def _send_all(self) -> None:
        with suppress(*_BROKEN):
            async for chunk in self.client:
                await self._send(chunk)
            await self.there.send_eof()

    async def _receive_all(self) -> None:
        with suppress(*_BROKEN):
            async for chunk in self.there:
                await self.client.send(chunk)
                self.received_bytes += len(chunk)
                self._moved()
            await self.client.send_eof()

    async def _send(self, data: bytes) -> None:
        if data:
            await self.there.send(data)
            self.sent_bytes += len(data)
            self._moved()

    def _moved(self) -> None:
        self._scope.deadline = anyio.current_time() + self._idle_s


async def _next(connection: h11.Connection, stream: anyio.abc.SocketStream) -> h11.Event:
    """What the other side says next."""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Event):
            return event
        try:
            connection.receive_data(await stream.receive(_CHUNK_BYTES))
        except anyio.EndOfStream:
            connection.receive_data(b"")


def _asked(event: h11.Event) -> _Asked:
    if isinstance(event, h11.ConnectionClosed):
        raise anyio.EndOfStream
    if not isinstance(event, h11.Request):
        raise _BadRequest("no request")
    target = event.target.decode("ascii", errors="replace")
    try:
        if event.method == b"CONNECT":
            there = HostPort.parse(target)
            return _Asked(event, there.host, there.port, event.target, None)
        url = parse_url(target)
    except (ValueError, ToolError) as error:
        raise _BadRequest(str(error)) from error
    if url.scheme != "http":
        raise _BadRequest("https goes through CONNECT")
    return _Asked(event, url.host, url.port or 80, url.netloc, url.raw_path)


async def _say(client: anyio.abc.SocketStream, status: int, text: str) -> None:
    body = f"{text}\n".encode()
    head = (
        f"HTTP/1.1 {status} agentd\r\ncontent-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    await client.send(head.encode() + body)
