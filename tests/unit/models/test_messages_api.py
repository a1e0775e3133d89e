"""The test server: who gets which turn, and that it can be started by itself."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import anthropic
import anyio
import pytest
from anthropic.types import Message, MessageParam

from agentd.domain.errors import ModelError
from tests.anthropic_talk import answer_to, talk
from tests.messages_api import Call, Failure, MessagesApi, Turn, by_prompt, script
from tests.messages_turns import Behaviour, Body, content_of, replies_in

ASKED: MessageParam = {"role": "user", "content": "What is here?"}
ROOT = Path(__file__).parents[3]


def client(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="key-1", base_url=url, max_retries=0)


async def ask(sdk: anthropic.AsyncAnthropic, *messages: MessageParam) -> Message:
    return await sdk.messages.create(
        model="claude-haiku-4-5", max_tokens=10, messages=messages or [ASKED]
    )


async def text_of(behave: Behaviour, prompt: str) -> str:
    async with MessagesApi(behave) as api, client(api.url) as sdk:
        block = (await ask(sdk, {"role": "user", "content": prompt})).content[0]
    assert block.type == "text"
    return block.text


async def test_it_answers_at_once_and_counts_tokens_too() -> None:
    async with MessagesApi(script(Turn("Hello."))) as api, client(api.url) as sdk:
        message = await ask(sdk)
        counted = await sdk.messages.count_tokens(model="m", messages=[ASKED])
        with pytest.raises(anthropic.NotFoundError):
            await sdk.models.list()
    assert [block.to_dict() for block in message.content] == [{"type": "text", "text": "Hello."}]
    assert message.stop_reason == "end_turn"
    assert counted.input_tokens > 0
    assert (api.answered, api.violations) == (1, [])


async def test_it_refuses_what_the_real_one_refuses_and_remembers_it() -> None:
    async with MessagesApi() as api, client(api.url) as sdk:
        with pytest.raises(anthropic.BadRequestError, match="first message"):
            await ask(sdk, {"role": "assistant", "content": "Hello."})
    assert len(api.violations) == 1
    assert api.requests == []


async def test_a_script_goes_on_in_a_new_server() -> None:
    """The turn is read from the request, so a server may be started again like its client."""
    turns = Turn(calls=[Call("ls")]), Turn(calls=[Call("ls")]), Turn("Done.")
    history: list[dict[str, Any]] = []
    for _ in range(2):
        async with talk(*turns) as t:
            history += answer_to(await t.ask(*history), "result")
    async with talk(*turns) as t:
        assert (await t.ask(*history)).content[0]["text"] == "Done."


async def test_a_script_that_runs_out_is_no_violation_but_an_error() -> None:
    async with talk(Turn("One.")) as t:
        reply = await t.ask()
        with pytest.raises(ModelError, match="asked for turn 2"):
            await t.ask(*answer_to(reply))
    assert t.api.violations == []


@pytest.mark.parametrize("parted", [True, False])
def test_replies_that_became_one_message_are_counted_as_they_were(*, parted: bool) -> None:
    turns = [
        Turn("Wait.", stop_reason="pause_turn"),
        Turn(" ", calls=[Call("ls")], thinking="Hm."),
        Turn("Too long", calls=[Call("ls")], stop_reason="max_tokens"),
    ]
    first, second = content_of(turns[0]), [b for b in content_of(turns[1]) if b.get("text") != " "]
    replies: list[Any] = [[*first, *second]]
    if parted:
        replies = [first, second]
    messages: list[Any] = [ASKED]
    for blocks in [*replies, [{"type": "text", "text": "Too long"}]]:
        messages += [{"role": "assistant", "content": blocks}, ASKED]
    assert replies_in({"messages": messages[:2]}, turns) == (1 if parted else 2)
    assert replies_in({"messages": messages}, turns) == 3


async def test_the_first_tries_fail_for_each_conversation() -> None:
    behave = script(Turn("At last.", failures=[Failure(529)]))
    for prompt in ("one", "two"):
        with pytest.raises(anthropic.APIStatusError):
            await text_of(behave, prompt)
        assert await text_of(behave, prompt) == "At last."


async def test_each_prompt_may_have_its_own_script() -> None:
    behave = by_prompt({"alpha": script(Turn("A."))}, script(Turn("Else.")))
    assert await text_of(behave, "Do alpha now.") == "A."
    assert await text_of(behave, "Do beta now.") == "Else."


async def test_a_behaviour_may_wait_for_the_test() -> None:
    async def behave(body: Body) -> Turn:
        await api.until(lambda: api.answered == 2)
        return Turn(str(len(body["messages"])))

    async with MessagesApi(behave) as api, client(api.url) as one, client(api.url) as other:
        await asyncio.gather(*(ask(sdk) for sdk in (one, other)))
    assert api.answered == 2


async def test_a_behaviour_that_breaks_fails_the_test_that_looks() -> None:
    def behave(body: Body) -> Turn:
        raise KeyError(len(body))

    async with MessagesApi(behave) as api, client(api.url) as sdk:
        with pytest.raises(anthropic.BadRequestError, match="KeyError"):
            await ask(sdk)
    assert "KeyError" in api.violations[0]


async def test_it_can_be_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    turns = [{"text": "Hello.", "calls": [{"tool": "ls", "input": {"path": "."}}]}]
    file.write_text(json.dumps(turns))
    command = [sys.executable, "-m", "tests.messages_api", "--script", str(file)]
    async with await anyio.open_process(command, cwd=ROOT, stderr=None) as process:
        assert process.stdout is not None
        try:
            url = (await process.stdout.receive()).decode().strip()
            async with client(url) as sdk:
                message = await ask(sdk)
                seen = await sdk.get("/_seen", cast_to=object)
        finally:
            process.terminate()
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert seen == {"requests": 1, "violations": []}
