"""delete_task."""

import pytest

from agentd.domain.errors import NotFound, Refused
from agentd.domain.task import NewTask
from agentd.store.tasks import TaskStore
from agentd.tools.task.delete_task import delete_task
from tests.unit.tools.task.conftest import Working


async def test_a_task_that_nobody_runs_is_gone(tasks: TaskStore) -> None:
    task = (await tasks.enqueue(NewTask(prompt="x"))).task
    assert (await delete_task(tasks, task.id)).id == task.id
    with pytest.raises(NotFound):
        await tasks.get(task.id)


async def test_a_running_or_awaited_task_stays(working: Working, tasks: TaskStore) -> None:
    with pytest.raises(Refused, match="running"):
        await delete_task(tasks, working.task.id)
    awaited = (await tasks.enqueue(NewTask(prompt="x"))).task
    waiting = (await tasks.enqueue(NewTask(prompt="y", after=(awaited.id,)))).task
    with pytest.raises(Refused) as caught:
        await delete_task(tasks, awaited.id)
    assert waiting.id in str(caught.value)
