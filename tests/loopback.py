"""A real HTTP server on loopback, for the test servers that play a provider's API.

A subclass says what it refuses (`examine`) and how it plays an answer (`play`). `GET /_seen` tells
any process how much was asked and which rules were broken.
"""

import asyncio
import contextlib
import inspect
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

from tests.messages_turns import DONE, Answer, Behaviour, Body, Failure, script

_LONGEST_WAIT_S = 5
_ENDS_CONNECTION = ("drop", "silent", "stall", "reset")
STREAM = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Loopback(ABC):
    """`requests`: bodies of the valid requests, in order. `violations`: rules that were broken.

    `headers`: those of each valid request. `stalls`: streams that fell silent. `disconnects`:
    clients that left before they had their answer.
    """

    behave: Behaviour = field(default_factory=lambda: script(DONE))
    port: int = 0
    requests: list[Body] = field(default_factory=list[Body])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    violations: list[str] = field(default_factory=list[str])
    stalls: int = 0
    disconnects: int = 0
    keep_bodies: bool = True
    answered: int = 0
    _seen: Counter[str] = field(default_factory=Counter[str])
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, backlog=1024, limit=64 * 2**20
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a fact about this server, such as `lambda: api.stalls == 1`."""
        async with asyncio.timeout(_LONGEST_WAIT_S), self._changed:
            await self._changed.wait_for(holds)

    async def _note(self, fact: str) -> None:
        async with self._changed:
            if fact:
                setattr(self, fact, getattr(self, fact) + 1)
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        # Cancelled only by our own end; a client that left is no error of the server's.
        try:
            with contextlib.suppress(
                asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError
            ):
                while (request := await read_request(reader)) is not None:
                    if not await self._answer(request, reader, writer):
                        break
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """True when the connection stays open for the next request."""
        if request.path == "/_seen":
            writer.write(
                json_response(200, {"requests": self.answered, "violations": self.violations})
            )
            return True
        refused, body = self.examine(request)
        if refused is not None:
            writer.write(self.error_response(refused))
            await self._note("")
            return True
        if (other := self.aside(request)) is not None:
            writer.write(other)
            return True
        if self.keep_bodies:
            self.requests.append(body)
            self.headers.append(request.headers)
        await self._note("answered")
        answer = await self._chosen(body)
        if isinstance(answer, Failure):
            return await self._fail(answer, body, reader, writer)
        if answer.delay_s and await _leaves(reader, answer.delay_s):
            await self._note("disconnects")
            return False
        writer.write(self.play(answer, body))
        await writer.drain()
        return True

    @abstractmethod
    def examine(self, request: Request) -> tuple[Failure | None, Body]:
        """What the real API would refuse this request with; else its body."""

    def aside(self, request: Request) -> bytes | None:
        """The response to a good request that asks for no reply."""
        return None

    @abstractmethod
    def play(self, answer: Any, body: Body) -> bytes:
        """The whole response to a request that is answered."""

    @abstractmethod
    def half(self, failure: Failure, body: Body) -> bytes:
        """The pieces of a stream before it fails, and what is wrong with it if that is said."""

    @abstractmethod
    def error_response(self, failure: Failure) -> bytes:
        """Of the fault "status"."""

    def violated(self, *problems: str) -> Failure:
        """Note broken rules. The refusal that they get."""
        self.violations += problems
        return Failure(status=400, type="invalid_request_error", message=problems[0])

    async def _chosen(self, body: Body) -> Answer:
        """What the behaviour says. One that breaks must fail the test, not look like a bad net."""
        try:
            answer = self.behave(body)
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - the behaviour is the test's own code
            return self.violated(f"the behaviour of the test server failed: {error!r}")

    async def _fail(
        self,
        failure: Failure,
        body: Body,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if failure.fault == "status":
            writer.write(self.error_response(failure))
            return True
        if failure.fault not in ("drop", "silent"):
            writer.write(head(200, STREAM) + self.half(failure, body))
        if failure.fault in _ENDS_CONNECTION:
            await writer.drain()
            if failure.fault in ("stall", "silent"):
                await self._note("stalls")
                if await _leaves(reader, None):
                    await self._note("disconnects")
            return False
        writer.write(LAST_CHUNK)
        return True


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request on this connection, or None when the client closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        return Request(method, target.partition("?")[0], headers, await _chunks(reader))
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target.partition("?")[0], headers, body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


async def _leaves(reader: asyncio.StreamReader, within_s: float | None) -> bool:
    """Whether the client closes the connection within that time."""
    try:
        async with asyncio.timeout(within_s):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def json_response(
    status: int, body: Mapping[str, Any], more: Mapping[str, str] | None = None
) -> bytes:
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(data))}
    return head(status, {**headers, **(more or {})}) + data


def head(status: int, headers: Mapping[str, str]) -> bytes:
    made = f"req_{uuid4().hex}"
    lines = [f"HTTP/1.1 {status} -", f"request-id: {made}", f"x-request-id: {made}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def raw_chunk(data: bytes) -> bytes:
    """A piece of a response whose length is not known before its end."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
