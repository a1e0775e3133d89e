"""Pictures in a request: no more than a provider takes, and counted as what they cost."""

from typing import Any

from agentd.agent.measure import Measure
from agentd.agent.pictures import only_newest
from agentd.models.model import ModelRequest
from agentd.models.openai_messages import chat_messages


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
