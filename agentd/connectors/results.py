"""What a server answers, as a result of ours.

Text stays text, images become blocks that the models take, and everything else is named, so that
the model knows that it is there. An image that no provider would take is never let through: it
would fail every later request of the task.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from agentd.connectors.images import image_problem
from agentd.toolkit.given import GivenSchema
from agentd.toolkit.result import Blocks, ToolResult

_BLOCKS_MOST = 100
_IMAGES_MOST = 10


def to_result(answer: CallToolResult, schema: GivenSchema | None = None) -> ToolResult:
    """`data` is the structured content, where there is some and it is as `schema` says."""
    parts = list(_parts(answer.content[:_BLOCKS_MOST]))
    if (missing := len(answer.content) - _BLOCKS_MOST) > 0:
        parts.append(f"[{missing} more parts of the answer are left out]")
    text = "\n".join(part for part in parts if isinstance(part, str))
    if answer.is_error:
        return ToolResult.failure("tool_error", text or "the tool failed and did not say why")
    data: Any = answer.structured_content
    wrong = schema.problems(data) if schema is not None and data is not None else []
    if wrong:
        parts.append(f"[the tool says that it answers otherwise: {'; '.join(wrong)}]")
        text, data = "\n".join([text, str(parts[-1])]), None
    if not parts and data is not None:
        text = json.dumps(data, ensure_ascii=False, indent=1)
    if all(isinstance(part, str) for part in parts):
        return ToolResult.success(text, data)
    return ToolResult.success(_blocks(parts), data)


Part = str | dict[str, object]


def _parts(content: list[ContentBlock]) -> Iterator[Part]:
    images = 0
    for block in content:
        match block:
            case TextContent():
                part = block.text
            case ImageContent():
                part = _image(block.data, block.mime_type)
            case AudioContent():
                part = f"[audio, {block.mime_type}, {_size(block.data)}: it can not be shown]"
            case ResourceLink():
                about = f": {block.description}" if block.description else ""
                part = f"[resource {block.name} at {block.uri}{about}]"
            case EmbeddedResource():
                part = _embedded(block.resource)
        images += not isinstance(part, str)
        if images > _IMAGES_MOST and not isinstance(part, str):
            part = f"[only the first {_IMAGES_MOST} images of an answer are shown]"
        yield part


def _embedded(resource: TextResourceContents | BlobResourceContents) -> Part:
    if isinstance(resource, TextResourceContents):
        return f"[resource {resource.uri}]\n{resource.text}"
    kind = resource.mime_type or "unknown type"
    if kind.startswith("image/"):
        return _image(resource.blob, kind)
    return f"[resource {resource.uri}, {kind}, {_size(resource.blob)}: it can not be shown]"


def _image(data: str, mime_type: str) -> Part:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[image, {mime_type}: it is not valid base64]"
    problem = image_problem(raw, mime_type)
    if problem is not None:
        return f"[image, {mime_type}, {len(raw)} bytes: {problem}]"
    source = {"type": "base64", "media_type": mime_type, "data": data}
    return {"type": "image", "source": source}


def _size(data: str) -> str:
    return f"{len(data) * 3 // 4} bytes"


def _blocks(parts: list[Part]) -> Blocks:
    """Neighbouring texts in one block; no empty one, which the API refuses."""
    blocks: Blocks = []
    texts: list[str] = []

    def flush() -> None:
        if text := "\n".join(texts).strip():
            blocks.append({"type": "text", "text": text})
        texts.clear()

    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            flush()
            blocks.append(part)
    flush()
    return blocks
