"""Everything that can happen to a task, tried in every state: it moves as the table says."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from agentd.domain.errors import Refused
from agentd.domain.ids import SessionId, TaskId
from agentd.domain.task import TRANSITIONS, NewTask, TaskState
from agentd.store.leases import LeaseStore
from agentd.store.runs import Ending, RunStore
from agentd.store.sessions import SessionStore
from agentd.store.tasks import TaskStore
from tests.conftest import DAEMON

S = TaskState
Happening = Callable[[TaskId], Awaitable[object]]


async def task_in(
    state: TaskState, tasks: TaskStore, runs: RunStore, after: tuple[TaskId, ...] = ()
) -> TaskId:
    """A new task, brought into `state`. It waits for a message to its session."""
    task = (await tasks.enqueue(NewTask(prompt="x", after=after))).task
    if state is S.PENDING:
        return task.id
    claims = (await runs.glance(DAEMON, limit=99)).claims
    (claim,) = [each for each in claims if each.task.id == task.id]
    if state is not S.RUNNING:
        await runs.end(claim.run, Ending("ended", state))
    return task.id


def happenings(
    tasks: TaskStore, runs: RunStore, sessions: SessionStore, leases: LeaseStore
) -> Mapping[str, Happening]:
    async def claim(_: TaskId) -> None:
        await runs.glance(DAEMON, limit=99)

    async def daemon_dies(_: TaskId) -> None:
        await leases.take_over([DAEMON])

    async def cancel(task_id: TaskId) -> None:
        await tasks.cancel(task_id, reason="no")

    async def cancel_and_daemon_dies(task_id: TaskId) -> None:
        await tasks.cancel(task_id, reason="no")
        await leases.take_over([DAEMON])

    async def message(task_id: TaskId) -> None:
        await sessions.send(SessionId(task_id), "hello", "person")  # its own session has its id

    return {
        "claim": claim,
        "daemon dies": daemon_dies,
        "cancel": cancel,
        "cancel and daemon dies": cancel_and_daemon_dies,
        "message": message,
        "retry": tasks.retry,
        "resume": tasks.resume,
    }


async def test_nothing_moves_a_task_but_along_the_table(
    tasks: TaskStore, runs: RunStore, sessions: SessionStore, leases: LeaseStore
) -> None:
    moves: set[tuple[TaskState, TaskState]] = set()
    for happening in happenings(tasks, runs, sessions, leases).values():
        for state in S:
            task_id = await task_in(state, tasks, runs)
            assert (await tasks.get(task_id)).state is state
            with suppress(Refused):
                await happening(task_id)
            moves.add((state, (await tasks.get(task_id)).state))
    for state in (S.COMPLETED, S.FAILED, S.WAITING, S.CANCELLED):
        await task_in(state, tasks, runs)  # by the end of a run
        moves.add((S.RUNNING, state))
    first = await task_in(S.PENDING, tasks, runs)
    then = await task_in(S.PENDING, tasks, runs, after=(first,))
    await tasks.cancel(first, reason="no")
    moves.add((S.PENDING, (await tasks.get(then)).state))

    allowed = {(here, there) for here, theres in TRANSITIONS.items() for there in theres}
    assert {(here, there) for here, there in moves if here is not there} == allowed
