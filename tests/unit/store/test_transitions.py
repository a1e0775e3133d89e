"""Everything that can happen to a task, tried in every state: it moves as the table says."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from agentd.domain.errors import Refused, RunLost
from agentd.domain.ids import TaskId
from agentd.domain.task import TRANSITIONS, NewTask, TaskState
from agentd.store.runs import Ending, RunStore
from agentd.store.sessions import SessionStore
from agentd.store.tasks import TaskStore
from tests.clock import HandClock
from tests.conftest import DAEMON

S = TaskState


@dataclass
class Queue:
    tasks: TaskStore
    runs: RunStore
    sessions: SessionStore
    clock: HandClock

    async def enqueued(self) -> TaskId:
        return (await self.tasks.enqueue(NewTask(prompt="x"))).task.id

    async def ended(self, state: TaskState) -> TaskId:
        """A new task that a run has brought into `state`."""
        task_id = await self.enqueued()
        if state is S.PENDING:
            return task_id
        (claim,) = [
            each
            for each in (await self.runs.glance(DAEMON, limit=99)).claims
            if each.task.id == task_id
        ]
        if state is not S.RUNNING:
            wake_at = self.clock.now() if state is S.WAITING else None
            await self.runs.end(claim.run, Ending("ended", state, wake_at=wake_at))
        return task_id



async def test_nothing_moves_a_task_but_along_the_table(
    tasks: TaskStore, runs: RunStore, sessions: SessionStore, clock: HandClock
) -> None:
    queue = Queue(tasks, runs, sessions, clock)

    async def look(task_id: TaskId) -> None:
        await runs.glance(DAEMON, limit=99)
        assert task_id

    async def predecessor_fails(task_id: TaskId) -> None:
        first = await queue.ended(S.RUNNING)
        if (await tasks.get(task_id)).state is S.PENDING:
            new = await tasks.enqueue(NewTask(prompt="then", after=(first,)))
            await tasks.cancel(first, reason="no")
            await runs.take_over([DAEMON])
            moved.add((S.PENDING, (await tasks.get(new.task.id)).state))

    async def take_over(task_id: TaskId) -> None:
        assert task_id
        await runs.take_over([DAEMON])

    async def cancel_and_take_over(task_id: TaskId) -> None:
        await tasks.cancel(task_id, reason="no")
        await runs.take_over([DAEMON])

    happenings: list[Callable[[TaskId], Awaitable[object]]] = [
        look,
        predecessor_fails,
        take_over,
        cancel_and_take_over,
        tasks.retry,
        tasks.resume,
        lambda task_id: tasks.cancel(task_id, reason="no"),
        lambda task_id: sessions.send(_session(task_id), "hello", "person"),
    ]
    moved: set[tuple[TaskState, TaskState]] = set()
    for happening in happenings:
        for state in S:
            task_id = await queue.ended(state)
            assert (await tasks.get(task_id)).state is state
            with suppress(Refused, RunLost):
                await happening(task_id)
            moved.add((state, (await tasks.get(task_id)).state))
    for state in (S.COMPLETED, S.FAILED, S.WAITING, S.CANCELLED):
        await queue.ended(state)
        moved.add((S.RUNNING, state))
    expected = {(here, there) for here, theres in TRANSITIONS.items() for there in theres}
    assert {(here, there) for here, there in moved if here is not there} == expected
