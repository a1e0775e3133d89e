"""create_task, as a person calls it and as a run does."""

from datetime import timedelta

import pytest

from agentd.domain.errors import NotFound, ToolError
from agentd.domain.task import Priority
from agentd.store.tasks import TaskStore
from agentd.tools.task.create_task import create_task
from tests.clock import HandClock
from tests.unit.tools.task.conftest import Working


async def test_everything_that_is_asked_for(
    working: Working, tasks: TaskStore, clock: HandClock
) -> None:
    created = await create_task(
        tasks,
        clock,
        "Later.",
        title="Later",
        priority=Priority.HIGH,
        after=[working.task.id],
        session="main",
        at="2d",
        key="nightly",
        run=working.run,
    )
    task = await tasks.get(created.task.id)
    assert (task.title, task.priority, task.session_id) == ("Later", Priority.HIGH, "main")
    assert task.after == (working.task.id,)
    assert task.not_before == clock.now() + timedelta(days=2)
    assert task.enqueued_by == f"task:{working.task.id}"


async def test_a_key_that_is_taken_gives_the_task_that_has_it(
    tasks: TaskStore, clock: HandClock
) -> None:
    first = await create_task(tasks, clock, "One.", key="k")
    second = await create_task(tasks, clock, "Two.", key="k")
    assert (first.created, second.created) == (True, False)
    assert second.task.id == first.task.id
    assert "taken" in second.message


async def test_what_can_not_be_is_refused(tasks: TaskStore, clock: HandClock) -> None:
    with pytest.raises(ToolError, match="at:"):
        await create_task(tasks, clock, "x", at="soon")
    with pytest.raises(NotFound):
        await create_task(tasks, clock, "x", after=["nobody"])
    assert not await tasks.list()
