"""A run that works on a task, as the tools of the group meet it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from agentd.config import Config, load_config
from agentd.domain.run import Run
from agentd.domain.task import NewTask, Task
from agentd.home import make_home
from agentd.store.runs import RunStore
from agentd.store.tasks import TaskStore
from tests.conftest import DAEMON


@dataclass(frozen=True)
class Working:
    """A claimed task and its run."""

    task: Task
    run: Run


@pytest.fixture
async def working(tasks: TaskStore, runs: RunStore) -> Working:
    await tasks.enqueue(NewTask(prompt="Work.", enqueued_by="test"))
    (claim,) = (await runs.glance(DAEMON, limit=1)).claims
    return Working(claim.task, claim.run)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    make_home(tmp_path / "home")
    return load_config(tmp_path / "home")
