"""Loop detection: what goes round in circles is told, then ended; what gets on never is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.dispatch import digest
from agentd.agent.guards import Bounds, Tell, circling
from agentd.domain.event import Event, EventKind
from agentd.domain.ids import RunId, SessionId, TaskId
from agentd.domain.task import TaskState
from agentd.store.runs import Ending
from tests.desk import always, desk
from tests.messages_turns import DONE, Call, Turn, call

_AT = datetime(2026, 11, 20, tzinfo=UTC)


@dataclass
class Talk:
    """A journal as the loop writes it, and what the guard did about it."""

    bounds: Bounds = field(default_factory=Bounds)
    events: list[Event] = field(default_factory=list[Event])
    now: datetime = _AT
    calls: int = 0

    def write(self, kind: EventKind, **body: Any) -> None:
        session, task, run = SessionId("s"), TaskId("t"), RunId("t.1")
        self.events.append(Event(session, len(self.events) + 1, kind, body, task, run, self.now))

    def turn(self, *calls: tuple[str, Any, str], error: bool = False, lasts_s: float = 0) -> str:
        """Calls as (tool, input, result). What the guard says: "", a rule, or "failed"."""
        ids = [f"c{self.calls + n}" for n in range(len(calls))]
        self.calls += len(calls)
        blocks = [
            {"type": "tool_use", "id": each, "name": tool, "input": input_}
            for each, (tool, input_, _) in zip(ids, calls, strict=True)
        ]
        self.write(EventKind.ASSISTANT, content=blocks, stop_reason="tool_use", model="m")
        for each, (tool, input_, result) in zip(ids, calls, strict=True):
            facts = {"call_id": each, "tool": tool}
            self.write(EventKind.TOOL_CALL, **facts, effect="read", digest=digest(input_))
            self.now += timedelta(seconds=lasts_s)
            self.write(EventKind.TOOL_RESULT, **facts, content=result, is_error=error)
        return self.guard()

    def guard(self) -> str:
        decision = circling(self.events, self.bounds)
        match decision:
            case None:
                return ""
            case Tell(rule, text):
                self.write(EventKind.USER, text=text, source="guard", rule=rule)
                assert circling(self.events, self.bounds) is None, "told twice"
                return rule
            case Ending():
                assert decision.state is TaskState.FAILED
                return "failed"

    def say(self, source: str) -> None:
        self.write(EventKind.USER, text="Words.", source=source)


_A, _B, _C = ("ls", {"path": "."}, "a"), ("read", {"path": "a"}, "b"), ("ls", {"path": "b"}, "c")


def test_the_same_call_with_the_same_result_is_told_and_ends_after_as_many_again() -> None:
    talk = Talk()
    assert [talk.turn(_A) for _ in range(6)] == ["", "", "same_result", "", "", "failed"]


def test_the_same_call_with_changing_results_may_go_on_for_longer() -> None:
    talk = Talk()
    said = [talk.turn(("ls", {}, str(n))) for n in range(16)]
    assert said == [*[""] * 7, "same_call", *[""] * 7, "failed"]


@pytest.mark.parametrize("round_", [(_A, _B), (_A, _B, _C), (_A, _A, _B)], ids=["2", "3", "aab"])
@pytest.mark.parametrize("together", [True, False])
def test_rounds_are_seen_whether_their_calls_come_together_or_not(
    round_: Sequence[tuple[str, Any, str]], *, together: bool
) -> None:
    talk = Talk()
    said = ""
    for _ in range(6):
        said += talk.turn(*round_) if together else "".join(talk.turn(each) for each in round_)
    assert said == "alternationfailed"


def test_rounds_with_changing_results_may_go_on_for_longer() -> None:
    talk = Talk()
    said = [talk.turn(("write", {"x": 1}, "ok"), ("test", {}, str(n))) for n in range(16)]
    assert said == [*[""] * 7, "same_call", *[""] * 7, "failed"]


def test_a_streak_of_errors_is_seen_whatever_the_calls_are() -> None:
    talk = Talk()
    said = [talk.turn((f"tool-{n}", {"n": n}, f"no {n}"), error=True) for n in range(12)]
    assert said == [*[""] * 5, "errors", *[""] * 5, "failed"]


def test_something_else_in_between_begins_anew() -> None:
    talk = Talk()
    assert [talk.turn(_A), talk.turn(_A), talk.turn(_B), talk.turn(_A), talk.turn(_A)] == [""] * 5
    talk = Talk()
    assert [talk.turn(_A) for _ in range(3)][-1] == "same_result"
    assert talk.turn(_C) == ""
    assert [talk.turn(_A) for _ in range(3)] == ["", "", "same_result"]  # told again, not ended


def test_a_message_to_the_session_begins_anew_and_a_reminder_does_not() -> None:
    talk = Talk()
    talk.turn(_A)
    talk.turn(_A)
    talk.say("message")
    assert [talk.turn(_A), talk.turn(_A)] == ["", ""]
    talk.say("reminder")
    assert talk.turn(_A) == "same_result"


def test_many_equal_calls_in_one_turn_are_told_before_they_end_the_task() -> None:
    talk = Talk()
    assert talk.turn(*[_A] * 100) == "same_result"
    assert talk.turn(*[_A] * 100) == "failed"


def test_waiting_and_looking_again_may_go_on_for_longer() -> None:
    talk = Talk()
    wait, look = ("sleep", {"s": 30}, "slept"), ("read", {"path": "state"}, "not yet")
    said: list[str] = []
    for _ in range(8):
        said += [talk.turn(wait, lasts_s=30), talk.turn(look)]
    assert said == [*[""] * 15, "same_call"]
    talk = Talk()
    assert [talk.turn(wait, lasts_s=30) for _ in range(8)] == [*[""] * 7, "same_call"]


def test_equal_arguments_are_equal_in_any_order_and_calls_that_were_refused_count() -> None:
    talk = Talk()
    assert talk.turn(("ls", {"a": 1, "b": 2}, "x")) == ""
    assert talk.turn(("ls", {"b": 2, "a": 1}, "x")) == ""
    talk.events = [event for event in talk.events if event.kind is not EventKind.TOOL_CALL]
    assert talk.turn(("ls", {"a": 1, "b": 2}, "x")) == "same_result"


def test_equal_calls_are_no_rounds() -> None:
    talk = Talk(Bounds(same_result=0))
    assert [talk.turn(_A) for _ in range(8)] == [*[""] * 7, "same_call"]


def test_0_turns_a_guard_off() -> None:
    talk = Talk(Bounds(same_result=0, same_call=0, alternation=0, errors=0))
    assert [talk.turn(_A, error=True) for _ in range(40)] == [""] * 40
    assert [talk.turn(_A, _B, error=True) for _ in range(40)] == [""] * 40


_RESULTS = st.lists(st.sampled_from(["x", "y", ""]), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(st.lists(_RESULTS, max_size=30))
def test_ever_new_calls_never_trip_it(turns: list[list[str]]) -> None:
    talk = Talk()
    for turn in turns:
        calls = [("ls", {"n": talk.calls + n}, result) for n, result in enumerate(turn)]
        assert talk.turn(*calls) == ""


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([_A, _B, _C]), min_size=1, max_size=4), st.integers(0, 3))
def test_every_circle_ends_and_is_told_before(
    round_: list[tuple[str, Any, str]], others: int
) -> None:
    talk = Talk()
    for number in range(others):
        talk.turn(("ls", {"n": number}, "new"))
    said: list[str] = []
    while "failed" not in said:
        said += [talk.turn(each) for each in round_]
        assert len(said) < 40
    assert any(said[: said.index("failed")])


def test_what_a_run_decides_its_successor_decides_too() -> None:
    """A crash at any event: the journal up to there says the same, or is told less."""
    talk = Talk()
    for _ in range(6):
        talk.turn(_A)
    again = [event for event in talk.events if event.body.get("source") != "guard"]
    first = circling(again[: 3 * 3], Bounds())
    assert isinstance(first, Tell)
    assert first.rule == "same_result"


async def test_a_task_that_circles_is_told_and_then_fails_with_that_reason(tmp_path: Path) -> None:
    async with desk(tmp_path, behave=always(call("ls", path="."))) as at:
        task = await at.work()
        asked = at.api.requests
        said = [event.body for event in await at.journal(task) if event.kind is EventKind.USER]
    assert task.state is TaskState.FAILED
    assert "going round in circles: the same call of ls gave the same result 6 times" in str(
        task.error
    )
    assert len(asked) == 6
    told = asked[3]["messages"][-1]["content"]
    assert [block["type"] for block in told] == ["tool_result", "text"]
    assert "wait_task" in told[-1]["text"]
    assert [body["source"] for body in said] == ["task", "guard"]


async def test_a_model_that_heeds_the_guard_goes_on(tmp_path: Path) -> None:
    look = call("ls", path=".")
    wrong = Turn(calls=(Call("nothing_such", {}),))
    async with desk(tmp_path, look, look, look, wrong, look, DONE) as at:
        assert (await at.work()).state is TaskState.COMPLETED
