"""The queue: what is claimable, in which order, what wakes, what a lost run can do."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from agentd.domain.errors import CycleRefused, NotFound, Refused, RunLost, StillRunning
from agentd.domain.event import Event, EventKind, LargeResult, storable
from agentd.domain.ids import DaemonId, SessionId, TaskId
from agentd.domain.run import Run
from agentd.domain.task import NewTask, Priority, Task, TaskState
from agentd.store.events import EventStore
from agentd.store.leases import LeaseStore
from agentd.store.model_calls import ModelCallStore
from agentd.store.runs import Claim, Ending, RunStore
from agentd.store.sessions import SessionStore
from agentd.store.store import Store
from agentd.store.tasks import TaskStore
from tests.clock import HandClock
from tests.conftest import DAEMON

_DONE = Ending("completed", TaskState.COMPLETED, output="done")
_FAILED = Ending("failed", TaskState.FAILED, error="broken")


async def put(tasks: TaskStore, prompt: str = "x", **facts: object) -> Task:
    return (await tasks.enqueue(NewTask(prompt=prompt, **facts))).task  # type: ignore[arg-type]


async def claim(runs: RunStore, limit: int = 10) -> list[Claim]:
    return list((await runs.glance(DAEMON, limit=limit)).claims)


async def prompts(runs: RunStore, limit: int = 10) -> list[str]:
    return [each.task.prompt for each in await claim(runs, limit)]


async def test_what_was_enqueued_is_what_is_read_back(tasks: TaskStore) -> None:
    before = await put(tasks)
    task = await put(tasks, "y", after=(before.id,), priority=Priority.HIGH, key="k", title="t")
    assert await tasks.get(task.id) == task
    assert await tasks.find(task.id[-8:]) == task


async def test_a_session_that_a_prompt_opens_is_called_after_it(
    tasks: TaskStore, sessions: SessionStore
) -> None:
    await put(tasks, "Sum up\n" + "all the notes " * 10)
    await put(tasks, "Go on", session_id=SessionId("main"))
    titles = {each.id: each.title for each in await sessions.list()}
    assert titles.pop(SessionId("main")) is None
    (title,) = titles.values()
    assert title is not None
    assert title.startswith("Sum up all the notes")
    assert title.endswith("…")
    assert len(title) <= 60


async def test_the_claim_order_is_priority_then_age(
    tasks: TaskStore, runs: RunStore, clock: HandClock
) -> None:
    for prompt, priority in (
        ("low", Priority.LOW),
        ("old", Priority.MEDIUM),
        ("young", Priority.MEDIUM),
        ("high", Priority.HIGH),
    ):
        await put(tasks, prompt, priority=priority)
        clock.advance(1)
    assert await prompts(runs, 3) == ["high", "old", "young"]
    assert await prompts(runs) == ["low"]


async def test_one_task_of_a_session_at_a_time_however_many_stand_first(
    tasks: TaskStore, runs: RunStore
) -> None:
    for number in range(30):
        await put(tasks, f"main {number}", session_id=SessionId("main"), priority=Priority.HIGH)
    await put(tasks, "other")
    (first, other) = await claim(runs, 2)
    assert (first.task.prompt, other.task.prompt) == ("main 0", "other")
    assert await prompts(runs) == []
    await runs.end(first.run, _DONE)
    assert await prompts(runs) == ["main 1"]


async def test_not_before_its_time(tasks: TaskStore, runs: RunStore, clock: HandClock) -> None:
    due = clock.now() + timedelta(hours=1)
    await put(tasks, not_before=due)
    glance = await runs.glance(DAEMON, limit=1)
    assert (list(glance.claims), glance.next_due) == ([], due)
    clock.advance(3600)
    assert await prompts(runs) == ["x"]


async def test_not_before_its_predecessors(tasks: TaskStore, runs: RunStore) -> None:
    first, second = await put(tasks, "first"), await put(tasks, "second")
    await put(tasks, "last", after=(first.id, second.id))
    one, two = await claim(runs)
    await runs.end(one.run, _DONE)
    assert await prompts(runs) == []
    await runs.end(two.run, _DONE)
    assert await prompts(runs) == ["last"]


async def test_a_failure_fails_the_whole_chain_but_for_those_that_accept_it(
    tasks: TaskStore, runs: RunStore
) -> None:
    first = await put(tasks, "first")
    second = await put(tasks, "second", after=(first.id,))
    third = await put(tasks, "third", after=(second.id,))
    tolerant = await put(tasks, "tolerant", after=(third.id,), after_any=True)
    (claimed,) = await claim(runs)
    await runs.end(claimed.run, _FAILED)
    states = {task.prompt: task.state for task in await tasks.list()}
    assert states["second"] == states["third"] == TaskState.FAILED
    assert f"predecessor {first.id} failed" in ((await tasks.get(third.id)).error or "")
    assert await prompts(runs) == [tolerant.prompt]


async def test_a_successor_is_not_retried_before_its_predecessor(
    tasks: TaskStore, runs: RunStore
) -> None:
    first = await put(tasks, "first")
    second = await put(tasks, "second", after=(first.id,))
    await tasks.cancel(first.id, reason="no")
    with pytest.raises(Refused, match=first.id):
        await tasks.retry(second.id)
    await tasks.retry(first.id)
    assert (await tasks.retry(second.id)).state is TaskState.PENDING
    assert await prompts(runs) == ["first"]


async def test_a_key_is_taken_until_its_task_has_ended(tasks: TaskStore, runs: RunStore) -> None:
    first = await tasks.enqueue(NewTask(prompt="one", key="k"))
    again = await tasks.enqueue(NewTask(prompt="two", key="k"))
    assert (again.created, again.task.id) == (False, first.task.id)
    (claimed,) = await claim(runs)
    assert not (await tasks.enqueue(NewTask(prompt="two", key="k"))).created
    await runs.end(claimed.run, _DONE)
    assert (await tasks.enqueue(NewTask(prompt="two", key="k"))).created


async def test_a_cycle_is_refused_and_named(tasks: TaskStore) -> None:
    from agentd.store.tasks import TaskChanges  # noqa: PLC0415 - for this test only

    one = await put(tasks, "one")
    two = await put(tasks, "two", after=(one.id,))
    three = await put(tasks, "three", after=(two.id,))
    with pytest.raises(CycleRefused) as caught:
        await tasks.update(one.id, TaskChanges(after=(three.id,)))
    for each in (one, two, three):
        assert each.id in str(caught.value)
    assert (await tasks.get(one.id)).after == ()


async def test_a_message_wakes_what_waits_and_is_handed_to_what_runs(
    tasks: TaskStore, runs: RunStore, sessions: SessionStore
) -> None:
    await put(tasks, session_id=SessionId("main"))
    (claimed,) = await claim(runs)
    await runs.end(claimed.run, Ending("waiting", TaskState.WAITING, waiting_reason="a word"))
    assert await claim(runs) == []
    await sessions.send(SessionId("main"), "go on", "person")
    glance = await runs.glance(DAEMON, limit=1)
    (again,) = glance.claims
    assert again.woken_by == "message"
    assert glance.with_messages == {"main"}
    with pytest.raises(NotFound):
        await sessions.send(SessionId("nowhere"), "hello", "person")


async def test_what_was_said_while_the_model_decided_to_wait_wakes_the_task(
    tasks: TaskStore, runs: RunStore, sessions: SessionStore
) -> None:
    await put(tasks, session_id=SessionId("main"))
    (claimed,) = await claim(runs)
    await sessions.send(SessionId("main"), "go on", "person")
    await runs.end(claimed.run, Ending("waiting", TaskState.WAITING, waiting_reason="a word"))
    (again,) = await claim(runs)
    assert again.woken_by == "message"


async def test_a_task_that_is_to_be_cancelled_does_not_begin_to_wait(
    tasks: TaskStore, runs: RunStore
) -> None:
    task = await put(tasks)
    then = await put(tasks, "then", after=(task.id,))
    (claimed,) = await claim(runs)
    await tasks.cancel(task.id, reason="no")
    await runs.end(claimed.run, Ending("waiting", TaskState.WAITING, waiting_reason="a word"))
    assert (await tasks.get(task.id)).state is TaskState.CANCELLED
    assert (await tasks.get(then.id)).state is TaskState.FAILED


async def test_putting_back_counts_no_attempt_and_ends_the_rights_of_the_run(
    tasks: TaskStore, runs: RunStore, events: EventStore
) -> None:
    await put(tasks)
    (claimed,) = await claim(runs)
    await runs.put_back(claimed.run)
    assert (await tasks.get(claimed.task.id)).attempt == 0
    with pytest.raises(RunLost):
        await append(events, claimed.run, 1)
    with pytest.raises(RunLost):
        await runs.end(claimed.run, _DONE)
    (again,) = await claim(runs)
    assert (again.run.attempt, again.task.state) == (1, TaskState.RUNNING)


async def test_a_large_result_is_there_if_and_only_if_its_event_is(
    store: Store, tasks: TaskStore, runs: RunStore, events: EventStore
) -> None:
    await put(tasks)
    (claimed,) = await claim(runs)
    run = claimed.run

    def large(number: int) -> LargeResult:
        id_ = f"lr_{number}"
        return LargeResult(id_, run.session_id, run.task_id, "c", "x", False, "text", 8000)

    async def stored() -> list[str]:
        async with store.transaction() as conn:
            return [row["id"] for row in await conn.fetch("SELECT id FROM large_results")]

    await append(events, run, 1, large=[large(1), large(1)])
    assert await stored() == ["lr_1"]
    await runs.put_back(run)
    with pytest.raises(RunLost):
        await append(events, run, 2, large=[large(2)])
    assert await stored() == ["lr_1"]


async def test_a_run_that_was_taken_over_can_change_nothing(
    tasks: TaskStore, runs: RunStore, events: EventStore, leases: LeaseStore
) -> None:
    await put(tasks)
    (claimed,) = await claim(runs)
    assert await leases.take_over([DAEMON]) == [claimed.task.id]
    for write in (
        append(events, claimed.run, 1),
        runs.end(claimed.run, _DONE),
        runs.end(claimed.run, _FAILED),
        runs.put_back(claimed.run),
    ):
        with pytest.raises(RunLost):
            await write
    assert not await events.of_session(claimed.run.session_id)
    (row,) = await runs.of_task(claimed.task.id)
    assert (row["ending"], row["attempt"]) == ("lost", 1)
    (again,) = (await runs.glance(DaemonId("other"), limit=1)).claims
    assert again.run.attempt == 2
    await append(events, again.run, 1)


async def test_a_task_that_was_to_be_cancelled_is_so_when_its_daemon_dies(
    tasks: TaskStore, runs: RunStore, leases: LeaseStore
) -> None:
    await put(tasks, "first")
    (claimed,) = await claim(runs)
    successor = await put(tasks, "then", after=(claimed.task.id,))
    await tasks.cancel(claimed.task.id, reason="no")
    assert (await runs.glance(DAEMON, limit=0)).to_cancel == {claimed.task.id}
    await leases.take_over([DAEMON])
    assert (await tasks.get(claimed.task.id)).state is TaskState.CANCELLED
    assert (await tasks.get(successor.id)).state is TaskState.FAILED


async def test_a_transaction_that_must_end_the_task_and_does_not_is_undone(
    tasks: TaskStore, runs: RunStore, store: Store
) -> None:
    await put(tasks)
    (claimed,) = await claim(runs)
    with pytest.raises(StillRunning):
        async with store.transaction() as conn:
            conn.fence(claimed.run, ends=True)
            await TaskStore(conn, HandClock()).enqueue(NewTask(prompt="left behind"))
    assert len(await tasks.list()) == 1


async def test_the_journal_is_read_in_parts_and_kept_in_order(
    tasks: TaskStore, runs: RunStore, events: EventStore
) -> None:
    await put(tasks)
    (claimed,) = await claim(runs)
    for seq in (1, 2, 3):
        await append(events, claimed.run, seq)
    session_id = claimed.run.session_id
    assert [each.seq for each in await events.of_session(session_id, after=1)] == [2, 3]
    assert [each.seq for each in await events.of_session(session_id, limit=1)] == [1]
    assert [each.seq for each in await events.newest(session_id, 2)] == [2, 3]


@pytest.mark.parametrize("text", ["half \ud83d", "\udc80 raw", "whole 🤔", "nul \0"])
async def test_any_text_comes_back_as_it_is_in_memory(
    text: str, tasks: TaskStore, runs: RunStore, events: EventStore
) -> None:
    await put(tasks)
    (claimed,) = await claim(runs)
    await append(events, claimed.run, 1, text)
    (event,) = await events.of_session(claimed.run.session_id)
    assert event.body == storable({"text": text, "source": "message"})


async def test_an_end_can_be_stored_whatever_its_error_says(
    tasks: TaskStore, runs: RunStore
) -> None:
    task = await put(tasks)
    (claimed,) = await claim(runs)
    await runs.end(claimed.run, Ending("failed", TaskState.FAILED, error="half \ud83d"))
    assert (await tasks.get(task.id)).error == "half �"


async def test_spending_is_summed_for_a_task(tasks: TaskStore, store: Store) -> None:
    task = await put(tasks)
    spent = await ModelCallStore(store).of_task(task.id)
    assert (spent.calls, spent.cost_microusd) == (0, 0)


async def append(
    events: EventStore, run: Run, seq: int, text: str = "x", large: Sequence[LargeResult] = ()
) -> None:
    body = storable({"text": text, "source": "message"})
    now = HandClock().now()
    task_id = TaskId(run.task_id)
    event = Event(run.session_id, seq, EventKind.USER, body, task_id, run.id, now)
    await events.append(run, [event], large=large)
