"""For every prefix of every journal the messages are legal: the promise that no task can brick."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.transcript import CALLS_VOID, messages, tool_calls, unanswered
from agentd.domain.event import Event, EventKind
from agentd.domain.ids import RunId, SessionId, TaskId
from agentd.models.openai_messages import chat_messages
from tests.chat_rules import check_chat
from tests.messages_rules import check_messages, sign

_AT = datetime(2026, 11, 20, tzinfo=UTC)
CONTINUED = ("pause_turn", "compaction")
_TEXT = st.text(max_size=12) | st.sampled_from(["", " ", "\n", "words", "two words ", "ünï ☃"])
_STOPS = [*CALLS_VOID, "end_turn", "tool_use", "stop_sequence", "pause_turn", "compaction", "new"]
# What each provider's thinking looks like, by the name of a model as it stands in the journal.
_THOUGHTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "claude-x": lambda text: {"type": "thinking", "thinking": text, "signature": sign(text)},
    "openai:x": lambda text: {"type": "thinking", "thinking": text, "field": "reasoning_content"},
    "scripted:x": lambda text: {"type": "thinking", "thinking": text, "signature": "scripted"},
}


@dataclass
class Writer:
    """Writes a journal as the loop does, crashes where it is told, and goes on as a resumed run."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    events: list[Event] = field(default_factory=list[Event])
    calls: int = 0

    def write(self, kind: EventKind, **body: Any) -> None:
        seq = len(self.events) + 1
        session, task, run = SessionId("s"), TaskId("t"), RunId("t.1")
        self.events.append(Event(session, seq, kind, body, task, run, _AT))

    def say(self, source: str) -> None:
        self.write(EventKind.USER, text=self.draw(_TEXT), source=source)

    def reply(self) -> None:
        blocks: list[dict[str, Any]] = []
        model = self.draw(st.sampled_from(sorted(_THOUGHTS)))
        if self.draw(st.booleans()):
            blocks.append(_THOUGHTS[model](self.draw(_TEXT)))
        if self.draw(st.booleans()):
            blocks.append({"type": "text", "text": self.draw(_TEXT)})
        for _ in range(self.draw(st.integers(0, 3))):
            self.calls += 1
            call_id = f"call_{self.calls}"
            blocks.append({"type": "tool_use", "id": call_id, "name": "ls", "input": {}})
        stop = self.draw(st.sampled_from(_STOPS))
        self.write(EventKind.ASSISTANT, content=blocks, stop_reason=stop, model=model)

    def react(self) -> None:
        """As the loop to a reply without calls; and somebody may say something between turns."""
        if unanswered(self.events) is not None:
            return
        last = [event for event in self.events if event.kind is not EventKind.NOTE][-1]
        if self.draw(st.booleans()):
            self.say(self.draw(st.sampled_from(["message", "resume", "task", "guard"])))
        if last.kind is EventKind.ASSISTANT and last.body["stop_reason"] not in CONTINUED:
            self.write(EventKind.USER, text="Call a tool.", source="reminder")

    def carry_out(self) -> None:
        """Answer what is open, in any of the ways the dispatcher does; perhaps crash on the way."""
        left = unanswered(self.events)
        pending = [block["id"] for block in left[1]] if left else []
        if self.draw(st.booleans()):
            pending = self.draw(st.permutations(pending))
        for call_id in pending:
            if self.draw(st.integers(0, 5)) == 0:
                return  # killed; the next round is the resumed run
            self.write(EventKind.TOOL_CALL, call_id=call_id, tool="ls", effect="read", digest="0")
            if self.draw(st.integers(0, 5)) == 0:
                return
            content = self.draw(_TEXT)
            failed = self.draw(st.booleans())
            self.write(
                EventKind.TOOL_RESULT,
                call_id=call_id,
                tool="ls",
                content=content,
                is_error=failed,
            )


@st.composite
def journals(draw: Callable[[st.SearchStrategy[Any]], Any]) -> list[Event]:
    writer = Writer(draw)
    writer.write(EventKind.USER, text="Do it.", source="task")
    for _ in range(draw(st.integers(0, 6))):
        if unanswered(writer.events) is None:
            writer.reply()
        if draw(st.booleans()):
            writer.write(EventKind.NOTE, note="model_call_failed")
        writer.carry_out()
        writer.react()
    return writer.events


@settings(max_examples=300, deadline=None)
@given(journals())
def test_the_messages_of_every_prefix_are_legal(journal: list[Event]) -> None:
    for length in range(1, len(journal) + 1):
        prefix = journal[:length]
        assert check_messages(messages(prefix), sign) == [], prefix
        assert _refused_by_openai(prefix) == [], prefix


def _refused_by_openai(prefix: list[Event]) -> list[str]:
    chat = chat_messages("Be brief.", messages(prefix, "openai"))
    roles = [message["role"] for message in chat if message["role"] != "tool"]
    assert all(a != b for a, b in pairwise(roles) if "user" in (a, b)), roles
    assert roles[-1] == "user" or chat[-1]["role"] == "tool"
    return check_chat({"model": "m", "messages": chat})


@settings(max_examples=200, deadline=None)
@given(journals())
def test_a_turn_that_was_answered_is_never_said_differently_later(journal: list[Event]) -> None:
    """What the provider has cached stays the start of what it is sent next."""
    sent: list[Any] = []
    for length in range(1, len(journal) + 1):
        before = journal[length - 1]
        if before.kind is not EventKind.ASSISTANT:
            continue
        now = messages(journal[: length - 1])
        if unanswered(journal[: length - 1]) is not None:
            continue
        flat = [(m["role"], block) for m in now for block in m["content"]]
        assert flat[: len(sent)] == sent
        sent = flat


@settings(max_examples=100, deadline=None)
@given(journals())
def test_it_neither_changes_the_journal_nor_shares_with_it(journal: list[Event]) -> None:
    before = repr(journal)
    made = messages(journal)
    for message in made:
        message["content"].append({"type": "text", "text": "more"})
    assert repr(journal) == before
    assert messages(journal) == messages(journal)


def _journal(*bodies: tuple[EventKind, dict[str, Any]]) -> list[Event]:
    session, task, run = SessionId("s"), TaskId("t"), RunId("t.1")
    return [
        Event(session, n, kind, body, task, run, _AT) for n, (kind, body) in enumerate(bodies, 1)
    ]


_USE = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
_ASKED = (EventKind.USER, {"text": "Do it.", "source": "task"})


def test_an_open_call_is_said_to_have_been_interrupted() -> None:
    reply = (EventKind.ASSISTANT, {"content": [_USE], "stop_reason": "tool_use", "model": "m"})
    (block,) = messages(_journal(_ASKED, reply))[-1]["content"]
    assert (block["tool_use_id"], block["is_error"]) == ("c1", True)


def test_results_stand_in_the_order_of_the_calls_whatever_the_order_they_came_in() -> None:
    uses = [{**_USE, "id": each} for each in ("c1", "c2")]
    reply = (EventKind.ASSISTANT, {"content": uses, "stop_reason": "tool_use", "model": "m"})
    results = [
        (EventKind.TOOL_RESULT, {"call_id": each, "content": each, "is_error": False})
        for each in ("c2", "c1")
    ]
    said = messages(_journal(_ASKED, reply, *results))[-1]["content"]
    assert [block["tool_use_id"] for block in said] == ["c1", "c2"]


@pytest.mark.parametrize("reason", sorted(CALLS_VOID))
def test_a_reply_that_was_cut_off_has_no_calls(reason: str) -> None:
    reply = (EventKind.ASSISTANT, {"content": [_USE], "stop_reason": reason, "model": "m"})
    journal = _journal(_ASKED, reply)
    assert tool_calls(journal[-1]) == []
    assert unanswered(journal) is None
    assert [message["role"] for message in messages(journal)] == ["user"]


_REPLIES = {
    "claude-x": [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "text", "text": "So.", "citations": []},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    ],
    "openai:x": [
        {"type": "thinking", "thinking": "Hm.", "field": "reasoning_content"},
        {"type": "text", "text": "So."},
        {**_USE, "extra_content": {"signature": "abc"}},
    ],
    "scripted:x": [
        {"type": "thinking", "thinking": "Hm.", "signature": "scripted"},
        {"type": "text", "text": "So."},
    ],
}


@pytest.mark.parametrize("by", _REPLIES)
@pytest.mark.parametrize("to", ["anthropic", "openai", "scripted"])
def test_only_the_provider_that_said_it_gets_back_what_no_other_understands(
    by: str, to: str
) -> None:
    blocks = _REPLIES[by]
    body = {"content": blocks, "stop_reason": "end_turn", "model": by}
    reply = messages(_journal(_ASKED, (EventKind.ASSISTANT, body)), to)[1]["content"]
    if to == by.partition(":")[0] or (to, by) == ("anthropic", "claude-x"):
        assert reply == blocks
    else:
        assert reply[0] == {"type": "text", "text": "So."}
        assert [set(block) for block in reply[1:]] == [set(_USE)] * ("openai" in by)
