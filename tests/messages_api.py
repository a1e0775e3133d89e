"""A real HTTP server on loopback that speaks the Messages API and refuses what the real one does.

In a test: `async with MessagesApi(script(turn, …)) as api:`, with `api.url` as the base URL. From a
shell: `python -m tests.messages_api --port 0 --script FILE` prints its URL; FILE is a JSON list of
turns.
"""

import argparse
import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agentd.domain.jsons import is_object
from tests.loopback import LAST_CHUNK, STREAM, Loopback, Request, head, json_response, raw_chunk
from tests.messages_rules import check_request, sign
from tests.messages_turns import (
    DONE,
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

_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
_PATHS = frozenset({"/v1/messages", "/v1/messages/count_tokens"})


@dataclass
class MessagesApi(Loopback):
    """Plays the Messages API. `model`: that replies name; None: the one that was asked for."""

    model: str | None = None

    def examine(self, request: Request) -> tuple[Failure | None, Body]:
        if request.method != "POST" or request.path not in _PATHS:
            return _refusal(404, f"{request.method} {request.path}"), {}
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not (request.headers.get("x-api-key") or bearer):
            return _refusal(401, "x-api-key or authorization header is required"), {}
        if "anthropic-version" not in request.headers:
            return self.violated("anthropic-version: header is required"), {}
        try:
            body = json.loads(request.body)
        except ValueError as error:
            return self.violated(f"the body is not valid JSON: {error}"), {}
        if not is_object(body):
            return self.violated("the body must be an object"), {}
        counting = {"max_tokens": 1} if request.path.endswith("/count_tokens") else {}
        problems = check_request({**body, **counting}, sign)
        return (self.violated(*problems) if problems else None), body

    def aside(self, request: Request) -> bytes | None:
        if request.path.endswith("/count_tokens"):
            return json_response(200, {"input_tokens": len(request.body) // 4})
        return None

    def play(self, answer: Any, body: Body) -> bytes:
        if not body.get("stream"):
            return json_response(200, message_of(answer, self.model or body["model"]))
        events = b"".join(map(_chunk, events_of(answer, self.model or body["model"])))
        return head(200, STREAM) + events + LAST_CHUNK

    def half(self, failure: Failure, body: Body) -> bytes:
        half = Turn(text="This reply does not end well.", pieces=6)
        sent = b"".join(
            map(_chunk, events_of(half, self.model or body["model"])[: failure.after_events])
        )
        if failure.fault == "error":
            sent += _chunk({"type": "error", **_error_body(failure)})
        if failure.fault == "garbage":
            data = f"event: content_block_delta\ndata: {failure.message}\n\n"
            sent += raw_chunk(data.encode())
        return sent

    def error_response(self, failure: Failure) -> bytes:
        body = {"type": "error", **_error_body(failure)}
        return json_response(failure.status, body, failure.headers)


def _refusal(status: int, message: str) -> Failure:
    return Failure(status=status, type=_TYPES[status], message=message)


def _error_body(failure: Failure) -> dict[str, Any]:
    return {"error": {"type": failure.type, "message": failure.message}}


def _chunk(event: Mapping[str, Any]) -> bytes:
    return raw_chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


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
