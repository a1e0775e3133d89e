"""A real HTTP server on loopback that speaks Chat Completions and refuses what the real one does.

It plays the same turns and failures as tests/messages_api.py; `Pieces` plays what sloppy servers
send. From a shell: `python -m tests.chat_api --port 0 --script FILE`.
"""

import argparse
import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter

from agentd.domain.jsons import is_object
from tests.chat_rules import check_chat
from tests.loopback import LAST_CHUNK, STREAM, Loopback, Request, head, json_response, raw_chunk
from tests.messages_turns import DONE, Answer, Behaviour, Body, Call, Failure, Turn, cut

_PATH = "/v1/chat/completions"
_FINISH = {"end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}


@dataclass(frozen=True, slots=True)
class Pieces:
    """A reply as its chunks stand: each one JSON, or text that is sent as it is."""

    chunks: Sequence[Mapping[str, Any] | str]
    delay_s: float = 0
    failures: Sequence[Failure] = ()
    content_type: str = STREAM["content-type"]


def chat_script(*turns: Turn | Pieces) -> Behaviour:
    """The turns one after another, by the number of replies that the conversation holds."""
    tries: Counter[tuple[str, int]] = Counter()

    def behave(body: Body) -> Answer:
        said = [message for message in body["messages"] if message["role"] == "user"]
        index = sum(message["role"] == "assistant" for message in body["messages"])
        if index >= len(turns):
            message = f"the script has {len(turns)} turns and was asked for turn {index + 1}"
            return Failure(status=400, type="invalid_request_error", message=message)
        turn, key = turns[index], (str(said[0]["content"]) if said else "", index)
        tries[key] += 1
        if tries[key] <= len(turn.failures):
            return turn.failures[tries[key] - 1]
        return turn  # type: ignore[return-value]

    return behave


@dataclass
class ChatApi(Loopback):
    """Plays Chat Completions. `needs_key`: as the public API, which local servers do not."""

    behave: Behaviour = field(default_factory=lambda: chat_script(DONE))
    needs_key: bool = True

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def examine(self, request: Request) -> tuple[Failure | None, Body]:
        if request.method != "POST" or request.path != _PATH:
            return Failure(404, "not_found", f"{request.method} {request.path}"), {}
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.needs_key and bearer in ("", "none"):
            return Failure(401, "invalid_request_error", "You didn't provide an API key."), {}
        if request.headers.get("content-type") != "application/json":
            return self.violated("the content type must be application/json"), {}
        try:
            body = json.loads(request.body)
        except ValueError as error:
            return self.violated(f"we could not parse the JSON body of your request: {error}"), {}
        if not is_object(body):
            return self.violated("the body must be an object"), {}
        problems = check_chat(body)
        return (self.violated(*problems) if problems else None), body

    def play(self, answer: Any, body: Body) -> bytes:
        if isinstance(answer, Pieces):
            kind = {**STREAM, "content-type": answer.content_type}
            return head(200, kind) + b"".join(map(_chunk, answer.chunks)) + LAST_CHUNK
        counting = bool(body.get("stream_options", {}).get("include_usage"))
        chunks = [*chunks_of(answer, body["model"], counting=counting), "data: [DONE]\n\n"]
        return head(200, STREAM) + b"".join(map(_chunk, chunks)) + LAST_CHUNK

    def half(self, failure: Failure, body: Body) -> bytes:
        half = Turn(text="This reply does not end well.", pieces=6)
        chunks = chunks_of(half, body["model"], counting=True)[: failure.after_events]
        sent = b"".join(map(_chunk, chunks))
        if failure.fault == "error":
            sent += _chunk(_error_body(failure))
        if failure.fault == "garbage":
            sent += _chunk(f"data: {failure.message}\n\n")
        return sent

    def error_response(self, failure: Failure) -> bytes:
        return json_response(failure.status, _error_body(failure), failure.headers)


def chunks_of(turn: Turn, model: str, *, counting: bool) -> list[dict[str, Any]]:
    """The whole reply as the pieces of a stream, in the order and shapes of the real API."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": p} for p in cut(turn.thinking or "", turn.pieces)]
    deltas += [{"content": p} for p in cut(turn.text or "", turn.pieces)]
    for index, each in enumerate(turn.calls):
        deltas += _call_deltas(index, each, turn.pieces)
    reason = turn.stop_reason or ("tool_calls" if turn.calls else "stop")
    chunks = [_whole(model, delta) for delta in deltas]
    chunks.append(_whole(model, {}, _FINISH.get(reason, reason)))
    if counting:
        usage = {"prompt_tokens": 10, "completion_tokens": 5, **turn.usage}
        chunks.append({**_whole(model, {}), "choices": [], "usage": usage})
    return chunks


def piece(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    """One chunk by hand."""
    return _whole("test-model", delta, finish_reason)


def _call_deltas(index: int, call: Call, pieces: int) -> list[dict[str, Any]]:
    text = call.input if isinstance(call.input, str) else json.dumps(call.input)
    start = {
        "index": index,
        "id": call.id or f"call_{uuid4().hex[:24]}",
        "type": "function",
        "function": {"name": call.tool, "arguments": ""},
    }
    rest = [{"index": index, "function": {"arguments": p}} for p in cut(text, pieces)]
    return [{"tool_calls": [each]} for each in (start, *rest)]


def _whole(model: str, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}],
        "usage": None,
    }


def _error_body(failure: Failure) -> dict[str, Any]:
    inner = {"message": failure.message, "type": failure.type, "param": None, "code": failure.type}
    return {"error": inner}


def _chunk(chunk: Mapping[str, Any] | str) -> bytes:
    text = chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk)}\n\n"
    return raw_chunk(text.encode())


async def _main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--script", type=Path, help="a JSON list of turns; default: one, done")
    chosen = options.parse_args()
    turns = [DONE]
    if chosen.script:
        turns = TypeAdapter(list[Turn]).validate_json(chosen.script.read_bytes())
    async with ChatApi(chat_script(*turns), port=chosen.port, keep_bodies=False) as api:
        print(api.base_url, flush=True)  # noqa: T201 - whoever started this process waits for it
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
