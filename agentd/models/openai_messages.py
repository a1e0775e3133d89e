"""From the shapes of the Messages API to those of Chat Completions. Pure.

The journal holds one shape; what only another provider understands is left out by the transcript.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

Block = Mapping[str, Any]
Message = dict[str, Any]

# OpenAI refuses longer ones; other providers make their ids as long as they like.
_CALL_ID_MOST = 40
_NAME_MOST = 64
_GO_ON: Message = {"role": "user", "content": "Go on."}


def function_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as the Messages API takes it, for Chat Completions."""
    return {
        "type": "function",
        "function": {
            "name": wire_name(tool["name"]),
            "description": tool["description"],
            "parameters": tool["input_schema"],
        },
    }


def chat_messages(system: str, messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The conversation: each result is a message of its own, right behind the call's.

    Roles alternate and the user speaks last, which the templates of some local models insist on.
    """
    chat: list[Message] = [{"role": "system", "content": system}] if system.strip() else []
    for message in messages:
        if message["role"] == "assistant":
            chat.append(_assistant(message["content"]))
        else:
            chat += _results(message["content"])
            if text := _text_of(message["content"]):
                chat.append({"role": "user", "content": text})
    if chat and chat[-1]["role"] == "assistant":
        chat.append(_GO_ON)
    return chat


def wire_id(call_id: str) -> str:
    """The id of a call, short enough; the same for the call and its result."""
    if len(call_id) <= _CALL_ID_MOST:
        return call_id
    return "call_" + _digest(call_id, 32)


def wire_name(name: str) -> str:
    """The name of a tool, short enough."""
    return name if len(name) <= _NAME_MOST else f"{name[: _NAME_MOST - 9]}_{_digest(name, 8)}"


def _digest(text: str, chars: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:chars]


def _assistant(blocks: Sequence[Block]) -> Message:
    calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    text = _text_of(blocks)
    if not calls:
        return {"role": "assistant", "content": text}
    said: Message = {"role": "assistant", "content": text or None, "tool_calls": calls}
    for block in blocks:
        # Servers that show their reasoning want it back with the calls it led to, and only there.
        if block["type"] == "thinking" and "field" in block:
            said[block["field"]] = said.get(block["field"], "") + block["thinking"]
    return said


def _call(block: Block) -> dict[str, Any]:
    arguments = json.dumps(block["input"], ensure_ascii=False, separators=(",", ":"))
    call: dict[str, Any] = {
        "id": wire_id(block["id"]),
        "type": "function",
        "function": {"name": wire_name(block["name"]), "arguments": arguments},
    }
    if "extra_content" in block:  # a signature that some servers want back with the call
        call["extra_content"] = block["extra_content"]
    return call


def _results(blocks: Sequence[Block]) -> list[Message]:
    return [
        {"role": "tool", "tool_call_id": wire_id(block["tool_use_id"]), "content": _result(block)}
        for block in blocks
        if block["type"] == "tool_result"
    ]


def _result(block: Block) -> str:
    """There is no flag for an error: it is said."""
    content = block["content"]
    text = content if isinstance(content, str) else _text_of([*map(_said, content)])
    return f"ERROR: {text}" if block.get("is_error") else text


def _said(block: Block) -> Block:
    """A result here is text only; what is none is at least named."""
    if block["type"] == "text":
        return block
    return {"type": "text", "text": f"({block['type']}: this model can not be shown it)"}


def _text_of(blocks: Sequence[Block]) -> str:
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
