"""complete_task."""

import pytest

from agentd.domain.errors import RunLost
from agentd.domain.task import TaskState
from agentd.store.leases import LeaseStore
from agentd.store.runs import RunStore
from agentd.store.tasks import TaskStore
from agentd.toolkit.definition import Effect, tool_of
from agentd.toolkit.discover import discover
from agentd.tools.task.complete_task import complete_task
from tests.conftest import DAEMON
from tests.unit.tools.task.conftest import Working


@pytest.mark.requirement("S0-13", "S0-04")
async def test_the_task_is_completed_and_its_summary_kept(
    working: Working, runs: RunStore, tasks: TaskStore
) -> None:
    ended = await complete_task(working.run, runs, "All is done.")
    assert (ended.message, ended.state) == ("Task completed: All is done.", TaskState.COMPLETED)
    task = await tasks.get(working.task.id)
    assert (task.state, task.output) == (TaskState.COMPLETED, "All is done.")
    assert task.finished_at is not None


@pytest.mark.requirement("S0-09", "S0-14")
def test_the_three_terminal_tools_are_transactional() -> None:
    terminal = {made.name: made for made in discover().tools if made.terminal}
    assert set(terminal) == {"complete_task", "fail_task", "wait_task"}
    assert {made.effect for made in terminal.values()} == {Effect.TRANSACTIONAL}
    made = tool_of(complete_task)
    assert made is not None
    assert (made.group, list(made.input_model.model_fields)) == ("task", ["summary"])
    assert made.description.startswith("Mark the current task as complete with a summary")


async def test_a_run_that_has_lost_its_task_changes_nothing(
    working: Working, runs: RunStore, tasks: TaskStore, leases: LeaseStore
) -> None:
    await leases.take_over([DAEMON])
    with pytest.raises(RunLost):
        await complete_task(working.run, runs, "Too late.")
    assert (await tasks.get(working.task.id)).state is TaskState.PENDING
