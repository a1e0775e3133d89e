"""await_task."""

import anyio

from agentd.domain.task import NewTask, TaskState
from agentd.store.tasks import TaskStore
from agentd.toolkit.progress import Progress
from agentd.tools.task.await_task import await_task


async def test_the_end_is_waited_for_and_progress_told(tasks: TaskStore) -> None:
    made = (await tasks.enqueue(NewTask(prompt="Do it.", enqueued_by="test"))).task
    told: list[str | None] = []

    async def end() -> None:
        await tasks.cancel(made.id, reason="test")

    async with anyio.create_task_group() as group:
        group.start_soon(end)
        progress = Progress(lambda done, total, message: told.append(message))
        found = await await_task(tasks, made.id, 10, progress)
    assert found.state is TaskState.CANCELLED


async def test_after_its_time_the_task_is_shown_as_it_is(tasks: TaskStore) -> None:
    made = (await tasks.enqueue(NewTask(prompt="Do it.", enqueued_by="test"))).task
    told: list[str | None] = []
    progress = Progress(lambda done, total, message: told.append(message))
    found = await await_task(tasks, made.id, 0.01, progress)
    assert found.state is TaskState.PENDING
    assert told == ["the task is pending"]
