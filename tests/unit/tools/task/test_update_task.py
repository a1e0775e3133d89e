"""update_task."""

import pytest

from agentd.domain.errors import CycleRefused, Refused, ToolError
from agentd.domain.task import NewTask, Priority, TaskState
from agentd.store.tasks import TaskStore
from agentd.tools.task.update_task import update_task
from tests.clock import HandClock
from tests.unit.tools.task.conftest import Working


async def test_what_is_left_out_stays(tasks: TaskStore, clock: HandClock) -> None:
    task = (await tasks.enqueue(NewTask(prompt="Old.", title="Title"))).task
    view = await update_task(tasks, clock, task.id[-8:], prompt="New.", priority=Priority.HIGH)
    assert (view.prompt, view.title, view.priority) == ("New.", "Title", Priority.HIGH)
    assert (await tasks.get(task.id)).prompt == "New."


async def test_predecessors_are_replaced_and_a_cycle_is_named(
    tasks: TaskStore, clock: HandClock
) -> None:
    one = (await tasks.enqueue(NewTask(prompt="One."))).task
    two = (await tasks.enqueue(NewTask(prompt="Two.", after=(one.id,)))).task
    with pytest.raises(CycleRefused) as caught:
        await update_task(tasks, clock, one.id, after=[two.id])
    assert one.id in str(caught.value)
    assert two.id in str(caught.value)
    await update_task(tasks, clock, two.id, after=[])
    assert (await tasks.get(two.id)).after == ()


async def test_only_pending_tasks_change(
    working: Working, tasks: TaskStore, clock: HandClock
) -> None:
    with pytest.raises(Refused, match="only a pending task"):
        await update_task(tasks, clock, working.task.id, prompt="No.")
    with pytest.raises(ToolError):
        await update_task(tasks, clock, working.task.id, at="never")
    assert (await tasks.get(working.task.id)).state is TaskState.RUNNING
