"""Pictures in a request: no more than a provider takes, and counted as what they cost."""

import json
import struct
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import pytest

from agentd.agent.measure import Measure
from agentd.agent.pictures import only_newest
from agentd.domain.task import TaskState
from agentd.models.model import ModelRequest
from agentd.models.openai_messages import chat_messages
from tests.desk import desk
from tests.messages_turns import DONE, Answer, Body, Failure, call, script


def result(number: int, chars: int = 10) -> dict[str, Any]:
    """A user message with the result of a call that is a picture."""
    picture = {"type": "image", "source": {"type": "base64", "data": f"{number:0>{chars}}"}}
    content = [{"type": "text", "text": f"{number}.png"}, picture]
    block = {"type": "tool_result", "tool_use_id": f"c{number}", "content": content}
    return {"role": "user", "content": [block]}


def kept(messages: list[dict[str, Any]]) -> list[bool]:
    blocks = [message["content"][0] for message in messages]
    return [block["content"][1]["type"] == "image" for block in blocks]


def test_only_the_newest_pictures_stay() -> None:
    before = [result(number) for number in range(25)]
    after = only_newest(before)
    assert kept(after) == [False] * 5 + [True] * 20
    assert after[0]["content"][0]["content"][0] == {"type": "text", "text": "0.png"}
    assert "read it again" in after[0]["content"][0]["content"][1]["text"]
    assert kept(before) == [True] * 25


def test_pictures_do_not_make_a_request_too_large() -> None:
    large = [result(number, 6 * 1024 * 1024) for number in range(4)]
    assert kept(only_newest(large)) == [False, False, True, True]


def test_what_holds_no_picture_stays_as_it_is() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "ho"}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": "text"}],
        },
    ]
    assert only_newest(messages) == messages


def test_a_picture_is_measured_by_its_tokens_and_not_by_its_bytes() -> None:
    request = ModelRequest("m", "", [], [result(1, 4_000_000)], 100, 0)
    assert 6_000 < Measure().input_tokens(request) < 10_000


def test_a_provider_that_takes_text_only_is_told_that_there_is_a_picture() -> None:
    told = [each["content"] for each in chat_messages("", [result(1)]) if each["role"] == "tool"]
    assert told == ["1.png\n\n(image: this model can not be shown it)"]


@pytest.mark.parametrize("repeated", [False, True])
async def test_a_picture_that_the_provider_refuses_does_not_stop_the_session(
    tmp_path: Path, repeated: bool
) -> None:
    """Whole by its checksums, and yet nobody can decode it."""
    turns = [call("read", path="bad.png"), call("ls", path="."), DONE]
    scripted = script(*turns)
    asked: list[bool] = []

    def behave(body: Body) -> Answer:
        holds = '"image"' in json.dumps(body["messages"])
        asked.append(holds)
        if holds or (repeated and len(asked) == 3):
            return Failure(400, "invalid_request_error", "Could not process image")
        return cast("Answer", scripted(body))

    async with desk(tmp_path, behave=behave) as at:
        (at.workspace / "bad.png").write_bytes(_damaged())
        task = await at.work()
        notes = [each["note"] for each in await at.notes(task)]
    if repeated:  # it was not the picture
        assert (task.state, asked) == (TaskState.FAILED, [False, True, False])
    else:
        assert (task.state, asked) == (TaskState.COMPLETED, [False, True, False, False])
    assert notes.count("pictures_withdrawn") == 1


def _damaged() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))

    head = struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", b"no pixels") + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
