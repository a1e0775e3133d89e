"""The ledger never promises more than there is, however many ask at once."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import anyio
import anyio.lowlevel
import pytest

from agentd.agent.ledger import Ledger
from agentd.domain.budget import Amount, Limit, Scope, Used
from agentd.domain.errors import RunLost
from agentd.domain.ids import SessionId, new_id
from agentd.domain.run import Run
from agentd.domain.task import NewTask, TaskState
from agentd.store.budgets import Asked, BudgetStore, Reservation, Shortage
from agentd.store.events import EventStore
from agentd.store.leases import LeaseStore
from agentd.store.model_calls import ModelCall
from agentd.store.runs import Ending, RunStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.clock import HandClock
from tests.conftest import DAEMON

_TURNS = 1000


@pytest.fixture
def ledger(store: Store, clock: HandClock) -> BudgetStore:
    return BudgetStore(store, clock)


async def reserve(
    ledger: BudgetStore, run: Run, asked: Reservation, limits: Sequence[Limit]
) -> Shortage | None:
    return await Ledger(ledger).reserve(Asked(run, asked, limits))


async def running(tasks: TaskStore, runs: RunStore, count: int = 1) -> list[Run]:
    for _ in range(count):
        await tasks.enqueue(NewTask(prompt="x"))
    return [claim.run for claim in (await runs.glance(DAEMON, limit=count)).claims]


def wanted(
    run: Run, cost: int = 100, tokens: int = 10, clock: HandClock | None = None
) -> Reservation:
    at = (clock or HandClock()).now()
    return Reservation(
        new_id(), run.session_id, run.task_id, run.id, "s", "m", 1, at, tokens, 0, cost
    )


def row(of: Reservation, cost: int, tokens: int = 0) -> ModelCall:
    """What takes the place of a reservation."""
    return ModelCall(
        of.id, of.session_id, of.task_id, of.run_id, of.model, 1, of.started_at, 0, "ok",
        input_tokens=tokens, cost_microusd=cost, schedule_id=of.schedule_id, settles=True,
    )  # fmt: skip


async def test_1000_turns_at_once_never_take_the_ledger_over_its_cap(
    store: Store, tasks: TaskStore, runs: RunStore, events: EventStore, ledger: BudgetStore
) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    cap = 50 * _TURNS  # half of what the turns would cost
    limit = Limit(Scope.ALL, Amount(cost_microusd=cap))
    refused: list[Shortage] = []
    spent = 0
    together = Ledger(ledger)

    async def turn(run: Run, worst: int, cost: int) -> None:
        nonlocal spent
        asked = wanted(run, worst)
        pause_s = 0.05
        while (shortage := await together.reserve(Asked(run, asked, [limit]))) is not None:
            assert shortage.used.spent_microusd + shortage.used.reserved_microusd <= cap, seed
            if shortage.for_good:
                refused.append(shortage)
                return
            await anyio.sleep(pause_s)
            pause_s *= 2
        await anyio.lowlevel.checkpoint()
        spent += cost
        assert spent <= cap, seed
        await events.append(run, [], calls=[row(asked, cost)])

    busy = await running(tasks, runs, 20)
    async with anyio.create_task_group() as group:
        for number in range(_TURNS):
            worst = dice.randint(1, 400)
            group.start_soon(turn, busy[number % len(busy)], worst, dice.randint(0, worst))
    (used,) = await ledger.used([limit])
    assert used == Used(spent, 0, 0, 0), seed
    assert refused, "the cap was never reached"
    smallest = min(each.wanted.cost_microusd or 0 for each in refused)
    assert spent + smallest > cap, f"seed {seed}: something that fits was not let through"


async def test_two_stores_share_one_ledger(
    store: Store, tasks: TaskStore, runs: RunStore, clock: HandClock
) -> None:
    (run,) = await running(tasks, runs)
    limit = Limit(Scope.ALL, Amount(cost_microusd=1000))
    async with Store(store.path, busy_s=5) as second:
        ledgers = [BudgetStore(each, clock) for each in (store, second)]
        granted: list[int] = []

        async def ask(number: int) -> None:
            if await reserve(ledgers[number % 2], run, wanted(run), [limit]) is None:
                granted.append(number)

        async with anyio.create_task_group() as group:
            for number in range(30):
                group.start_soon(ask, number)
    assert len(granted) == 10


async def test_who_asks_together_is_answered_in_order_and_counts_for_the_next(
    tasks: TaskStore, runs: RunStore, ledger: BudgetStore
) -> None:
    one, two = await running(tasks, runs, 2)
    of_one = Limit(Scope.TASK, Amount(cost_microusd=150), one.task_id)
    of_all = Limit(Scope.ALL, Amount(cost_microusd=250))
    asked = [
        Asked(one, wanted(one), [of_one, of_all]),
        Asked(one, wanted(one), [of_one]),
        Asked(two, wanted(two), [of_all]),
        Asked(two, wanted(two), [of_all]),
        Asked(two, wanted(two), []),
    ]
    answers = await ledger.reserve(asked)
    against = [each.limit if isinstance(each, Shortage) else each for each in answers]
    assert against == [None, of_one, None, of_all, None]
    assert await ledger.used([of_all]) == [Used(0, 0, 300, 30)]


async def test_who_is_cancelled_while_it_waits_keeps_nobody_from_being_answered(
    tasks: TaskStore, runs: RunStore, ledger: BudgetStore
) -> None:
    (run,) = await running(tasks, runs)
    together, answers = Ledger(ledger), list[Shortage | None]()

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            answers.append(await together.reserve(Asked(run, wanted(run), [])))

    scopes = [anyio.CancelScope() for _ in range(9)]
    async with anyio.create_task_group() as group:
        for scope in scopes:
            group.start_soon(ask, scope)
        await anyio.lowlevel.checkpoint()
        for scope in scopes[::2]:
            scope.cancel()
    assert len(answers) >= 4
    assert await together.reserve(Asked(run, wanted(run), [])) is None


async def test_each_scope_counts_its_own(
    tasks: TaskStore,
    runs: RunStore,
    events: EventStore,
    ledger: BudgetStore,
    clock: HandClock,
) -> None:
    (one,) = await running(tasks, runs)
    await tasks.enqueue(NewTask(prompt="x", session_id=SessionId("main")))
    (two,) = [claim.run for claim in (await runs.glance(DAEMON, limit=1)).claims]
    first, second = wanted(one, clock=clock), replace(wanted(two, clock=clock), schedule_id=None)
    for run, each in ((one, first), (two, second)):
        assert await reserve(ledger, run, each, []) is None
    await events.append(one, [], calls=[row(first, 70, 7)])
    clock.advance(24 * 3600)
    third = wanted(one, clock=clock)
    assert await reserve(ledger, one, third, []) is None
    amount, today = Amount(1), clock.now() - timedelta(hours=1)
    used = await ledger.used(
        [
            Limit(Scope.TASK, amount, one.task_id),
            Limit(Scope.SESSION, amount, two.session_id),
            Limit(Scope.SCHEDULE, amount, "s"),
            Limit(Scope.DAY, amount, since=today),
            Limit(Scope.ALL, amount),
        ]
    )
    assert used == [
        Used(70, 7, 100, 10),
        Used(0, 0, 100, 10),
        Used(70, 7, 100, 10),
        Used(0, 0, 100, 10),
        Used(70, 7, 200, 20),
    ]


async def test_what_only_the_calls_under_way_stand_against_is_no_end(
    tasks: TaskStore, runs: RunStore, ledger: BudgetStore
) -> None:
    (run,) = await running(tasks, runs)
    limits = [Limit(Scope.ALL, Amount(cost_microusd=150)), Limit(Scope.DAY, Amount(tokens=5))]
    assert await reserve(ledger, run, wanted(run, 100, 1), limits) is None
    shortage = await reserve(ledger, run, wanted(run, 100, 1), limits)
    assert shortage is not None
    assert (shortage.for_good, shortage.in_tokens) == (False, False)
    shortage = await reserve(ledger, run, wanted(run, 100, 6), limits)
    assert shortage is not None  # of two the one that does not pass by itself
    assert (shortage.for_good, shortage.in_tokens) == (True, True)


async def test_what_a_dead_run_left_behind_is_charged_in_full(
    store: Store, tasks: TaskStore, runs: RunStore, ledger: BudgetStore, leases: LeaseStore
) -> None:
    (run,) = await running(tasks, runs)
    limit = Limit(Scope.ALL, Amount(cost_microusd=150))
    assert await reserve(ledger, run, wanted(run), [limit]) is None
    assert await ledger.charge_abandoned() == 0
    await leases.take_over([DAEMON])
    (again,) = [claim.run for claim in (await runs.glance(DAEMON, limit=1)).claims]
    with pytest.raises(RunLost):
        await Ledger(ledger).reserve(Asked(run, wanted(run, 1), [limit]))
    shortage = await reserve(ledger, again, wanted(again), [limit])
    assert shortage is not None
    assert shortage.for_good
    assert shortage.used == Used(100, 10, 0, 0)
    async with store.transaction() as conn:
        assert await conn.fetch("SELECT outcome FROM model_calls") == [{"outcome": "unknown"}]


async def test_a_run_that_has_lost_its_task_can_not_settle(
    tasks: TaskStore, runs: RunStore, events: EventStore, ledger: BudgetStore, leases: LeaseStore
) -> None:
    (run,) = await running(tasks, runs)
    asked = wanted(run)
    assert await reserve(ledger, run, asked, []) is None
    await leases.take_over([DAEMON])
    with pytest.raises(RunLost):
        await events.append(run, [], calls=[row(asked, 1)])
    limit = Limit(Scope.ALL, Amount(1))
    assert await ledger.used([limit]) == [Used(0, 0, 100, 10)]
    assert await ledger.charge_abandoned() == 1
    assert await ledger.used([limit]) == [Used(100, 10, 0, 0)]


async def test_what_was_set_aside_for_a_call_that_was_not_made_is_given_back(
    tasks: TaskStore, runs: RunStore, ledger: BudgetStore
) -> None:
    (run,) = await running(tasks, runs)
    asked, kept, limit = wanted(run), wanted(run, 5), Limit(Scope.ALL, Amount(1000))
    for each in (asked, kept):
        assert await reserve(ledger, run, each, [limit]) is None
    await ledger.release(asked.id)
    assert await ledger.used([limit]) == [Used(0, 0, 5, 10)]


async def test_limits_are_raised_but_not_under_a_running_task(
    tasks: TaskStore, runs: RunStore, ledger: BudgetStore
) -> None:
    (run,) = await running(tasks, runs)
    await ledger.raise_limits(run.task_id, 5, None)
    assert (await tasks.get(run.task_id)).limits.max_cost_microusd is None
    await runs.end(run, Ending("waiting", TaskState.WAITING))
    await ledger.raise_limits(run.task_id, 5, None)
    await ledger.raise_limits(run.task_id, None, 7)
    limits = (await tasks.get(run.task_id)).limits
    assert (limits.max_cost_microusd, limits.max_total_tokens) == (5, 7)


async def test_who_is_cancelled_while_others_are_answered_harms_nobody(
    store: Store, tasks: TaskStore, runs: RunStore, clock: HandClock
) -> None:
    """A asks; B and C wait behind A's second question, and B is cut off during it."""
    asking, go_on = anyio.Event(), anyio.Event()

    class Slow(BudgetStore):
        async def reserve(self, asked: Sequence[Asked]) -> list[Shortage | RunLost | None]:
            asking.set()
            await go_on.wait()
            return await super().reserve(asked)

    shared, limits = Ledger(Slow(store, clock)), [Limit(Scope.ALL, Amount(cost_microusd=1000))]
    three = await running(tasks, runs, 3)
    cut_off = anyio.CancelScope()

    async def ask(run: Run, scope: anyio.CancelScope | None = None) -> None:
        with scope or anyio.CancelScope():
            assert await shared.reserve(Asked(run, wanted(run), limits)) is None

    async with anyio.create_task_group() as group:
        group.start_soon(ask, three[0])
        group.start_soon(ask, three[1], cut_off)
        group.start_soon(ask, three[2])
        await asking.wait()
        cut_off.cancel()
        await anyio.lowlevel.checkpoint()
        go_on.set()
    async with store.transaction() as conn:
        left = {row["run_id"] for row in await conn.fetch("SELECT run_id FROM reservations")}
    assert {three[0].id, three[2].id} <= left
