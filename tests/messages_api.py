"""A real HTTP server on loopback that speaks the Messages API and refuses what the real one does.

In a test: `async with MessagesApi(script(turn, …)) as api:`, with `api.url` as the base URL. From a
shell: `python -m tests.messages_api --port 0 --script FILE` prints its URL; FILE is a JSON list of
turns. `GET /_seen` tells any process how much was asked and which rules were broken.
"""

import argparse
import asyncio
import contextlib
import inspect
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from pydantic import TypeAdapter

from agentd.domain.jsons import is_object
from tests.messages_rules import check_request, sign
from tests.messages_turns import (
    DONE,
    Answer,
    Behaviour,
    Body,
    Call,
    Failure,
    Turn,
    by_prompt,
    call,
    events_of,
    message_of,
    script,
)

__all__ = ["DONE", "Call", "Failure", "MessagesApi", "Turn", "by_prompt", "call", "script"]

_LONGEST_WAIT_S = 5
_ENDS_CONNECTION = ("drop", "silent", "stall", "reset")
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class MessagesApi:
    """`requests`: bodies of the valid requests, in order. `violations`: rules that were broken.

    `headers`: those of each valid request. `stalls`: streams that fell silent. `disconnects`:
    clients that left before they had their answer.
    """

    behave: Behaviour = field(default_factory=lambda: script(DONE))
    port: int = 0
    model: str | None = None  # that replies name; None: the one that was asked for
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
                while (request := await _read(reader)) is not None:
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
            writer.write(_json(200, {"requests": self.answered, "violations": self.violations}))
            return True
        refused, body = self._examine(request)
        if refused is not None:
            writer.write(_error(refused))
            await self._note("")
            return True
        if request.path.endswith("/count_tokens"):
            writer.write(_json(200, {"input_tokens": len(request.body) // 4}))
            return True
        if self.keep_bodies:
            self.requests.append(body)
            self.headers.append(request.headers)
        await self._note("answered")
        return await self._play(await self._chosen(body), body, reader, writer)

    async def _chosen(self, body: Body) -> Answer:
        """What the behaviour says. One that breaks must fail the test, not look like a bad net."""
        try:
            answer = self.behave(body)
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - the behaviour is the test's own code
            return self._violated(f"the behaviour of the test server failed: {error!r}")

    def _examine(self, request: Request) -> tuple[Failure | None, Body]:
        """What the real API would refuse this request with; else its body."""
        if request.method != "POST" or request.path not in _PATHS:
            return _refusal(404, f"{request.method} {request.path}"), {}
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not (request.headers.get("x-api-key") or bearer):
            return _refusal(401, "x-api-key or authorization header is required"), {}
        if "anthropic-version" not in request.headers:
            return self._violated("anthropic-version: header is required"), {}
        try:
            body = json.loads(request.body)
        except ValueError as error:
            return self._violated(f"the body is not valid JSON: {error}"), {}
        if not is_object(body):
            return self._violated("the body must be an object"), {}
        counting = {"max_tokens": 1} if request.path.endswith("/count_tokens") else {}
        problems = check_request({**body, **counting}, sign)
        return (self._violated(*problems) if problems else None), body

    def _violated(self, *problems: str) -> Failure:
        self.violations += problems
        return _refusal(400, problems[0])

    async def _play(
        self,
        answer: Answer,
        body: Body,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if isinstance(answer, Failure):
            return await self._fail(answer, body, reader, writer)
        if answer.delay_s and await _leaves(reader, answer.delay_s):
            await self._note("disconnects")
            return False
        if body.get("stream"):
            writer.write(_head(200, _STREAM))
            writer.write(
                b"".join(map(_chunk, events_of(answer, self.model or body["model"]))) + _LAST_CHUNK
            )
        else:
            writer.write(_json(200, message_of(answer, self.model or body["model"])))
        await writer.drain()
        return True

    async def _fail(
        self,
        failure: Failure,
        body: Body,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if failure.fault == "status":
            writer.write(_error(failure))
            return True
        if failure.fault not in ("drop", "silent"):
            half = Turn(text="This reply does not end well.", pieces=6)
            events = events_of(half, self.model or body["model"])[: failure.after_events]
            writer.write(_head(200, _STREAM) + b"".join(map(_chunk, events)))
        if failure.fault == "error":
            writer.write(_chunk({"type": "error", **_error_body(failure)}))
        if failure.fault == "garbage":
            data = f"event: content_block_delta\ndata: {failure.message}\n\n"
            writer.write(_raw_chunk(data.encode()))
        if failure.fault in _ENDS_CONNECTION:
            await writer.drain()
            if failure.fault in ("stall", "silent"):
                await self._note("stalls")
                if await _leaves(reader, None):
                    await self._note("disconnects")
            return False
        writer.write(_LAST_CHUNK)
        return True


_PATHS = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
_STREAM = {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked"}
_LAST_CHUNK = b"0\r\n\r\n"


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """The next request on this connection, or None when the client closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target.partition("?")[0], headers, body)


async def _leaves(reader: asyncio.StreamReader, within_s: float | None) -> bool:
    """Whether the client closes the connection within that time."""
    try:
        async with asyncio.timeout(within_s):
            return await reader.read(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def _refusal(status: int, message: str) -> Failure:
    return Failure(status=status, type=_TYPES[status], message=message)


def _error_body(failure: Failure) -> dict[str, Any]:
    return {"error": {"type": failure.type, "message": failure.message}}


def _error(failure: Failure) -> bytes:
    body = {"type": "error", **_error_body(failure)}
    return _json(failure.status, body, failure.headers)


def _json(status: int, body: Mapping[str, Any], more: Mapping[str, str] | None = None) -> bytes:
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(data))}
    return _head(status, {**headers, **(more or {})}) + data


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} -", f"request-id: req_{uuid4().hex}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _chunk(event: Mapping[str, Any]) -> bytes:
    return _raw_chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def _raw_chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--script", type=Path, help="a JSON list of turns; default: one, done")
    chosen = options.parse_args()
    turns = [DONE]
    if chosen.script:
        turns = TypeAdapter(list[Turn]).validate_json(chosen.script.read_bytes())
    async with MessagesApi(script(*turns), port=chosen.port, keep_bodies=False) as api:
        print(api.url, flush=True)  # noqa: T201 - whoever started this process waits for it
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
