"""list_tasks."""

from agentd.domain.task import NewTask, Priority, TaskState
from agentd.store.tasks import TaskStore
from agentd.tools.task.list_tasks import list_tasks
from tests.unit.tools.task.conftest import Working


async def test_running_then_pending_in_the_order_of_work(
    working: Working, tasks: TaskStore
) -> None:
    for prompt, priority in (("later", Priority.LOW), ("soon", Priority.HIGH)):
        await tasks.enqueue(NewTask(prompt=prompt, priority=priority))
    found = await list_tasks(tasks)
    assert found[0].id == working.task.id
    assert [each.prompt for each in found[1:]] == ["soon", "later"]
    assert [each.prompt for each in await list_tasks(tasks, priority=Priority.LOW)] == ["later"]
    assert len(await list_tasks(tasks, state=TaskState.PENDING)) == 2
    assert [each.prompt for each in await list_tasks(tasks, limit=1, offset=1)] == ["soon"]


async def test_a_long_prompt_is_shown_in_part(tasks: TaskStore) -> None:
    await tasks.enqueue(NewTask(prompt="x" * 5000))
    (line,) = await list_tasks(tasks)
    assert len(line.prompt) < 500
