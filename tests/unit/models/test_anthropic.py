"""Claude through the real SDK, against a real server that refuses what the real one refuses."""

import asyncio
import json
from typing import Any

import anyio
import pytest

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.usage import Usage
from agentd.models.anthropic import AnthropicModel, with_cache_mark
from tests.anthropic_talk import ASKED, MODEL, answer_to, asking, talk
from tests.messages_api import Call, Failure, MessagesApi, Turn

CITED = {
    "type": "text",
    "text": "The import is done.",
    "citations": [
        {
            "type": "char_location",
            "cited_text": "done",
            "document_index": 0,
            "document_title": None,
            "start_char_index": 3,
            "end_char_index": 7,
            "file_id": None,
        }
    ],
}
SEARCH = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "title": "X",
                "url": "https://example.org",
                "encrypted_content": "abc",
                "page_age": None,
            }
        ],
    },
]


async def test_a_reply_is_put_together_from_its_pieces() -> None:
    call = Call("ls", {"path": "notes", "deep": [1, {"a": None}], "café": "ü"}, id="toolu_1")
    async with talk(Turn("I look.", [call])) as t:
        reply = await t.ask()
    assert list(reply.content) == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": call.input},
    ]
    assert (reply.stop_reason, reply.model, reply.invalid_inputs) == ("tool_use", MODEL, {})
    assert reply.request_id is not None
    assert t.model.name == f"anthropic:{MODEL}"


@pytest.mark.parametrize(
    "reason",
    [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
        "a_reason_of_tomorrow",
    ],
)
async def test_every_stop_reason_arrives_as_it_was_sent(reason: str) -> None:
    async with talk(Turn("Text.", stop_reason=reason)) as t:
        assert (await t.ask()).stop_reason == reason


async def test_all_tokens_are_counted_by_their_kind() -> None:
    usage = {
        "input_tokens": 11,
        "output_tokens": 22,
        "cache_creation_input_tokens": 33,
        "cache_read_input_tokens": 44,
    }
    async with talk(Turn("Text.", usage=usage)) as t:
        assert (await t.ask()).usage == Usage(11, 22, 33, 44)


@pytest.mark.parametrize(
    ("turn", "results"),
    [
        pytest.param(Turn("I look.", [Call("ls")], thinking="Where?\n"), ["a"], id="thinking"),
        pytest.param(Turn(calls=[Call("ls"), Call("ls")]), ["a", "b"], id="two calls"),
        pytest.param(
            Turn("So.", blocks=[{"type": "redacted_thinking", "data": "EmwK"}, *SEARCH, CITED]),
            [],
            id="blocks of the provider",
        ),
        pytest.param(
            Turn(blocks=[{"type": "of_tomorrow", "shape": {"deep": [1]}, "n": None}, CITED]),
            [],
            id="a block that nobody knows yet",
        ),
        pytest.param(Turn(thinking="", text="So."), [], id="thinking that is not shown"),
    ],
)
async def test_what_was_received_can_be_sent_back_unchanged(turn: Turn, results: list[str]) -> None:
    async with talk(turn, Turn("Done.")) as t:
        reply = await t.ask()
        assert (await t.ask(*answer_to(reply, *results))).content[0]["text"] == "Done."
    assert t.api.violations == []
    returned = t.api.requests[1]["messages"][1]["content"]
    assert returned == list(reply.content)
    for block in turn.blocks:
        assert block in returned


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param('{"path": "a', id="cut off"),
        pytest.param("{path: 1}", id="no JSON"),
        pytest.param('["a"]', id="a list"),
        pytest.param('"a"', id="a string"),
        pytest.param("null", id="null"),
        pytest.param("[" * 100_000, id="too deep"),
        pytest.param('{"n": NaN}', id="not a number"),
        pytest.param('{"n": 1e999}', id="infinite"),
        pytest.param('{"s": "\\ud800"}', id="half a character"),
    ],
)
async def test_arguments_that_are_no_json_object_are_kept_as_text(raw: str) -> None:
    """And the call can be sent back, or the conversation could never go on."""
    async with talk(Turn(calls=[Call("ls", raw, id="toolu_1")]), Turn("Done.")) as t:
        reply = await t.ask()
        assert reply.content[0]["input"] == {}
        assert reply.invalid_inputs == {"toolu_1": raw}
        await t.ask(*answer_to(reply, "That was no JSON."))
    assert t.api.violations == []


async def test_a_call_without_arguments_has_an_empty_object() -> None:
    async with talk(Turn(calls=[Call("ls", "")])) as t:
        reply = await t.ask()
    assert (reply.content[0]["input"], reply.invalid_inputs) == ({}, {})


async def test_a_large_input_arrives_whole() -> None:
    text = "line\n" * 100_000
    async with talk(Turn(calls=[Call("write", {"content": text})], pieces=5_000)) as t:
        assert (await t.ask()).content[0]["input"] == {"content": text}


async def test_the_request_carries_the_system_prompt_the_tools_and_the_cache_marks() -> None:
    async with talk(Turn("Text.")) as t:
        await t.ask()
    body = t.api.requests[0]
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert body["messages"][0]["content"] == [{**ASKED["content"][0], "cache_control": mark}]
    assert (body["max_tokens"], body["model"], body["stream"]) == (100, MODEL, True)
    assert [tool["name"] for tool in body["tools"]] == ["ls"]


def test_the_cache_mark_is_on_a_copy_and_never_on_thinking() -> None:
    thinking = {"type": "thinking", "thinking": "t", "signature": "s"}
    messages: list[dict[str, Any]] = [ASKED, {"role": "assistant", "content": [thinking]}]
    before = json.dumps(messages)
    marked = with_cache_mark(messages)
    assert json.dumps(messages) == before
    assert marked[1]["content"] == [thinking]
    assert marked[0]["content"][-1]["cache_control"] == {"type": "ephemeral"}


async def test_only_the_given_key_is_sent_whatever_the_environment_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-token")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    async with talk(Turn("Text.")) as t:
        await t.ask()
    sent = json.dumps(dict(t.api.headers[0]))
    assert "key-1" in sent
    assert "another" not in sent


async def test_without_a_key_the_error_says_how_to_set_one() -> None:
    model = AnthropicModel(MODEL, api_key=None, base_url=None, stall_s=5)
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            await model.reply(asking())
        assert caught.value.kind is ModelErrorKind.AUTHENTICATION
        assert "ANTHROPIC_API_KEY" in str(caught.value)
        assert not caught.value.retryable
    await model.aclose()


async def test_the_line_break_behind_a_key_that_was_read_from_a_file_does_not_count() -> None:
    async with MessagesApi() as api:
        model = AnthropicModel(MODEL, api_key="key-1\n", base_url=api.url, stall_s=5)
        await model.reply(asking())
        await model.aclose()
    assert api.answered == 1


async def test_a_reply_that_could_not_be_stored_is_asked_for_again() -> None:
    """Half a character: Python can hold it, but neither a database nor a request can."""
    async with talk(Turn("half \ud800 a character")) as t:
        assert (await t.fail()).kind is ModelErrorKind.BROKEN_STREAM


@pytest.mark.parametrize("fault", ["silent", "stall"])
async def test_cancelling_closes_the_connection(fault: Any) -> None:
    async with talk(Failure(fault=fault)) as t:
        asked = asyncio.create_task(t.ask())
        await t.api.until(lambda: t.api.stalls == 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await t.api.until(lambda: t.api.disconnects == 1)


async def test_a_cancel_scope_closes_the_connection_too() -> None:
    async with talk(Failure(fault="stall")) as t:
        async with anyio.create_task_group() as group:
            group.start_soon(t.ask)
            await t.api.until(lambda: t.api.stalls == 1)
            group.cancel_scope.cancel()
        await t.api.until(lambda: t.api.disconnects == 1)


async def test_hundreds_of_replies_at_once() -> None:
    async with talk(Turn("Text.")) as t, anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(t.ask)
    assert t.api.answered == 200
