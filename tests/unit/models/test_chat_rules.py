"""tests/chat_rules.py: a test server that refused nothing would prove nothing."""

from typing import Any

import pytest

from tests.chat_rules import check_chat

USER = {"role": "user", "content": "x"}
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def with_call(**changes: Any) -> dict[str, Any]:
    return {**CALLS, "tool_calls": [{**CALL, **changes}]}


def tool(**changes: Any) -> dict[str, Any]:
    function = {"name": "ls", "description": "", "parameters": {"type": "object"}, **changes}
    return {"type": "function", "function": function}


def test_a_good_request_is_not_refused() -> None:
    good = body(USER, CALLS, RESULT, USER, tools=[tool()], stream=True, stream_options={})
    assert check_chat(good) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (body(), "not empty"),
        ({"messages": [USER]}, "model"),
        (body(USER, RESULT), "preceding message"),
        (body(USER, CALLS), "missing for c1"),
        (body(USER, CALLS, USER), "must be followed by"),
        (body(USER, CALLS, RESULT, RESULT), "preceding message"),
        (body(USER, CALLS, RESULT, CALLS, RESULT), "names two calls"),
        (body({"role": "robot", "content": "x"}), "role"),
        (body({"role": "user", "content": None}), "got null"),
        (body({"role": "user", "content": [{"type": "tool_result"}]}), "expected a string"),
        (body({**USER, "tool_calls": [CALL]}, RESULT), "only in an assistant's"),
        (body(USER, {**CALLS, "tool_calls": []}), "never empty"),
        (body(USER, with_call(id="x" * 41), {**RESULT, "tool_call_id": "x" * 41}), "characters"),
        (body(USER, with_call(function={"name": "ls", "arguments": {}}), RESULT), "as text"),
        (body(USER, tools=[]), "too short"),
        (body(USER, tools=[tool(), tool()]), "twice"),
        (body(USER, tools=[tool(name="x" * 65)]), "with a name"),
        (body(USER, tools=[tool(parameters={})]), "type object"),
        (body(USER, stream_options={}), "stream is true"),
        (body(USER, cache_control={}), "Unrecognized"),
    ],
)
def test_each_broken_rule_is_named(wrong: dict[str, Any], says: str) -> None:
    assert any(says in problem for problem in check_chat(wrong)), check_chat(wrong)
