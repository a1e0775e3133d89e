"""What a server asks, and which words of a person are an answer."""

from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitResult

from agentd.connectors.questions import Question, answer, answers
from agentd.connectors.ranking import rank
from agentd.domain.event import Event, EventKind
from agentd.domain.ids import SessionId
from tests.clock import HandClock

COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
TWO = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "sure": {"type": "boolean", "default": False},
    },
    "required": ["name"],
}


def question(schema: dict[str, Any] | None) -> Question:
    return Question("shop", "Well?", schema, None if schema else "https://x.example")


@pytest.mark.parametrize(
    ("schema", "said", "content"),
    [
        (COUNT, "12", {"count": 12}),
        (COUNT, '{"count": 3}', {"count": 3}),
        (TWO, "Bob", {"name": "Bob", "sure": False}),
        (TWO, '{"name": "Bob", "sure": true}', {"name": "Bob", "sure": True}),
        (
            {"type": "object", "properties": {"ok": {"type": "boolean"}}},
            "yes",
            {"ok": True},
        ),
        (None, "done", None),
    ],
)
def test_an_answer_is_taken(schema: dict[str, Any] | None, said: str, content: Any) -> None:
    found = answer(question(schema), said)
    assert found == ElicitResult(action="accept", content=content)


@pytest.mark.parametrize(
    ("schema", "said", "words"),
    [
        (COUNT, "a dozen", "not of type 'integer'"),
        (COUNT, "{count", "no valid JSON"),
        ({"type": "object", "properties": {"a": {}, "b": {}}}, "x", "a JSON object with a, b"),
    ],
)
def test_what_is_no_answer_is_told(schema: dict[str, Any], said: str, words: str) -> None:
    found = answer(question(schema), said)
    assert isinstance(found, str)
    assert words in found


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": 5}},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"type": "nope"}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {}, "required": 5},
        {"type": "object", "properties": {"a": {"description": "x" * 100_000}}},
    ],
)
def test_what_no_person_could_answer_is_not_asked(schema: dict[str, Any]) -> None:
    asked = ElicitRequestFormParams(message="Well?", requested_schema=schema)
    assert Question.of("shop", asked) is None


def test_an_answer_of_a_kind_that_the_protocol_lacks_is_told() -> None:
    anything: dict[str, Any] = {"type": "object", "properties": {"a": {}}}
    assert answer(question(anything), '{"a": [[]]}') == "it must hold plain values"


def test_a_person_may_decline() -> None:
    assert answer(question(COUNT), "Decline") == ElicitResult(action="decline")


def events(*bodies: dict[str, Any]) -> list[Event]:
    now = HandClock().now()
    return [
        Event(
            session_id=SessionId("s"),
            seq=seq,
            kind=_kind(body),
            body=body,
            task_id=None,
            run_id=None,
            created_at=now,
        )
        for seq, body in enumerate(bodies, start=1)
    ]


def _kind(body: dict[str, Any]) -> EventKind:
    if "stop_reason" in body:
        return EventKind.ASSISTANT
    return EventKind.USER if "text" in body else EventKind.TOOL_RESULT


ASKED = {"tool": "t", "error_type": "input_required", "data": {"question": "q"}}
SAID = {"text": "12", "source": "message", "sender": "person"}


def test_only_a_person_answers_and_only_once() -> None:
    assert answers(events(ASKED, SAID), "t") == {"q": "12"}
    assert answers(events(ASKED, {**SAID, "sender": "task:1"}), "t") == {}
    assert answers(events(SAID, ASKED), "t") == {}
    assert answers(events(ASKED, SAID, {"tool": "t"}), "t") == {}, "the call came to its end"
    assert answers(events(ASKED, SAID), "other") == {}


def test_an_answer_goes_to_the_question_that_was_shown_and_to_no_other() -> None:
    other = {**ASKED, "tool": "u", "data": {"question": "r"}}
    both = events(ASKED, other, SAID)
    assert (answers(both, "t"), answers(both, "u")) == ({"q": "12"}, {})
    reply = {"content": [], "stop_reason": "tool_use"}
    again = events(ASKED, other, SAID, reply, {"tool": "t"}, other, SAID)
    assert (answers(again, "t"), answers(again, "u")) == ({}, {"r": "12"})
    assert answers(events(ASKED, reply, SAID), "t") == {}, "it was said to something else"


def test_the_best_fit_comes_first() -> None:
    documents = ["read a file", "getWeatherForecast for a city", "write many files to a disk"]
    assert [place for place, _ in rank("weather forecasts", documents)] == [1]
    assert [place for place, _ in rank("write file", documents)] == [2, 0]
    assert rank("nothing of it", documents[:0]) == []
