"""What servers answer becomes what models take; nothing of it can spoil a later request."""

import base64
import struct
from typing import Any

import pytest
from mcp_types import CallToolResult

from agentd.connectors.images import image_problem
from agentd.connectors.results import to_result
from agentd.toolkit.given import GivenSchema, check_schema

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\rIHDR" + struct.pack(">II", 2, 2) + b"\x08"


def answer(*content: dict[str, Any], **more: Any) -> CallToolResult:
    return CallToolResult.model_validate({"content": list(content), **more})


def image(raw: bytes = PNG, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(raw).decode(), "mimeType": kind}


@pytest.mark.requirement("S4-20")
def test_texts_are_joined_and_structured_content_is_the_data() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    found = to_result(answer(*parts, structuredContent={"x": 1}))
    assert (found.content, found.data) == ("a\nb", {"x": 1})


def test_structured_content_alone_is_shown() -> None:
    assert "42" in str(to_result(answer(structuredContent={"x": 42})).content)


def test_structured_content_that_is_not_as_promised_is_told() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    found = to_result(
        answer({"type": "text", "text": "a"}, structuredContent={"x": 1}), GivenSchema(schema)
    )
    assert found.data is None
    assert "1 is not of type 'string'" in str(found.content)


def test_an_error_is_an_error() -> None:
    found = to_result(answer({"type": "text", "text": "no"}, isError=True))
    assert (found.error_type, found.error) == ("tool_error", "no")


def test_images_and_texts_keep_their_order() -> None:
    found = to_result(
        answer({"type": "text", "text": "see"}, image(), {"type": "text", "text": ""})
    )
    blocks: Any = found.content
    assert [each["type"] for each in blocks] == ["text", "image"]


def test_what_can_not_be_shown_is_named() -> None:
    link = {"type": "resource_link", "uri": "file:///x", "name": "x", "description": "An x."}
    blob = {"type": "resource", "resource": {"uri": "file:///y", "blob": "AAAA"}}
    text = {"type": "resource", "resource": {"uri": "file:///z", "text": "zz"}}
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    shown = str(to_result(answer(link, blob, text, audio)).content)
    for words in ("x at file:///x: An x.", "file:///y", "[resource file:///z]\nzz", "audio/wav"):
        assert words in shown


@pytest.mark.parametrize(
    ("raw", "kind", "words"),
    [
        (b"no image", "image/png", "not what its type says"),
        (PNG, "image/tiff", "the models take only"),
        (PNG[:20], "image/png", "cut off"),
        (PNG + b"x" * 4_000_000, "image/png", "more than"),
        (PNG[:16] + struct.pack(">II", 9000, 2), "image/png", "9000 by 2"),
        (b"GIF89a" + struct.pack("<HH", 3, 0), "image/gif", "3 by 0"),
        (b"\xff\xd8\xff\xe0\x00\x04ab", "image/jpeg", "cut off"),
    ],
)
def test_an_image_that_no_provider_takes_is_left_out(raw: bytes, kind: str, words: str) -> None:
    assert words in (image_problem(raw, kind) or "")
    found = to_result(answer(image(raw, kind)))
    assert isinstance(found.content, str)
    assert words in found.content


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (PNG, "image/png"),
        (b"GIF89a" + struct.pack("<HH", 3, 4), "image/gif"),
        (
            b"\xff\xd8\xff\xe0\x00\x04ab" + b"\xff\xc0\x00\x0b\x08" + struct.pack(">HH", 3, 4),
            "image/jpeg",
        ),
        (b"RIFF0000WEBPVP8X" + bytes(8) + b"\x02\x00\x00\x02\x00\x00", "image/webp"),
        (b"RIFF0000WEBPVP8L" + bytes(5) + struct.pack("<I", 5), "image/webp"),
        (b"RIFF0000WEBPVP8 " + bytes(10) + struct.pack("<HH", 3, 4), "image/webp"),
    ],
)
def test_images_of_every_kind_pass(raw: bytes, kind: str) -> None:
    assert image_problem(raw, kind) is None


def test_a_foreign_schema_reaches_no_network_and_runs_no_pattern() -> None:
    remote = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}
    assert GivenSchema(remote).problems({"a": 1}) == []
    slow = {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "(a+)+$"}}}
    assert GivenSchema(slow).problems({"pattern": "a" * 60 + "!"}) == []
    assert GivenSchema(slow).problems({"pattern": 1}) == ["pattern: 1 is not of type 'string'"]


def test_an_invalid_schema_is_told() -> None:
    assert check_schema({"type": "object"}) is None
    assert "strnig" in (check_schema({"type": "strnig"}) or "")
