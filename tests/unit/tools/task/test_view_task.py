"""view_task."""

import pytest

from agentd.domain.errors import NotFound, Refused
from agentd.domain.task import NewTask
from agentd.store.tasks import TaskStore
from agentd.tools.task.view_task import view_task


async def test_a_task_by_its_id_or_a_part_of_it(tasks: TaskStore) -> None:
    task = (await tasks.enqueue(NewTask(prompt="See.", key="k"))).task
    for name in (task.id, task.id[-8:], task.id[:30]):
        view = await view_task(tasks, name)
        assert (view.id, view.prompt, view.key) == (task.id, "See.", "k")


async def test_an_id_that_is_unknown_or_not_unique(tasks: TaskStore) -> None:
    with pytest.raises(NotFound):
        await view_task(tasks, "nobody")
    ids = [(await tasks.enqueue(NewTask(prompt="x"))).task.id for _ in range(2)]
    with pytest.raises(Refused):
        await view_task(tasks, ids[0][:6])
