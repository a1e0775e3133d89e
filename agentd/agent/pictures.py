"""Pictures in the results of tools: how many of them a request can have.

A request that is too large, or has too many pictures, is refused for ever after. So only the newest
stay pictures; of the others the words that came with them remain.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Block = Mapping[str, Any]
Message = dict[str, Any]

# Documented for the Messages API: above 20 pictures in a request each may have 2000 pixels only;
# 32 MB for all of a request.
_MOST = 20
_MOST_CHARS = 16 * 1024 * 1024
_GONE: Block = {"type": "text", "text": "(the picture is shown no longer: read it again to see it)"}
_REFUSED: Block = {"type": "text", "text": "(the picture is not shown: the model refused it)"}


def has_pictures(messages: Sequence[Block]) -> bool:
    return any(_has_picture(block) for message in messages for block in message["content"])


def without_pictures(block: Block) -> Block:
    """A block of a message after the provider has refused what it held."""
    return _block(block, lambda _: _REFUSED)


def only_newest(messages: Sequence[Block]) -> list[Message]:
    """The messages with the newest pictures, as many as a request can have."""
    count, chars = 0, 0

    def keep(block: Block) -> Block:
        nonlocal count, chars
        count += 1
        chars += len(block["source"].get("data", ""))
        return block if count <= _MOST and chars <= _MOST_CHARS else _GONE

    return with_pictures(messages, keep)


def with_pictures(messages: Sequence[Block], change: Callable[[Block], Block]) -> list[Message]:
    """The messages with each picture changed, asked from the newest on."""
    changed = [_message(message, change) for message in reversed(messages)]
    return changed[::-1]


def _message(message: Block, change: Callable[[Block], Block]) -> Message:
    content: Sequence[Block] = message["content"]
    if message["role"] != "user" or not any(_has_picture(block) for block in content):
        return dict(message)
    return {**message, "content": [_block(block, change) for block in reversed(content)][::-1]}


def _block(block: Block, change: Callable[[Block], Block]) -> Block:
    if not _has_picture(block):
        return block
    inside = [
        change(each) if each["type"] == "image" else each for each in reversed(block["content"])
    ]
    return {**block, "content": inside[::-1]}


def _has_picture(block: Block) -> bool:
    if block["type"] != "tool_result" or isinstance(block["content"], str):
        return False
    return any(each["type"] == "image" for each in block["content"])
