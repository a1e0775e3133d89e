"""Chat Completions through the real SDK and a server that refuses what the real one refuses."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import anyio
import pytest

from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.usage import Usage
from agentd.models.openai import OpenAiModel
from tests.anthropic_talk import answer_to
from tests.chat_api import ChatApi, Pieces, piece
from tests.messages_turns import Call, Failure, Turn
from tests.openai_talk import MODEL, asking, talk

END = "data: [DONE]\n\n"


def made(index: Any, arguments: Any, **more: Any) -> dict[str, Any]:
    """The delta of a call."""
    name = more.pop("name", None)
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return piece(tool_calls=[{"index": index, "function": function, **more}])


async def test_a_reply_is_put_together_from_its_pieces() -> None:
    call = Call("ls", {"path": "notes", "deep": [1, {"a": None}], "café": "ü"}, id="call_1")
    async with talk(Turn("I look.", [call])) as t:
        reply = await t.ask()
    assert list(reply.content) == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "ls", "input": call.input},
    ]
    assert (reply.stop_reason, reply.model) == ("tool_use", f"openai:{MODEL}")
    assert (reply.invalid_inputs, reply.is_estimated) == ({}, False)
    assert reply.request_id is not None
    assert t.model.name == f"openai:{MODEL}"


@pytest.mark.parametrize(
    ("finish", "calls", "reason"),
    [
        ("stop", [], "end_turn"),
        ("length", [], "max_tokens"),
        ("length", [Call("ls")], "max_tokens"),
        ("content_filter", [], "refusal"),
        ("tool_calls", [Call("ls")], "tool_use"),
        ("stop", [Call("ls")], "tool_use"),
        ("eos", [Call("ls")], "tool_use"),
        ("tool_calls", [], "end_turn"),
        ("a_reason_of_tomorrow", [], "end_turn"),
    ],
)
async def test_every_finish_reason_has_its_stop_reason(
    finish: str, calls: list[Call], reason: str
) -> None:
    async with talk(Turn("Text.", calls, stop_reason=finish)) as t:
        assert (await t.ask()).stop_reason == reason


async def test_a_refusal_is_one_whatever_the_finish_reason() -> None:
    async with talk(Pieces([piece(refusal="I will"), piece("stop", refusal=" not.")])) as t:
        reply = await t.ask()
    assert reply.stop_reason == "refusal"
    assert list(reply.content) == [{"type": "text", "text": "I will not."}]


async def test_tokens_are_counted_and_what_the_cache_gave_is_not_counted_twice() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 22,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    async with talk(Turn("Text.", usage=usage)) as t:
        reply = await t.ask()
    assert (reply.usage, reply.is_estimated) == (Usage(36, 22, 0, 64), False)


async def test_without_a_count_it_is_estimated_and_says_so() -> None:
    async with talk(Pieces([piece("stop", content="x" * 400), END])) as t:
        reply = await t.ask()
    assert reply.is_estimated
    assert reply.usage.output_tokens == 100
    sent = len(json.dumps(t.api.requests[0]))
    assert 0.2 * sent < reply.usage.input_tokens < 0.3 * sent


@pytest.mark.parametrize(
    ("turn", "results"),
    [
        pytest.param(Turn("I look.", [Call("ls"), Call("ls")]), ["a", "b"], id="two calls"),
        pytest.param(Turn("So."), [], id="text"),
        pytest.param(Turn(calls=[Call("ls", id="x" * 64)]), ["a"], id="a long id"),
    ],
)
async def test_what_was_received_can_be_sent_back(turn: Turn, results: list[str]) -> None:
    async with talk(turn, Turn("Done.")) as t:
        reply = await t.ask()
        assert (await t.ask(*answer_to(reply, *results))).content[0]["text"] == "Done."
    assert t.api.violations == []
    returned = t.api.requests[1]["messages"][2:]
    assert returned[0]["content"] == turn.text
    assert [each["content"] for each in returned[1:]] == (results or ["Go on."])


async def test_the_reasoning_goes_back_with_the_calls_it_led_to_and_only_there() -> None:
    turns = [Turn(calls=[Call("ls")], thinking="Where?"), Turn("So.", thinking="Hm."), Turn("End.")]
    async with talk(*turns) as t:
        first = await t.ask()
        assert first.content[0] == {
            "type": "thinking",
            "thinking": "Where?",
            "field": "reasoning_content",
        }
        history = answer_to(first, "a")
        second = await t.ask(*history)
        await t.ask(*history, *answer_to(second))
    replies = [m for m in t.api.requests[2]["messages"] if m["role"] == "assistant"]
    assert replies[0]["reasoning_content"] == "Where?"
    assert "reasoning_content" not in replies[1]


async def test_what_a_server_hangs_on_a_call_comes_back_with_it() -> None:
    extra = {"google": {"thought_signature": "abc"}}
    first = made(0, "{}", name="ls", id="call_1", extra_content=extra)
    async with talk(Pieces([first, piece("tool_calls"), END]), Turn("Done.")) as t:
        await t.ask(*answer_to(await t.ask(), "a"))
    (call,) = t.api.requests[1]["messages"][2]["tool_calls"]
    assert call["extra_content"] == extra


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param('{"path": "a', id="cut off"),
        pytest.param("{path: 1}", id="no JSON"),
        pytest.param('["a"]', id="a list"),
        pytest.param("null", id="null"),
        pytest.param("[" * 100_000, id="too deep"),
        pytest.param('{"n": NaN}', id="not a number"),
        pytest.param('{"s": "\\ud800"}', id="half a character"),
    ],
)
async def test_arguments_that_are_no_json_object_are_kept_as_text(raw: str) -> None:
    """And the call can be sent back, or the conversation could never go on."""
    async with talk(Turn(calls=[Call("ls", raw, id="call_1")]), Turn("Done.")) as t:
        reply = await t.ask()
        assert reply.content[0]["input"] == {}
        assert reply.invalid_inputs == {"call_1": raw}
        await t.ask(*answer_to(reply, "That was no JSON."))
    assert t.api.violations == []


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([made(0, "{}", name="ls"), made(1, "{}", name="cat")], id="no id"),
        pytest.param([made(0, "{}", name="ls", id=""), made(1, "{}", name="cat", id="")], id="''"),
        pytest.param(
            [made(0, "{}", name="ls", id="a"), made(0, "{}", name="cat", id="b")], id="same index"
        ),
        pytest.param([made(0, "{}", name="ls"), made(0, "{}", name="cat")], id="index, no id"),
        pytest.param([made(None, "{}", name="ls"), made(None, "{}", name="cat")], id="no index"),
        pytest.param(
            [made(0, "{}", name="ls", id="a"), made(1, "{}", name="cat", id="a")], id="same id"
        ),
        pytest.param([made(0, {}, name="ls"), made(1, {}, name="cat")], id="arguments as object"),
        pytest.param(
            [
                made(0, "{", name="ls", id="functions.ls:0"),
                made(0, "}", name="ls", id="functions.ls:0"),
                made(1, "", name="cat", id="functions.cat:1"),
                made(1, "{}", name="cat", id="functions.cat:1"),
            ],
            id="name and id in each piece, with dots",
        ),
    ],
)
async def test_calls_of_sloppy_servers_are_told_apart(chunks: list[dict[str, Any]]) -> None:
    async with talk(Pieces([*chunks, piece("stop"), END]), Turn("Done.")) as t:
        reply = await t.ask()
        calls = [block for block in reply.content if block["type"] == "tool_use"]
        assert [(each["name"], each["input"]) for each in calls] == [("ls", {}), ("cat", {})]
        assert len({each["id"] for each in calls}) == 2
        assert reply.stop_reason == "tool_use"
        await t.ask(*answer_to(reply, "a", "b"))
    assert t.api.violations == []


async def test_an_id_that_comes_again_in_a_later_turn_is_replaced() -> None:
    turn = Turn(calls=[Call("ls", id="call_0")])
    async with talk(turn, turn, Turn("Done.")) as t:
        first = answer_to(await t.ask(), "a")
        second = await t.ask(*first)
        assert second.content[0]["id"] != "call_0"
        await t.ask(*first, *answer_to(second, "b"))
    assert t.api.violations == []


async def test_arguments_in_pieces_that_are_json_by_themselves_stay_one_call() -> None:
    chunks = [made(0, "", name="ls", id="a"), made(0, "{}"), made(0, ""), piece("tool_calls")]
    async with talk(Pieces([*chunks, END])) as t:
        reply = await t.ask()
    assert [block["input"] for block in reply.content] == [{}]


async def test_a_server_that_does_not_stream_is_understood() -> None:
    calls = [
        {"id": name, "function": {"name": name, "arguments": "{}"}, "type": "function"}
        for name in ("ls", "cat")
    ]
    choice = {"message": {"content": "So.", "tool_calls": calls}, "finish_reason": "tool_calls"}
    body = {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    async with talk(Pieces([json.dumps(body)], content_type="application/json")) as t:
        reply = await t.ask()
    assert [block.get("name", "text") for block in reply.content] == ["text", "ls", "cat"]
    assert (reply.stop_reason, reply.usage) == ("tool_use", Usage(1, 2))


async def test_a_name_that_openai_would_refuse_is_shortened_on_the_way() -> None:
    long = "x" * 100
    request = asking()
    request = replace(request, tools=[{**request.tools[0], "name": each} for each in (long, "ls")])

    def behave(body: Any) -> Turn:
        return Turn(calls=[Call(tool["function"]["name"]) for tool in body["tools"]])

    async with ChatApi(behave) as api:
        model = OpenAiModel(MODEL, api_key="key-1", base_url=api.base_url, stall_s=5)
        reply = await model.reply(request)
        await model.aclose()
    assert not api.violations
    assert [block["name"] for block in reply.content] == [long, "ls"]


async def test_only_the_first_of_several_choices_counts() -> None:
    other = piece("stop", content="Other.")
    other["choices"][0]["index"] = 1
    async with talk(Pieces([piece(content="First."), other, piece("stop"), END])) as t:
        assert list((await t.ask()).content) == [{"type": "text", "text": "First."}]


@pytest.mark.parametrize("content", [[{"type": "text", "text": "Text."}], "Text."])
async def test_text_may_come_as_parts_and_as_a_whole_message(content: Any) -> None:
    whole = piece("stop", content=content)
    whole["choices"][0]["message"] = whole["choices"][0].pop("delta")
    async with talk(Pieces([": keep waiting\n\n", whole, END])) as t:
        assert list((await t.ask()).content) == [{"type": "text", "text": "Text."}]


async def test_the_request_carries_the_system_prompt_the_tools_and_the_limit() -> None:
    async with talk(Turn("Text.")) as t:
        await t.ask()
    body = t.api.requests[0]
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is here?"},
    ]
    assert (body["max_tokens"], body["model"], body["stream"]) == (100, MODEL, True)
    assert [tool["function"]["parameters"]["type"] for tool in body["tools"]] == ["object"]


async def test_only_the_given_key_is_sent_whatever_the_environment_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", "another")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    async with talk(Turn("Text.")) as t:
        await t.ask()
    sent = json.dumps(dict(t.api.headers[0]))
    assert "key-1" in sent
    assert "another" not in sent


async def test_without_a_key_the_public_api_is_not_asked() -> None:
    model = OpenAiModel(MODEL, api_key=None, base_url=None, stall_s=5)
    with pytest.raises(ModelError) as caught:
        await model.reply(asking())
    assert caught.value.kind is ModelErrorKind.AUTHENTICATION
    assert "OPENAI_API_KEY" in str(caught.value)
    await model.aclose()


async def test_a_server_of_ones_own_needs_no_key() -> None:
    async with ChatApi(needs_key=False) as api:
        model = OpenAiModel(MODEL, api_key=None, base_url=api.base_url, stall_s=5)
        await model.reply(asking())
        await model.aclose()
    assert api.answered == 1


@pytest.mark.parametrize("fault", ["silent", "stall"])
async def test_cancelling_closes_the_connection(fault: Any) -> None:
    async with talk(Failure(fault=fault)) as t:
        asked = asyncio.create_task(t.ask())
        await t.api.until(lambda: t.api.stalls == 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await t.api.until(lambda: t.api.disconnects == 1)


async def test_many_replies_at_once() -> None:
    async with talk(Turn("Text.")) as t, anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(t.ask)
    assert t.api.answered == 100
