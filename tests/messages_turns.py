"""What the test server of the Messages API plays: turns, failures, and who gets which.

A behaviour is a function from the request body to a Turn or a Failure, plain or async. `script`
chooses by the number of replies that the request already holds, so it survives a new client.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from tests.messages_rules import sign

Body = Mapping[str, Any]
_VOID = frozenset({"max_tokens", "refusal", "model_context_window_exceeded"})

# What goes wrong. status: an error response. drop: the connection closes without a byte. silent: no
# byte comes, ever. The rest happen in the stream after `after_events` events. stall: nothing more
# comes. cut: the response ends properly, but too early. reset: the connection closes. error: an
# error event of `type`. garbage: an event whose data is `message` as it stands.
Fault = Literal["status", "drop", "silent", "stall", "cut", "reset", "error", "garbage"]


@dataclass(frozen=True, slots=True)
class Call:
    """`input` as text is sent as it stands, so that it may be no JSON. `id`: fresh when None."""

    tool: str
    input: dict[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """`status` counts for the fault "status" only. `after_events`: whole events sent before it."""

    status: int = 500
    type: str = "api_error"
    message: str = "made up by the test server"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fault: Fault = "status"
    after_events: int = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply: thinking, text, `blocks` as they stand, calls. `failures`: the first tries fail.

    `delay_s`: before the first byte. `pieces`: deltas that each text or input comes in.
    """

    text: str | None = None
    calls: Sequence[Call] = ()
    thinking: str | None = None
    blocks: Sequence[dict[str, Any]] = ()
    stop_reason: str | None = None
    delay_s: float = 0
    failures: Sequence[Failure] = ()
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pieces: int = 3


Answer = Turn | Failure
Behaviour = Callable[[Body], Answer | Awaitable[Answer]]

DONE = Turn(calls=(Call("complete_task", {"summary": "Done."}),))


def call(tool: str, **arguments: Any) -> Turn:
    """A turn that is a single call."""
    return Turn(calls=(Call(tool, arguments),))


def prompt_of(body: Body) -> str:
    """The text of the first message."""
    content = body["messages"][0]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def replies_in(body: Body, turns: Sequence[Turn]) -> int:
    """How many of `turns` the request holds.

    Replies with nothing between them (pause_turn, max_tokens) may have become one message, so
    blocks are counted. A reply of which nothing may be sent back can not be seen.
    """
    index = 0
    for message in body["messages"]:
        if message["role"] != "assistant":
            continue
        left = len(message["content"]) if isinstance(message["content"], list) else 1
        while left > 0:
            left -= max(1, _kept(turns[index])) if index < len(turns) else left
            index += 1
    return index


def script(*turns: Turn) -> Behaviour:
    """The turns one after another, for each conversation from its start.

    Failures of a turn are counted by the conversation's first message.
    """
    tries: Counter[tuple[str, int]] = Counter()

    def behave(body: Body) -> Answer:
        index = replies_in(body, turns)
        if index >= len(turns):
            message = f"the script has {len(turns)} turns and was asked for turn {index + 1}"
            return Failure(status=400, type="invalid_request_error", message=message)
        turn, key = turns[index], (prompt_of(body), index)
        tries[key] += 1
        if tries[key] <= len(turn.failures):
            return turn.failures[tries[key] - 1]
        return turn

    return behave


def by_prompt(behaviours: Mapping[str, Behaviour], default: Behaviour | None = None) -> Behaviour:
    """The behaviour whose key stands in the first message."""
    fallback = default or script(DONE)

    def behave(body: Body) -> Answer | Awaitable[Answer]:
        prompt = prompt_of(body)
        return next((b for key, b in behaviours.items() if key in prompt), fallback)(body)

    return behave


def content_of(turn: Turn) -> list[dict[str, Any]]:
    """The blocks of a turn. Input that was given as text is left as text."""
    blocks: list[dict[str, Any]] = []
    if turn.thinking is not None:
        signature = sign(turn.thinking)
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": signature})
    if turn.text is not None:
        blocks.append({"type": "text", "text": turn.text})
    blocks += [dict(block) for block in turn.blocks]
    for each in turn.calls:
        call_id = each.id or f"toolu_{uuid4().hex}"
        blocks.append({"type": "tool_use", "id": call_id, "name": each.tool, "input": each.input})
    return blocks


def stop_reason_of(turn: Turn) -> str:
    return turn.stop_reason or ("tool_use" if turn.calls else "end_turn")


def message_of(turn: Turn, model: str) -> dict[str, Any]:
    """The whole message, as an answer that is not streamed."""
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content_of(turn),
        "stop_reason": stop_reason_of(turn),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, **turn.usage},
    }


def events_of(turn: Turn, model: str) -> list[dict[str, Any]]:
    """The whole reply as the events of a stream, in the order and shapes of the real API."""
    whole = message_of(turn, model)
    usage = whole["usage"]
    start: dict[str, Any] = {
        **whole,
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        empty, deltas = _deltas(block, turn.pieces)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    last_usage = {"output_tokens": usage["output_tokens"]}
    events.append({"type": "message_delta", "delta": delta, "usage": last_usage})
    events.append({"type": "message_stop"})
    return events


def _deltas(block: dict[str, Any], pieces: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as its start and what is added to it."""
    kind = block["type"]
    if kind == "text":
        citations: list[Any] = block.get("citations") or []
        cited = [{"type": "citations_delta", "citation": each} for each in citations]
        text = [{"type": "text_delta", "text": p} for p in cut(block["text"], pieces)]
        start: dict[str, Any] = {**block, "text": ""}
        if "citations" in block:
            start["citations"] = []
        return start, [*text, *cited]
    if kind == "thinking":
        parts = [{"type": "thinking_delta", "thinking": p} for p in cut(block["thinking"], pieces)]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": kind, "thinking": "", "signature": ""}, [*parts, signed]
    if kind in ("tool_use", "server_tool_use"):
        given = block["input"]
        text = given if isinstance(given, str) else json.dumps(given) if given else ""
        parts = [{"type": "input_json_delta", "partial_json": p} for p in cut(text, pieces)]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": ""}, *parts]
    return block, []


def cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _kept(turn: Turn) -> int:
    """How many blocks of a turn come back in the next request."""
    void = stop_reason_of(turn) in _VOID
    said = turn.text is not None and bool(turn.text.strip())
    speaks = int(said) + len(turn.blocks) + (0 if void else len(turn.calls))
    return speaks + int(turn.thinking is not None) if speaks else 0
