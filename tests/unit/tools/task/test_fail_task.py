"""fail_task."""

import pytest

from agentd.domain.task import NewTask, TaskState
from agentd.store.runs import RunStore
from agentd.store.tasks import TaskStore
from agentd.tools.task.fail_task import fail_task
from tests.unit.tools.task.conftest import Working


@pytest.mark.requirement("S0-14")
async def test_the_task_fails_with_its_reason_and_so_do_its_successors(
    working: Working, runs: RunStore, tasks: TaskStore
) -> None:
    after = (await tasks.enqueue(NewTask(prompt="Then.", after=(working.task.id,)))).task
    ended = await fail_task(working.run, runs, "no such invoice")
    assert ended.state is TaskState.FAILED
    task, successor = await tasks.get(working.task.id), await tasks.get(after.id)
    assert (task.state, task.error) == (TaskState.FAILED, "no such invoice")
    assert successor.state is TaskState.FAILED
    assert f"predecessor {task.id} failed: no such invoice" in (successor.error or "")
