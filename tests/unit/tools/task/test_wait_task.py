"""wait_task."""

from datetime import timedelta

import pytest

from agentd.config import Config
from agentd.domain.errors import CycleRefused, NotFound, ToolError
from agentd.domain.task import NewTask, TaskState
from agentd.store.runs import RunStore
from agentd.store.tasks import TaskStore
from agentd.tools.task.wait_task import wait_task
from tests.clock import HandClock
from tests.conftest import DAEMON
from tests.unit.tools.task.conftest import Working


@pytest.mark.requirement("S0-14")
async def test_until_a_time(
    working: Working, runs: RunStore, tasks: TaskStore, clock: HandClock, config: Config
) -> None:
    await wait_task(working.run, runs, tasks, clock, config, "the bank opens", until="90m")
    task = await tasks.get(working.task.id)
    assert (task.state, task.waiting_reason) == (TaskState.WAITING, "the bank opens")
    assert task.wake_at == clock.now() + timedelta(minutes=90)
    assert not (await runs.glance(DAEMON, limit=1)).claims
    clock.advance(90 * 60)
    (claim,) = (await runs.glance(DAEMON, limit=1)).claims
    assert claim.woken_by == "time"


async def test_for_another_task(
    working: Working, runs: RunStore, tasks: TaskStore, clock: HandClock, config: Config
) -> None:
    other = (await tasks.enqueue(NewTask(prompt="Other.", enqueued_by="test"))).task
    await wait_task(working.run, runs, tasks, clock, config, "the other", on_task=other.id)
    await tasks.cancel(other.id, reason="not needed")
    (claim,) = (await runs.glance(DAEMON, limit=5)).claims
    assert (claim.task.id, claim.woken_by) == (working.task.id, "task")


async def test_for_a_person_but_never_for_ever(
    working: Working, runs: RunStore, tasks: TaskStore, clock: HandClock, config: Config
) -> None:
    ended = await wait_task(working.run, runs, tasks, clock, config, "a word")
    assert "for a person" in ended.message
    clock.advance(30 * 86400)
    (claim,) = (await runs.glance(DAEMON, limit=1)).claims
    assert claim.woken_by == "time"


async def test_what_can_not_be_waited_for_is_refused(
    working: Working, runs: RunStore, tasks: TaskStore, clock: HandClock, config: Config
) -> None:
    with pytest.raises(ToolError, match="until"):
        await wait_task(working.run, runs, tasks, clock, config, "x", until="next moon")
    with pytest.raises(NotFound):
        await wait_task(working.run, runs, tasks, clock, config, "x", on_task="nobody")
    with pytest.raises(CycleRefused) as caught:
        await wait_task(working.run, runs, tasks, clock, config, "x", on_task=working.task.id)
    assert working.task.id in str(caught.value)
    assert (await tasks.get(working.task.id)).state is TaskState.RUNNING
