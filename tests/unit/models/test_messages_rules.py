"""The judge of all requests, judged: each rule finds what breaks it, and only that."""

import copy
from typing import Any

import pytest

from tests.messages_rules import check_messages, check_request, sign

Message = dict[str, Any]


def text(words: str = "Words.") -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id_: str = "toolu_1", **changes: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "ls", "input": {}, **changes}


def result(id_: str = "toolu_1", **changes: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "Done.", **changes}


def thinking(words: str = "Hm.") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": sign(words)}


def user(*blocks: Any) -> Message:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Message:
    return {"role": "assistant", "content": list(blocks)}


LEGAL: dict[str, list[Message]] = {
    "text": [{"role": "user", "content": "Words."}],
    "prefill": [user(text()), assistant(text("So"))],
    "calls": [
        user(text()),
        assistant(thinking(), text(), call("a"), call("b")),
        user(result("b"), result("a", content=[text()], is_error=True), text()),
        assistant(call("c")),
        user(result("c", content="")),
    ],
    "other blocks": [
        user(text()),
        assistant({"type": "redacted_thinking", "data": "x"}, {"type": "of_tomorrow"}),
    ],
}

ASKED = user(text())
ILLEGAL: list[tuple[str, list[Message]]] = [
    ("at least one message", []),
    ("first message", [assistant(text())]),
    ("alternate", [ASKED, ASKED]),
    ("must be user or assistant", [ASKED, {"role": "tool", "content": "x"}]),
    ("extra inputs", [{**ASKED, "id": "x"}]),
    ("non-empty content", [user()]),
    ("non-empty content", [{"role": "user", "content": " "}]),
    ("string or a list", [{"role": "user", "content": None}]),
    ("must be non-empty", [user(text(""))]),
    ("must be non-empty", [user(text(" \n"))]),
    ("type: Field required", [user({"text": "x"})]),
    ("trailing whitespace", [ASKED, assistant(text("So "))]),
    ("final block", [ASKED, assistant(text(), thinking())]),
    ("signature", [ASKED, assistant({**thinking(), "thinking": "Other."}, text())]),
    ("signature", [ASKED, assistant({"type": "thinking", "thinking": "x"}, text())]),
    ("data", [ASKED, assistant({"type": "redacted_thinking"}, text())]),
    ("only be in assistant", [user(thinking(), text())]),
    ("cache_control", [ASKED, assistant({**thinking(), "cache_control": {}}, text())]),
    ("only be in assistant", [user(call()), assistant(text())]),
    ("only be in user", [ASKED, assistant(result())]),
    ("without `tool_result`", [ASKED, assistant(call())]),
    ("without `tool_result`", [ASKED, assistant(call()), ASKED]),
    ("without `tool_result`", [ASKED, assistant(call("a"), call("b")), user(result("a"))]),
    ("unexpected", [user(result())]),
    ("further back", [ASKED, assistant(call()), user(result()), assistant(text()), user(result())]),
    ("single result", [ASKED, assistant(call()), user(result(), result())]),
    ("come first", [ASKED, assistant(call()), user(text(), result())]),
    ("unique", [ASKED, assistant(call(), call()), user(result())]),
    ("unique", [ASKED, assistant(call()), user(result()), assistant(call()), user(result())]),
    (".id", [ASKED, assistant(call("a.b")), user(result("a.b"))]),
    (".name", [ASKED, assistant(call(name="a b")), user(result())]),
    (".input", [ASKED, assistant(call(input="{}")), user(result())]),
    ("is_error", [ASKED, assistant(call()), user(result(content="", is_error=True))]),
    ("must be non-empty", [ASKED, assistant(call()), user(result(content=[text("")]))]),
    ("string or a list", [ASKED, assistant(call()), user(result(content={}))]),
]

TOOL = {"name": "ls", "description": "Lists.", "input_schema": {"type": "object"}}
MARK = {"cache_control": {"type": "ephemeral"}}
REQUEST = {"model": "m", "max_tokens": 1, "system": "Be brief.", "tools": [TOOL]}
ILLEGAL_REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("model", {"model": ""}),
    ("max_tokens", {"max_tokens": 0}),
    ("max_tokens", {"max_tokens": None}),
    ("messages", {"messages": "Hello"}),
    ("tools.0.name", {"tools": [{**TOOL, "name": "a.b"}]}),
    ("tools.0.name", {"tools": [{**TOOL, "name": "a" * 129}]}),
    ("unique", {"tools": [TOOL, TOOL]}),
    ("must be object", {"tools": [{**TOOL, "input_schema": {"type": "array"}}]}),
    ("must be object", {"tools": [{"name": "ls"}]}),
    ("anyOf", {"tools": [{**TOOL, "input_schema": {"type": "object", "anyOf": []}}]}),
    ("system.0", {"system": [text("")]}),
    ("at most 4", {"messages": [user(*[{**text(), **MARK}] * 5)]}),
    ("at most 4", {"system": [{**text(), **MARK}], "messages": [user(*[{**text(), **MARK}] * 4)]}),
    ("ephemeral", {"messages": [user({**text(), "cache_control": {"type": "for_ever"}})]}),
]


@pytest.mark.parametrize("name", LEGAL)
def test_what_is_legal_passes(name: str) -> None:
    before = copy.deepcopy(LEGAL[name])
    assert check_messages(LEGAL[name], sign) == []
    assert check_request({**REQUEST, "messages": LEGAL[name]}, sign) == []
    assert LEGAL[name] == before


@pytest.mark.parametrize(("word", "messages"), ILLEGAL)
def test_what_breaks_a_rule_is_named(word: str, messages: list[Message]) -> None:
    problems = check_messages(messages, sign)
    assert any(word in problem for problem in problems), problems


@pytest.mark.parametrize(("word", "changes"), ILLEGAL_REQUESTS)
def test_what_breaks_a_rule_around_the_messages_is_named(
    word: str, changes: dict[str, Any]
) -> None:
    problems = check_request({**REQUEST, "messages": [ASKED], **changes}, sign)
    assert any(word in problem for problem in problems), problems


def test_without_a_signer_any_signature_will_do() -> None:
    foreign = {"type": "thinking", "thinking": "Hm.", "signature": "of somebody"}
    assert check_messages([ASKED, assistant(foreign, text())]) == []
