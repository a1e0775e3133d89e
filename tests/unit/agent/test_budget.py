"""Budgets in the loop: a call that would break a limit is not made, whatever the limit is about."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import pytest

from agentd.agent.budget import (
    Admitted,
    Budget,
    Rules,
    may_have_cost,
)
from agentd.agent.journal import Journal
from agentd.agent.ledger import Ledger
from agentd.domain.budget import midnight, next_midnight
from agentd.domain.clock import SystemClock
from agentd.domain.errors import ModelError, ModelErrorKind
from agentd.domain.ids import DaemonId, RunId, SessionId, TaskId
from agentd.domain.run import Run
from agentd.domain.task import Limits, TaskState
from agentd.domain.usage import Usage
from agentd.models.model import ModelReply, ModelRequest
from agentd.models.prices import price_of
from agentd.models.scripted import ScriptedModel
from agentd.store.budgets import BudgetStore, Reservation
from agentd.store.model_calls import ModelCall
from agentd.store.store import Store
from tests.desk import Desk, always, desk
from tests.messages_turns import DONE, Call, Failure, Turn

_K = ModelErrorKind
# claude-haiku-4-5: 1, 5, 1.25 and 0.10 US dollars for a million tokens
_USAGE = {"input_tokens": 1000, "output_tokens": 1000}  # 6,000 microdollars
_END = (Call("complete_task", {"summary": "x"}),)
_TURN = Turn(calls=(Call("ls", {"path": "."}),), usage=_USAGE)
_LAST = Turn(calls=_END, usage=_USAGE)
_SMALL = {"agent__max_tokens": 1000}  # the worst case of an output: 5,000 microdollars


async def ledger(at: Desk) -> tuple[int, int]:
    """What was spent, in microdollars, and how many calls are still reserved."""
    (spent,) = await at.rows("SELECT coalesce(sum(cost_microusd), 0) AS s FROM model_calls")
    (left,) = await at.rows("SELECT count(*) AS n FROM reservations")
    return int(spent["s"]), int(left["n"])


async def test_a_call_is_settled_at_what_it_has_cost(tmp_path: Path) -> None:
    async with desk(tmp_path, _TURN, _LAST, budget__day_usd=1.0, **_SMALL) as at:
        task = await at.work()
        assert await ledger(at) == (12_000, 0)
    assert task.state is TaskState.COMPLETED


@pytest.mark.parametrize("scope", ["task", "session", "day", "total"])
async def test_a_call_that_would_break_a_limit_is_not_made(scope: str, tmp_path: Path) -> None:
    limit: dict[str, Any] = {f"budget__{scope}_usd": 0.04, "guards__same_result": 0}
    async with desk(tmp_path, behave=always(_TURN), **limit, **_SMALL) as at:
        task = await at.work()
        spent, reserved = await ledger(at)
        assert len(at.api.requests) == spent / 6000 > 1
        notes = [note["note"] for note in await at.notes(task)]
    assert (spent <= 40_000, reserved) == (True, 0)
    assert task.state is TaskState.WAITING
    assert f"{scope}_usd is $0.0400" in (task.waiting_reason or "")
    assert notes == ["budget_spent"]
    assert task.wake_at is not None
    days = (task.wake_at - datetime.now(UTC)) / timedelta(days=1)
    assert days <= 1 if scope == "day" else 29 < days <= 30


async def test_a_limit_of_tokens_counts_all_kinds_and_needs_no_price(tmp_path: Path) -> None:
    usage = {**_USAGE, "cache_creation_input_tokens": 3000, "cache_read_input_tokens": 45_000}
    turn = Turn(calls=(Call("ls", {"path": "."}),), usage=usage)
    async with desk(
        tmp_path, turn, _LAST, agent__model="anthropic:claude-new", budget__task_tokens=60_000
    ) as at:
        task = await at.work()
        assert len(at.api.requests) == 1
    assert task.state is TaskState.WAITING
    assert "task_tokens is 60,000 tokens, 50,000 tokens are spent" in (task.waiting_reason or "")


async def test_the_limits_of_a_task_go_before_the_configured_ones(tmp_path: Path) -> None:
    settings = {"budget__task_usd": 0.000_001, **_SMALL}
    async with desk(tmp_path, behave=always(_LAST), **settings) as at:
        small = await at.enqueue()
        own = await at.enqueue(limits=Limits(max_cost_microusd=1_000_000))
        await at.drain()
        assert (await at.tasks.get(small.id)).state is TaskState.WAITING
        assert (await at.tasks.get(own.id)).state is TaskState.COMPLETED


async def test_a_task_that_waits_goes_on_with_a_higher_limit(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE, **_SMALL) as at:
        task = await at.work(limits=Limits(max_cost_microusd=1))
        assert task.state is TaskState.WAITING
        await at.tasks.resume(task.id)
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.WAITING
        assert at.api.requests == []
        await at.raise_limit(task, 1_000_000)
        await at.tasks.resume(task.id)
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.COMPLETED


async def test_a_limit_that_was_changed_lets_tasks_try_again_with_the_next_daemon(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, DONE, budget__total_usd=0.000_1, **_SMALL) as at:
        task = await at.work()
        assert task.state is TaskState.WAITING
        await at.drain()
        assert len(await at.runs.of_task(task.id)) == 1, "the same limit woke it"
    async with desk(tmp_path, DONE, budget__total_usd=1.0, **_SMALL) as at:
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.COMPLETED


async def test_a_message_to_a_task_without_budget_does_not_wake_it_for_ever(tmp_path: Path) -> None:
    async with desk(tmp_path, DONE, **_SMALL) as at:
        task = await at.work(limits=Limits(max_cost_microusd=1))
        await at.sessions.send(task.session_id, "Go on!", "person")
        await at.drain()
        assert (await at.tasks.get(task.id)).state is TaskState.WAITING
        assert len(await at.runs.of_task(task.id)) == 2


async def test_policy_fail_ends_the_task_with_the_reason(tmp_path: Path) -> None:
    settings = {"budget__total_usd": 0.001, "budget__when_spent": "fail"}
    async with desk(tmp_path, DONE, **settings) as at:
        task = await at.work()
        assert at.api.requests == []
    assert task.state is TaskState.FAILED
    assert "total_usd" in (task.error or "")


async def test_policy_cheaper_goes_on_with_the_cheaper_model_and_then_waits(tmp_path: Path) -> None:
    settings = {
        "agent__model": "anthropic:claude-opus-4-6",  # five times the price
        "budget__task_usd": 0.265,
        "budget__when_spent": "cheaper",
        "budget__cheaper_model": "anthropic:claude-haiku-4-5",
        "guards__same_result": 0,
        "guards__same_call": 0,
        # What the dearer one may say leaves room for the cheaper one to be told all tools anew.
        "agent__max_tokens": 3000,
    }
    async with desk(tmp_path, behave=always(_TURN), **settings) as at:
        task = await at.work()
        asked = [request["model"] for request in at.api.requests]
        rows = await at.rows("SELECT model, cost_microusd FROM model_calls ORDER BY started_at")
    assert asked == sorted(asked, reverse=True)
    assert set(asked) == {"claude-opus-4-6", "claude-haiku-4-5"}
    assert {row["model"] for row in rows} == set(asked)
    assert 240_000 < sum(row["cost_microusd"] for row in rows) <= 265_000
    assert task.state is TaskState.WAITING


async def test_a_model_without_a_price_is_refused_under_a_limit_in_dollars(tmp_path: Path) -> None:
    settings = {"agent__model": "anthropic:claude-new", "budget__day_usd": 5.0}
    async with desk(tmp_path, DONE, **settings) as at:
        task = await at.work()
        assert at.api.requests == []
    assert task.state is TaskState.FAILED
    assert "no price is known for anthropic:claude-new" in (task.error or "")


async def test_a_reply_of_an_unpriced_name_is_counted_at_the_price_that_was_asked(
    tmp_path: Path,
) -> None:
    prices = {"claude-ali": {"input": 1, "output": 5, "cache_write": 1.25, "cache_read": 0.1}}
    settings = {"agent__model": "anthropic:claude-ali", "models__prices": prices}
    async with desk(tmp_path, _LAST, budget__day_usd=1.0, **settings) as at:
        at.api.model = "surprise-1"
        await at.work()
        assert await ledger(at) == (6000, 0)


@pytest.mark.parametrize(
    ("failure", "is_charged"),
    [
        (Failure(529, "overloaded_error"), False),
        (Failure(500, "api_error"), False),
        (Failure(fault="drop"), True),
        (Failure(fault="cut"), True),
        (Failure(fault="error", type="overloaded_error"), True),
    ],
    ids=["529", "500", "no byte", "cut", "error in the stream"],
)
async def test_a_failed_try_counts_in_full_unless_the_provider_refused_it(
    failure: Failure, *, is_charged: bool, tmp_path: Path
) -> None:
    turn = Turn(calls=_END, usage=_USAGE, failures=[failure])
    async with desk(tmp_path, turn, budget__day_usd=1.0, **_SMALL) as at:
        assert (await at.work()).state is TaskState.COMPLETED
        failed, last = await at.rows("SELECT * FROM model_calls ORDER BY attempt")
        assert (await ledger(at))[1] == 0
    assert last["cost_microusd"] == 6000
    assert ((failed["cost_microusd"] or 0) > 5000) is is_charged
    assert (failed["output_tokens"] == 1000) is is_charged


async def test_a_server_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    settings = {"models__anthropic__base_url": "http://127.0.0.1:9", "models__retry_attempts": 2}
    async with desk(tmp_path, DONE, budget__day_usd=1.0, **settings) as at:
        assert (await at.work()).state is TaskState.FAILED
        assert await ledger(at) == (0, 0)


async def test_a_call_that_was_cut_off_counts_in_full_as_soon_as_it_matters(tmp_path: Path) -> None:
    async with desk(tmp_path, Turn(text="slow", delay_s=4), budget__day_usd=1.0, **_SMALL) as at:
        await at.work(limits=Limits(deadline_s=0.2))
        spent, reserved = await ledger(at)
        assert (spent, reserved) == (0, 1)
        await at.drain()  # a daemon that starts
        spent, reserved = await ledger(at)
        (row,) = await at.rows("SELECT outcome, output_tokens FROM model_calls")
    assert spent > 5000
    assert reserved == 0
    assert row == {"outcome": "unknown", "output_tokens": 1000}


def budget_on(store: Store) -> Budget:
    """Of a run without any limit."""
    run = Run(RunId("r"), TaskId("t"), SessionId("s"), DaemonId("d"), 1, 1, datetime.now(UTC))
    rules = Rules({}, "wait", None, ZoneInfo("UTC"), timedelta(days=1))
    journal, ledger = Journal(run, store, SystemClock()), Ledger(BudgetStore(store, SystemClock()))
    return Budget(journal, ledger, rules, {}, price_of, anyio.Event(), schedule_id="nightly")


_REQUEST = ModelRequest("demo", "", [], [], 100, 0)


async def test_without_a_limit_the_database_is_not_even_opened(tmp_path: Path) -> None:
    path, model = tmp_path / "agentd.duckdb", ScriptedModel("demo")
    async with Store(path) as store:
        assert await budget_on(store).admit(model, lambda _: _REQUEST, 1) == Admitted(
            model, _REQUEST
        )
    assert not path.exists()


async def test_the_day_of_the_reservation_pays_whenever_the_reply_comes(store: Store) -> None:
    budget, model, now = budget_on(store), ScriptedModel("demo"), datetime.now(UTC)
    whose = (SessionId("s"), TaskId("t"), RunId("r"))
    reserved = Reservation("id", *whose, "nightly", model.name, 1, now, 10, 100, 0)
    late = ModelCall("x", *whose, model.name, 1, now + timedelta(days=1), 5, "ok")
    reply = ModelReply([], "end_turn", Usage(), model.name)
    row = budget.counted(late, Admitted(model, _REQUEST, reserved), reply=reply)
    assert (row.id, row.started_at, row.settles) == ("id", now, True)
    assert row.schedule_id == "nightly"


def test_an_error_before_anything_was_sent_costs_nothing() -> None:
    assert not may_have_cost(ModelError(_K.CONNECTION, "refused", unsent=True))
    assert not may_have_cost(ModelError(_K.AUTHENTICATION, "there is no key"))
    assert not may_have_cost(ModelError(_K.TIMEOUT, "gateway", status=504))
    assert may_have_cost(ModelError(_K.CONNECTION, "reset"))
    assert may_have_cost(ModelError(_K.OVERLOADED, "in the stream", status=200))


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        ("2026-03-28T12:00+01:00", 24),
        ("2026-03-29T12:00+02:00", 23),
        ("2026-10-25T12:00+01:00", 25),
        ("2026-10-25T00:00+02:00", 25),
    ],
)
def test_a_day_ends_at_midnight_also_when_the_clocks_change(now: str, hours: int) -> None:
    moment, zone = datetime.fromisoformat(now), ZoneInfo("Europe/Berlin")
    start, end = midnight(moment, zone), next_midnight(moment, zone)
    assert start is not None
    assert start.astimezone(UTC) <= moment < end.astimezone(UTC)
    assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(hours=hours)
