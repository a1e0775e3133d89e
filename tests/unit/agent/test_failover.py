"""An outage of one provider: the other one is asked, or the task waits without failing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from agentd.agent.asking import Asking
from agentd.agent.budget import Budget, Rules
from agentd.agent.failover import Candidate, Failover
from agentd.agent.journal import Journal
from agentd.agent.ledger import Ledger
from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.task import NewTask, TaskState
from agentd.models.breaker import Breaker
from agentd.models.model import Model, ModelRequest
from agentd.models.retrying import Backoff
from agentd.models.scripted import ScriptedModel
from agentd.store.budgets import BudgetStore
from agentd.store.runs import RunStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.chat_api import ChatApi, chat_script
from tests.clock import HandClock
from tests.conftest import DAEMON
from tests.desk import Desk, always, desk
from tests.messages_turns import DONE, Answer, Behaviour, Body, Call, Failure, Turn, call

DOWN = Failure(529, "overloaded_error", "Overloaded")
ONCE = {
    "rate limit": Failure(429, "rate_limit_exceeded"),
    "server error": Failure(500, "server_error"),
    "overloaded": Failure(503, "server_overloaded"),
    "no byte": Failure(fault="drop"),
    "stall": Failure(fault="stall"),
    "silence": Failure(fault="silent"),
    "cut in mid-stream": Failure(fault="cut"),
    "reset in mid-stream": Failure(fault="reset"),
    "error in mid-stream": Failure(fault="error", type="502"),
    "garbage": Failure(fault="garbage", message="{not json"),
}
MODEL = "claude-haiku-4-5"
CLAUDE, OTHER = f"anthropic:{MODEL}", "openai:test-model"


@dataclass(frozen=True)
class Two:
    """A desk, and the server of its second model."""

    at: Desk
    chat: ChatApi


@asynccontextmanager
async def two(path: Path, behave: Behaviour, *turns: Turn, **settings: Any) -> AsyncIterator[Two]:
    """The first model answers as `behave` says, the second one plays `turns`."""
    async with ChatApi(chat_script(*turns)) as chat:
        access = {
            "models__openai__base_url": chat.base_url,
            "models__openai__api_key": "key-2",
            "models__fallback": OTHER,
        }
        async with desk(path, behave=behave, **{**access, **settings}) as at:
            yield Two(at, chat)
        assert not chat.violations, chat.violations


async def models_of(at: Desk) -> list[tuple[str, str]]:
    rows = await at.rows("SELECT model, outcome FROM model_calls ORDER BY started_at, id")
    return [(row["model"], row["outcome"]) for row in rows]


async def changes(at: Desk, task: Any) -> list[tuple[str, str]]:
    notes = [note for note in await at.notes(task) if note["note"] == "model_changed"]
    return [(note["before"], note["now"]) for note in notes]


async def test_when_the_tries_are_used_up_the_second_model_is_asked(tmp_path: Path) -> None:
    turns = [call("write", path="a", content="1"), DONE]
    async with two(tmp_path, always(DOWN), *turns, models__retry_attempts=2) as both:
        at, task = both.at, await both.at.work()
        assert task.state is TaskState.COMPLETED
        assert await models_of(at) == [
            (CLAUDE, "overloaded"),
            (CLAUDE, "overloaded"),
            (OTHER, "ok"),
            (OTHER, "ok"),
        ]
        assert await changes(at, task) == [(CLAUDE, OTHER)]
        rows = await at.rows("SELECT attempt FROM model_calls ORDER BY started_at, id")
    assert [row["attempt"] for row in rows] == [1, 2, 3, 1]


async def test_when_the_breaker_opens_the_second_model_is_asked_at_once(tmp_path: Path) -> None:
    settings = {"models__breaker_threshold": 1, "models__retry_base_seconds": 3600}
    async with two(tmp_path, always(DOWN), DONE, **settings) as both:
        at = both.at
        first = await at.work("One.")
        second = await at.work("Two.")
        calls = await models_of(at)
    assert (first.state, second.state) == (TaskState.COMPLETED, TaskState.COMPLETED)
    # Another daemon worked the second task: a breaker is a daemon's own.
    assert calls == [(CLAUDE, "overloaded"), (OTHER, "ok")] * 2


async def test_all_workers_of_a_daemon_share_what_one_has_found_out(tmp_path: Path) -> None:
    settings = {"models__breaker_threshold": 1, "daemon__concurrency": 1}
    async with two(tmp_path, always(DOWN), DONE, **settings) as both:
        at = both.at
        for number in range(5):
            await at.enqueue(f"Task {number}.")
        await at.drain()
        calls = await models_of(at)
    assert calls == [(CLAUDE, "overloaded"), *[(OTHER, "ok")] * 5]


async def test_when_the_first_one_answers_again_it_goes_on_with_the_same_session(
    tmp_path: Path,
) -> None:
    """There and back: what each provider said in its own way is not sent to the other."""
    mine = Turn(calls=[Call("write", {"path": "a", "content": "1"})], thinking="Mine.")
    # Longer than the cooldown: after it the first model is tried again.
    its = Turn(calls=[Call("ls", {"path": "."})], thinking="Its own.", delay_s=0.1)
    answers = iter([mine, DOWN, DONE])
    settings = {"models__breaker_threshold": 1, "models__breaker_cooldown_seconds": 0.05}
    second = Turn("Never asked.")
    async with two(tmp_path, lambda _: next(answers), second, its, **settings) as both:
        task = await both.at.work()
        assert await changes(both.at, task) == [(CLAUDE, OTHER), (OTHER, CLAUDE)]
        there, back = both.chat.requests[0]["messages"], both.at.api.requests[-1]["messages"]
    assert task.state is TaskState.COMPLETED
    assert "Mine." not in str(there)
    assert there[2]["tool_calls"][0]["function"]["name"] == "write"
    replies = [message["content"] for message in back if message["role"] == "assistant"]
    assert [block["type"] for block in replies[0]] == ["thinking", "tool_use"]
    assert [block["type"] for block in replies[1]] == ["tool_use"]


async def test_a_session_may_change_its_model_and_change_back(tmp_path: Path) -> None:
    first = Turn(calls=[Call("complete_task", {"summary": "x"})], thinking="Mine.")
    its = Turn(calls=[Call("complete_task", {"summary": "y"})], thinking="Its own.")

    def behave(_: Body) -> Answer:
        return first

    async with two(tmp_path, behave, Turn("Never asked."), its) as both:
        task = await both.at.work("One.")
        for prompt, model in (("Two.", OTHER), ("Three.", CLAUDE)):
            task = await both.at.work(prompt, session_id=task.session_id, model=model)
            assert task.state is TaskState.COMPLETED
        assert [model for model, _ in await models_of(both.at)] == [MODEL, OTHER, MODEL]
        replies = [m for m in both.at.api.requests[-1]["messages"] if m["role"] == "assistant"]
    assert "Mine." in str(replies[0])
    assert "Its own." not in str(replies)


async def test_a_provider_gets_its_own_thinking_back(tmp_path: Path) -> None:
    turn = Turn(calls=[Call("ls", {"path": "."})], thinking="Its own.")
    async with two(tmp_path, always(DOWN), turn, DONE) as both:
        task = await both.at.work(model=OTHER)
        assert both.chat.requests[1]["messages"][2]["reasoning_content"] == "Its own."
    assert task.state is TaskState.COMPLETED


@pytest.mark.parametrize("failure", ONCE.values(), ids=ONCE.keys())
async def test_every_provider_is_tried_again_and_nothing_half_said_remains(
    failure: Failure, tmp_path: Path
) -> None:
    stall_s = 0.4 if failure.fault in ("stall", "silent") else 5
    turn = Turn("Words to break off.", DONE.calls, failures=[failure])
    async with two(tmp_path, always(DOWN), turn, models__stall_seconds=stall_s) as both:
        task = await both.at.work(model=OTHER)
        (note,) = await both.at.notes(task)
        rows = await both.at.rows("SELECT outcome, attempt FROM model_calls ORDER BY attempt")
        results = await both.at.results(task)
    assert (task.state, len(results)) == (TaskState.COMPLETED, 1)
    assert [(row["outcome"], row["attempt"]) for row in rows] == [(note["kind"], 1), ("ok", 2)]


@pytest.mark.parametrize("status", [400, 401, 402, 404])
async def test_a_request_that_is_refused_is_not_sent_to_another(
    status: int, tmp_path: Path
) -> None:
    refusal = Failure(status, "invalid_request_error", "not like this")
    async with two(tmp_path, always(refusal), DONE) as both:
        at = both.at
        task = await at.work()
        assert await models_of(at) == [(CLAUDE, (await at.notes(task))[0]["kind"])]
    assert task.state is TaskState.FAILED


async def test_a_breaker_that_opens_at_the_last_moment_is_no_failure(
    store: Store, clock: HandClock, tasks: TaskStore, runs: RunStore, tmp_path: Path
) -> None:
    """Between the choice and the call another worker has found out more."""
    await tasks.enqueue(NewTask(prompt="x", enqueued_by="test"))
    (claim,) = (await runs.glance(DAEMON, limit=1)).claims
    (tmp_path / "one.toml").write_text('[[turn]]\ntext = "x"\n')
    script = str(tmp_path / "one.toml")
    first, second = (
        Candidate(model, Breaker(model.name, clock))
        for model in (ScriptedModel("demo"), ScriptedModel(script))
    )

    def request_for(model: Model) -> ModelRequest:
        first.breaker.trip(ModelError(ModelErrorKind.SERVER, "made up"))
        said = {"role": "user", "content": [{"type": "text", "text": "x"}]}
        return ModelRequest(model.name, "", [], [said], 1, 0)

    journal = Journal(claim.run, store, clock)
    failover = Failover([first, second], Backoff())
    budget = Budget(
        journal=journal,
        ledger=Ledger(BudgetStore(store, clock)),
        rules=cast("Rules", None),
        amounts={},
        price=lambda _: None,
        stopping=anyio.Event(),
    )
    breaker = failover.candidates[0].breaker
    stopping = anyio.Event()
    asking = Asking(failover, journal, lambda _: None, budget, lambda _: breaker, stopping)
    asked = await asking.ask(request_for)
    assert asked is not None
    assert (asked.reply.model, asked.call.attempt) == (f"scripted:{script}", 1)
    assert [event.body["note"] for event in journal.events] == ["model_changed"]


async def test_when_both_are_down_the_task_fails_with_the_last_words(tmp_path: Path) -> None:
    turn = Turn(failures=[Failure(500, "server_error", "second words")] * 9)
    async with two(tmp_path, always(DOWN), turn, models__retry_attempts=2) as both:
        at = both.at
        task = await at.work()
        calls = await models_of(at)
    assert [model for model, _ in calls] == [CLAUDE, CLAUDE, OTHER, OTHER]
    assert (task.state, task.retryable) == (TaskState.FAILED, True)
    assert "second words" in (task.error or "")


async def test_without_a_second_model_the_task_waits_and_its_tries_are_not_used_up(
    tmp_path: Path,
) -> None:
    settings = {
        "models__breaker_threshold": 2,
        "models__breaker_cooldown_seconds": 0.1,
        "models__retry_attempts": 3,
    }
    turn = Turn(calls=DONE.calls, failures=[DOWN, DOWN])
    async with desk(tmp_path, turn, **settings) as at:
        task = await at.work()
        (note,) = [n for n in await at.notes(task) if n["note"] == "model_resting"]
        calls = await at.rows("SELECT count(*) AS n FROM model_calls")
    assert task.state is TaskState.COMPLETED
    assert 0 < note["wait_s"] <= 0.1
    assert calls[0]["n"] == 3


async def test_while_it_rests_nobody_else_asks_it(tmp_path: Path) -> None:
    """Ten tasks at once, and an outage: a few calls find out, one probes, all ten are done."""
    settings = {
        "models__breaker_threshold": 3,
        "models__breaker_cooldown_seconds": 0.3,
        "models__retry_base_seconds": 0.2,
        "daemon__concurrency": 10,
    }
    asked = 0

    def behave(_: Body) -> Answer:
        nonlocal asked
        asked += 1
        return DOWN if asked <= 10 else DONE

    async with desk(tmp_path, behave=behave, **settings) as at:
        tasks = [await at.enqueue(f"Task {number}.") for number in range(10)]
        await at.drain()
        states = {(await at.tasks.get(task.id)).state for task in tasks}
    assert states == {TaskState.COMPLETED}
    assert asked == 20


async def test_the_deadline_ends_the_wait(tmp_path: Path) -> None:
    settings = {
        "models__breaker_threshold": 1,
        "models__breaker_cooldown_seconds": 3600,
        "agent__deadline_seconds": 0.3,
    }
    async with desk(tmp_path, behave=always(DOWN), **settings) as at:
        task = await at.work()
    assert task.state is TaskState.FAILED
    assert "deadline" in (task.error or "")
